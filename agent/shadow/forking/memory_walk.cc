#include "agent/shadow/forking/memory_walk.h"

#include <algorithm>
#include <span>

#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLongestNs = 10 * kNsPerSecond;  // huge pages come and go unseen
constexpr int64_t kWalks = 1000;                   // a walk is good for so many times what it took
constexpr uint64_t kLittleBytes = 8 << 20;
constexpr uint64_t kLittleParts = 50;  // one of so many parts of what there was

uint64_t Between(uint64_t a, uint64_t b) {
  return std::max(a, b) - std::min(a, b);
}

uint64_t Moved(uint64_t value, uint64_t then, uint64_t now) {
  return now >= then ? value + (now - then) : value - std::min(value, then - now);
}

MemoryFacts FactsOf(std::span<const MemoryArea> areas, const MemoryCounts& counts) {
  MemoryFacts facts = SumResident(areas);
  facts.page_tables = counts.page_tables;
  facts.pinned = counts.pinned;
  facts.accounted = counts.accounted;
  return facts;
}

}  // namespace

absl::StatusOr<MemoryFacts> ReadMemoryFacts(int32_t pid) {
  ASSIGN_OR_RETURN(const std::vector<MemoryArea> areas, ReadMemoryAreas(pid));
  ASSIGN_OR_RETURN(const MemoryCounts counts, ReadMemoryCounts(pid));
  return FactsOf(areas, counts);
}

bool SaysTheSame(const MemoryCounts& then, const MemoryCounts& now) {
  if (then.hugetlb != now.hugetlb) return false;
  const uint64_t little = std::max(kLittleBytes, then.anonymous / kLittleParts);
  return Between(then.anonymous, now.anonymous) <= little;
}

MemoryFacts Corrected(MemoryFacts facts, const MemoryCounts& then, const MemoryCounts& now) {
  facts.anonymous = Moved(facts.anonymous, then.anonymous, now.anonymous);
  facts.resident = Moved(facts.resident, then.anonymous, now.anonymous);
  facts.private_dirty = Moved(facts.private_dirty, then.anonymous, now.anonymous);
  facts.huge = std::min(facts.huge, facts.anonymous);
  facts.page_tables = now.page_tables;
  facts.pinned = now.pinned;
  facts.accounted = now.accounted;
  return facts;
}

absl::StatusOr<MemoryFacts> MemoryWalk::Facts() {
  ASSIGN_OR_RETURN(const MemoryCounts now, ReadMemoryCounts(pid_));
  const SystemClock clock;
  const int64_t begin = clock.MonotonicNs();
  if (last_ && begin < last_->until_ns && SaysTheSame(last_->counts, now))
    return Corrected(last_->facts, last_->counts, now);
  Walk walk;
  walk.counts = now;
  ASSIGN_OR_RETURN(const std::vector<MemoryArea> areas, ReadMemoryAreas(pid_));
  walk.facts = FactsOf(areas, now);
  differs_in_fork_ = DiffersInFork(areas);
  const int64_t end = clock.MonotonicNs(), took = end - begin;
  ++walks_;
  walk.until_ns = end + std::max(kLongestNs, kWalks * took);
  last_ = walk;
  return walk.facts;
}

}  // namespace perfd::agent
