// The processes of a session: taken in at the beginning and later, seen to end or to change.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/pipeline/session.h"
#include "agent/procfs/process_rights.h"

namespace perfd::agent {
namespace {

constexpr int64_t kScanNs = 2 * kNsPerSecond;
constexpr int64_t kScanShare = 200;  // looking for late ranks may use 1/200 of a core

std::string Who(const RankInfo& info) {
  return absl::StrCat("rank ", info.rank, " (pid ", info.pid, ")");
}

std::string InWords(const RankInfo& info, const BusyStarter& busy) {
  return absl::StrFormat(
      "%s starts about %.0f threads or processes a second: to hear of each costs it about "
      "%.1f %% of its time, more than the budget of %.1f %%. It is not sampled from here on; what "
      "was sampled before counts. Reuse threads (a pool) instead of starting new ones, or raise "
      "budget.overhead",
      Who(info), busy.starts_per_second, 100 * busy.cost_ratio, 100 * busy.budget_ratio);
}

// A frequency that is lower would not spare them.
void LeaveBusyStarters(const std::vector<BusyStarter>& starters, TrackedRanks& ranks,
                       SampleSource& source, SessionNotices& notices) {
  if (!source.removal_spares()) return;
  for (const BusyStarter& busy : starters) {
    const TrackedProcess* rank = ranks.Find(busy.pid);
    if (rank == nullptr) continue;
    notices.Say(Notice::Severity::kWarning, InWords(rank->info, busy), busy.pid);
    for (const int32_t pid : ranks.Leave(busy.pid)) source.RemoveProcess(pid);
  }
}

// What has ended and waits for its parent (zombie) keeps its pid, but cannot be opened any more.
bool AnyLives(const ProcFs& procfs, const std::vector<RankInfo>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&procfs](const RankInfo& info) {
    const auto stamp = procfs.Stamp(info.pid);
    return stamp.ok() && stamp->start_ticks == info.start_ticks && stamp->state != 'Z' &&
           stamp->state != 'X';
  });
}

}  // namespace

double Session::Seconds() const {
  return static_cast<double>(tools_.clock->MonotonicNs() - started_ns_) /
         static_cast<double>(kNsPerSecond);
}

// A job that is followed goes on without those that ended before they could be opened.
Session::Taken Session::OpenSource(const Discovery& discovery) {
  auto source = tools_.open_source(request_.spec, discovery);
  if (!source.ok()) {
    const bool may_be_gone = FollowsJob() && absl::IsNotFound(source.status());
    if (may_be_gone &&
        (!AnyLives(*tools_.procfs, discovery.ranks) || ++open_failures_ < kMostFailures))
      return Taken::kGone;
    notices_.Error(source.status(), 0);
    return Taken::kRefused;
  }
  source_ = std::move(source->source);
  windows_.builder().memory().SetEvents(std::move(source->accesses));
  costs_.SetPrices(source->prices);
  costs_.SetBudget(request_.spec.budget.overhead_ratio);
  for (const Notice& notice : source->thinned) notices_.Say(notice.severity, notice.text, 0);
  Taken all = Taken::kGone;
  for (const RankInfo& info : discovery.ranks) {
    const Taken taken = AddRank(info);
    if (taken == Taken::kYes) changes_.Began(info);
    all = std::max(all, taken);
  }
  return all;
}

void Session::LetGo(int32_t pid) {
  source_->RemoveProcess(pid);
  if (tools_.release_pid) tools_.release_pid(pid);
}

// What is said not to be there although it lives is tried again, a few times: a perf event may be
// missing, too.
Session::Taken Session::AddRank(const RankInfo& info) {
  const int64_t now = tools_.clock->MonotonicNs();
  Attempts& attempts = attempts_[info.pid];
  if (attempts.start_ticks != info.start_ticks) attempts = {info.start_ticks, 0};
  if (attempts.made >= kMostFailures) return Taken::kRefused;
  if (!tools_.claim_pids({info.pid}).empty()) {
    attempts.made = kMostFailures;
    notices_.Error(
        absl::FailedPreconditionError(absl::StrCat(Who(info),
                                                   " is already measured by another profile; "
                                                   "cancel that one or wait for its end")),
        info.pid);
    return Taken::kRefused;
  }
  // Events first, maps second: whatever is mapped in between is in one of the two.
  absl::Status status = source_->AddProcess(info.pid);
  if (status.ok()) status = ranks_.Add(info, now);
  if (status.ok()) {
    attempts_.erase(info.pid);
    return Taken::kYes;
  }
  LetGo(info.pid);
  const bool may_be_gone = (request_.ranks_change() || started_ns_ > 0) && absl::IsNotFound(status);
  if (may_be_gone && (!AnyLives(*tools_.procfs, {info}) || ++attempts.made < kMostFailures))
    return Taken::kGone;
  attempts.made = kMostFailures;
  notices_.Error(absl::Status(status.code(),
                              absl::StrCat(Who(info), " cannot be sampled: ", status.message())),
                 info.pid);
  return Taken::kRefused;
}

