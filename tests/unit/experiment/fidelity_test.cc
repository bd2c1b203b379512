#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "agent/experiment/loop/protocol.h"

namespace perfd::agent {
namespace {

// REF takes `shadow` in two runs of each of `shadows` shadows, and `live` in the rank.
LoopKnowledge Timed(double shadow, double live, uint32_t shadows = 4) {
  LoopKnowledge known;
  known.setup.ticks_per_ns = 1;
  known.setup.evict_bytes = {0, 32 << 10, 512 << 10, 32 << 20};
  known.installed.names = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                           SingleVariant(Change::kTrace)};
  known.installed.copies.resize(3);
  known.live.entries.team = 1;
  known.live.times.cycles = live;
  for (int i = -7; i <= 7; ++i)
    known.live.times.instances.push_back(static_cast<uint64_t>(live * (1 + 0.01 * i)));
  known.live.times.timed = 15;
  for (uint32_t at = 1; at <= shadows; ++at) {
    for (uint32_t order = 0; order < 2; ++order)
      known.runs.samples.push_back({.shadow = at,
                                    .order = order,
                                    .variant = "REF",
                                    .cycles = shadow * (1 + 0.01 * at - 0.01 * order)});
  }
  known.runs.cycles = shadow;
  known.runs.reduction.figures.resize(1);
  known.trips.counts = {1000};
  known.protocol.evict_chosen = true;
  known.probe.trace.touched = {{1 << 20, 1 << 20}};
  known.probe.trace.references = {{.instruction = 1, .reads = true}};
  return known;
}

TEST(FidelityOf, SaysWhatItIsOf) {
  const Fidelity fidelity = FidelityOf(Timed(100'000, 100'000));
  EXPECT_DOUBLE_EQ(fidelity.value, 1);
  EXPECT_LT(fidelity.low, 0.99);
  EXPECT_GT(fidelity.low, 0.8);
  EXPECT_GT(fidelity.high, 1.01);
  EXPECT_LT(fidelity.high, 1.2);
  EXPECT_EQ(fidelity.live_instances, 15u);
  EXPECT_EQ(fidelity.runs, 8u);
  EXPECT_EQ(fidelity.shadows, 4u);
  EXPECT_EQ(fidelity.caches, CachesBefore::kWarm);
  EXPECT_EQ(fidelity.reason, FidelityReason::kUnknown);
  LoopKnowledge cold = Timed(100'000, 100'000);
  cold.protocol.evict = Evict::kSecond;
  EXPECT_EQ(FidelityOf(cold).caches, CachesBefore::kL2Evicted);
}

TEST(FidelityOf, ItsIntervalIsOfBothSides) {
  const auto width = [](const LoopKnowledge& known) {
    const Fidelity fidelity = FidelityOf(known);
    return fidelity.high - fidelity.low;
  };
  const LoopKnowledge calm = Timed(100'000, 100'000);
  LoopKnowledge live = calm, shadow = calm, few = calm, together = calm;
  for (size_t i = 0; i < live.live.times.instances.size(); i += 2)
    live.live.times.instances[i] *= 2;
  EXPECT_GT(width(live), 2 * width(calm));
  for (size_t i = 0; i < shadow.runs.samples.size(); i += 4) {
    shadow.runs.samples[i].cycles *= 2;
    shadow.runs.samples[i + 1].cycles *= 2;
  }
  EXPECT_GT(width(shadow), 2 * width(calm));
  few.runs.samples.resize(4);  // of two shadows
  EXPECT_GT(width(few), width(calm));
  // Fifteen timings in three clumps tell less than fifteen apart.
  for (uint32_t i = 0; i < 15; ++i) together.live.times.clusters.push_back(i / 5);
  EXPECT_GT(width(together), width(calm));
}

TEST(FidelityOf, IsNoneWithoutBoth) {
  LoopKnowledge known = Timed(100'000, 100'000);
  known.runs.reduction.figures.clear();
  EXPECT_EQ(FidelityOf(known).value, 0);
  known = Timed(100'000, 0);
  EXPECT_EQ(FidelityOf(known).value, 0);
  known.probe.trace.references[0].shared = true;
  EXPECT_EQ(FidelityOf(known).reason, FidelityReason::kSharedLines) << "known from the trace";
}

struct Row {
  const char* what;
  double fidelity;
  std::function<void(LoopKnowledge&)> change;
  FidelityReason reason;
};

TEST(FidelityOf, AReasonIsGivenOnlyWhereWhatIsKnownShowsIt) {
  const auto nothing = [](LoopKnowledge&) {};
  const std::vector<Row> rows = {
      {"more than L1 holds, warm", 0.6, nothing, FidelityReason::kWarmerCaches},
      {"as fast as live", 0.95, nothing, FidelityReason::kUnknown},
      {"slower than live", 1.6, nothing, FidelityReason::kUnknown},
      {"it fits L1", 0.6,
       [](auto& k) {
         k.probe.trace.touched = {{1 << 20, 32 << 10}};
       },
       FidelityReason::kUnknown},
      {"one thread's part fits L1", 0.6,
       [](auto& k) {
         k.probe.trace.touched = {{1 << 20, 64 << 10}};
         k.live.entries.team = 2;
       },
       FidelityReason::kUnknown},
      {"the size of L1 is not known", 0.6, [](auto& k) { k.setup.evict_bytes = {}; },
       FidelityReason::kUnknown},
      {"emptied caches were not tried", 0.6, [](auto& k) { k.protocol.evict_chosen = false; },
       FidelityReason::kUnknown},
      {"and need not be: a run empties all by itself", 0.6,
       [](auto& k) {
         k.protocol.evict_chosen = false;
         k.setup.evict_bytes = {0, 16 << 10, 16 << 10, 16 << 10};
       },
       FidelityReason::kWarmerCaches},
      {"emptied, and still faster", 0.6, [](auto& k) { k.protocol.evict = Evict::kAll; },
       FidelityReason::kUnknown},
      {"emptied, and slower", 1.6, [](auto& k) { k.protocol.evict = Evict::kFirst; },
       FidelityReason::kColderCaches},
      {"a batch", 1.6, [](auto& k) { k.batch.instances = 100; }, FidelityReason::kBetween},
      {"in the rank itself", 0.6, [](auto& k) { k.in_situ.on = true; }, FidelityReason::kUnknown},
      {"shared lines", 1.6, [](auto& k) { k.probe.trace.references[0].shared = true; },
       FidelityReason::kSharedLines},
      {"the interval holds 1", 0.6,
       [](auto& k) {
         for (size_t i = 1; i < k.live.times.instances.size(); i += 2)
           k.live.times.instances[i] /= 4;
       },
       FidelityReason::kUnknown},
  };
  for (const Row& row : rows) {
    LoopKnowledge known = Timed(row.fidelity * 100'000, 100'000);
    row.change(known);
    EXPECT_EQ(FidelityOf(known).reason, row.reason) << row.what;
  }
}

}  // namespace
}  // namespace perfd::agent
