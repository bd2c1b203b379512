// daemon/report_doors.h - how reports leave the daemon besides gRPC: as pages over HTTP and as files of the archive; and what
// the parts of the daemon say of themselves.
#ifndef DAEMON_REPORT_DOORS_H_
#define DAEMON_REPORT_DOORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/archive/archiver.h"
#include "daemon/audit_trim_log.h"
#include "daemon/http/report_site.h"
#include "daemon/metrics/metrics_page.h"
#include "daemon/perfd_flags.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/policy/policy_source.h"
#include "daemon/service/doors/unix_door.h"
#include "daemon/store/sqlite_store.h"
#include "daemon/tls/tls_gate.h"

namespace perfd::daemon {

// Links to the pages that are served at `listening`.
absl::StatusOr<ReportLinks> LinksOf(const PerfdFlags& flags, const SqliteStore& store,
                                    const std::string& listening);

// What the pages show; both must outlive it. Who may read what is decided by the key of the link.
SiteSource SourceOf(Pipeline& pipeline, const MetricsPage& metrics);

// The store must outlive it.
ArchiverOptions ArchiveOf(const PerfdFlags& flags, SqliteStore& store);

DaemonFigures FiguresOf(const PerfdFlags& flags, Pipeline& pipeline, const HttpServer& http,
                        Archiver& archive, const AuditTrimLog& audit, TlsGate& tls);
// For `doctor`.
std::vector<DoctorCheck> OwnChecks(const UnixDoor& door, Archiver& archive,
                                   const PolicySource& policy, TlsGate& tls);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_DOORS_H_
