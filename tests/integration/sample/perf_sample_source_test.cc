// Real software events on a puppet. Truth: samples x period == CPU time used while sampled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "agent/sample/cost/sample_cost.h"
#include "agent/sample/cost/start_cost.h"
#include "agent/sample/cost/switch_cost.h"
#include "tests/integration/sample/sample_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::Ne;

TEST_F(PerfSampleSourceTest, SamplesAsMuchAsTheProcessRuns) {
  PuppetProcess puppet({"wait", "spin:500", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  EXPECT_EQ(source_->thread_count(), 1);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectNear(sink_.period_ns, 500 * kMs);
  ExpectCount(sink_.samples, 250, 499);
  EXPECT_EQ(sink_.pids, std::set<int32_t>{puppet.pid()});
  EXPECT_EQ(sink_.malformed, 0u);
  EXPECT_EQ(sink_.lost, 0u);
  EXPECT_TRUE(sink_.late.empty()) << "what ran before AddProcess is not late";
  EXPECT_EQ(source_->setup().event, source_->setup().kernel_included ? "cpu-clock" : "cpu-clock:u");
  EXPECT_EQ(source_->setup().method, "per-thread");
  EXPECT_TRUE(source_->removal_spares());
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->Drain(sink_);
  source_->Drain(sink_);
  EXPECT_EQ(source_->thread_count(), 0);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExited), 1);
}

TEST_F(PerfSampleSourceTest, CoversThreadsThatStartLater) {
  PuppetProcess puppet({"wait", "threads:3:400", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kThreadStarted), 3);
  EXPECT_LE(sink_.late.size(), 3u)
      << "a thread that did not run before its ring was there is not late";
  uint64_t late_ns = 0;
  for (const auto& [tid, ns] : sink_.late) {
    late_ns += ns;
    EXPECT_LT(static_cast<double>(ns), 300e6 + taken_.ns()) << "opened long before it ended";
    EXPECT_GT(static_cast<double>(sink_.by_tid[tid]), 50e6 - taken_.ns());
  }
  // What was sampled and what was reported as late is all there was.
  ExpectNear(sink_.period_ns + late_ns, 1200 * kMs);
}

TEST_F(PerfSampleSourceTest, ThreadsAreKnownBeforeAndRemovedAfter) {
  PuppetProcess puppet({"threads:4:200", "say:done", "wait"});
  OPEN_OR_SKIP({});
  while (ProcFs().Threads(puppet.pid())->size() != 5) ::usleep(1000);
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  EXPECT_EQ(source_->thread_count(), 5);
  DrainUntilHeard(puppet);
  source_->Drain(sink_);
  EXPECT_EQ(source_->thread_count(), 1);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExited), 4);
}

TEST_F(PerfSampleSourceTest, FollowsExecOfTheLeaderAndOfAThread) {
  for (const char* step : {"exec", "texec:100"}) {
    sink_ = {};
    PuppetProcess puppet({"wait", step, "spin:300", "say:done", "wait"});
    OPEN_OR_SKIP({.frequency_hz = 499});
    ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
    puppet.Go();
    DrainUntilHeard(puppet);
    source_->Drain(sink_);
    EXPECT_GE(CountTasks(TaskEvent::Kind::kExec), 1) << step;
    ExpectNear(sink_.by_tid[puppet.pid()], 300 * kMs);
    EXPECT_EQ(source_->thread_count(), 1) << step;
    EXPECT_THAT(sink_.mappings, Contains(AllOf(Field(&MappingEvent::path, PERFD_SAMPLE_PUPPET),
                                               Field(&MappingEvent::inode, Ne(0u)))))
        << step;
    puppet.Go();
    EXPECT_EQ(puppet.Wait(), 0);
  }
}

