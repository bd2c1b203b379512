#include "agent/discover/rank_finder.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/discover/candidate.h"
#include "agent/discover/cgroup_scope.h"
#include "agent/discover/numbering.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr size_t kElfHeadBytes = 64;  // sizeof(Elf64_Ehdr)
constexpr size_t kNameBufferBytes = 16384;

// "alice (uid 1000)"; the number alone when nobody knows the name.
std::string UserText(uint32_t uid) {
  std::array<char, kNameBufferBytes> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return absl::StrCat("uid ", uid);
  }
  return absl::StrCat(found->pw_name, " (uid ", uid, ")");
}

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

// Whose processes the target means.
struct Scope {
  const TargetSpec* target;
  const Requester* requester;
  uint32_t wanted_uid;  // only for targets by command
};

bool IsNamed(const Scope& scope, const Candidate& candidate) {
  if (scope.target->slurm_job) return BelongsToSlurmJob(candidate, *scope.target->slurm_job);
  return MatchesCommand(candidate, *scope.target->command);
}

absl::Status CheckOwner(const Scope& scope, const Candidate& candidate) {
  const std::string owner = absl::StrCat("process ", candidate.pid, " (", CommandName(candidate),
                                         ") belongs to ", UserText(candidate.uid));
  if (candidate.uid != scope.requester->uid && !scope.requester->privileged) {
    return absl::PermissionDeniedError(
        absl::StrCat(owner, "; ", scope.requester->name.empty() ? "you" : scope.requester->name,
                     " may profile only processes of uid ", scope.requester->uid));
  }
  if (scope.target->command && candidate.uid != scope.wanted_uid) {
    return absl::PermissionDeniedError(absl::StrCat(owner, ", not to ", UserText(scope.wanted_uid),
                                                    "; name the owner with target.user"));
  }
  return absl::OkStatus();
}

absl::Status CheckCandidate(const ProcFs& procfs, const Scope& scope, const Candidate& candidate) {
  RETURN_IF_ERROR(CheckOwner(scope, candidate));
  if (candidate.unreadable) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", candidate.pid, " (", CommandName(candidate),
                     ") cannot be inspected: run the agent as root or with CAP_SYS_PTRACE"));
  }
  const absl::StatusOr<std::string> head = procfs.ExecutableHead(candidate.pid, kElfHeadBytes);
  return CheckRunnable(candidate, head.ok() ? *head : std::string());
}

absl::Status CheckTarget(const TargetSpec& target) {
  const int kinds =
      (target.slurm_job ? 1 : 0) + (target.command ? 1 : 0) + (target.pids.empty() ? 0 : 1);
  if (kinds == 1) return absl::OkStatus();
  return absl::InvalidArgumentError("target: give exactly one of slurm_job, command and pids");
}

// The pids to look at, each once.
absl::StatusOr<std::vector<int32_t>> PidsToRead(const ProcFs& procfs, const TargetSpec& target) {
  if (target.pids.empty()) return procfs.Pids();
  std::vector<int32_t> pids = target.pids;
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

struct Matches {
  std::vector<Candidate> accepted;
  std::vector<RejectedProcess> rejected;
};

Matches Match(const ProcFs& procfs, const Scope& scope, const std::vector<int32_t>& pids) {
  Matches matches;
  const bool by_pid = !scope.target->pids.empty();
  for (const int32_t pid : pids) {
    absl::StatusOr<Candidate> candidate = ReadCandidate(procfs, pid);
    if (!candidate.ok()) {
      // Processes come and go while /proc is read: only a pid that was named is worth a word.
      if (by_pid) matches.rejected.push_back({pid, candidate.status()});
      continue;
    }
    if (!by_pid && (!IsNamed(scope, *candidate) || IsLauncher(CommandName(*candidate)))) continue;
    // Known by its cgroup alone, perhaps.
    if (scope.target->slurm_job) {
      candidate->environment.job_id = absl::StrCat(*scope.target->slurm_job);
    }
    const absl::Status usable = CheckCandidate(procfs, scope, *candidate);
    if (usable.ok()) {
      matches.accepted.push_back(*std::move(candidate));
    } else {
      matches.rejected.push_back({pid, usable});
    }
  }
  return matches;
}

}  // namespace

RankFinder::RankFinder(ProcFs procfs, std::string node)
    : procfs_(std::move(procfs)), node_(std::move(node)) {}

absl::StatusOr<Discovery> RankFinder::Find(const TargetSpec& target,
                                           const std::vector<RankRange>& ranks,
                                           const Requester& requester) const {
  RETURN_IF_ERROR(CheckTarget(target));
  Scope scope{&target, &requester, requester.uid};
  if (!target.user.empty()) {
    ASSIGN_OR_RETURN(scope.wanted_uid, UserId(target.user));
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> pids, PidsToRead(procfs_, target));
  Matches matches = Match(procfs_, scope, pids);
  if (target.pids.empty()) matches.accepted = KeepPrograms(std::move(matches.accepted));
  if (matches.accepted.empty() && matches.rejected.empty()) {
    return absl::NotFoundError(absl::StrCat("no process on ", node_, " matches the target"));
  }
  // Others may run a program of the same name: of interest only to who finds none of their own.
  if (target.command && !matches.accepted.empty()) {
    std::erase_if(matches.rejected, [](const RejectedProcess& process) {
      return absl::IsPermissionDenied(process.reason);
    });
  }
  Discovery discovery;
  discovery.rejected = std::move(matches.rejected);
  for (RankInfo& info : NumberRanks(matches.accepted, node_)) {
    if (SelectsRank(ranks, info.rank)) discovery.ranks.push_back(std::move(info));
  }
  // The pid of what was accepted may have been reused since it was judged.
  for (size_t i = discovery.ranks.size(); i-- > 0;) {
    const RankInfo& info = discovery.ranks[i];
    const absl::StatusOr<uint64_t> start = procfs_.StartTicks(info.pid);
    if (start.ok() && *start == info.start_ticks) continue;
    discovery.rejected.push_back(
        {info.pid, absl::NotFoundError(absl::StrCat("process ", info.pid, " has ended"))});
    discovery.ranks.erase(discovery.ranks.begin() + static_cast<std::ptrdiff_t>(i));
  }
  discovery.cgroup = FindJobCgroup(procfs_, discovery.ranks);
  return discovery;
}

}  // namespace perfd
