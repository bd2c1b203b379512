#include "daemon/archive/archive_entry.h"

#include <nlohmann/json.hpp>

#include "core/analysis/jobs/history.h"
#include "core/analysis/jobs/job_line.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"

namespace perfd::daemon {

std::string ArchiveEntry(const Report& report) {
  const ProfileStatus& status = report.status;
  const HistoryProfile facts = ToHistory(report);
  const std::optional<uint32_t> slurm_job = status.spec.target.slurm_job;
  Json nodes = Json::array();
  for (const NodeCoverage& node : report.nodes) nodes.push_back(node.node);
  Json entry = {{"format", 1},
                {"summary", JobLine(report)},
                {"job",
                 {{"profile", status.id},
                  {"slurm_job", slurm_job.has_value() ? Json(*slurm_job) : Json(nullptr)},
                  {"job_id", facts.job},
                  {"command", facts.command},
                  {"user", status.requester.name},
                  {"uid", status.requester.uid},
                  {"ranks", facts.ranks},
                  {"nodes", nodes},
                  {"started_unix_ns", facts.started_unix_ns},
                  {"finished_unix_ns", status.finished_unix_ns}}}};
  entry.update(ReportToJson(report));
  return JsonLine(entry);
}

}  // namespace perfd::daemon
