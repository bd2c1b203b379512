#include "agent/shadow/forking/shadow_cost.h"

#include <algorithm>

namespace perfd::agent {
namespace {

// What the first fork of a rank is expected to take, fitted to one machine; others take up to half as much again
// (docs/benchmarks/constants.md#kforkbasens). The first pages cost more each: their tables are in no cache.
constexpr double kForkBaseNs = 250e3;
constexpr double kForkSmallNsPerMb = 11e3;
constexpr double kForkFirstNsPerMb = 11.5e3;  // more, of the first kFirstMb
constexpr double kFirstMb = 64;
constexpr double kForkHugeNsPerMb = 600;
constexpr double kPinnedNsPerMb = 250e3;  // copied inside the fork, on kernels that do
constexpr double kWeight = 0.5;           // of the newest observation

double Mb(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}
uint64_t SmallBytes(const MemoryFacts& facts) {
  return facts.anonymous - std::min(facts.anonymous, facts.huge);
}

double PlainForkNs(const MemoryFacts& facts) {
  const double small = Mb(SmallBytes(facts));
  return kForkBaseNs + small * kForkSmallNsPerMb + std::min(small, kFirstMb) * kForkFirstNsPerMb +
         Mb(facts.huge) * kForkHugeNsPerMb + Mb(facts.pinned) * kPinnedNsPerMb;
}

double SmallPages(const MemoryFacts& facts) {
  return static_cast<double>(SmallBytes(facts)) / 4096;
}

}  // namespace

int64_t ShadowCost::ForkNs(const MemoryFacts& facts) const {
  return static_cast<int64_t>(PlainForkNs(facts) * fork_factor_);
}

// Nothing is copied: when the rank goes on, its copy is gone. So no other CPU is interrupted either.
int64_t ShadowCost::LaterFaultNs(const MemoryFacts& facts) const {
  return static_cast<int64_t>(SmallPages(facts) * later_share_ * costs_.rewrite_ns);
}

int64_t ShadowCost::CopyNsPerMb() const {
  constexpr double kPagesPerMb = 256;
  return static_cast<int64_t>(kPagesPerMb * costs_.copy_ns);
}

void ShadowCost::LearnFork(const MemoryFacts& facts, int64_t fork_ns) {
  double factor = std::clamp(static_cast<double>(fork_ns) / PlainForkNs(facts), 0.01, 100.0);
  fork_factor_ = (1 - kWeight) * fork_factor_ + kWeight * factor;
}

void ShadowCost::LearnLaterFaults(const MemoryFacts& facts, uint64_t faults) {
  if (SmallPages(facts) < 1) return;
  double share = std::clamp(static_cast<double>(faults) / SmallPages(facts), 0.0, 1.0);
  // What no shadow has told is a guess: the first answer takes its place.
  const double weight = later_learnt_ ? kWeight : 1;
  later_share_ = (1 - weight) * later_share_ + weight * share;
  later_learnt_ = true;
}

}  // namespace perfd::agent
