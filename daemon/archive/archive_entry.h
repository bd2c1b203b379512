// daemon/archive/archive_entry.h - a finished profile as one JSON text: what a site keeps of a job.
//
// Shape    {"format": 1, "summary": JobLine, "job": {...}, then every key of core/json/report_json.h}.
//   job    profile, slurm_job (or null), job_id, command, user, uid, ranks, nodes[], started_unix_ns, finished_unix_ns
// Threads  thread-safe (pure).
#ifndef DAEMON_ARCHIVE_ARCHIVE_ENTRY_H_
#define DAEMON_ARCHIVE_ARCHIVE_ENTRY_H_

#include <string>

#include "core/model/report.h"

namespace perfd::daemon {

std::string ArchiveEntry(const Report& report);

}  // namespace perfd::daemon

#endif  // DAEMON_ARCHIVE_ARCHIVE_ENTRY_H_
