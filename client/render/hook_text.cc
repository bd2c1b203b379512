#include "client/render/hook_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/render/text_style.h"
#include "client/render/text_table.h"
#include "core/base/clock.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

std::string Ago(int64_t then_ns, int64_t now_ns) {
  const int64_t seconds = std::max<int64_t>(now_ns - then_ns, 0) / kNsPerSecond;
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  if (seconds < 7200) return absl::StrCat(seconds / 60, " min ago");
  return absl::StrCat(seconds / 3600, " h ago");
}

std::string JobName(const HookJob& job) {
  std::string name = job.cluster.empty() ? job.job : absl::StrCat(job.cluster, "/", job.job);
  if (!job.scheduler.empty()) name = absl::StrCat(job.scheduler, " ", name);
  if (job.restart > 0) absl::StrAppend(&name, " (restart ", job.restart, ")");
  return name;
}

std::string Summary(const HookOverview& overview) {
  std::string text = overview.policy.empty()
                         ? "No policy: no job is profiled without being asked for.\n"
                         : absl::StrCat("Policy: ", Clean(overview.policy), "\n");
  if (!overview.policy_error.empty())
    absl::StrAppend(&text, "The policy file is not taken: ", Clean(overview.policy_error), "\n");
  std::vector<std::string> counts;
  for (const auto& [decision, jobs] : overview.counts) {
    if (jobs > 0) counts.push_back(absl::StrCat(jobs, " ", HookDecisionName(decision)));
  }
  if (!counts.empty())
    absl::StrAppend(&text, "Jobs: ", absl::StrJoin(counts, ", "), "; ", overview.active,
                    " profiles are active, ", overview.today, " were begun today (UTC)\n");
  return text;
}

}  // namespace

std::string RenderHook(const HookOverview& overview, int64_t now_unix_ns) {
  const std::string summary = Summary(overview);
  if (overview.records.empty()) return absl::StrCat(summary, "No job was decided about yet.\n");
  TextTable table({{"JOB"},
                   {"SEEN"},
                   {"USER"},
                   {"PARTITION"},
                   {"DECISION"},
                   {"PROFILE"},
                   {"NUMBER", true},
                   {"REASON"}});
  for (const HookRecord& record : overview.records) {
    const HookJob& job = record.job;
    table.Add({JobName(job), Ago(record.seen_unix_ns, now_unix_ns),
               job.user.empty() ? absl::StrCat(job.uid) : job.user, job.partition,
               HookDecisionName(record.answer.decision), record.answer.profile_id,
               record.number == 0 ? "" : absl::StrCat(record.number), record.answer.reason});
  }
  return absl::StrCat(summary, table.Render());
}

std::string HookToJsonLine(const HookOverview& overview) {
  Json decisions = Json::object();
  for (const auto& [decision, jobs] : overview.counts) decisions[HookDecisionName(decision)] = jobs;
  Json jobs = Json::array();
  for (const HookRecord& record : overview.records) {
    jobs.push_back({{"scheduler", record.job.scheduler},
                    {"cluster", record.job.cluster},
                    {"job", record.job.job},
                    {"restart", record.job.restart},
                    {"uid", record.job.uid},
                    {"user", record.job.user},
                    {"account", record.job.account},
                    {"partition", record.job.partition},
                    {"decision", HookDecisionName(record.answer.decision)},
                    {"reason", record.answer.reason},
                    {"profile", record.answer.profile_id},
                    {"number", record.number},
                    {"seen_unix_ns", record.seen_unix_ns},
                    {"ended_unix_ns", record.ended_unix_ns}});
  }
  return JsonLine({{"policy", overview.policy},
                   {"policy_error", overview.policy_error},
                   {"active", overview.active},
                   {"today", overview.today},
                   {"decisions", decisions},
                   {"jobs", jobs}});
}

}  // namespace perfd::client
