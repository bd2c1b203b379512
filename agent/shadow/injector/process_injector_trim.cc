// ProcessInjector: shadows that leave out what the loop does not touch. The rank marks, forks and unmarks by itself while all of its
// threads stand in the payload; here is decided whether they do, and what may be left out.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/memory_sharing.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr double kMostOfPause = 0.7;  // a fork, of the longest pause
constexpr int64_t kMarkNs = 20'000;   // both calls of one range, and what cutting a mapping costs
constexpr size_t kMostAreas = 4096;   // to be looked through while the rank stands still
constexpr int64_t kSpareMaps = 64;
constexpr int64_t kMemoryCacheNs =
    20 * kNsPerSecond;  // for a prediction the memory map may be so old
constexpr int64_t kFailedReadNs = 2 * kNsPerSecond;  // what was in the way may pass
constexpr int64_t kMemoryCacheReads = 1000;          // or so many times what it took to read

// Each range may cut a mapping in three.
absl::Status RoomForCuts(size_t areas, size_t ranges) {
  auto most = ProcFs().SysctlInt("vm/max_map_count");
  if (most.ok() && static_cast<int64_t>(areas + 2 * ranges) + kSpareMaps <= *most)
    return absl::OkStatus();
  return absl::FailedPreconditionError("it has nearly as many mappings as a process may have");
}

absl::Status CheckThreads(const std::vector<int32_t>& threads, int32_t team) {
  if (static_cast<int64_t>(threads.size()) == team) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%d of its %d threads meet at the loop: another one might fork while memory is marked", team,
      threads.size()));
}

}  // namespace

// What does not change from one moment to the next.
absl::Status ProcessInjector::MayTrim(int32_t team) const {
  if (stuck_marks_ > 0)
    return absl::FailedPreconditionError("the kernel did not take back an earlier mark");
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.info.pid));
  return CheckThreads(threads, team);
}

absl::StatusOr<TrimWork> ProcessInjector::BeginTrim(const Footprint& footprint, int32_t team) {
  RETURN_IF_ERROR(MayTrim(team));
  TrimWork work;
  work.footprint = footprint;
  ASSIGN_OR_RETURN(work.facts, memory_walk_.Facts());
  const int64_t begin = SystemClock().MonotonicNs();
  ASSIGN_OR_RETURN(work.areas, ReadMemoryAreas(rank_.info.pid));
  const int64_t took = SystemClock().MonotonicNs() - begin;
  if (took > rank_.options.max_stop_ns)
    return absl::FailedPreconditionError(
        absl::StrFormat("to look at its memory takes %.1f ms", static_cast<double>(took) / 1e6));
  if (work.areas.size() > kMostAreas)
    return absl::FailedPreconditionError(absl::StrCat("it has ", work.areas.size(), " mappings"));
  ASSIGN_OR_RETURN(std::vector<OpenFile> files, ReadOpenFiles(rank_.info.pid));
  RETURN_IF_ERROR(JudgeTrim(work.areas, files, work.facts.pinned));
  ASSIGN_OR_RETURN(std::vector<int32_t> all, ProcFs().Pids());
  RETURN_IF_ERROR(CheckAlone(rank_.info.pid, all));
  return work;
}

ShadowPrediction ProcessInjector::PredictTrimmed(const Footprint& footprint, int32_t team) {
  ShadowPrediction prediction = PredictShadow();
  if (!prediction.status.ok()) return prediction;
  prediction.status = MayTrim(team);  // loops of one rank have teams of their own
  if (!prediction.status.ok()) return prediction;
  const int64_t now = SystemClock().MonotonicNs();
  if (cached_until_ns_ == 0 || now >= cached_until_ns_) {
    cached_ = BeginTrim(footprint, team);
    const int64_t end = SystemClock().MonotonicNs();
    cached_until_ns_ = end + std::max(cached_.ok() ? kMemoryCacheNs : kFailedReadNs,
                                      kMemoryCacheReads * (end - now));
  }
  prediction.status = cached_.status();
  if (!cached_.ok()) return prediction;
  // Where the registers of the team point to is known only when it stands still.
  const TrimmedFork trimmed_fork =
      WithoutPointers(ChooseTrim(cached_->areas, footprint, {}), footprint, team);
  const MemoryFacts facts = Trimmed(cached_->facts, trimmed_fork);
  prediction.fork_ns =
      shadow_cost_.ForkNs(facts) + kMarkNs * static_cast<int64_t>(trimmed_fork.ranges.size());
  prediction.later_fault_ns = shadow_cost_.LaterFaultNs(facts);
  return prediction;
}

