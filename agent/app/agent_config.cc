#include "agent/app/agent_config.h"

namespace perfd::agent {

// lint: data table
ConfigTable AgentConfig(AgentFlags& flags) {
  constexpr auto kPath = ConfigForm::kPath;
  AgentOptions& options = flags.options;
  return {
      "AgentConfig",
      {
          {.path = "node", .field = &options.node},
          {.path = "daemon.address", .field = &options.dial.address},
          {.path = "daemon.user", .field = &flags.daemon_user},
          {.path = "tls.ca", .field = &options.dial.tls_ca, .live = true, .form = kPath},
          {.path = "tls.certificate", .field = &options.dial.tls_cert, .live = true, .form = kPath},
          {.path = "tls.key", .field = &options.dial.tls_key, .live = true, .form = kPath},
          {.path = "spool.directory", .field = &options.spool_directory, .form = kPath},
          {.path = "spool.limit_mib",
           .field = &flags.spool_limit_mib,
           .live = true,
           .low = 1,
           .high = kMaxSpoolMib},
          {.path = "injection.allowed", .field = &options.inject, .live = true},
          {.path = "injection.allow_recovery", .field = &options.allow_recovery},
          {.path = "injection.disable_file", .field = &options.disable_file, .form = kPath},
          {.path = "injection.journal_directory",
           .field = &options.journal_directory,
           .form = kPath},
          {.path = "programs.reader", .field = &options.reader_binary, .form = kPath},
          {.path = "programs.tracer", .field = &options.tracer_binary, .form = kPath},
          {.path = "log.level",
           .field = &flags.log_level,
           .live = true,
           .form = ConfigForm::kChoice,
           .choices = "debug|info|warning|error"},
          {.path = "log.file", .field = &flags.log_file, .live = true, .form = kPath},
      }};
}

}  // namespace perfd::agent
