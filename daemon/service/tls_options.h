// daemon/service/tls_options.h - where the TCP door listens and its files.
#ifndef DAEMON_SERVICE_TLS_OPTIONS_H_
#define DAEMON_SERVICE_TLS_OPTIONS_H_

#include <string>

namespace perfd::daemon {

struct TlsOptions {
  std::string listen;  // HOST:PORT
  std::string ca;      // PEM files
  std::string cert;
  std::string key;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_TLS_OPTIONS_H_
