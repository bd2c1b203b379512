#include "agent/shadow/restore.h"

#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/str_format.h"
#include "agent/shadow/forking/process_files.h"
#include "core/base/clock.h"
#include "tests/unit/shadow/injected_rank.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Of HoldOp: Call 0, Write 1, ExpectBytes 2, Read 3, MoveThreads 4, RequireOutside 5, ScanStacks 6, ReadThreads 7, GiveBack 8.
constexpr char kTwoSites[] = "21214";

class RestoreTest : public InjectedRankTest {
 protected:
  absl::Status Restore(bool suspect = false, int64_t patience_ns = 5 * kNsPerSecond) {
    return RestoreRank(injection_, {tracer_.get(), 20 * kNsPerMs, patience_ns, suspect}, &result_);
  }
  void ExpectAsItWas() const {
    EXPECT_EQ(TextAt(0x10), kOriginal);
    EXPECT_EQ(TextAt(0x40), kOriginal);
  }
  void ExpectUntouched() const {
    EXPECT_EQ(TextAt(0x10), kJump);
    EXPECT_EQ(TextAt(0x40), kJump);
  }

  RestoreResult result_;
};

TEST_F(RestoreTest, WritesTheTextBackInOneStop) {
  StartRank();
  StartTracer({});
  EXPECT_TRUE(Restore().ok());
  ExpectAsItWas();
  EXPECT_EQ(result_.sites, 2);
  EXPECT_THAT(result_.stops_ns, ElementsAre(1000));
  EXPECT_FALSE(result_.ended);
  EXPECT_THAT(Holds(), ElementsAre(kTwoSites));
}

// Any prefix must be harmless: text first, then threads, and the mappings when nobody is in them.
TEST_F(RestoreTest, OrderOfOneStop) {
  StartRank();
  NameCacheAndRegion();
  StartTracer({"unsafe"});
  EXPECT_EQ(Restore().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "00"));
  ExpectUntouched();
  EXPECT_EQ(result_.unmapped_bytes, 0u);
}

TEST_F(RestoreTest, OnlyMappingsThatLookLikeOursAreUnmapped) {
  std::memset(cache_, 0x90, 64);
  std::memset(region_, 0x55, 64);
  StartRank();
  NameCacheAndRegion();
  StartTracer({"unsafe"});
  EXPECT_FALSE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "6"));  // the stacks are looked at all the same
}

TEST_F(RestoreTest, APrivateRegionAndASharedCacheAreNotOurs) {
  std::memcpy(region_, PayloadBlob().data(), 64);
  std::memcpy(cache_, &kShadowMagic, sizeof(kShadowMagic));
  StartRank();
  injection_.caches = {{Address(region_), Address(region_) + kRegion}};
  injection_.region = {Address(cache_), Address(cache_) + kPage};
  StartTracer({"unsafe"});
  EXPECT_FALSE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "6"));
}

// What is mapped there after the stop may be the rank's own new memory, zero and at the same address.
TEST_F(RestoreTest, WhatWasUnmappedIsUnmappedOnce) {
  StartRank();
  NameCacheAndRegion();
  StartTracer({"ok", "unsafe"});  // nothing is asked a second time
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "00"));
  EXPECT_EQ(result_.unmapped_bytes, kPage + kRegion);
}

// Four caches before version 3: what follows them lay elsewhere.
TEST_F(RestoreTest, RegionsOfOlderLayoutsAreReadAsTheyAre) {
  constexpr uint64_t kOrphanThen = 148;
  const uint32_t orphan = 4242, version = 2;
  std::memcpy(region_ + offsetof(RegionHeader, version), &version, 4);
  std::memcpy(region_ + kOrphanThen, &orphan, 4);
  StartRank();
  NameCacheAndRegion();
  StartTracer({});
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "0"  // the orphan
                                   "00"));
}

// An agent heals what the one before its upgrade has left.
TEST_F(RestoreTest, RegionsOfTheLayoutBeforeAreTakenOut) {
  const uint32_t orphan = 4242, version = kShadowLayoutVersion - 1;
  std::memcpy(region_ + offsetof(RegionHeader, version), &version, 4);
  std::memcpy(region_ + offsetof(RegionHeader, orphan), &orphan, 4);
  StartRank();
  NameCacheAndRegion();
  StartTracer({});
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre("21214"
                                   "5"
                                   "6"
                                   "0"  // the orphan
                                   "00"));
}

TEST_F(RestoreTest, RegionsOfUnknownLayoutsAreRefused) {
  const uint32_t version = kShadowLayoutVersion + 1;
  std::memcpy(region_ + offsetof(RegionHeader, version), &version, 4);
  StartRank();
  NameCacheAndRegion();
  StartTracer({});
  EXPECT_EQ(Restore().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Holds(), IsEmpty());
  ExpectUntouched();
}

