// Several sessions under one small cap for the memory of rings: real events, real rings.
#include <gmock/gmock.h>

#include <thread>

#include "agent/sample/ring/ring_budget.h"
#include "tests/integration/sample/sample_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kThreads = 200;

class RingMemoryTest : public PerfSampleSourceTest {
 protected:
  RingMemoryTest() {
    for (int i = 0; i < kThreads; ++i) idle_.emplace_back([this] { over_.wait(false); });
  }
  ~RingMemoryTest() override {
    over_ = true;
    over_.notify_all();
    for (std::thread& thread : idle_) thread.join();
  }
  absl::StatusOr<std::unique_ptr<PerfSampleSource>> Source(CallPaths paths, int threads) {
    SamplingOptions options;
    options.event = "cpu-clock";
    options.callpaths = paths;
    options.threads = threads;
    thinned_.clear();
    return PerfSampleSource::Create(options, ProcFs(), &clock_, &budget_, &thinned_);
  }

  RingBudget budget_{uint64_t{6} << 20};
  std::vector<Notice> thinned_;  // of the last source
  std::atomic<bool> over_ = false;
  std::vector<std::thread> idle_;
};

TEST_F(RingMemoryTest, ManyThreadsDoNotStarveTheSessionOfAnother) {
  auto greedy = Source(CallPaths::kDwarf, kThreads + 1);
  if (absl::IsPermissionDenied(greedy.status())) GTEST_SKIP() << greedy.status();
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  ASSERT_TRUE((*greedy)->AddProcess(::getpid()).ok());
  EXPECT_EQ((*greedy)->thread_count(), kThreads + 1) << "rings became small enough for all";
  EXPECT_THAT(thinned_,
              ElementsAre(Field(&Notice::text, HasSubstr("instead of 512 for each of 201"))));
  EXPECT_LE(budget_.used_bytes(), budget_.cap_bytes() / 32 * 9);
  EXPECT_GE(budget_.used_bytes(), uint64_t{kThreads + 1} * 2 * PageBytes());

  PuppetProcess puppet({"spin:300", "say:done", "wait"});
  auto modest = Source(CallPaths::kOff, 1);
  ASSERT_TRUE(modest.ok()) << modest.status();
  EXPECT_THAT(thinned_, IsEmpty());
  source_ = *std::move(modest);
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  DrainUntilHeard(puppet);
  EXPECT_GT(sink_.samples, 0u);

  // A second one of that many threads does not fit any more, and is told how much there is.
  auto second = Source(CallPaths::kOff, kThreads + 1);
  ASSERT_TRUE(second.ok());
  const uint64_t before = budget_.used_bytes();
  const absl::Status refused = (*second)->AddProcess(::getpid());
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("the rings of this profile hold"), HasSubstr("of the 6.0 MiB")));
  RecordingSink rest;
  (*second)->Drain(rest);
  (*second)->Drain(rest);
  EXPECT_EQ(budget_.used_bytes(), before) << "what was opened of it is given back";

  (*greedy).reset();
  EXPECT_TRUE((*second)->AddProcess(::getpid()).ok());
  (*second).reset();
  source_.reset();
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(RingMemoryTest, StacksAreNotCopiedOfMoreThanAThousandThreads) {
  auto few = Source(CallPaths::kDwarf, 1024);
  if (absl::IsPermissionDenied(few.status())) GTEST_SKIP() << few.status();
  ASSERT_TRUE(few.ok());
  EXPECT_NE((*few)->event().attr.sample_type & PERF_SAMPLE_STACK_USER, 0u);
  auto many = Source(CallPaths::kDwarf, 1025);
  ASSERT_TRUE(many.ok());
  EXPECT_EQ((*many)->event().attr.sample_type & PERF_SAMPLE_STACK_USER, 0u);
  ASSERT_FALSE(thinned_.empty());
  EXPECT_EQ(thinned_[0].severity, Notice::Severity::kWarning);
  EXPECT_THAT(thinned_[0].text,
              HasSubstr("call paths are left out: 1025 threads, and stacks are copied of 1024"));
}

// 201 threads and 6 MiB: rings of 256 KiB for the first of them would leave too little for the others.
TEST_F(RingMemoryTest, PathsThatNobodyAskedForTakeNoRoomFromSamples) {
  auto plain = Source(CallPaths::kOff, kThreads + 1);
  if (absl::IsPermissionDenied(plain.status())) GTEST_SKIP() << plain.status();
  ASSERT_TRUE(plain.ok());
  ASSERT_TRUE((*plain)->AddProcess(::getpid()).ok());
  const uint64_t used = budget_.used_bytes();
  (*plain).reset();
  auto automatic = Source(CallPaths::kAuto, kThreads + 1);
  ASSERT_TRUE(automatic.ok());
  EXPECT_GT((*automatic)->event().stack_rings, 0);
  ASSERT_TRUE((*automatic)->AddProcess(::getpid()).ok());
  EXPECT_EQ((*automatic)->thread_count(), kThreads + 1);
  EXPECT_EQ(budget_.used_bytes(), used);
}

TEST_F(RingMemoryTest, WhereThereIsRoomTheFirstThreadsHaveStacks) {
  PuppetProcess puppet({"spin:300", "say:done", "wait"});
  auto automatic = Source(CallPaths::kAuto, 1);
  if (absl::IsPermissionDenied(automatic.status())) GTEST_SKIP() << automatic.status();
  ASSERT_TRUE(automatic.ok()) << automatic.status();
  EXPECT_EQ((*automatic)->event().attr.sample_type & PERF_SAMPLE_STACK_USER, 0u);
  source_ = *std::move(automatic);
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  EXPECT_EQ(budget_.used_bytes(), kPieceRingBytes + PageBytes());
  DrainUntilHeard(puppet);
  EXPECT_GT(sink_.samples, 0u);
  EXPECT_GT(sink_.with_stack, 0u);
}

}  // namespace
}  // namespace perfd::agent