absl::StatusOr<TeamPointers> ProcessInjector::ReadPointers(uint32_t team) const {
  ASSIGN_OR_RETURN(ChildControl child,
                   rank_.region->Read<ChildControl>(rank_.region->ChildAddress()));
  TeamPointers pointers;
  for (uint32_t i = 0; i < std::min(team, kMaxTeam); ++i) {
    if (child.records[i] >= rank_.region->blocks())
      return absl::InternalError("the rank names a record that does not exist");
    ASSIGN_OR_RETURN(ThreadRecord record, rank_.region->Read<ThreadRecord>(
                                              rank_.region->RecordAddress(child.records[i])));
    const SavedRegisters& r = record.registers;
    pointers.stacks.push_back({r.rsp, record.fs_base});
    pointers.registers.insert(pointers.registers.end(),
                              {r.r15, r.r14, r.r13, r.r12, r.r11, r.r10, r.r9, r.r8, r.rdi, r.rsi,
                               r.rbp, r.rbx, r.rdx, r.rax, r.rcx});
  }
  return pointers;
}

// The team stands still, and so does its memory map if nobody else is there.
absl::Status ProcessInjector::ChooseNow(const ShadowPlan& plan) {
  const uint32_t team = plan.team;
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.info.pid));
  RETURN_IF_ERROR(CheckThreads(threads, static_cast<int32_t>(team)));
  ASSIGN_OR_RETURN(std::vector<int32_t> children, ChildrenOf(rank_.info.pid, threads));
  RETURN_IF_ERROR(CheckAlone(rank_.info.pid, children));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.info.pid));
  ASSIGN_OR_RETURN(TeamPointers pointers, ReadPointers(team));
  const std::vector<MemoryArea> areas = StillThere(trim_->areas, maps);
  trim_->chosen = ChooseTrim(areas, trim_->footprint, pointers);
  RETURN_IF_ERROR(RoomForCuts(maps.size(), trim_->chosen.ranges.size()));
  const int64_t whole = shadow_cost_.ForkNs(trim_->facts);
  const int64_t trimmed = shadow_cost_.ForkNs(Trimmed(trim_->facts, trim_->chosen));
  const double longest = kMostOfPause * static_cast<double>(plan.shadow_ns);
  if (trimmed <= whole / 2 && static_cast<double>(trimmed) <= longest) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "this instance may touch so much that a fork would still cost %.1f of %.1f ms",
      static_cast<double>(trimmed) / 1e6, static_cast<double>(whole) / 1e6));
}

absl::Status ProcessInjector::AnswerLeader(const ShadowPlan& plan) {
  RETURN_IF_ERROR(rank_.region->IsThere());
  const uint64_t at = rank_.region->PlanAddress() + offsetof(ShadowPlan, trim);
  ASSIGN_OR_RETURN(uint32_t waiting,
                   rank_.region->Read<uint32_t>(at + offsetof(TrimControl, waiting)));
  if (waiting == 0) return absl::OkStatus();
  trim_->answered = true;
  trim_->status = ChooseNow(plan);
  uint32_t answer = kTrimNo;
  if (trim_->status.ok()) {
    std::vector<TrimRange> ranges;
    for (const PcRange& range : trim_->chosen.ranges)
      ranges.push_back({range.start, range.end - range.start});
    RETURN_IF_ERROR(rank_.region->WriteMany(at + offsetof(TrimControl, ranges), ranges));
    RETURN_IF_ERROR(rank_.region->Write(at + offsetof(TrimControl, count),
                                        static_cast<uint32_t>(ranges.size())));
    answer = kTrimGo;
  }
  return rank_.region->Write(at + offsetof(TrimControl, answer),
                             TrimAnswer(plan.generation, answer));
}

absl::Status ProcessInjector::EndTrim() {
  const uint64_t at = rank_.region->PlanAddress() + offsetof(ShadowPlan, trim);
  ASSIGN_OR_RETURN(uint32_t stuck, rank_.region->Read<uint32_t>(at + offsetof(TrimControl, stuck)));
  if (stuck > 0) {
    stuck_marks_ += static_cast<int32_t>(std::min(stuck, kMaxTrims));
    const absl::Status status = absl::InternalError(
        absl::StrCat(stuck, " ranges of memory are still kept from forks of the rank"));
    rank_.hold.Audit("shadow", nullptr, 0, status);
  }
  if (trim_->status.ok()) return absl::OkStatus();
  // Another instance may be better.
  return absl::AbortedError(
      absl::StrCat("memory could not be left out of a shadow: ", trim_->status.message()));
}

}  // namespace perfd::agent
