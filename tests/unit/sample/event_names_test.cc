#include "agent/sample/event_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EncodeEvent, KnowsGenericNames) {
  const auto clock = EncodeEvent("cpu-clock");
  ASSERT_TRUE(clock.ok());
  EXPECT_EQ(clock->type, static_cast<uint32_t>(PERF_TYPE_SOFTWARE));
  EXPECT_EQ(clock->config, static_cast<uint64_t>(PERF_COUNT_SW_CPU_CLOCK));
  const auto cycles = EncodeEvent("cycles:u:precise=2");
  ASSERT_TRUE(cycles.ok()) << cycles.status();
  EXPECT_EQ(cycles->type, static_cast<uint32_t>(PERF_TYPE_HARDWARE));
  EXPECT_EQ(cycles->config, static_cast<uint64_t>(PERF_COUNT_HW_CPU_CYCLES));
  EXPECT_TRUE(cycles->exclude_kernel);
  EXPECT_FALSE(cycles->exclude_user);
  EXPECT_EQ(cycles->precise, 2u);
}

TEST(EncodeEvent, ProposesNearNames) {
  const auto typo = EncodeEvent("cylces");
  EXPECT_TRUE(absl::IsInvalidArgument(typo.status()));
  EXPECT_THAT(std::string(typo.status().message()), HasSubstr("did you mean cycles"));
  EXPECT_THAT(std::string(EncodeEvent("zzzzzzzzzzzz").status().message()), HasSubstr("auto"));
}

TEST(EncodeEvent, RefusesNamesOfNoSenseLength) {
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeEvent("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeEvent(std::string(257, 'a')).status()));
}

TEST(NearNames, NearestFirstAndAtMostThree) {
  EXPECT_THAT(NearNames("abcd", {"abce", "abcd", "xyz", "abff", "abcdd", "PERF_COUNT_HW_ABCD"}),
              ElementsAre("abcd", "abcdd", "abce"));
  EXPECT_THAT(NearNames("abcd", {"wxyz"}), ElementsAre());
}

}  // namespace
}  // namespace perfd::agent
