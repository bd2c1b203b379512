// daemon/tls/tls_options.h - where the TCP door listens and its files.
#ifndef DAEMON_TLS_TLS_OPTIONS_H_
#define DAEMON_TLS_TLS_OPTIONS_H_

#include <string>

namespace perfd::daemon {

struct TlsOptions {
  std::string listen;  // HOST:PORT
  std::string ca;      // PEM files
  std::string cert;
  std::string key;
  std::string revoked =
      {};  // list of certificates that are not accepted (revoked_list.h); empty: none
};

}  // namespace perfd::daemon

#endif  // DAEMON_TLS_TLS_OPTIONS_H_
