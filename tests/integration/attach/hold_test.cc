// Holds that succeed: nothing in the process may be different afterwards.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/attach/memory.h"
#include "agent/attach/thread_status.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "tests/integration/attach/hold_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kAllRoles = {
    "spin:2", "futex:2", "futex-timeout", "sleep",     "epoll:2", "poll", "sigwait",
    "alarm",  "pipe",    "fork",          "semaphore", "receive", "churn"};

TEST_F(HoldTest, TwoHundredRemoteCallsLeaveNoTrace) {
  AttachPuppet puppet(kAllRoles);
  const auto before = ProcFs().Maps(puppet.pid());
  int64_t longest_ns = 0;
  int good = 0, repaired = 0;
  for (int i = 0; i < 200; ++i) {
    const auto reply = tracer_->Run(MapAndUnmap(puppet));
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_TRUE(reply->status.ok()) << reply->status;
    EXPECT_GE(reply->threads, 15);
    longest_ns = std::max(longest_ns, reply->stop_ns);
    repaired += reply->repaired;
    ++good;
  }
  std::cout << good << " holds, longest " << longest_ns / 1000 << " us, " << repaired
            << " waits repaired\n";
  EXPECT_GT(repaired, 200);  // epoll, sigwait, semaphore and receive wait nearly all the time
  EXPECT_FALSE(puppet.traced());
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
  ASSERT_TRUE(before.ok());
}

TEST_F(HoldTest, MapsAreTheSameAfterwards) {
  AttachPuppet puppet({"spin", "epoll"});
  const auto before = ProcFs().Maps(puppet.pid());
  ASSERT_TRUE(before.ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(tracer_->Run(MapAndUnmap(puppet))->status.ok());
  const auto after = ProcFs().Maps(puppet.pid());
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(*before, *after);
  EXPECT_EQ(puppet.Finish(), 0);
}

// Every thread in a wait: the call is made in one that has to start again.
TEST_F(HoldTest, CallsInThreadsThatAllWait) {
  for (const char* role : {"futex", "sleep", "epoll", "poll", "sigwait"}) {
    AttachPuppet puppet({role});
    int good = 0;
    for (int i = 0; i < 50; ++i) {
      const auto reply = tracer_->Run(MapAndUnmap(puppet));
      ASSERT_TRUE(reply.ok()) << reply.status();
      good += reply->status.ok();
    }
    EXPECT_EQ(good, 50) << role;
    EXPECT_EQ(puppet.Finish(), 0) << role;
    EXPECT_EQ(puppet.eintr(), 0) << role;
  }
}

TEST_F(HoldTest, StopTimeOf128Threads) {
  AttachPuppet puppet({"spin:2", "sleep:62", "futex:32", "epoll:31"});
  std::vector<int64_t> stops_ns;
  for (int i = 0; i < 20; ++i) {
    const auto reply = tracer_->Run(MapAndUnmap(puppet));
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_TRUE(reply->status.ok()) << reply->status;
    EXPECT_EQ(reply->threads, 128);
    stops_ns.push_back(reply->stop_ns);
  }
  std::sort(stops_ns.begin(), stops_ns.end());
  std::cout << "stop of 128 threads with two calls: median " << stops_ns[10] / 1000
            << " us, longest " << stops_ns.back() / 1000 << " us\n";
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
}

TEST_F(HoldTest, ReadsThreads) {
  AttachPuppet puppet({"spin", "sleep"});
  const auto reply = tracer_->Run(RequestFor(puppet, {ReadThreadsOp{}}));
  ASSERT_TRUE(reply.ok() && reply->status.ok());
  ASSERT_EQ(reply->results.at(0).threads.size(), 3U);
  for (const ThreadFacts& thread : reply->results[0].threads) {
    EXPECT_GE(thread.xsave_bytes, 576U);
    EXPECT_NE(thread.pc, 0U);
    EXPECT_NE(thread.fs_base, 0U);
    EXPECT_FALSE(thread.cpus.empty());
  }
  EXPECT_TRUE(reply->results[0].threads[0].in_call);  // main reads its standard input
}

// A handler's stack may be an array of the thread's own, with other data of the program below it.
TEST_F(HoldTest, WhatWasBelowTheStackIsThereAgain) {
  AttachPuppet puppet({"sleep"});  // no thread runs: the stack pointers stay
  const auto before = tracer_->Run(RequestFor(puppet, {ReadThreadsOp{}}));
  ASSERT_TRUE(before.ok() && before->status.ok());
  constexpr uint32_t kRedZone = 128, kBelow = 6000;
  std::vector<HoldOp> ops = {RequireOwnStacksOp{}};
  std::vector<HoldOp> reads;
  std::vector<uint8_t> pattern(kBelow - kRedZone);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 7 + 1);
  for (const ThreadFacts& thread : before->results[0].threads) {
    ops.push_back(WriteOp{Number(thread.stack_pointer - kBelow), pattern, false});
    reads.push_back(ReadOp{Number(thread.stack_pointer - kBelow), kBelow - kRedZone});
  }
  const auto call = static_cast<int32_t>(ops.size());
  ops.push_back(MapOp(4096));
  ops.push_back(UnmapOp(ResultOf(call), 4096));
  ops.push_back(MoveThreadsOp{});  // the thread that made the calls is itself again
  for (HoldOp& read : reads) ops.push_back(std::move(read));
  const auto reply = tracer_->Run(RequestFor(puppet, ops));
  ASSERT_TRUE(reply.ok());
  ASSERT_TRUE(reply->status.ok()) << reply->status;
  for (size_t i = ops.size() - reads.size(); i < ops.size(); ++i)
    EXPECT_EQ(reply->results.at(i).bytes, pattern) << i;
  EXPECT_EQ(puppet.Finish(), 0);
}

