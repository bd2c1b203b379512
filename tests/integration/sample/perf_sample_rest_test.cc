// Sampling at less than the full rate: events rest in between, and what is seen stands for what is not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/integration/sample/sample_fixture.h"

namespace perfd::agent {
namespace {

class PerfSampleRestTest : public PerfSampleSourceTest {
 protected:
  // At a quarter of 499 Hz a sample stands for the rest around it too, for 4 of 499 in all; one that came when its slot was
  // long over for itself.
  void ExpectEachStandsForFour() const {
    const double all_ns = static_cast<double>(sink_.samples) * 4e9 / 499;
    EXPECT_LT(static_cast<double>(sink_.period_ns), 1.01 * all_ns);
    EXPECT_GT(static_cast<double>(sink_.period_ns), 0.99 * all_ns - 3 * taken_.ns());
  }
};

TEST_F(PerfSampleRestTest, RestsToBecomeSlowerThanItBegan) {
  PuppetProcess puppet({"wait", "spin:2000", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  ASSERT_TRUE(source_->SetFrequency(499.0 / 4).ok());
  EXPECT_DOUBLE_EQ(source_->setup().frequency_hz, 499.0 / 4);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectCount(sink_.samples, 250, 499.0 / 4, 0.5, 1.4);
  ExpectEachStandsForFour();
  ASSERT_TRUE(source_->SetFrequency(499).ok());
}

// What was on must not go on until the next slot: each of its samples would stand for half a second.
TEST_F(PerfSampleRestTest, RestsAtOnce) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "wait", "spin:300", "say:b", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(source_->SetFrequency(499).ok());
    source_->Drain(sink_);
    const uint64_t before = sink_.samples;
    ASSERT_TRUE(source_->SetFrequency(1).ok());
    puppet.Go();
    ASSERT_TRUE(puppet.Heard());
    source_->Drain(sink_);
    least = std::min(least, sink_.samples - before);
  }
  // One slot in 500 is on, and then there are some 150.
  EXPECT_EQ(least, 0u);
}

// An agent that is stopped, or gets no CPU, leaves things as they are: events at rest, or on for longer than was planned.
TEST_F(PerfSampleRestTest, WhatAHeldUpAgentDoesNotSeeIsCounted) {
  std::vector<std::string> words = {"wait"};
  constexpr int kMost = 14;  // heads or tails: both are nearly sure to come
  for (int i = 0; i < kMost; ++i) words.insert(words.end(), {"spin:1500", "say:a", "wait"});
  PuppetProcess puppet(words);
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  ASSERT_TRUE(source_->SetFrequency(499.0 / 2).ok());
  bool seen = false, missed = false;
  for (int i = 0; i < kMost && !(seen && missed); ++i) {
    ::usleep(100'000);
    source_->Drain(sink_);
    ForgetTaken();
    const RecordingSink before = sink_;
    puppet.Go();
    ASSERT_TRUE(puppet.Heard());  // nobody drains meanwhile
    source_->Drain(sink_);
    const bool on = sink_.samples - before.samples > 200;
    (on ? seen : missed) = true;
    // On: every sample once the slot is over by far stands for itself alone. At rest: lost but for the slot.
    if (on) {
      ExpectNear(sink_.period_ns - before.period_ns, 2100 * kMs, 0.7, 1.2);
      EXPECT_EQ(sink_.lost, before.lost);
    } else {
      ExpectCount(sink_.lost - before.lost, 349, 499.0 / 2, 0.8, 1.1);
    }
  }
  EXPECT_TRUE(seen && missed);
}

// Until it goes there is room for one more descriptor.
class OneDescriptorLeft {
 public:
  OneDescriptorLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit tight = {256, 256};
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
      fds_.push_back(fd);
    if (fds_.empty()) return;
    close(fds_.back());
    fds_.pop_back();
  }
  ~OneDescriptorLeft() {
    for (const int fd : fds_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_ = {};
  std::vector<int> fds_;
};

TEST_F(PerfSampleRestTest, AThreadThatCannotRestDoesNotKeepTheOthersFromIt) {
  if (geteuid() != 0)
    GTEST_SKIP() << "SKIPPED: the hard limit of descriptors could not be put back";
  PuppetProcess first({"wait", "spin:3000", "say:a", "wait"});
  PuppetProcess second({"wait", "spin:3000", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(first.pid()).ok());
  ASSERT_TRUE(source_->AddProcess(second.pid()).ok());
  {
    const OneDescriptorLeft tight;
    ASSERT_TRUE(source_->SetFrequency(499.0 / 4).ok());
    for (int i = 0; i < 100 && source_->on_share() < 0.6; ++i) {
      source_->Drain(sink_);
      ::usleep(20'000);
    }
  }
  EXPECT_DOUBLE_EQ(source_->on_share(), 0.5 + 0.5 / 4) << "one of two is always on";
  first.Go();
  second.Go();
  DrainUntilHeard(first);
  DrainUntilHeard(second);
  // Each a quarter of 499, and each sample stands for as much, whether its event rests or is slower. Of the one that rests
  // up to five slots more or fewer are on, each longer by what the thread that ends it comes late: long enough to be few.
  ExpectCount(sink_.counts[first.pid()], 374, 499.0 / 4, 0.4, 1.6);
  ExpectCount(sink_.counts[second.pid()], 374, 499.0 / 4, 0.4, 1.6);
  ExpectEachStandsForFour();
  ASSERT_TRUE(source_->SetFrequency(499).ok());
  EXPECT_DOUBLE_EQ(source_->on_share(), 1);
}

// Nearly all the time at rest: what explains samples arrives all the same.
TEST_F(PerfSampleRestTest, SeesEveryThreadForkAndExecAtRest) {
  PuppetProcess puppet({"wait", "threads:3:50", "fork:50", "exec", "spin:20", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  ASSERT_TRUE(source_->SetFrequency(1).ok());
  for (int i = 0; i < 3; ++i) {
    source_->Drain(sink_);
    ::usleep(110'000);
  }
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kThreadStarted), 3);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kProcessForked), 1);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExec), 1);
  EXPECT_FALSE(sink_.mappings.empty());
  EXPECT_LT(sink_.samples, 40u) << "all of it at the full rate is 100";
}

}  // namespace
}  // namespace perfd::agent
