// ProcessLab: shadows that leave out what the loop does not touch. The rank marks, forks and unmarks by itself while all of its
// threads stand in the payload; here is decided whether they do, and what may be left out.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/memory_sharing.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/process_lab.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr double kMostOfPause = 0.7;  // a fork, of the longest pause
constexpr int64_t kMarkNs = 20'000;   // both calls of one range, and what cutting a mapping costs
constexpr size_t kMostAreas = 4096;   // to be looked through while the rank stands still
constexpr int64_t kSpareMaps = 64;
constexpr int64_t kGlanceNs = 20 * kNsPerSecond;  // for a prediction the memory map may be so old
constexpr int64_t kFailedGlanceNs = 2 * kNsPerSecond;  // what was in the way may pass
constexpr int64_t kGlanceReads = 1000;                 // or so many times what it took to read

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
absl::Status ProcessLab::MayNarrow(int32_t team) const {
  if (stuck_marks_ > 0)
    return absl::FailedPreconditionError("the kernel did not take back an earlier mark");
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.pid));
  return CheckThreads(threads, team);
}

absl::StatusOr<NarrowWork> ProcessLab::BeginNarrow(const Footprint& footprint, int32_t team) {
  RETURN_IF_ERROR(MayNarrow(team));
  NarrowWork work;
  work.footprint = footprint;
  ASSIGN_OR_RETURN(work.facts, memory_look_.Facts());
  const int64_t begin = SystemClock().MonotonicNs();
  ASSIGN_OR_RETURN(work.areas, ReadMemoryAreas(rank_.pid));
  const int64_t took = SystemClock().MonotonicNs() - begin;
  if (took > options_.max_stop_ns)
    return absl::FailedPreconditionError(
        absl::StrFormat("to look at its memory takes %.1f ms", static_cast<double>(took) / 1e6));
  if (work.areas.size() > kMostAreas)
    return absl::FailedPreconditionError(absl::StrCat("it has ", work.areas.size(), " mappings"));
  ASSIGN_OR_RETURN(std::vector<OpenFile> files, ReadOpenFiles(rank_.pid));
  RETURN_IF_ERROR(JudgeNarrowing(work.areas, files, work.facts.pinned));
  ASSIGN_OR_RETURN(std::vector<int32_t> all, ProcFs().Pids());
  RETURN_IF_ERROR(CheckAlone(rank_.pid, all));
  return work;
}

ShadowPrediction ProcessLab::PredictNarrowed(const Footprint& footprint, int32_t team) {
  ShadowPrediction prediction = PredictShadow();
  if (!prediction.status.ok()) return prediction;
  prediction.status = MayNarrow(team);  // loops of one rank have teams of their own
  if (!prediction.status.ok()) return prediction;
  const int64_t now = SystemClock().MonotonicNs();
  if (glance_until_ns_ == 0 || now >= glance_until_ns_) {
    glance_ = BeginNarrow(footprint, team);
    const int64_t end = SystemClock().MonotonicNs();
    glance_until_ns_ =
        end + std::max(glance_.ok() ? kGlanceNs : kFailedGlanceNs, kGlanceReads * (end - now));
  }
  prediction.status = glance_.status();
  if (!glance_.ok()) return prediction;
  // Where the registers of the team point to is known only when it stands still.
  const Narrowing narrowing =
      WithoutPointers(ChooseNarrowing(glance_->areas, footprint, {}), footprint, team);
  const MemoryFacts facts = Narrowed(glance_->facts, narrowing);
  prediction.fork_ns =
      shadow_cost_.ForkNs(facts) + kMarkNs * static_cast<int64_t>(narrowing.ranges.size());
  prediction.later_fault_ns = shadow_cost_.LaterFaultNs(facts);
  return prediction;
}