// A process that is sampled is no news, whatever a look makes of it: it may wait in the kernel just
// now, or what it has become was told when it became it. Nor is what others run inside the job that
// is followed for its owner: Slurm itself keeps a process of root's in each.
bool Session::IsUpdate(const RejectedProcess& process) {
  if (ranks_.Lives(process.pid)) return false;
  if (ranks_.Contains(process.pid) && ranks_.Find(process.pid) == nullptr) return false;
  if (!FollowsJob()) return true;
  const auto status = tools_.procfs->Status(process.pid);
  return status.ok() && status->real_uid == request_.requester.uid;
}

void Session::RecordRefusals(const absl::StatusOr<Discovery>& discovery) {
  std::vector<RejectedProcess> rejected;
  if (discovery.ok()) {
    for (const RejectedProcess& process : discovery->rejected)
      if (IsUpdate(process)) rejected.push_back(process);
  } else {
    rejected.push_back({0, discovery.status()});
  }
  for (const RejectedProcess& process : refusals_.Update(rejected))
    notices_.Error(process.reason, process.pid);
}

void Session::RecordLastRefusals() {
  for (const RejectedProcess& process : refusals_.End())
    notices_.Error(process.reason, process.pid);
}

void Session::RecordEnded() {
  std::vector<const TrackedProcess*> ended, changed;
  const uint64_t begin_cpu_ns = CpuNs();
  const CpuUse used = ranks_.Refresh(drained_ns_, &ended, &changed);
  costs_.RecordFixed(CpuNs() - begin_cpu_ns);
  for (const TrackedProcess* process : changed) {
    LetGo(process->info.pid);
    notices_.Warning(ChangedOwnerError(*process), process->info.pid);
  }
  for (const auto& [info, status] : ranks_.DrainSilent())
    notices_.Warning(absl::Status(status.code(),
                                  absl::StrCat(Who(info), ": samples in what it has mapped since ",
                                               "count as unknown: ", status.message())),
                     info.pid);
  const std::vector<BusyStarter> busy = costs_.Record({.ranks = used,
                                                       .agent = UsedSoFar(),
                                                       .living = ranks_.living(),
                                                       .on_share = source_->on_share(),
                                                       .now_ns = tools_.clock->MonotonicNs(),
                                                       .read_ns = drained_ns_,
                                                       .threads = ranks_.ThreadsByRank()});
  LeaveBusyStarters(busy, ranks_, *source_, notices_);
  for (const TrackedProcess* process : ended) {
    if (!ranks_.Lives(process->info.pid)) LetGo(process->info.pid);
    if (process->helper_of == 0) changes_.Ended(process->info, Seconds());
  }
}

// Ranks that start late, and ranks that replaced themselves, belong to the job too. Named pids do
// not grow, but trees.
void Session::FindNewRanks() {
  const int64_t now = tools_.clock->MonotonicNs();
  const TargetSpec& target = request_.spec.target;
  if ((!target.pids.empty() && !target.tree) || now < next_scan_ns_) return;
  const uint64_t begin_ns = CpuNs();
  auto discovery =
      tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan_);
  const uint64_t cost_ns = CpuNs() - begin_ns;
  costs_.RecordFixed(cost_ns);
  next_scan_ns_ = now + std::max(kScanNs, kScanShare * static_cast<int64_t>(cost_ns));
  RecordRefusals(discovery);
  if (!discovery.ok()) return;
  notices_.Say(discovery->launchers, target.tree);
  for (const RankInfo& info : discovery->ranks) {
    if (ranks_.Knows(info) || AddRank(info) != Taken::kYes) continue;
    changes_.Joined(info, Seconds());
    costs_.RecordUnseen();  // how long it has waited until now
  }
}

}  // namespace perfd::agent
