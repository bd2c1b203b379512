#include "daemon/perfd_config.h"

namespace perfd::daemon {

// lint: data table
ConfigTable PerfdConfig(PerfdFlags& flags) {
  constexpr auto kPath = ConfigForm::kPath;
  ConfigTable table{
      "DaemonConfig",
      {
          {.path = "store.directory", .field = &flags.store_dir, .form = kPath},
          {.path = "store.retention_days",
           .field = &flags.retention.days,
           .live = true,
           .high = kMaxRetentionDays},
          {.path = "store.retention_mib",
           .field = &flags.retention.mib,
           .live = true,
           .high = kMaxRetentionMib},
          {.path = "store.audit_days",
           .field = &flags.retention.audit_days,
           .live = true,
           .high = kMaxRetentionDays},
          {.path = "store.audit_mib",
           .field = &flags.retention.audit_mib,
           .live = true,
           .high = kMaxRetentionMib},
          {.path = "archive.directory", .field = &flags.archive_dir, .form = kPath},
          {.path = "archive.days", .field = &flags.archive_days, .high = kMaxRetentionDays},
          {.path = "archive.mib", .field = &flags.archive_mib, .high = kMaxRetentionMib},
          {.path = "policy.file", .field = &flags.policy, .form = kPath},
          {.path = "listen.socket", .field = &flags.socket, .form = kPath},
          {.path = "listen.tcp", .field = &flags.tls.listen},
          {.path = "listen.metrics", .field = &flags.metrics_listen},
          {.path = "metrics.names", .field = &flags.metrics_names},
          {.path = "reports.open", .field = &flags.open_reports},
          {.path = "reports.url", .field = &flags.report_url},
          {.path = "tls.ca", .field = &flags.tls.ca, .live = true, .form = kPath},
          {.path = "tls.certificate", .field = &flags.tls.cert, .live = true, .form = kPath},
          {.path = "tls.key", .field = &flags.tls.key, .live = true, .form = kPath},
          {.path = "tls.revoked", .field = &flags.tls.revoked, .live = true, .form = kPath},
          {.path = "access.admin_group", .field = &flags.admin_group, .live = true},
          {.path = "access.tls_admins", .field = &flags.tls_admins, .live = true},
          {.path = "access.agent_user", .field = &flags.agent_user, .live = true},
          {.path = "log.level",
           .field = &flags.log_level,
           .live = true,
           .form = ConfigForm::kChoice,
           .choices = "debug|info|warning|error"},
          {.path = "log.file", .field = &flags.log_file, .live = true, .form = kPath},
      }};
  for (const LimitRow& row : LimitTable())
    table.keys.push_back({.path = row.key,
                          .field = &flags.limits[static_cast<size_t>(row.limit)],
                          .live = true,
                          .low = row.range.low,
                          .high = row.range.high});
  return table;
}

}  // namespace perfd::daemon
