// daemon/perfd_flags.h - the command line of perfd.
#ifndef DAEMON_PERFD_FLAGS_H_
#define DAEMON_PERFD_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "daemon/service/grpc_host.h"

namespace perfd {

struct PerfdFlags {
  std::string store_dir = "/var/lib/perfd";
  std::string socket = "/run/perfd/perfd.sock";
  TlsOptions tls;
  std::vector<std::string> tls_admins;
  std::string metrics_listen = "127.0.0.1:9754";
  std::string admin_group;
  int64_t retention_days = 90;
  int64_t retention_mib = 0;
  LogLevel log_level = LogLevel::kInfo;
};

// Parses the command line. Sets *exit_code and returns false when the program should end (--help, --version, errors).
bool ParsePerfdFlags(int argc, char** argv, PerfdFlags* flags, int* exit_code);

}  // namespace perfd

#endif  // DAEMON_PERFD_FLAGS_H_