// Both programs and the exec between them lie in the ring: the exec is told first, with the time that divides them.
TEST_F(PerfSampleSourceTest, AnExecIsToldBeforeTheSamplesThatItDivides) {
  PuppetProcess puppet({"wait", "spin:200", "exec", "spin:300", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  ExpectNear(sink_.period_before_exec_ns, 200 * kMs);
  ExpectNear(sink_.period_ns - sink_.period_before_exec_ns, 300 * kMs);
}

// The thread is too young to have a ring when it becomes the leader.
TEST_F(PerfSampleSourceTest, FollowsExecOfAThreadThatNobodySawStart) {
  PuppetProcess puppet({"wait", "texec:0", "spin:400", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_GE(CountTasks(TaskEvent::Kind::kExec), 1);
  EXPECT_EQ(source_->thread_count(), 1);
  EXPECT_GT(static_cast<double>(sink_.by_tid[puppet.pid()]), 100e6 - taken_.ns());
  ExpectNear(sink_.by_tid[puppet.pid()] + sink_.late[puppet.pid()], 400 * kMs);
}

TEST_F(PerfSampleSourceTest, AForkedProcessCanBeAddedFromTheSink) {
  PuppetProcess puppet({"wait", "fork:400", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  int32_t child = 0;
  sink_.on_task = [&](const TaskEvent& e) {
    if (e.kind != TaskEvent::Kind::kProcessForked) return;
    child = e.pid;
    EXPECT_EQ(e.parent_pid, puppet.pid());
    const absl::Status added = source_->AddProcess(e.pid);
    EXPECT_TRUE(added.ok()) << added;
  };
  puppet.Go();
  DrainUntilHeard(puppet);
  ASSERT_NE(child, 0);
  EXPECT_THAT(sink_.pids, Contains(child));
  ExpectNear(sink_.by_tid[child] + sink_.late[child], 400 * kMs);
}

TEST_F(PerfSampleSourceTest, ChangesTheFrequencyOfRunningEvents) {
  PuppetProcess puppet({"wait", "spin:400", "say:a", "wait", "spin:400", "say:b"});
  OPEN_OR_SKIP({.frequency_hz = 97});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  const uint64_t slow = sink_.samples;
  ASSERT_TRUE(source_->SetFrequency(997).ok());
  EXPECT_EQ(source_->setup().frequency_hz, 997);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectCount(slow, 39, 97, 0.5, 1.4);
  ExpectCount(sink_.samples - slow, 399, 997, 0.5, 1.4);
  // Whatever the rate was when they were taken, they stand for all of the time.
  ExpectNear(sink_.period_ns, 800 * kMs);
}

TEST_F(PerfSampleSourceTest, ASwitchOfASampledThreadHasACost) {
  OPEN_OR_SKIP({});
  absl::StatusOr<double> cost = MeasureSwitchCost(source_->event());
  // Nothing where others take the CPU amid most rounds.
  for (int i = 1; i < 10 && (!cost.ok() || *cost == 0); ++i)
    cost = MeasureSwitchCost(source_->event());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(*cost, 20);
  EXPECT_LT(*cost, 200'000);
}

TEST_F(PerfSampleSourceTest, AThreadThatASampledOneStartsHasACost) {
  OPEN_OR_SKIP({});
  absl::StatusOr<double> cost = MeasureStartCost(source_->event());
  for (int i = 1; i < 10 && (!cost.ok() || *cost < 100); ++i)
    cost = MeasureStartCost(source_->event());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(*cost, 100);
  EXPECT_LT(*cost, 1'000'000);
}

TEST_F(PerfSampleSourceTest, RemovedProcessesStillDeliverWhatWasWritten) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "spin:300", "say:b"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->RemoveProcess(puppet.pid());
  EXPECT_EQ(source_->thread_count(), 0);
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  ExpectNear(sink_.period_ns, 300 * kMs);
  const uint64_t before = sink_.samples;
  source_->Drain(sink_);
  EXPECT_EQ(sink_.samples, before);
}

// The ring is full from early on to the very end: no LOST record ever has room.
TEST_F(PerfSampleSourceTest, OverrunsAreCountedAlsoAtTheEnd) {
  PuppetProcess puppet({"wait", "spin:600"});
  OPEN_OR_SKIP({.frequency_hz = 1999, .ring_bytes = 4096});
  const int pid = puppet.pid();
  ASSERT_TRUE(source_->AddProcess(pid).ok());
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->RemoveProcess(pid);
  source_->Drain(sink_);
  EXPECT_GT(sink_.samples, 10u);
  EXPECT_LT(sink_.samples, 100u) << "a page holds no more";
  ExpectCount(sink_.samples + sink_.lost, 1200, 1999, 0.4);
  const uint64_t lost = sink_.lost;
  source_->Drain(sink_);
  EXPECT_EQ(sink_.lost, lost) << "counted once";
}

TEST_F(PerfSampleSourceTest, OverrunsInTheMiddleAreCountedOnce) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "wait", "spin:100"});
  OPEN_OR_SKIP({.frequency_hz = 1999, .ring_bytes = 4096});
  const int pid = puppet.pid();
  ASSERT_TRUE(source_->AddProcess(pid).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->RemoveProcess(pid);
  source_->Drain(sink_);
  source_->Drain(sink_);
  EXPECT_GT(static_cast<double>(sink_.lost), 100 - taken_.samples(1999));
  ExpectCount(sink_.samples + sink_.lost, 800, 1999, 0.4);
}

TEST_F(PerfSampleSourceTest, CallPathsByFramePointerAndByStackCopy) {
  PuppetProcess puppet({"wait", "spin:200", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499, .callpaths = CallPaths::kFramePointer});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_GT(sink_.with_callers, sink_.samples / 2);
  EXPECT_GT(sink_.chains_from_ip, sink_.samples / 2);
  PuppetProcess other({"wait", "spin:200", "say:a", "wait"});
  sink_ = {};
  OPEN_OR_SKIP({.frequency_hz = 499, .callpaths = CallPaths::kDwarf});
  ASSERT_TRUE(source_->AddProcess(other.pid()).ok());
  other.Go();
  DrainUntilHeard(other);
  EXPECT_GT(sink_.with_stack, sink_.samples / 2);
  EXPECT_EQ(sink_.malformed, 0u);
}

TEST_F(PerfSampleSourceTest, AMissingProcessIsNotFound) {
  OPEN_OR_SKIP({});
  PuppetProcess puppet({});
  const int pid = puppet.pid();
  puppet.Wait();
  EXPECT_TRUE(absl::IsNotFound(source_->AddProcess(pid)));
  EXPECT_EQ(source_->thread_count(), 0);
}

TEST_F(PerfSampleSourceTest, OneSampleHasACost) {
  OPEN_OR_SKIP({});
  const auto cost = MeasureSampleCost(source_->event());
  ASSERT_TRUE(cost.ok()) << cost.status();
  RecordProperty("sample_cost_ns", static_cast<int>(*cost));
  EXPECT_GT(*cost, 100u);
  EXPECT_LT(*cost, 1'000'000u);
}

}  // namespace
}  // namespace perfd::agent