absl::StatusOr<TeamPointers> ProcessLab::ReadPointers(uint32_t team) const {
  ASSIGN_OR_RETURN(ChildControl child, region_->Read<ChildControl>(region_->ChildAddress()));
  TeamPointers pointers;
  for (uint32_t i = 0; i < std::min(team, kMaxTeam); ++i) {
    if (child.records[i] >= region_->blocks())
      return absl::InternalError("the rank names a record that does not exist");
    ASSIGN_OR_RETURN(ThreadRecord record,
                     region_->Read<ThreadRecord>(region_->RecordAddress(child.records[i])));
    const SavedRegisters& r = record.registers;
    pointers.stacks.push_back({r.rsp, record.fs_base});
    pointers.registers.insert(pointers.registers.end(),
                              {r.r15, r.r14, r.r13, r.r12, r.r11, r.r10, r.r9, r.r8, r.rdi, r.rsi,
                               r.rbp, r.rbx, r.rdx, r.rax, r.rcx});
  }
  return pointers;
}

// The team stands still, and so does its memory map if nobody else is there.
absl::Status ProcessLab::ChooseNow(const ShadowPlan& plan) {
  const uint32_t team = plan.team;
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.pid));
  RETURN_IF_ERROR(CheckThreads(threads, static_cast<int32_t>(team)));
  ASSIGN_OR_RETURN(std::vector<int32_t> children, ChildrenOf(rank_.pid, threads));
  RETURN_IF_ERROR(CheckAlone(rank_.pid, children));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.pid));
  ASSIGN_OR_RETURN(TeamPointers pointers, ReadPointers(team));
  const std::vector<MemoryArea> areas = StillThere(narrow_->areas, maps);
  narrow_->chosen = ChooseNarrowing(areas, narrow_->footprint, pointers);
  RETURN_IF_ERROR(RoomForCuts(maps.size(), narrow_->chosen.ranges.size()));
  const int64_t whole = shadow_cost_.ForkNs(narrow_->facts);
  const int64_t narrowed = shadow_cost_.ForkNs(Narrowed(narrow_->facts, narrow_->chosen));
  const double longest = kMostOfPause * static_cast<double>(plan.shadow_ns);
  if (narrowed <= whole / 2 && static_cast<double>(narrowed) <= longest) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "this instance may touch so much that a fork would still cost %.1f of %.1f ms",
      static_cast<double>(narrowed) / 1e6, static_cast<double>(whole) / 1e6));
}

absl::Status ProcessLab::AnswerLeader(const ShadowPlan& plan) {
  RETURN_IF_ERROR(RegionIsThere());
  const uint64_t at = region_->PlanAddress() + offsetof(ShadowPlan, narrow);
  ASSIGN_OR_RETURN(uint32_t waiting,
                   region_->Read<uint32_t>(at + offsetof(NarrowControl, waiting)));
  if (waiting == 0) return absl::OkStatus();
  narrow_->answered = true;
  narrow_->status = ChooseNow(plan);
  uint32_t answer = kNarrowNo;
  if (narrow_->status.ok()) {
    std::vector<NarrowRange> ranges;
    for (const PcRange& range : narrow_->chosen.ranges)
      ranges.push_back({range.start, range.end - range.start});
    RETURN_IF_ERROR(region_->WriteMany(at + offsetof(NarrowControl, ranges), ranges));
    RETURN_IF_ERROR(
        region_->Write(at + offsetof(NarrowControl, count), static_cast<uint32_t>(ranges.size())));
    answer = kNarrowGo;
  }
  return region_->Write(at + offsetof(NarrowControl, answer),
                        NarrowAnswer(plan.generation, answer));
}

absl::Status ProcessLab::EndNarrow() {
  const uint64_t at = region_->PlanAddress() + offsetof(ShadowPlan, narrow);
  ASSIGN_OR_RETURN(uint32_t stuck, region_->Read<uint32_t>(at + offsetof(NarrowControl, stuck)));
  if (stuck > 0) {
    stuck_marks_ += static_cast<int32_t>(std::min(stuck, kMaxNarrows));
    const absl::Status status = absl::InternalError(
        absl::StrCat(stuck, " ranges of memory are still kept from forks of the rank"));
    Audit("shadow", nullptr, 0, status);
  }
  if (narrow_->status.ok()) return absl::OkStatus();
  // Another instance may be better.
  return absl::AbortedError(
      absl::StrCat("memory could not be left out of a shadow: ", narrow_->status.message()));
}

}  // namespace perfd
