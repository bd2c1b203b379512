// daemon/perfd_flags.h - the command line of perfd, over its configuration file, over the defaults.
//
// Threads  thread-compatible.
#ifndef DAEMON_PERFD_FLAGS_H_
#define DAEMON_PERFD_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/limits/limit_table.h"
#include "daemon/tls/tls_options.h"

namespace perfd::daemon {

inline constexpr int64_t kMaxRetentionDays = 36500;
inline constexpr int64_t kMaxRetentionMib = 1 << 24;

// How long what is stored is kept, and how much of it.
struct RetentionFlags {
  int64_t days = 90;
  int64_t mib = 0;
  int64_t audit_days = 365;
  int64_t audit_mib = 64;  // of each user
};

struct PerfdFlags {
  std::string config;  // the file; empty: none
  std::string store_dir = "/var/lib/perfd";
  std::string socket = "/run/perfd/perfd.sock";
  TlsOptions tls;
  std::vector<std::string> tls_admins;
  std::string metrics_listen = "127.0.0.1:9754";
  bool metrics_names = false;  // of people, programs and code
  bool open_reports = false;
  std::string report_url;   // empty: where metrics_listen is
  std::string archive_dir;  // empty: no archive
  int64_t archive_days = 365;
  int64_t archive_mib = 4096;
  std::string admin_group;
  std::string policy;      // file; empty: no job is profiled unasked
  std::string agent_user;  // name or number; empty: nobody besides root and our own user
  RetentionFlags retention;
  LimitValues limits = StandardLimits();
  std::string log_level = "info";
  std::string log_file;  // empty: standard error
};

// Parses the command line and the file it names. Sets *exit_code and returns false when the program should end (--help,
// --version, errors).
bool ParsePerfdFlags(int argc, char** argv, PerfdFlags* flags, int* exit_code);

// The same again, with what the file says now. Prints nothing.
absl::StatusOr<PerfdFlags> ParsePerfdFlagsAgain(int argc, char** argv);

}  // namespace perfd::daemon

#endif  // DAEMON_PERFD_FLAGS_H_