// A code cache in small: a copy of a loop, threads moved there and back, removed when nobody is inside.
TEST_F(HoldTest, MovesThreadsIntoACopyAndBack) {
  AttachPuppet puppet({"spin:2"});
  const auto [start, end] = puppet.section();
  ASSERT_EQ(end - start, kLoopBytes);
  const auto place = MapLoopCopy(*tracer_, puppet);
  ASSERT_TRUE(place.ok()) << place.status();
  uint64_t moved = 0;
  for (int i = 0; i < 1000 && moved < 10; ++i) {
    const auto reply = tracer_->Run(RequestFor(puppet, {MoveIntoCopy(puppet, *place)}));
    ASSERT_TRUE(reply.ok() && reply->status.ok()) << reply->status;
    moved += reply->results[0].value;
  }
  EXPECT_GE(moved, 10U);
  const PcRange whole{*place, *place + kCopyBytes};
  const HoldRequest remove =
      RequestFor(puppet, {MoveOutOfCopy(puppet, *place), RequireOutsideOp{{whole}},
                          ScanStacksOp{whole}, UnmapOp(Number(*place), kCopyBytes)});
  absl::Status last;
  for (int i = 0; i < 50; ++i) {
    const auto reply = tracer_->Run(remove);
    ASSERT_TRUE(reply.ok());
    last = reply->status;
    if (!absl::IsUnavailable(last)) break;
  }
  EXPECT_TRUE(last.ok()) << last;
  EXPECT_EQ(puppet.Finish(), 0);
}

// The GS base and the signal mask of a thread that left foreign code with what was only meant for it.
TEST_F(HoldTest, GivesBackGsBaseAndSignalMask) {
  constexpr uint64_t kForeign = 0x123456789000, kUser = uint64_t{1} << (SIGURG - 1);
  constexpr uint64_t kAnywhere = ~uint64_t{0}, kNowhere = uint64_t{1} << 60;
  AttachPuppet puppet({"sleep"});
  const auto blocked = [&] { return ReadThreadStatus(puppet.pid(), puppet.pid())->blocked; };
  const uint64_t own = blocked(), other = own ^ kUser;
  // Value, and the GS base of the main thread afterwards.
  const auto give = [&](GiveBackOp::Entry entry, uint64_t either, PcRange range,
                        uint64_t loose = 0) {
    const GiveBackOp op{{{1, 2, 3, 4}, entry}, either, loose, {range}};
    const auto reply = tracer_->Run(RequestFor(puppet, {op, ReadThreadsOp{}}));
    EXPECT_TRUE(reply.ok() && reply->status.ok());
    if (!reply.ok() || reply->results.size() != 2) return std::pair(kAnywhere, kAnywhere);
    const OpResult& result = reply->results[0];
    EXPECT_EQ(result.bytes, (std::vector<uint8_t>{0, result.value > 0}));
    return std::pair(result.value, reply->results[1].threads.at(0).gs_base);
  };
  using Answer = std::pair<uint64_t, uint64_t>;
  const GiveBackOp::Entry away{0, kForeign, own, other}, back{kForeign, 0, other, own};
  EXPECT_EQ(give(away, 0, {0, kAnywhere}), Answer(0, 0)) << "they are inside";
  EXPECT_EQ(give(back, 0, {kNowhere, kNowhere + 1}), Answer(0, 0)) << "none has that GS base";
  EXPECT_EQ(give(away, 0, {kNowhere, kNowhere + 1}), Answer(2, kForeign));
  EXPECT_EQ(blocked(), other);
  // Not the mask that was named: it is the thread's own by now, and stays. Both threads have this GS base.
  EXPECT_EQ(give({kForeign, kForeign, own, own}, 0, {kNowhere, kNowhere + 1}), Answer(2, kForeign));
  EXPECT_EQ(blocked(), other);
  EXPECT_EQ(give({kForeign, kForeign, own, own}, kUser, {kNowhere, kNowhere + 1}),
            Answer(2, kForeign));
  EXPECT_EQ(blocked(), other) << "either is right for this signal";
  // All but one signal, which is given back all the same.
  EXPECT_EQ(give({kForeign, kForeign, own, own}, 0, {kNowhere, kNowhere + 1}, kUser),
            Answer(2, kForeign));
  EXPECT_EQ(blocked(), own);
  EXPECT_EQ(give({kForeign, kForeign, own, other}, 0, {kNowhere, kNowhere + 1}),
            Answer(2, kForeign));
  EXPECT_EQ(give(back, 0, {kNowhere, kNowhere + 1}), Answer(2, 0));
  EXPECT_EQ(blocked(), own);
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
}

