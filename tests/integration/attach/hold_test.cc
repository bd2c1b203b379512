// Holds that succeed: nothing in the process may be different afterwards.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/attach/memory.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "tests/integration/attach/hold_fixture.h"

namespace perfd {
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
}  // namespace perfd
