#include "agent/discover/verdict.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kElfHeadBytes = 64;  // sizeof(Elf64_Ehdr)
using Kind = Verdict::Kind;

std::string Who(const Candidate& candidate) {
  return absl::StrCat("process ", candidate.pid, " (", CommandName(candidate), ")");
}

// Of processes of others not even the name is told.
absl::Status CheckOwner(const ProcFs& procfs, const Scope& scope, const Candidate& candidate) {
  if (!MayProfile(scope, candidate.uid) && HidesOthers(procfs, scope))
    return NotYours(scope, candidate.pid);
  const std::string who =
      MayProfile(scope, candidate.uid) ? Who(candidate) : absl::StrCat("process ", candidate.pid);
  return CheckRequester(candidate.admission, *scope.requester, who);
}

absl::Status CheckUsable(const ProcFs& procfs, const Candidate& candidate) {
  if (absl::IsPermissionDenied(candidate.unread)) {
    return absl::PermissionDeniedError(absl::StrCat(
        Who(candidate), " belongs to ", UserText(candidate.uid),
        " and cannot be inspected by this agent: run it as root or with CAP_SYS_PTRACE"));
  }
  const absl::StatusOr<std::string> head = procfs.ExecutableHead(candidate.pid, kElfHeadBytes);
  return CheckRunnable(candidate, head.ok() ? *head : std::string());
}

absl::Status StuckError(const Candidate& candidate) {
  if (IsSilent(candidate)) return candidate.unread;
  return absl::UnavailableError(absl::StrCat(
      Who(candidate),
      " waits in the kernel (state D; often a file system that does not answer) and cannot be "
      "inspected now; try again"));
}

void ReadCgroups(const ProcFs& procfs, Candidate* candidate) {
  absl::StatusOr<std::vector<CgroupEntry>> cgroups = procfs.Cgroups(candidate->pid);
  if (cgroups.ok()) candidate->cgroups = *std::move(cgroups);  // a kernel may have no cgroups
}

class Judgement {
 public:
  Judgement(const ProcFs& procfs, const Scope& scope) : procfs_(procfs), scope_(scope) {}

  // The verdict so far is in `out`; an error: the process is gone.
  absl::Status Run(Verdict* out) const {
    RETURN_IF_ERROR(ReadOwner(procfs_, &out->candidate));
    if (scope_.target->command) return ByCommand(out);
    if (scope_.target->slurm_job) return BySlurmJob(out);
    return Usable(out);
  }

 private:
  absl::Status ByCommand(Verdict* out) const {
    Candidate& candidate = out->candidate;
    const std::string& command = *scope_.target->command;
    if (candidate.uid != scope_.wanted_uid || !MayProfile(scope_, candidate.uid)) {
      if (MayBeCommand(candidate, command)) out->kind = Kind::kForeign;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ReadExecutable(procfs_, &candidate));
    RETURN_IF_ERROR(ReadArguments(procfs_, &candidate));
    if (!MatchesCommand(candidate, command)) {
      // Its arguments are not known: a script of this name may be among them.
      const bool perhaps = IsInterpreter(CommandName(candidate)) || IsSilent(candidate);
      if (IsStuck(candidate) && perhaps) out->kind = Kind::kStuck;
      return absl::OkStatus();
    }
    if (IsLauncher(CommandName(candidate))) return absl::OkStatus();
    return Usable(out);
  }

  absl::Status BySlurmJob(Verdict* out) const {
    Candidate& candidate = out->candidate;
    ReadCgroups(procfs_, &candidate);
    const uint32_t job = *scope_.target->slurm_job;
    bool belongs = BelongsToSlurmJob(candidate, job);
    if (!belongs && !MayProfile(scope_, candidate.uid)) return absl::OkStatus();
    RETURN_IF_ERROR(ReadExecutable(procfs_, &candidate));
    if (IsLauncher(CommandName(candidate))) return absl::OkStatus();
    if (!belongs) {
      if (!candidate.has_executable) return absl::OkStatus();
      RETURN_IF_ERROR(ReadRights(procfs_, &candidate));
      if (!CheckOwner(procfs_, scope_, candidate).ok()) return absl::OkStatus();
      if (!IsStuck(candidate)) RETURN_IF_ERROR(ReadEnvironment(procfs_, &candidate));
      belongs = BelongsToSlurmJob(candidate, job);
    }
    if (!belongs) {
      if (IsStuck(candidate)) out->kind = Kind::kStuck;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Usable(out));
    candidate.environment.job_id = absl::StrCat(job);  // known by its cgroup alone, perhaps
    return absl::OkStatus();
  }

  // Of a process that is meant.
  absl::Status Usable(Verdict* out) const {
    Candidate& candidate = out->candidate;
    out->kind = Kind::kRejected;
    if (!MayProfile(scope_, candidate.uid)) {
      out->reason = CheckOwner(procfs_, scope_, candidate);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(ReadRights(procfs_, &candidate));
    if (candidate.executable.empty()) RETURN_IF_ERROR(ReadExecutable(procfs_, &candidate));
    out->reason = CheckOwner(procfs_, scope_, candidate);
    if (!out->reason.ok()) return absl::OkStatus();
    if (!IsStuck(candidate)) RETURN_IF_ERROR(ReadEnvironment(procfs_, &candidate));
    if (IsStuck(candidate)) {
      out->kind = Kind::kStuck;
      out->reason = StuckError(candidate);
      return absl::OkStatus();
    }
    if (candidate.cgroups.empty()) ReadCgroups(procfs_, &candidate);
    RETURN_IF_ERROR(CheckSame(procfs_, candidate));
    out->reason = CheckUsable(procfs_, candidate);
    if (out->reason.ok()) out->kind = Kind::kAccepted;
    return absl::OkStatus();
  }

  const ProcFs& procfs_;
  const Scope& scope_;
};

}  // namespace

bool Scope::Names(int32_t pid) const {
  return std::find(target->pids.begin(), target->pids.end(), pid) != target->pids.end();
}

bool MayProfile(const Scope& scope, uint32_t uid) {
  return uid == scope.requester->uid || scope.requester->privileged;
}

bool HidesOthers(const ProcFs& procfs, const Scope& scope) {
  if (scope.requester->privileged) return false;
  const auto mounts = procfs.Mounts();
  if (!mounts.ok()) return false;
  return std::any_of(mounts->begin(), mounts->end(), [](const MountEntry& mount) {
    if (mount.type != "proc" || mount.directory != "/proc") return false;
    for (const absl::string_view option : absl::StrSplit(mount.options, ','))
      if (absl::StartsWith(option, "hidepid=") && option != "hidepid=0" && option != "hidepid=off")
        return true;
    return false;
  });
}

absl::Status NotYours(const Scope& scope, int32_t pid) {
  return absl::NotFoundError(
      absl::StrCat("process ", pid, ": there is none of ", UserText(scope.requester->uid)));
}

Verdict Judge(const ProcFs& procfs, const Scope& scope, int32_t pid, const ProcessStamp& stamp) {
  Verdict verdict;
  verdict.candidate.pid = pid;
  verdict.candidate.start_ticks = stamp.start_ticks;
  verdict.candidate.state = stamp.state;
  verdict.candidate.name = stamp.command;
  const absl::Status read = Judgement(procfs, scope).Run(&verdict);
  if (read.ok()) return verdict;
  // Processes come and go while /proc is read: only a pid that was named is worth a word.
  verdict.kind = scope.Names(pid) ? Kind::kRejected : Kind::kNoMatch;
  verdict.reason = read;
  return verdict;
}

}  // namespace perfd::agent
