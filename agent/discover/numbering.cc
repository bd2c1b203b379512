#include "agent/discover/numbering.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

using GroupKey = std::tuple<std::string, std::string, RankSource, int32_t>;

GroupKey KeyOf(const Candidate& candidate) {
  const RankEnvironment& environment = candidate.environment;
  return {environment.job_id, environment.launch, environment.source, environment.rank};
}

bool IsProgram(const Candidate& candidate) {
  return !IsWrapper(CommandName(candidate));
}

// Of those whose pid is another process's now, or that are MPI ranks by now.
void RemoveJumps(const std::vector<RankInfo>& ranks, GivenNumbers* given) {
  std::map<int32_t, const RankInfo*> seen;
  for (const RankInfo& info : ranks) seen[info.pid] = &info;
  std::erase_if(given->by_process, [&](const auto& entry) {
    const auto found = seen.find(entry.first.first);
    return found != seen.end() && (found->second->start_ticks != entry.first.second ||
                                   found->second->source != RankSource::kNone);
  });
}

class FreeNumbers {
 public:
  explicit FreeNumbers(GivenNumbers* given) : given_(*given), next_(given->first_free) {
    if (!given_.reuse) return;
    for (const auto& [process, number] : given_.by_process) taken_.insert(number);
  }

  int32_t Next() {
    if (!given_.reuse) return given_.first_free++;
    while (taken_.contains(next_)) ++next_;
    return next_++;
  }

 private:
  GivenNumbers& given_;
  std::set<int32_t> taken_;
  int32_t next_;
};

}  // namespace

void DropWrappers(std::vector<Candidate>* candidates) {
  std::erase_if(*candidates, [](const Candidate& candidate) { return !IsProgram(candidate); });
}

// A shell is dropped where its rank also has a program. A batch script's shell is in a launch of its own: it is dropped
// where the job has any program at all.
std::vector<Candidate> RetainPrograms(std::vector<Candidate> candidates) {
  std::erase_if(candidates, [](const Candidate& c) { return IsLauncher(CommandName(c)); });
  std::set<GroupKey> with_program;
  std::set<std::string> jobs_with_program;
  for (const Candidate& candidate : candidates) {
    if (!IsProgram(candidate)) continue;
    with_program.insert(KeyOf(candidate));
    jobs_with_program.insert(candidate.environment.job_id);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (IsProgram(candidate)) return false;
    const RankSource source = candidate.environment.source;
    const bool outside_ranks = source == RankSource::kNone || source == RankSource::kSlurm;
    return with_program.count(KeyOf(candidate)) != 0 ||
           (outside_ranks && jobs_with_program.count(candidate.environment.job_id) != 0);
  });
  return candidates;
}

std::vector<RankInfo> NumberRanks(const std::vector<Candidate>& candidates, const std::string& node,
                                  GivenNumbers* given) {
  std::vector<RankInfo> ranks;
  int32_t unnumbered = 0;
  for (const Candidate& candidate : candidates) {
    const RankEnvironment& environment = candidate.environment;
    RankInfo info;
    info.node = node;
    info.pid = candidate.pid;
    info.uid = candidate.uid;
    info.start_ticks = candidate.start_ticks;
    info.rank = environment.rank;
    info.world_size = environment.world_size;
    info.source = environment.source;
    info.job_id = environment.job_id;
    info.command = CommandName(candidate);
    if (info.source == RankSource::kNone) {
      ++unnumbered;
    } else {
      given->first_free = std::max(given->first_free, info.rank + 1);
    }
    ranks.push_back(std::move(info));
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankInfo& a, const RankInfo& b) { return a.pid < b.pid; });
  RemoveJumps(ranks, given);
  FreeNumbers numbers(given);
  for (RankInfo& info : ranks) {
    if (info.source != RankSource::kNone) continue;
    const auto [own, is_new] = given->by_process.try_emplace({info.pid, info.start_ticks});
    if (is_new) own->second = numbers.Next();
    info.rank = own->second;
    info.world_size = unnumbered;
    if (info.job_id.empty()) info.job_id = absl::StrCat("pid-", info.pid);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankInfo& a, const RankInfo& b) { return a.rank < b.rank; });
  return ranks;
}

}  // namespace perfd::agent