// The first op that fails ends the list, and what it found is in the reply.
TEST_F(HoldTest, AFailedExpectationEndsTheList) {
  AttachPuppet puppet({"spin"});
  const uint64_t loop = puppet.section().first;
  const auto reply =
      tracer_->Run(RequestFor(puppet, {ExpectBytesOp{Number(loop), {0x48, 0xff, 0xc9}},
                                       ExpectBytesOp{Number(loop), {0x90}}, MapOp(4096)}));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status.code(), absl::StatusCode::kAborted) << reply->status;
  ASSERT_EQ(reply->results.size(), 2U);
  EXPECT_EQ(reply->results[1].bytes, std::vector<uint8_t>{0x48});

  CallOp bad = MapOp(0);  // EINVAL
  const auto failed = tracer_->Run(RequestFor(puppet, {bad}));
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(failed->status.message()), HasSubstr("Invalid argument"));

  CallOp large = MapOp(uint64_t{1} << 47);  // no address space is that large
  large.expect = CallOp::Expect::kEqual;
  large.expected = 4096;
  const auto refused = tracer_->Run(RequestFor(puppet, {large}));
  ASSERT_TRUE(refused.ok());
  EXPECT_THAT(std::string(refused->status.message()),
              HasSubstr("may not map more memory: Cannot allocate memory (ulimit -v"));
  EXPECT_EQ(puppet.Finish(), 0);
}

// The thread makes it by itself, and comes back: who works on must know that it may not have done so yet.
TEST_F(HoldTest, ACallThatDoesNotReturnInTimeIsLost) {
  AttachPuppet puppet({"spin"});
  const timespec pause{2, 0};
  std::vector<uint8_t> bytes(sizeof(pause));
  std::memcpy(bytes.data(), &pause, sizeof(pause));
  CallOp sleep;
  sleep.call = SYS_nanosleep;
  sleep.arguments[0] = ResultOf(0);
  HoldRequest request =
      RequestFor(puppet, {MapOp(4096), WriteOp{ResultOf(0), bytes, false}, sleep});
  request.max_stop_ns = 500 * kNsPerMs;
  const auto reply = tracer_->Run(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(reply->status)) << reply->status;
  EXPECT_TRUE(reply->call_lost);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(HoldTest, AStopThatIsTooLongLosesNoCallThatCameBack) {
  AttachPuppet puppet(kAllRoles);
  constexpr uint64_t kBytes = 4096, kNowhere = uint64_t{1} << 60;
  std::vector<HoldOp> ops = {MapOp(kBytes), UnmapOp(ResultOf(0), kBytes)};
  ops.resize(4000, ScanStacksOp{{kNowhere, kNowhere + 1}});  // takes half a second
  HoldRequest request = RequestFor(puppet, std::move(ops));
  request.max_stop_ns = 100 * kNsPerMs;
  const auto reply = tracer_->Run(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(reply->status)) << reply->status;
  EXPECT_FALSE(reply->call_lost);
  EXPECT_FALSE(reply->tracer_ends);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(HoldTest, WritesReadOnlyCodeButNotAcrossPages) {
  AttachPuppet puppet({"spin"});
  const uint64_t loop = puppet.section().first;
  const std::vector<uint8_t> same = {0x48, 0xff, 0xc9};
  auto reply = tracer_->Run(RequestFor(puppet, {WriteOp{Number(loop), same, true}}));
  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->status.ok()) << reply->status;
  const uint64_t page = loop & ~uint64_t{4095};
  for (const uint64_t address : {page + 4096 - 2, page + 4096 - 3}) {
    const auto bytes = Memory::Open(puppet.pid(), puppet.start_ticks())->Read(address, 3);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    reply = tracer_->Run(RequestFor(puppet, {WriteOp{Number(address), *bytes, true}}));
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->status.ok(), address == page + 4096 - 3) << reply->status;
  }
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(HoldTest, MemoryIsReadWithoutAStop) {
  AttachPuppet puppet({"spin"});
  const auto memory = Memory::Open(puppet.pid(), puppet.start_ticks());
  ASSERT_TRUE(memory.ok());
  const auto bytes = memory->Read(puppet.section().first, 3);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, (std::vector<uint8_t>{0x48, 0xff, 0xc9}));
  EXPECT_EQ(memory->Read(0, 1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(absl::IsNotFound(Memory::Open(puppet.pid(), puppet.start_ticks() + 1).status()));
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_TRUE(absl::IsNotFound(memory->Read(puppet.section().first, 3).status()));
}

}  // namespace
}  // namespace perfd::agent
