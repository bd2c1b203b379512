#include "agent/discover/rank_finder.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/discover/cgroup_scope.h"
#include "agent/discover/job_choice.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kNameBufferBytes = 16384;
constexpr absl::Duration kStuckPause = absl::Milliseconds(20);

absl::StatusOr<uint32_t> UserId(const std::string& user) {
  uint32_t uid = 0;
  if (absl::SimpleAtoi(user, &uid)) return uid;
  std::array<char, kNameBufferBytes> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("target.user: this node knows no user '", user, "'"));
  }
  return found->pw_uid;
}

absl::Status CheckTarget(const TargetSpec& target) {
  const int kinds =
      (target.slurm_job ? 1 : 0) + (target.command ? 1 : 0) + (target.pids.empty() ? 0 : 1);
  if (kinds == 1) return absl::OkStatus();
  return absl::InvalidArgumentError("target: give exactly one of slurm_job, command and pids");
}

// The pids to look at, each once, sorted.
absl::StatusOr<std::vector<int32_t>> PidsToRead(const ProcFs& procfs, const Scope& scope,
                                                ProcessScan* scan) {
  const TargetSpec& target = *scope.target;
  if (target.pids.empty()) return procfs.Pids();
  if (target.tree) return scan->tree().Members(procfs, scope);
  std::vector<int32_t> pids = target.pids;
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

struct Matches {
  std::vector<Candidate> accepted;
  std::vector<RejectedProcess> rejected;
  std::map<uint32_t, int> foreign;  // uid -> processes that match a command
  std::vector<RejectedProcess> stuck;
  std::vector<int32_t> silent;  // stuck ones that do not answer, and are not known to match
};

// A sentence about processes that were left out, or nothing.
std::string LeftOut(const std::vector<int32_t>& silent) {
  constexpr size_t kMostNamed = 8;
  if (silent.empty()) return {};
  const std::vector<int32_t> named(
      silent.begin(), silent.begin() + static_cast<ptrdiff_t>(std::min(silent.size(), kMostNamed)));
  return absl::StrCat(silent.size(), " processes that may be meant do not answer (their address ",
                      "space is locked, or the file system of their program hangs) and are left ",
                      "out: ", absl::StrJoin(named, ", "),
                      named.size() < silent.size() ? ", ..." : "");
}

class Matcher {
 public:
  Matcher(const ProcFs& procfs, const Scope& scope, ProcessScan* scan)
      : procfs_(procfs), scope_(scope), scan_(scan) {}

  Matches Match(const std::vector<int32_t>& pids, absl::Duration patience) {
    Matches matches;
    for (const int32_t pid : pids) Inspect(pid, &matches);
    for (; !matches.stuck.empty() && patience > absl::ZeroDuration(); patience -= kStuckPause) {
      absl::SleepFor(kStuckPause);
      matches.silent.clear();
      for (const RejectedProcess& process : std::exchange(matches.stuck, {}))
        Inspect(process.pid, &matches);
    }
    // Without a reason it is not known to match.
    for (RejectedProcess& process : matches.stuck) {
      if (!process.reason.ok()) matches.rejected.push_back(std::move(process));
    }
    return matches;
  }

 private:
  void Inspect(int32_t pid, Matches* matches) {
    const absl::StatusOr<ProcessStamp> stamp = procfs_.Stamp(pid);
    if (!stamp.ok()) {
      // Processes come and go while /proc is read: only a pid that was named is worth a word.
      if (scope_.Names(pid))
        matches->rejected.push_back(
            {pid, HidesOthers(procfs_, scope_) ? NotYours(scope_, pid) : stamp.status()});
      return;
    }
    // A shadow of a rank (agent/shadow) looks like one, but ends without a word to its parent.
    if (!scope_.Names(pid) && stamp->exit_signal == 0) return;
    if (const Verdict* known = scan_->Recall(pid, *stamp)) return Sort(*known, matches);
    const Verdict verdict = Judge(procfs_, scope_, pid, *stamp);
    scan_->Remember(*stamp, verdict);
    Sort(verdict, matches);
  }

  void Sort(const Verdict& verdict, Matches* matches) const {
    const Candidate& candidate = verdict.candidate;
    switch (verdict.kind) {
      case Verdict::Kind::kNoMatch:
        break;
      case Verdict::Kind::kAccepted:
        matches->accepted.push_back(candidate);
        break;
      case Verdict::Kind::kRejected:
        // Below a named process others come and go.
        if (scope_.target->tree && absl::IsNotFound(verdict.reason) && !scope_.Names(candidate.pid))
          break;
        matches->rejected.push_back({candidate.pid, verdict.reason});
        break;
      case Verdict::Kind::kForeign:
        ++matches->foreign[candidate.uid];
        break;
      case Verdict::Kind::kStuck:
        matches->stuck.push_back({candidate.pid, verdict.reason});
        if (verdict.reason.ok() && IsSilent(candidate)) matches->silent.push_back(candidate.pid);
        break;
    }
  }

  const ProcFs& procfs_;
  const Scope& scope_;
  ProcessScan* const scan_;
};

absl::Status NothingFound(const ProcFs& procfs, const std::string& node, const Scope& scope,
                          const Matches& matches) {
  const std::map<uint32_t, int>& foreign = matches.foreign;
  const std::string left_out = LeftOut(matches.silent);
  const std::string more = left_out.empty() ? "" : "; " + left_out;
  if (foreign.empty() || HidesOthers(procfs, scope))
    return absl::NotFoundError(absl::StrCat("no process on ", node, " matches the target", more));
  std::vector<std::string> owners;
  owners.reserve(foreign.size());
  for (const auto& [uid, count] : foreign)
    owners.push_back(absl::StrCat(count, " of ", UserText(uid)));
  return absl::NotFoundError(absl::StrCat(
      "no process of ", UserText(scope.wanted_uid), " on ", node, " matches '",
      *scope.target->command, "'; those that match belong to others: ", absl::StrJoin(owners, ", "),
      scope.requester->privileged ? "; name the owner with target.user" : "", more));
}

// The pid of what was accepted may have been reused since it was judged.
void DropEnded(const ProcFs& procfs, Discovery* discovery) {
  std::erase_if(discovery->ranks, [&](const RankInfo& info) {
    const absl::StatusOr<uint64_t> start = procfs.StartTicks(info.pid);
    if (start.ok() && *start == info.start_ticks) return false;
    discovery->rejected.push_back(
        {info.pid, absl::NotFoundError(absl::StrCat("process ", info.pid, " has ended"))});
    return true;
  });
}

}  // namespace

