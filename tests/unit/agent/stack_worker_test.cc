#include "agent/pipeline/stack_worker.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/notification.h"

namespace perfd::agent {
namespace {

class AtomicClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns; }
  int64_t UnixNs() const override { return now_ns; }
  std::atomic<int64_t> now_ns = kNsPerSecond;
};

std::shared_ptr<const StackTarget> Target(int32_t pid, uint64_t generation = 1,
                                          uint32_t image = 0) {
  StackTarget target{.pid = pid, .image = image, .generation = generation};
  for (uint64_t i = 1; i <= generation; ++i)
    target.mappings.push_back({.start = i * 0x1000, .end = (i + 1) * 0x1000, .path = "/code"});
  return std::make_shared<const StackTarget>(std::move(target));
}

// Knows the code of the target it was opened with; a path is the instruction alone.
class FakeStackSource final : public StackSource {
 public:
  struct Script {
    std::atomic<int> opens = 0;
    std::atomic<int> asked = 0;
    std::atomic<bool> open_fails = false;
    std::atomic<bool> unwind_fails = false;
    Notification* hold = nullptr;  // each answer waits for it
  };
  FakeStackSource(StackTarget target, Script* script)
      : target_(std::move(target)), script_(script) {}

  absl::StatusOr<CallPath> Unwind(const StackCopy& copy, absl::Duration) override {
    ++script_->asked;
    if (script_->hold != nullptr) script_->hold->WaitForNotification();
    if (script_->unwind_fails) return absl::InternalError("died");
    const uint64_t at = copy.registers[kInstructionPointerIndex];
    const bool known = at < target_.mappings.back().end;
    return CallPath{.addresses = {at}, .complete = known, .unknown_address = known ? 0 : at};
  }
  uint64_t cpu_ns() const override { return static_cast<uint64_t>(script_->asked) * 1000; }

 private:
  const StackTarget target_;
  Script* const script_;
};

class StackWorkerTest : public testing::Test {
 protected:
  StackWorkerTest() {
    worker_ = std::make_unique<StackWorker>(
        [this](const StackTarget& target) -> absl::StatusOr<std::unique_ptr<StackSource>> {
          ++script_.opens;
          if (script_.open_fails) return absl::NotFoundError("no file");
          return std::make_unique<FakeStackSource>(target, &script_);
        },
        clock_);
  }

  bool Submit(const std::shared_ptr<const StackTarget>& target, uint64_t address = 0x1010) {
    StackTask task{.target = target, .rank = 3, .kernel = true};
    task.copy.registers[kInstructionPointerIndex] = address;
    return worker_->Submit(task);
  }

