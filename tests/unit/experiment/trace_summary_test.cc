#include "agent/experiment/plan/trace_summary.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

constexpr TraceRecord kNever{~uint64_t{0}, 0, 0, 0};

Reference Access(bool writes, int32_t bytes = 8) {
  return {.instruction = 0x401000, .reads = !writes, .writes = writes, .bytes = bytes};
}

ThreadTrace Whole(std::vector<TraceRecord> records) {
  return {.records = std::move(records), .traced_iterations = 100, .whole_iterations = 100};
}

TEST(TraceSummaryTest, ReadsAndWritesApartCanBeRepeated) {
  const std::vector<Reference> references = {Access(false), Access(true)};
  const std::vector<ThreadTrace> threads = {
      Whole({{1000, 1792, 1000, 100}, {5000, 5792, 5000, 100}})};
  const TraceSummary summary = SummarizeTrace(references, threads, {0x400000, 0});
  EXPECT_FALSE(summary.in_situ);
  EXPECT_FALSE(summary.partial);
  ASSERT_EQ(summary.references.size(), size_t{2});
  EXPECT_EQ(summary.references[0].instruction, 0x1000u);
  EXPECT_EQ(summary.references[0].lowest, 1000u);
  EXPECT_EQ(summary.references[0].highest, 1800u);
  ASSERT_EQ(summary.written.size(), size_t{1});
  EXPECT_EQ(summary.written[0], (std::pair<uint64_t, uint64_t>{5000, 800}));
  EXPECT_EQ(summary.written_bytes, 800u);
}

