// The bell of a region that this process itself has mapped.
#include "agent/shadow/region_doorbell.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_layout.h"
#include "core/base/clock.h"
#include "core/base/unique_fd.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLongNs = 20 * kNsPerSecond;

class RegionDoorbellTest : public ::testing::Test {
 protected:
  RegionDoorbellTest() {
    // The header is not at the mapping's beginning.
    mapped_ = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    header_ = reinterpret_cast<RegionHeader*>(mapped_ + kRegionPage);
  }
  ~RegionDoorbellTest() override { munmap(mapped_, kBytes); }

  void Ring() {
    __atomic_add_fetch(&header_->doorbell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &header_->doorbell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  static int64_t Now() { return SystemClock().MonotonicNs(); }

  static constexpr size_t kBytes = 3 * kRegionPage;
  char* mapped_;
  RegionHeader* header_;
  absl::StatusOr<Memory> memory_ = Memory::Open(getpid(), ProcFs().Stamp(getpid())->start_ticks);
};

TEST_F(RegionDoorbellTest, WakesWhoeverAwaitsIt) {
  ASSERT_TRUE(memory_.ok()) << memory_.status();
  const RegionDoorbell doorbell(&*memory_, reinterpret_cast<uint64_t>(header_));
  if (!doorbell.can_wait()) GTEST_SKIP() << "no right to open files of mappings";
  ASSERT_EQ(*doorbell.Count(), 0u);
  const int64_t begin = Now();
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(50));
    Ring();
  });
  doorbell.Await(0, kLongNs);
  EXPECT_GE(Now() - begin, 40 * kNsPerMs);
  EXPECT_LT(Now() - begin, kLongNs / 2);
  other.join();
  EXPECT_EQ(*doorbell.Count(), 1u);
}

TEST_F(RegionDoorbellTest, WhatRangBeforeIsNotAwaited) {
  ASSERT_TRUE(memory_.ok()) << memory_.status();
  const RegionDoorbell doorbell(&*memory_, reinterpret_cast<uint64_t>(header_));
  if (!doorbell.can_wait()) GTEST_SKIP() << "no right to open files of mappings";
  Ring();
  const int64_t begin = Now();
  doorbell.Await(0, kLongNs);
  EXPECT_LT(Now() - begin, kLongNs / 2);
}

TEST_F(RegionDoorbellTest, WithoutARingTheTimeIsOver) {
  ASSERT_TRUE(memory_.ok()) << memory_.status();
  const RegionDoorbell doorbell(&*memory_, reinterpret_cast<uint64_t>(header_));
  const int64_t begin = Now();
  doorbell.Await(0, 20 * kNsPerMs);
  EXPECT_GE(Now() - begin, 20 * kNsPerMs);
  doorbell.Await(0, -1);
}

// Nobody else could ring in private memory; and there may be no mapping at all, or no right to open it.
TEST_F(RegionDoorbellTest, ABellThatCannotBeHeardSleeps) {
  ASSERT_TRUE(memory_.ok()) << memory_.status();
  RegionHeader own{};
  for (const uint64_t region : {reinterpret_cast<uint64_t>(&own), uint64_t{16}}) {
    const RegionDoorbell doorbell(&*memory_, region);
    EXPECT_FALSE(doorbell.can_wait());
    const int64_t begin = Now();
    doorbell.Await(7, 20 * kNsPerMs);
    EXPECT_GE(Now() - begin, 20 * kNsPerMs);
  }
}

// A rank can take its memory away: who reads it then gets SIGBUS. What is waited for is only time.
TEST_F(RegionDoorbellTest, MemoryThatIsGoneHarmsNobody) {
  ASSERT_TRUE(memory_.ok()) << memory_.status();
  const UniqueFd file(static_cast<int>(syscall(SYS_memfd_create, "region", 0)));
  ASSERT_EQ(ftruncate(file.get(), kRegionPage), 0);
  void* region = mmap(nullptr, kRegionPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(region, MAP_FAILED);
  const RegionDoorbell doorbell(&*memory_, reinterpret_cast<uint64_t>(region));
  if (!doorbell.can_wait()) GTEST_SKIP() << "no right to open files of mappings";
  EXPECT_EQ(*doorbell.Count(), 0u);
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  doorbell.Await(0, kNsPerMs);
  EXPECT_FALSE(doorbell.Count().ok());
  munmap(region, kRegionPage);
  doorbell.Await(0, kNsPerMs);
}

}  // namespace
}  // namespace perfd::agent
