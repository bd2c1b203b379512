#include "agent/sample/sampling_event.h"

#include <gtest/gtest.h>

#include <cmath>

#include "agent/sample/record_decoder.h"
#include "agent/sample/thread_rings.h"

namespace perfd {
namespace {

TEST(MakeSamplingAttr, AClockIsProgrammedByPeriod) {
  const perf_event_attr attr = MakeSamplingAttr(CpuClockEncoding(), {.frequency_hz = 250});
  EXPECT_EQ(attr.freq, 0u);
  EXPECT_EQ(attr.sample_period, 4'000'000u);
  EXPECT_EQ(attr.sample_type, kBaseSampleType);
  EXPECT_EQ(attr.sample_id_all, 1u);
  EXPECT_EQ(attr.inherit, 0u);
}

TEST(MakeSamplingAttr, OthersByFrequency) {
  const perf_event_attr attr = MakeSamplingAttr(CyclesEncoding(), {.frequency_hz = 250});
  EXPECT_EQ(attr.freq, 1u);
  EXPECT_EQ(attr.sample_freq, 250u);
}

TEST(RateValue, StaysInsideTheBounds) {
  const perf_event_attr cycles = MakeSamplingAttr(CyclesEncoding(), {});
  EXPECT_EQ(RateValue(cycles, 0), 1u);
  EXPECT_EQ(RateValue(cycles, 1e9), 10'000u);
  EXPECT_EQ(RateValue(cycles, std::nan("")), 1u);
  const perf_event_attr clock = MakeSamplingAttr(CpuClockEncoding(), {});
  EXPECT_EQ(RateValue(clock, 1), 1'000'000'000u);
  EXPECT_EQ(RateValue(clock, 1e9), 100'000u);
}

TEST(MakeSamplingAttr, CallPaths) {
  const perf_event_attr fp =
      MakeSamplingAttr(CpuClockEncoding(), {.callpaths = CallPaths::kFramePointer});
  EXPECT_EQ(fp.sample_type, kBaseSampleType | PERF_SAMPLE_CALLCHAIN);
  EXPECT_EQ(fp.exclude_callchain_kernel, 1u);
  const perf_event_attr dwarf = MakeSamplingAttr(
      CpuClockEncoding(), {.callpaths = CallPaths::kDwarf, .stack_bytes = 1'000'003});
  EXPECT_EQ(dwarf.sample_type & ~kDecodableSampleType, 0u);
  EXPECT_EQ(dwarf.sample_regs_user, kUserRegisterMask);
  EXPECT_EQ(dwarf.sample_stack_user, 32768u);
}

TEST(RingBytes, IsAPowerOfTwoOfPages) {
  EXPECT_EQ(RingBytes({.ring_bytes = 1}, 4096), 4096u);
  EXPECT_EQ(RingBytes({.ring_bytes = 4097}, 4096), 8192u);
  EXPECT_EQ(RingBytes({.ring_bytes = UINT64_MAX}, 4096), 64u << 20);
  EXPECT_EQ(RingBytes({}, 4096), 65536u);
}

TEST(ParseCpuList, ReadsRangesAndRefusesNonsense) {
  EXPECT_EQ(ParseCpuList("0-2,5\n"), (std::vector<int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(ParseCpuList("0"), (std::vector<int32_t>{0}));
  for (const char* bad : {"", "x", "3-1", "0-", "0-8192", "1-2-3", "-1"}) {
    EXPECT_TRUE(ParseCpuList(bad).empty()) << bad;
  }
  EXPECT_EQ(ParseCpuList("8191").size(), 1u);
}

}  // namespace
}  // namespace perfd
