// Events of accesses beside those of time. Truth: page faults, which every kernel counts and whose samples have the address of
// the access, as those of PEBS and IBS do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <string>
#include <vector>

#include "agent/sample/memory/access_trial.h"
#include "agent/sample/memory/memory_events.h"
#include "agent/sample/ring/perf_event.h"
#include "tests/integration/sample/sample_fixture.h"

namespace perfd::agent {
namespace {

constexpr int kMegabytes = 128;
constexpr double kPages = kMegabytes * 256.0;

AccessEvent Faults(uint64_t config = PERF_COUNT_SW_PAGE_FAULTS) {
  AccessEvent event;
  event.event.name = "page-faults";
  event.event.type = PERF_TYPE_SOFTWARE;
  event.event.config = config;
  event.event.exclude_kernel = true;
  event.first_period = 101;
  return event;
}

class AccessSampleTest : public PerfSampleSourceTest {
 protected:
  // The puppet's start has faults, too: of its stack and its library.
  void Watch(PuppetProcess& puppet) {
    ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
    puppet.Go();
    DrainUntilHeard(puppet);
  }
  void ExpectAccesses(double pages) {
    EXPECT_GT(sink_.accesses, 10u);
    EXPECT_LE(sink_.strange_accesses, sink_.accesses / 10);
    // What was taken before a change of the period and read after it is given the new one: only events of the kernel's own.
    EXPECT_GT(static_cast<double>(sink_.access_weight), 0.8 * pages);
    EXPECT_LT(static_cast<double>(sink_.access_weight), 1.3 * pages);
    EXPECT_EQ(sink_.malformed, 0u);
  }
};

TEST_F(AccessSampleTest, AreTakenBesideThoseOfTimeAndStandForAsMany) {
  PuppetProcess puppet({"wait", "touch:128", "spin:300", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 1000, .accesses = {Faults()}});
  Watch(puppet);
  ExpectAccesses(kPages);
  EXPECT_GT(sink_.samples, 100u);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExited), 1) << "told once, by the event of time";
}

TEST_F(AccessSampleTest, OfThreadsThatStartLater) {
  // A thread is followed once it was heard of, at the next Drain.
  PuppetProcess puppet({"wait", "ttouch:256", "ttouch:256", "ttouch:256", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 1000, .accesses = {Faults()}});
  Watch(puppet);
  EXPECT_EQ(sink_.malformed, 0u);
  sink_.access_tids.erase(puppet.pid());
  EXPECT_GE(sink_.access_tids.size(), 1u);
}

TEST_F(AccessSampleTest, OfAGroupWithALeader) {
  PuppetProcess puppet({"wait", "touch:128", "say:done"});
  AccessEvent led = Faults();
  led.leader = Faults(PERF_COUNT_SW_CPU_MIGRATIONS).event;
  OPEN_OR_SKIP({.frequency_hz = 1000, .accesses = {led}});
  Watch(puppet);
  ExpectAccesses(kPages);
}

TEST_F(AccessSampleTest, OfAGroupWhoseLeaderDoesNotOpenThereAreNone) {
  PuppetProcess puppet({"wait", "touch:128", "spin:200", "say:done"});
  AccessEvent led = Faults();
  led.leader = Faults().event;
  led.leader->type = 0xfff;
  OPEN_OR_SKIP({.frequency_hz = 1000, .accesses = {led}});
  Watch(puppet);
  EXPECT_EQ(sink_.accesses, 0u);
  EXPECT_GT(sink_.samples, 50u);
}

TEST_F(AccessSampleTest, OfTwoEventsAreToldApart) {
  PuppetProcess puppet({"wait", "touch:128", "say:done"});
  OPEN_OR_SKIP(
      {.frequency_hz = 1000, .accesses = {Faults(), Faults(PERF_COUNT_SW_PAGE_FAULTS_MIN)}});
  Watch(puppet);
  ExpectAccesses(2 * kPages);
}

// They rest with the event of time, and stand for what they missed: for as large a part of it as samples of time do.
TEST_F(AccessSampleTest, RestWithTheEventOfTime) {
  std::vector<std::string> steps = {"wait"};
  for (int i = 0; i < 250; ++i) steps.insert(steps.end(), {"touch:4", "spin:6"});
  steps.insert(steps.end(), {"say:done", "wait"});
  PuppetProcess puppet(steps);
  OPEN_OR_SKIP({.frequency_hz = 2000, .accesses = {Faults()}});
  ASSERT_TRUE(source_->SetFrequency(1000).ok());
  Watch(puppet);
  EXPECT_NEAR(source_->on_share(), 0.5, 0.01);
  const double cpu_ns = static_cast<double>(ProcFs().CpuNs(puppet.pid(), puppet.pid()).value());
  const double seen_of_time = static_cast<double>(sink_.period_ns) / cpu_ns;
  const double seen_of_pages = static_cast<double>(sink_.access_weight) / (250 * 4 * 256.0);
  EXPECT_GT(seen_of_pages / seen_of_time, 0.75);
  EXPECT_LT(seen_of_pages / seen_of_time, 1.4);
}

TEST_F(AccessSampleTest, AnEventThatDoesNotOpenLeavesTheOthers) {
  PuppetProcess puppet({"wait", "touch:128", "spin:200", "say:done"});
  AccessEvent none = Faults();
  none.event.type = 0xfff;
  OPEN_OR_SKIP({.frequency_hz = 1000, .accesses = {none, Faults()}});
  Watch(puppet);
  ExpectAccesses(kPages);
  EXPECT_GT(sink_.samples, 50u);
}

TEST_F(AccessSampleTest, ATrialTellsWhatOpensBesideTheEventOfTime) {
  const auto time = PerfSampleSource::EventFor({.event = "cpu-clock"}, ProcFs());
  if (absl::IsPermissionDenied(time.status())) GTEST_SKIP() << time.status();
  ASSERT_TRUE(time.ok()) << time.status();
  AccessEvent none = Faults();
  none.event.type = 0xfff;
  const AccessTrial some = TryAccesses(*time, {none, Faults()});
  ASSERT_EQ(some.open.size(), 1u);
  EXPECT_EQ(some.open[0].event.type, PERF_TYPE_SOFTWARE);
  EXPECT_TRUE(absl::IsUnimplemented(some.why_not_all)) << some.why_not_all;
  EXPECT_TRUE(TryAccesses(*time, {none}).open.empty());
  EXPECT_TRUE(TryAccesses(*time, {Faults()}).why_not_all.ok());
}

// On a machine whose processor samples accesses, and where that may be done.
TEST_F(AccessSampleTest, OfTheProcessor) {
  const MemoryEventPlan plan = PlanMemoryEvents("/sys", 3, ProbePerfEvent);
  if (plan.obstacle != MemoryObstacle::kNone)
    GTEST_SKIP() << "no accesses are sampled here: " << PlanText(plan);
  PuppetProcess puppet({"wait", "touch:128", "touch:128", "spin:500", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 2000, .accesses = plan.events});
  Watch(puppet);
  EXPECT_GT(sink_.accesses, 10u);
  EXPECT_EQ(sink_.malformed, 0u);
  EXPECT_GT(sink_.with_source + sink_.with_latency, 0u);
}

}  // namespace
}  // namespace perfd::agent
