#include "core/model/memory/memory_profile.h"

#include "core/model/memory/sum.h"

namespace perfd {

void AccessCount::Add(uint64_t period) {
  ++samples;
  weight = Sum(weight, period);
}

void AccessCount::Merge(const AccessCount& other) {
  samples = Sum(samples, other.samples);
  weight = Sum(weight, other.weight);
}

void MemoryProfile::Add(const SampledAccess& sample) {
  const MemoryAccess& access = sample.access;
  const MemorySource& source = access.source;
  all.Add(sample.period);
  if (sample.kernel) kernel.Add(sample.period);
  if (access.address == RuntimeAddress(0)) ++without_address;
  if (access.latency_cycles == 0)
    ++without_latency;
  else
    latency.Add(access.latency_cycles);
  if (source.level == MemoryLevel::kUnknown && source.tlb == TlbResult::kUnknown) ++without_source;
  const auto level = static_cast<size_t>(source.level);
  if (source.operation == MemoryOperation::kStore)
    stores.Add(sample.period);
  else if (source.missed)
    missed[level].Add(sample.period);
  else
    loads[level].Add(sample.period);
  tlb[static_cast<size_t>(source.tlb)].Add(sample.period);
  if (source.snoop == SnoopResult::kHitModified) hit_modified.Add(sample.period);
  if (source.lock == LockState::kLocked) locked.Add(sample.period);
}

void MemoryProfile::Merge(const MemoryProfile& other) {
  all.Merge(other.all);
  kernel.Merge(other.kernel);
  without_address += other.without_address;
  without_latency += other.without_latency;
  without_source += other.without_source;
  for (size_t i = 0; i < loads.size(); ++i) {
    loads[i].Merge(other.loads[i]);
    missed[i].Merge(other.missed[i]);
  }
  for (size_t i = 0; i < tlb.size(); ++i) tlb[i].Merge(other.tlb[i]);
  stores.Merge(other.stores);
  hit_modified.Merge(other.hit_modified);
  locked.Merge(other.locked);
  latency.Merge(other.latency);
}

}  // namespace perfd
