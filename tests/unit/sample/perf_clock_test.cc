#include "agent/sample/perf_clock.h"

#include <gtest/gtest.h>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

TEST(PerfClock, OffsetOfTheNameSpace) {
  EXPECT_EQ(
      *ParseMonotonicOffset("monotonic           0         0\nboottime            0         0\n"),
      0);
  EXPECT_EQ(*ParseMonotonicOffset("boottime  7 0\nmonotonic      432000         5\n"),
            432000 * kNsPerSecond + 5);
  // Seconds are negative, nanoseconds never: 1.5 s back.
  EXPECT_EQ(*ParseMonotonicOffset("monotonic  -2  500000000\n"), -3 * kNsPerSecond / 2);
  EXPECT_EQ(*ParseMonotonicOffset("1 10 0\n7 20 0\n"), 10 * kNsPerSecond);
}

TEST(PerfClock, NonsenseIsNoOffset) {
  for (const char* text : {"", "\n", "boottime 1 0\n", "monotonic\n", "monotonic 1\n",
                           "monotonic x 0\n", "monotonic 1 -1\n", "monotonic 1 1000000000\n",
                           "monotonic 1 0 0\n", "monotonic 9223372036 0\n",
                           "monotonic -9223372036 0\n", "monotonic 99999999999999999999 0\n"}) {
    EXPECT_EQ(ParseMonotonicOffset(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(*ParseMonotonicOffset("monotonic 9223372035 999999999\n"), 9223372035'999999999);
  EXPECT_EQ(*ParseMonotonicOffset("monotonic -9223372035 0\n"), -9223372035'000000000);
}

TEST(PerfClock, WithoutTheFileNothingIsShifted) {
  EXPECT_EQ(PerfClockOffsetNs(ProcFs("/nowhere")), 0);
}

// This process is in the machine's own name space, or its offset is the one that the kernel tells.
TEST(PerfClock, OfThisProcessIsReadable) {
  const int64_t offset = PerfClockOffsetNs(ProcFs());
  EXPECT_LE(offset, SystemClock().MonotonicNs());
}

}  // namespace
}  // namespace perfd::agent
