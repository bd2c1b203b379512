#include "agent/shadow/recovery/give_back.h"

#include <cstddef>

#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// The kernel refuses to set others; the rank may have written what it likes. Source: TASK_SIZE_MAX of four-level tables.
constexpr uint64_t kUserEnd = (uint64_t{1} << 47) - 4096;

}  // namespace

GiveBackPlan PlanGiveBack(const std::vector<ThreadRecord>& records, const RegionAccess& region,
                          const std::vector<PcRange>& caches) {
  GiveBackPlan plan;
  plan.op.either = kMemoryFaults | kNeverBlocked;
  plan.op.loose = kOfTheLibrary;
  plan.op.ranges = caches;
  for (uint32_t i = 0; i < records.size(); ++i) {
    const RunInSitu& run = records[i].run;
    if (records[i].tid == 0 || run.inside != kInCopy) continue;
    GiveBackOp::Entry entry;
    entry.gs_base = region.BlockAddress(i);
    entry.own_gs_base = run.gs_base < kUserEnd ? run.gs_base : 0;
    entry.mask = MaskInRun(run.signals);
    entry.own_mask = run.signals;
    plan.op.entries.push_back(entry);
    plan.records.push_back(i);
  }
  return plan;
}

absl::StatusOr<GiveBackPlan> ReadGiveBack(const Injection& injection, const Memory& memory) {
  const uint64_t at = injection.region.start;
  const RegionAccess head(&memory, at, 1);
  ASSIGN_OR_RETURN(const auto blocks,
                   head.Read<uint32_t>(at + offsetof(RegionHeader, block_count)));
  if (blocks > kMaxTeam || head.RecordAddress(blocks) > injection.region.end)
    return absl::FailedPreconditionError("the region's records do not fit into it");
  const RegionAccess region(&memory, at, blocks);
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records,
                   region.ReadMany<ThreadRecord>(region.RecordAddress(0), blocks));
  return PlanGiveBack(records, region, injection.caches);
}

}  // namespace perfd::agent
