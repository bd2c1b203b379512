#include "daemon/control/target_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::daemon {

std::string TargetText(const ProfileSpec& spec, const Requester& requester,
                       const std::string& job) {
  const TargetSpec& target = spec.target;
  std::string text;
  if (target.slurm_job.has_value()) {
    text = job.empty() ? absl::StrCat("job ", *target.slurm_job) : job;
  } else if (target.command.has_value()) {
    const std::string& user = target.user.empty() ? requester.name : target.user;
    text = absl::StrCat("command '", *target.command, "' of user ", user);
  } else {
    const size_t shown = target.pids.size() > 8 ? 8 : target.pids.size();
    const std::vector<int32_t> some(target.pids.begin(),
                                    target.pids.begin() + static_cast<ptrdiff_t>(shown));
    text = absl::StrCat(target.pids.size() == 1 ? "pid " : "pids ", absl::StrJoin(some, ", "),
                        shown < target.pids.size() ? ", ..." : "", target.tree ? " or below" : "");
  }
  if (spec.ranks.empty()) return text;
  std::vector<std::string> ranges;
  for (const RankRange& range : spec.ranks) {
    if (ranges.size() == 8) break;
    ranges.push_back(range.first == range.last ? absl::StrCat(range.first)
                                               : absl::StrCat(range.first, "-", range.last));
  }
  return absl::StrCat(text, ", ranks ", absl::StrJoin(ranges, ","));
}

std::string StopText(EndReason end) {
  if (end == EndReason::kKnown) return "every hot loop is known";
  if (end == EndReason::kNothingLearnt) return "nothing more was learnt for long";
  return "the job has ended";
}

}  // namespace perfd::daemon