  std::vector<StackResult> Results(size_t count) {
    std::vector<StackResult> all;
    const int64_t end_ns = SystemClock().MonotonicNs() + 20 * kNsPerSecond;
    while (all.size() < count && SystemClock().MonotonicNs() < end_ns) {
      for (StackResult& result : worker_->Drain()) all.push_back(std::move(result));
      std::this_thread::yield();
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

  std::optional<CallPath> Ask(const std::shared_ptr<const StackTarget>& target,
                              uint64_t address = 0x1010) {
    EXPECT_TRUE(Submit(target, address));
    auto results = Results(1);
    return results.empty() ? std::nullopt : results[0].path;
  }

  AtomicClock clock_;
  FakeStackSource::Script script_;
  std::unique_ptr<StackWorker> worker_;
};

TEST_F(StackWorkerTest, EachTaskGivesOneResultAndAProcessHasOneSource) {
  const auto target = Target(10);
  for (uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(Submit(target, 0x1000 + i));
  const auto results = Results(20);
  ASSERT_EQ(results.size(), 20u);
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(results[i].rank, 3);
    EXPECT_TRUE(results[i].kernel);
    EXPECT_EQ(results[i].target, target);
    ASSERT_TRUE(results[i].path.has_value());
    EXPECT_EQ(results[i].path->addresses, std::vector<RuntimeAddress>{0x1000 + i});
  }
  EXPECT_EQ(script_.opens, 1);
  EXPECT_EQ(worker_->outstanding(), 0u);
  EXPECT_GE(worker_->unwind_cpu_ns(), 20'000u);
}

TEST_F(StackWorkerTest, AFullQueueRefuses) {
  Notification hold;
  script_.hold = &hold;
  const auto target = Target(10);
  ASSERT_TRUE(Submit(target));
  while (script_.asked == 0) std::this_thread::yield();  // that one is under way
  for (size_t i = 0; i < StackWorker::kMaxQueued; ++i) ASSERT_TRUE(Submit(target)) << i;
  EXPECT_FALSE(Submit(target));
  EXPECT_EQ(worker_->outstanding(), StackWorker::kMaxQueued + 1);
  hold.Notify();
  Results(StackWorker::kMaxQueued + 1);
  EXPECT_EQ(worker_->outstanding(), 0u);
}

TEST_F(StackWorkerTest, CodeMappedLaterIsLearntOnceInAWhile) {
  EXPECT_TRUE(Ask(Target(10, 1))->complete);
  const auto grown = Target(10, 2);
  clock_.now_ns += StackWorker::kReopenNs - 1;
  EXPECT_FALSE(Ask(grown, 0x2010)->complete) << "too soon";
  EXPECT_EQ(script_.opens, 1);
  clock_.now_ns += 1;
  EXPECT_TRUE(Ask(grown, 0x2010)->complete);
  EXPECT_EQ(script_.opens, 2);
  clock_.now_ns += StackWorker::kReopenNs;
  EXPECT_FALSE(Ask(grown, 0x9010)->complete) << "mapped nowhere: opening anew does not help";
  EXPECT_TRUE(Ask(Target(10, 1))->complete) << "an older task goes to the newer source";
  EXPECT_EQ(script_.opens, 2);
}

TEST_F(StackWorkerTest, AnExecNeedsAnotherSourceAtOnce) {
  EXPECT_TRUE(Ask(Target(10, 1, 0)).has_value());
  EXPECT_TRUE(Ask(Target(10, 1, 1)).has_value());
  EXPECT_EQ(script_.opens, 2);
  EXPECT_FALSE(Ask(Target(10, 1, 0)).has_value()) << "from before the exec";
  EXPECT_EQ(script_.opens, 2);
}

TEST_F(StackWorkerTest, AFailureIsToldOnceAndTriedAgainLater) {
  script_.open_fails = true;
  EXPECT_FALSE(Ask(Target(10)).has_value());
  EXPECT_FALSE(Ask(Target(10)).has_value());
  EXPECT_EQ(script_.opens, 1);
  const auto troubles = worker_->DrainTroubles();
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_EQ(troubles[0].first, 10);
  EXPECT_EQ(troubles[0].second.code(), absl::StatusCode::kNotFound);
  script_.open_fails = false;
  clock_.now_ns += StackWorker::kRetryNs;
  EXPECT_TRUE(Ask(Target(10)).has_value());
  script_.unwind_fails = true;
  EXPECT_FALSE(Ask(Target(10)).has_value());
  script_.unwind_fails = false;
  EXPECT_FALSE(Ask(Target(10)).has_value());
  clock_.now_ns += StackWorker::kRetryNs;
  EXPECT_TRUE(Ask(Target(10)).has_value());
  EXPECT_EQ(script_.opens, 3);
  EXPECT_TRUE(worker_->DrainTroubles().empty()) << "once per process";
}

TEST_F(StackWorkerTest, SourcesAreBoundedAndTakeTurns) {
  const auto count = static_cast<int32_t>(StackWorker::kMaxSources);
  for (int32_t pid = 1; pid <= count; ++pid) EXPECT_TRUE(Ask(Target(pid)).has_value());
  EXPECT_FALSE(Ask(Target(count + 1)).has_value());
  EXPECT_EQ(script_.opens, count);
  clock_.now_ns += StackWorker::kMinSourceNs;
  EXPECT_TRUE(Ask(Target(count + 1)).has_value());
  EXPECT_EQ(script_.opens, count + 1);
}

TEST_F(StackWorkerTest, EndsWithTasksQueued) {
  Notification hold;
  script_.hold = &hold;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Submit(Target(10)));
  while (script_.asked == 0) std::this_thread::yield();
  std::thread notify([&] { hold.Notify(); });
  worker_.reset();
  notify.join();
  EXPECT_LE(script_.asked, 10);
}

}  // namespace
}  // namespace perfd::agent
