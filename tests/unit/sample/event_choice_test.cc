#include "agent/sample/event_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

bool IsCycles(const perf_event_attr& a) {
  return a.type == PERF_TYPE_HARDWARE;
}

TEST(ChooseEvent, AutoTakesTheHighestPrecisionThatOpens) {
  const auto event = ChooseEvent({}, [](const perf_event_attr& a) {
    return IsCycles(a) && a.precise_ip <= 2 ? 0 : EOPNOTSUPP;
  });
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->name, "cycles (precise 2)");
  EXPECT_EQ(event->attr.precise_ip, 2u);
  EXPECT_TRUE(event->kernel_included);
}

TEST(ChooseEvent, AutoFallsBackToTheClockWithoutAPmu) {
  for (const int error : {ENOENT, EOPNOTSUPP, ENODEV, EBUSY}) {
    const auto event =
        ChooseEvent({}, [&](const perf_event_attr& a) { return IsCycles(a) ? error : 0; });
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(event->name, "cpu-clock");
  }
}

TEST(ChooseEvent, LeavesTheKernelOutWhereItIsForbidden) {
  const auto event = ChooseEvent({}, [](const perf_event_attr& a) {
    if (a.exclude_kernel == 0) return EACCES;
    return IsCycles(a) && a.precise_ip != 0 ? EOPNOTSUPP : 0;
  });
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->name, "cycles:u");
  EXPECT_FALSE(event->kernel_included);
}

TEST(ChooseEvent, SaysWhatForbidsEverything) {
  const auto event = ChooseEvent({}, [](const perf_event_attr&) { return EACCES; });
  EXPECT_TRUE(absl::IsPermissionDenied(event.status()));
  EXPECT_THAT(std::string(event.status().message()), HasSubstr("kernel.perf_event_paranoid=1"));
  EXPECT_THAT(std::string(event.status().message()), HasSubstr("CAP_PERFMON"));
}

TEST(ChooseEvent, ANamedEventIsNotReplacedByAnother) {
  const auto event =
      ChooseEvent({.event = "cycles"}, [](const perf_event_attr&) { return ENOENT; });
  EXPECT_TRUE(absl::IsUnimplemented(event.status()));
  EXPECT_THAT(std::string(event.status().message()), HasSubstr("cpu-clock"));
}

TEST(ChooseEvent, AnOlderKernelDoesWithoutTheCountOfLostRecords) {
  const auto event = ChooseEvent({.event = "cpu-clock"}, [](const perf_event_attr& a) {
    return a.read_format != 0 ? EINVAL : 0;
  });
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->attr.read_format, 0u);
}

TEST(ChooseEvent, ModifiersSurvive) {
  const auto event = ChooseEvent({.event = "cycles:u"}, [](const perf_event_attr&) { return 0; });
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->name, "cycles:u");
  EXPECT_FALSE(event->kernel_included);
}

}  // namespace
}  // namespace perfd::agent