TEST(TraceSummaryTest, SteppingIsWhatGoesOnInEveryThread) {
  const std::vector<Reference> references = {Access(true)};
  const auto steps = [&](std::vector<ThreadTrace> threads) {
    return SummarizeTrace(references, threads, {0x400000, 0}).stepping ==
           std::vector<uint64_t>{0x1000};
  };
  const TraceRecord up{1000, 1792, 1000, 100, 139'600};
  const TraceRecord down{1000, 1792, 1792, 100, 139'600};
  EXPECT_TRUE(steps({Whole({up})}));
  EXPECT_TRUE(steps({Whole({up}), Whole({down})}));
  EXPECT_TRUE(steps({Whole({up}), Whole({kNever})})) << "who never came there";
  const TraceRecord stays{1000, 1000, 1000, 100, 100'000};
  const TraceRecord jumps{1000, 1792, 1000, 100, 139'592};
  for (const TraceRecord& other : {stays, jumps})
    EXPECT_FALSE(steps({Whole({up}), Whole({other})}));
  EXPECT_FALSE(steps({Whole({kNever})}));
}

TEST(TraceSummaryTest, OneByteInCommonIsInPlace) {
  const std::vector<Reference> references = {Access(false), Access(true)};
  const auto overlap = [&](uint64_t written) {
    const std::vector<ThreadTrace> threads = {
        Whole({{1000, 1792, 1000, 100}, {written, written, written, 1}})};
    return SummarizeTrace(references, threads, {}).in_situ;
  };
  EXPECT_TRUE(overlap(1799));
  EXPECT_FALSE(overlap(1800));
  EXPECT_TRUE(overlap(993));
  EXPECT_FALSE(overlap(992));
}

TEST(TraceSummaryTest, WhatAnotherThreadReadsCounts) {
  const std::vector<Reference> references = {Access(false), Access(true)};
  const std::vector<ThreadTrace> threads = {Whole({{1000, 1000, 1000, 1}, kNever}),
                                            Whole({kNever, {1000, 1000, 1000, 1}})};
  EXPECT_TRUE(SummarizeTrace(references, threads, {}).in_situ);
}

TEST(TraceSummaryTest, EachThreadsPartIsItsOwn) {
  const std::vector<Reference> references = {Access(true)};
  const auto of = [&](uint64_t second) {
    const std::vector<ThreadTrace> threads = {Whole({{1000, 1792, 1000, 100}}),
                                              Whole({{second, second + 792, second, 100}})};
    return SummarizeTrace(references, threads, {});
  };
  const TraceSummary halves = of(1800);  // of one array
  ASSERT_EQ(halves.written.size(), size_t{2});
  EXPECT_EQ(halves.writers, (std::vector<int32_t>{0, 1}));
  const TraceSummary common = of(1799);
  ASSERT_EQ(common.written.size(), size_t{1});
  EXPECT_EQ(common.writers, std::vector<int32_t>{-1});
  EXPECT_EQ(common.written_bytes, 1599u);
}

TEST(TraceSummaryTest, CappedTracesAreStretchedInTheirDirection) {
  const std::vector<Reference> references = {Access(true)};
  const auto range = [&](uint64_t first) {
    const std::vector<ThreadTrace> threads = {{.records = {{10'000, 10'792, first, 100}},
                                               .traced_iterations = 100,
                                               .whole_iterations = 300}};
    const TraceSummary summary = SummarizeTrace(references, threads, {});
    EXPECT_TRUE(summary.partial);
    return summary.written.at(0);
  };
  EXPECT_EQ(range(10'000),
            (std::pair<uint64_t, uint64_t>{10'000, 2400}));  // 300 accesses of 8 bytes upwards
  EXPECT_EQ(range(10'792), (std::pair<uint64_t, uint64_t>{8'400, 2400}));  // downwards
  EXPECT_EQ(range(10'400), (std::pair<uint64_t, uint64_t>{8'400, 4000}));  // who knows
}

TEST(TraceSummaryTest, OneFixedAddressIsNotStretched) {
  const std::vector<Reference> references = {Access(true)};
  const std::vector<ThreadTrace> threads = {{.records = {{4096, 4096, 4096, 100}},
                                             .traced_iterations = 100,
                                             .whole_iterations = 1'000'000}};
  EXPECT_EQ(SummarizeTrace(references, threads, {}).written_bytes, 8u);
}

TEST(TraceSummaryTest, AddressesAtTheEndsDoNotWrap) {
  const std::vector<Reference> references = {Access(true, 64)};
  const std::vector<ThreadTrace> threads = {{.records = {{16, ~uint64_t{0} - 4, 4096, 3}},
                                             .traced_iterations = 1,
                                             .whole_iterations = ~uint64_t{0}}};
  const TraceSummary summary = SummarizeTrace(references, threads, {});
  ASSERT_EQ(summary.written.size(), size_t{1});
  EXPECT_EQ(summary.written[0], (std::pair<uint64_t, uint64_t>{0, ~uint64_t{0}}));
}

// What a thread writes side by side or one inside the other is one range.
TEST(TraceSummaryTest, RangesThatTouchAreOne) {
  const std::vector<Reference> references = {Access(true), Access(true)};
  const auto written = [&](TraceRecord a, TraceRecord b) {
    const std::vector<ThreadTrace> threads = {Whole({a, b})};
    return SummarizeTrace(references, threads, {}).written;
  };
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(written({1000, 1792, 1000, 100}, {1800, 2592, 1800, 100}), (Ranges{{1000, 1600}}));
  EXPECT_EQ(written({1000, 1792, 1000, 100}, {1801, 2593, 1801, 100}),
            (Ranges{{1000, 800}, {1801, 800}}));
  EXPECT_EQ(written({1000, 4992, 1000, 500}, {2000, 2092, 2000, 10}), (Ranges{{1000, 4000}}));
}

TEST(TraceSummaryTest, FindsTheOneOverlapAmongManyRanges) {
  const std::vector<Reference> references = {Access(false), Access(true)};
  const TraceRecord low{1000, 1000, 1000, 1}, between{2000, 2000, 2000, 1},
      high{5000, 5000, 5000, 1};
  const auto in_situ = [&](TraceRecord read, TraceRecord write) {
    const std::vector<ThreadTrace> threads = {Whole({read, write}), Whole({high, kNever}),
                                              Whole({kNever, high})};
    return SummarizeTrace(references, threads, {}).in_situ;
  };
  EXPECT_TRUE(in_situ(low, between));
  EXPECT_TRUE(in_situ(between, low));
}

TEST(TraceSummaryTest, WhatWasNotExecutedHasNoRange) {
  std::vector<Reference> references = {Access(false), Access(true)};
  references[1].instruction = 0x401004;
  const std::vector<ThreadTrace> threads = {Whole({{1000, 1000, 1000, 1}, kNever})};
  const TraceSummary summary = SummarizeTrace(references, threads, {});
  ASSERT_EQ(summary.references.size(), size_t{1});
  EXPECT_TRUE(summary.references[0].reads);
  EXPECT_EQ(summary.not_executed, std::vector<uint64_t>{0x401004});
  references[1].traced = false;
  EXPECT_TRUE(SummarizeTrace(references, threads, {}).not_executed.empty());
}

TEST(TraceSummaryTest, WritesBeyondTheRecordsAreNotTraced) {
  std::vector<Reference> references(kTraceCount, Access(true));
  EXPECT_FALSE(SummarizeTrace(references, {}, {}).untraced);
  references.push_back(Access(true));
  EXPECT_TRUE(SummarizeTrace(references, {}, {}).untraced);
}

TEST(TraceSummaryTest, SaysWhenAWriteWasNotTraced) {
  std::vector<Reference> references = {Access(true)};
  references[0].traced = false;
  const std::vector<ThreadTrace> threads = {Whole({kNever})};
  EXPECT_TRUE(SummarizeTrace(references, threads, {}).untraced);
  references[0].writes = false;
  EXPECT_FALSE(SummarizeTrace(references, threads, {}).untraced);
}

}  // namespace
}  // namespace perfd::agent