TEST_F(RestoreTest, WhoIsInPlaceIsWaitedFor) {
  auto* in_situ = reinterpret_cast<uint32_t*>(region_ + offsetof(RegionHeader, in_situ));
  const uint32_t version = kShadowLayoutVersion;
  std::memcpy(region_ + offsetof(RegionHeader, version), &version, 4);
  *in_situ = 1;
  StartRank();
  NameCacheAndRegion();
  StartTracer({});
  size_t holds = 0;
  std::thread member([&] {
    const int64_t until = SystemClock().MonotonicNs() + 50 * kNsPerMs;
    while (SystemClock().MonotonicNs() < until) std::this_thread::yield();
    holds = Holds().size();
    __atomic_store_n(in_situ, 0, __ATOMIC_SEQ_CST);
  });
  EXPECT_TRUE(Restore().ok());
  member.join();
  EXPECT_EQ(holds, 0u);
  EXPECT_THAT(Holds(), SizeIs(1));
}

TEST_F(RestoreTest, AThreadInTheWayIsWaitedFor) {
  StartRank();
  StartTracer({"unavailable", "unavailable"});
  EXPECT_TRUE(Restore().ok());
  ExpectAsItWas();
  EXPECT_THAT(Holds(), SizeIs(3));
  EXPECT_THAT(result_.stops_ns, SizeIs(3));
}

TEST_F(RestoreTest, ButNotForEver) {
  StartRank();
  StartTracer(std::vector<std::string>(1000, "unavailable"));
  EXPECT_EQ(Restore(false, 5 * kNsPerMs).code(), absl::StatusCode::kUnavailable);
  ExpectUntouched();
}

TEST_F(RestoreTest, TextThatIsNoLongerOursIsLeftAlone) {
  StartRank();
  const std::vector<uint8_t> others = {0xe9, 9, 9, 9, 9};
  WriteText(0x10, others);
  StartTracer({});
  EXPECT_TRUE(Restore().ok());
  EXPECT_EQ(TextAt(0x10), others);
  EXPECT_EQ(TextAt(0x40), kOriginal);
  EXPECT_EQ(result_.sites, 1);
}

TEST_F(RestoreTest, TextOfAnotherFileIsLeftAlone) {
  StartRank();
  injection_.sites[0].text.inode = 7;
  injection_.sites[1].text.bias += kPage;
  // Nothing is to be done, so nothing is stopped: there is no tracer.
  EXPECT_TRUE(Restore().ok());
  ExpectUntouched();
  EXPECT_EQ(result_.sites, 0);
}

TEST_F(RestoreTest, ATracerThatDiesIsReplacedAndTheRankLookedAtFirst) {
  StartRank();
  StartTracer({"die"});
  EXPECT_TRUE(Restore().ok());
  ExpectAsItWas();
  EXPECT_THAT(Holds(), ElementsAre(kTwoSites, "7", kTwoSites));
}

TEST_F(RestoreTest, AfterThreeDeathsItIsLeftForLater) {
  StartRank();
  StartTracer(std::vector<std::string>(9, "die"));
  EXPECT_EQ(Restore().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Holds(), SizeIs(3));
  ExpectUntouched();
}

TEST_F(RestoreTest, ACallOfADeadTracerIsAwaited) {
  text_[0x100] = 0x0f;
  text_[0x101] = 0x05;
  StartRank();
  const std::string calling = absl::StrFormat("calling:%x", Address(text_) + 0x100);
  StartTracer({calling, calling, "ok"});
  EXPECT_TRUE(Restore(true).ok());
  EXPECT_THAT(Holds(), ElementsAre("7", "7", "7", kTwoSites));
  ExpectAsItWas();
}

// The process's CPUs are busy: the thread makes the call when it gets its turn, long after the stop.
TEST_F(RestoreTest, ACallThatDidNotReturnInTimeIsAwaited) {
  text_[0x100] = 0x0f;
  text_[0x101] = 0x05;
  StartRank();
  StartTracer({"lost", absl::StrFormat("calling:%x", Address(text_) + 0x100), "ok"});
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre(kTwoSites, "7", "7", kTwoSites));
  ExpectAsItWas();
}

// The tracer has answered, and no call was begun: there is nothing to await.
TEST_F(RestoreTest, AStopThatTookTooLongIsTriedAgainAsItWas) {
  StartRank();
  StartTracer({"slow"});
  EXPECT_TRUE(Restore().ok());
  EXPECT_THAT(Holds(), ElementsAre(kTwoSites, kTwoSites));
  ExpectAsItWas();
}

// Nor does the rank stand still all the time: after each such stop it runs four times as long.
TEST_F(RestoreTest, ButNotForEverEither) {
  StartRank();
  StartTracer(std::vector<std::string>(1000, "slow"));
  EXPECT_EQ(Restore(false, 200 * kNsPerMs).code(), absl::StatusCode::kDeadlineExceeded);
  ExpectUntouched();
  EXPECT_THAT(Holds(), SizeIs(testing::AllOf(testing::Ge(1u), testing::Le(4u))));
}

TEST_F(RestoreTest, AThreadElsewhereIsNoReasonToWait) {
  StartRank();
  StartTracer({absl::StrFormat("calling:%x", Address(text_) + 0x200)});
  EXPECT_TRUE(Restore(true).ok());
  EXPECT_THAT(Holds(), ElementsAre("7", kTwoSites));
}

