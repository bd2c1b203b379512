#include "agent/shadow/run/trimmed_shadow.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/memory_sharing.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr double kMostOfPause = 0.7;  // a fork, of the longest pause
constexpr int64_t kSpareMaps = 64;

// Each range may cut a mapping in three.
absl::Status RoomForCuts(size_t areas, size_t ranges) {
  auto most = ProcFs().SysctlInt("vm/max_map_count");
  if (most.ok() && static_cast<int64_t>(areas + 2 * ranges) + kSpareMaps <= *most)
    return absl::OkStatus();
  return absl::FailedPreconditionError("it has nearly as many mappings as a process may have");
}

}  // namespace

absl::StatusOr<TeamPointers> TrimmedShadow::ReadPointers(uint32_t team) const {
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
absl::Status TrimmedShadow::Choose(const ShadowPlan& plan) {
  const uint32_t team = plan.team;
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(rank_.info.pid));
  RETURN_IF_ERROR(CheckThreads(threads, static_cast<int32_t>(team)));
  ASSIGN_OR_RETURN(std::vector<int32_t> children, ChildrenOf(rank_.info.pid, threads));
  RETURN_IF_ERROR(CheckAlone(rank_.info.pid, children));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(rank_.info.pid));
  ASSIGN_OR_RETURN(TeamPointers pointers, ReadPointers(team));
  const std::vector<MemoryArea> areas = StillThere(work_.areas, maps);
  work_.chosen = ChooseTrim(areas, work_.footprint, pointers);
  RETURN_IF_ERROR(RoomForCuts(maps.size(), work_.chosen.ranges.size()));
  const int64_t whole = cost_.ForkNs(work_.facts);
  const int64_t trimmed = cost_.ForkNs(Trimmed(work_.facts, work_.chosen));
  const double longest = kMostOfPause * static_cast<double>(plan.shadow_ns);
  if (trimmed <= whole / 2 && static_cast<double>(trimmed) <= longest) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "this instance may touch so much that a fork would still cost %.1f of %.1f ms",
      static_cast<double>(trimmed) / 1e6, static_cast<double>(whole) / 1e6));
}

absl::Status TrimmedShadow::AnswerLeader(const ShadowPlan& plan) {
  RETURN_IF_ERROR(rank_.region->IsThere());
  const uint64_t at = rank_.region->PlanAddress() + offsetof(ShadowPlan, trim);
  ASSIGN_OR_RETURN(uint32_t waiting,
                   rank_.region->Read<uint32_t>(at + offsetof(TrimControl, waiting)));
  if (waiting == 0) return absl::OkStatus();
  work_.answered = true;
  work_.status = Choose(plan);
  uint32_t answer = kTrimNo;
  if (work_.status.ok()) {
    std::vector<TrimRange> ranges;
    for (const PcRange& range : work_.chosen.ranges)
      ranges.push_back({range.start, range.end - range.start});
    RETURN_IF_ERROR(rank_.region->WriteMany(at + offsetof(TrimControl, ranges), ranges));
    RETURN_IF_ERROR(rank_.region->Write(at + offsetof(TrimControl, count),
                                        static_cast<uint32_t>(ranges.size())));
    answer = kTrimGo;
  }
  return rank_.region->Write(at + offsetof(TrimControl, answer),
                             TrimAnswer(plan.generation, answer));
}

absl::Status TrimmedShadow::End() {
  const uint64_t at = rank_.region->PlanAddress() + offsetof(ShadowPlan, trim);
  ASSIGN_OR_RETURN(uint32_t stuck, rank_.region->Read<uint32_t>(at + offsetof(TrimControl, stuck)));
  if (stuck > 0) {
    forks_.AddStuckMarks(stuck);
    const absl::Status status = absl::InternalError(
        absl::StrCat(stuck, " ranges of memory are still kept from forks of the rank"));
    rank_.hold.Audit("shadow", nullptr, 0, status);
  }
  if (work_.status.ok()) return absl::OkStatus();
  // Another instance may be better.
  return absl::AbortedError(
      absl::StrCat("memory could not be left out of a shadow: ", work_.status.message()));
}

}  // namespace perfd::agent