RankFinder::RankFinder(ProcFs procfs, std::string node, absl::Duration patience, SleepFor sleep)
    : procfs_(std::move(procfs)),
      node_(std::move(node)),
      patience_(patience),
      sleep_(std::move(sleep)) {}

// A job that is followed has its own rules: its shells are dropped by their names.
std::vector<LauncherNote> RankFinder::LeaveOutLaunchers(const Scope& scope, ProcessScan* scan,
                                                        std::vector<Candidate>* accepted) const {
  std::vector<LauncherNote> notes;
  if (scope.target->tree) {
    notes = scan->tree().LeaveOut(procfs_, scan->clock(), sleep_, accepted);
  } else if (!scope.target->pids.empty() && !scan->follows_job()) {
    notes = LeaveOutNamed(procfs_, scope, sleep_, accepted);
  }
  for (LauncherNote& note : notes) {
    note.disposition = scan->first() && accepted->empty() ? LauncherNote::Disposition::kRefused
                                                          : LauncherNote::Disposition::kLeftOut;
  }
  return notes;
}

absl::StatusOr<Discovery> RankFinder::Find(const TargetSpec& target,
                                           const std::vector<RankRange>& ranks,
                                           const Requester& requester) const {
  const SystemClock clock;
  ProcessScan once(clock);
  return Find(target, ranks, requester, &once);
}

absl::StatusOr<Discovery> RankFinder::Find(const TargetSpec& target,
                                           const std::vector<RankRange>& ranks,
                                           const Requester& requester, ProcessScan* scan) const {
  RETURN_IF_ERROR(CheckTarget(target));
  Scope scope{&target, &requester, requester.uid};
  if (!target.user.empty()) {
    ASSIGN_OR_RETURN(scope.wanted_uid, UserId(target.user));
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> pids, PidsToRead(procfs_, scope, scan));
  scan->Retain(pids);
  const bool first = scan->first();
  Matches matches =
      Matcher(procfs_, scope, scan).Match(pids, first ? patience_ : absl::ZeroDuration());
  Discovery discovery;
  discovery.launchers = LeaveOutLaunchers(scope, scan, &matches.accepted);
  scan->RecordScanned();
  if (target.pids.empty()) matches.accepted = RetainPrograms(std::move(matches.accepted));
  // Before they take a number.
  if (scan->follows_job() && !target.tree) DropWrappers(&matches.accepted);
  if (matches.accepted.empty() && matches.rejected.empty() && discovery.launchers.empty()) {
    return NothingFound(procfs_, node_, scope, matches);
  }
  discovery.job_ids = JobIds(matches.accepted);
  if (target.command) RETURN_IF_ERROR(ChooseJob(&scan->job_id(), &matches.accepted));
  if (std::string warning = CollidingLaunches(matches.accepted); first && !warning.empty())
    discovery.warnings.push_back(std::move(warning));
  if (std::string warning = LeftOut(matches.silent); first && !warning.empty())
    discovery.warnings.push_back(std::move(warning));
  if (first && target.tree && scan->tree().cut()) {
    discovery.warnings.push_back(absl::StrCat("more than ", TreeScan::kMost,
                                              " processes run below the target: those farthest "
                                              "from it are left out"));
  }
  discovery.rejected = std::move(matches.rejected);
  for (RankInfo& info : NumberRanks(matches.accepted, node_, &scan->numbers())) {
    if (SelectsRank(ranks, info.rank)) discovery.ranks.push_back(std::move(info));
  }
  if (first) {
    DropEnded(procfs_, &discovery);
    discovery.cgroup = FindJobCgroup(procfs_, discovery.ranks);
  }
  return discovery;
}

}  // namespace perfd::agent