// The tracer of an agent that was killed just now holds it for a moment.
TEST_F(RestoreTest, AnotherTracerIsAwaitedWhenHealingOnly) {
  StartRank();
  StartTracer({"ok", "unsafe"});
  EXPECT_TRUE(Restore(true).ok());
  ExpectAsItWas();
  EXPECT_THAT(Holds(), ElementsAre("7", kTwoSites, kTwoSites));
}

TEST_F(RestoreTest, AProcessThatHasEndedNeedsNothing) {
  StartRank();
  Kill();
  EXPECT_TRUE(Restore().ok());
  EXPECT_TRUE(result_.ended);
}

TEST_F(RestoreTest, ADeadProcessThatNobodyHasWaitedForHasEnded) {
  StartRank();
  kill(pid_, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(Restore().ok());
  EXPECT_TRUE(result_.ended);
}

TEST_F(RestoreTest, AnotherProcessUnderThisPidIsNotTouched) {
  StartRank();
  const uint64_t ticks = injection_.start_ticks;
  injection_.start_ticks += 1;
  EXPECT_TRUE(Restore().ok());
  EXPECT_TRUE(result_.ended);
  injection_.start_ticks = ticks;
  ExpectUntouched();
}

TEST_F(RestoreTest, BeforeTheLastBootItWasAnotherProcess) {
  StartRank();
  injection_.boot_id = "another";
  EXPECT_TRUE(Restore().ok());
  EXPECT_TRUE(result_.ended);
  ExpectUntouched();
}

TEST_F(RestoreTest, OfThisBootOrOfNoneItIsTheSame) {
  StartRank();
  injection_.boot_id = BootId();
  StartTracer({});
  EXPECT_TRUE(Restore().ok());
  ExpectAsItWas();
  injection_.boot_id = "-";
  EXPECT_TRUE(Restore().ok());
  EXPECT_FALSE(result_.ended);
}

TEST_F(RestoreTest, AStopOfATracerThatDiesCountsAsLongAsItWas) {
  StartRank();
  StartTracer({"die-late"});
  std::vector<int64_t> stops;
  const HoldRequest request{injection_.pid, injection_.start_ticks, 20 * kNsPerMs, {}};
  EXPECT_FALSE(HoldPatiently(*tracer_, request, 0, &stops).ok());
  ASSERT_THAT(stops, SizeIs(1));
  EXPECT_GE(stops[0], 10 * kNsPerMs);
  EXPECT_LT(stops[0], 5 * kNsPerSecond);
  // Nothing was stopped: the next tracer answers before.
  EXPECT_TRUE(HoldPatiently(*tracer_, request, 0, &stops).ok());
  EXPECT_THAT(stops, SizeIs(2));
  EXPECT_EQ(tracer_->unanswered_stop_ns(), 0);
}

TEST_F(RestoreTest, ASuspendedProcessIsNotHeldAndItsStopsAreNobodysCost) {
  StartRank();
  StartTracer({"ok", "stop-it"});
  std::vector<int64_t> stops;
  const HoldRequest request{injection_.pid, injection_.start_ticks, kNsPerMs, {}};
  kill(injection_.pid, SIGSTOP);
  while (ProcFs().Stamp(injection_.pid)->state != 'T') std::this_thread::yield();
  const int64_t deadline = SystemClock().MonotonicNs() + 100 * kNsPerMs;
  const auto suspended = HoldPatiently(*tracer_, request, deadline, &stops);
  ASSERT_TRUE(suspended.ok());
  EXPECT_TRUE(absl::IsUnavailable(suspended->status)) << suspended->status;
  EXPECT_THAT(stops, SizeIs(0));
  kill(injection_.pid, SIGCONT);
  while (ProcFs().Stamp(injection_.pid)->state == 'T') std::this_thread::yield();
  ASSERT_TRUE(HoldPatiently(*tracer_, request, 0, &stops)->status.ok()) << "the first answer";
  EXPECT_THAT(stops, SizeIs(1));
  // It is suspended while it is held, longer than a stop may last.
  EXPECT_FALSE(HoldPatiently(*tracer_, request, 0, &stops)->status.ok());
  EXPECT_THAT(stops, SizeIs(1));
  kill(injection_.pid, SIGCONT);
}

TEST_F(RestoreTest, HoldPatientlyReturnsWhatIsNotPassing) {
  StartRank();
  StartTracer({"unavailable", "unsafe"});
  std::vector<int64_t> stops;
  const HoldRequest request{injection_.pid, injection_.start_ticks, 20 * kNsPerMs, {}};
  const int64_t deadline = SystemClock().MonotonicNs() + 5 * kNsPerSecond;
  const auto reply = HoldPatiently(*tracer_, request, deadline, &stops);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(stops, SizeIs(2));
  // At the deadline it is tried once.
  const auto once = HoldPatiently(*tracer_, request, 0, &stops);
  EXPECT_TRUE(once.ok() && once->status.ok());
}

}  // namespace
}  // namespace perfd::agent
