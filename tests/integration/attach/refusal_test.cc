// Targets that must not be touched, and targets that change while they are held: refused with the reason, never harmed.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <thread>

#include "absl/strings/match.h"
#include "core/base/clock.h"
#include "tests/integration/attach/hold_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

class RefusalTest : public HoldTest {
 protected:
  // The status in the reply of a map and unmap.
  absl::Status Hold(const AttachPuppet& puppet) {
    const auto reply = tracer_->Run(MapAndUnmap(puppet));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->status : reply.status();
  }
};

TEST_F(RefusalTest, StoppedProcessStaysStopped) {
  AttachPuppet puppet({"spin:2", "sleep"});
  ::kill(puppet.pid(), SIGSTOP);
  ASSERT_TRUE(puppet.Becomes('T'));
  const absl::Status refused = Hold(puppet);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the process is stopped (SIGSTOP)"));
  EXPECT_EQ(puppet.state(), 'T');
  ::kill(puppet.pid(), SIGCONT);
  EXPECT_EQ(puppet.Finish(), 0);
}

// SIGSTOP at any moment of a hold takes effect, whatever becomes of the hold.
TEST_F(RefusalTest, NoStopSignalIsLost) {
  AttachPuppet puppet({"spin:2", "sleep", "futex"});
  HoldRequest request = RequestFor(puppet, {});
  for (int32_t i = 0; i < 40; i += 2) {
    request.ops.push_back(MapOp(4096));
    request.ops.push_back(UnmapOp(ResultOf(i), 4096));
  }
  int good = 0, refused = 0, in_between = 0;
  for (int i = 0; i < 200; ++i) {
    std::atomic<bool> go{false};
    std::thread stopper([&] {
      while (!go) std::this_thread::yield();
      ::usleep(static_cast<useconds_t>(i * 40));
      ::kill(puppet.pid(), SIGSTOP);
    });
    go = true;
    const auto reply = tracer_->Run(request);
    stopper.join();
    ASSERT_TRUE(reply.ok()) << reply.status();
    const absl::Status& status = reply->status;
    in_between += absl::IsUnavailable(status);
    (status.ok() ? good : refused) += 1;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("SIGSTOP"));
    }
    ASSERT_TRUE(puppet.Becomes('T')) << i << ": " << status;
    ASSERT_FALSE(puppet.traced());
    ::kill(puppet.pid(), SIGCONT);
    for (int k = 0; k < 1000 && puppet.state() == 'T'; ++k) ::usleep(100);
    ASSERT_NE(puppet.state(), 'T') << i;
  }
  std::cout << good << " held, " << refused << " refused, " << in_between << " during a call\n";
  EXPECT_GT(refused, 0);
  EXPECT_GT(in_between, 0);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, TracedByAnother) {
  AttachPuppet puppet({"spin"});
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, puppet.pid(), nullptr, nullptr), 0);
  const absl::Status refused = Hold(puppet);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("traced by process " + std::to_string(::getpid())));
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, puppet.pid(), nullptr, nullptr), 0);
  ASSERT_EQ(::waitpid(puppet.pid(), nullptr, __WALL), puppet.pid());
  ASSERT_EQ(::ptrace(PTRACE_DETACH, puppet.pid(), nullptr, nullptr), 0);
  EXPECT_TRUE(Hold(puppet).ok());
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, SeccompFilter) {
  AttachPuppet puppet({"seccomp", "spin"});
  const absl::Status refused = Hold(puppet);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("seccomp"));
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, AnotherProcessUnderThePid) {
  AttachPuppet puppet({"spin"});
  HoldRequest request = MapAndUnmap(puppet);
  ++request.start_ticks;
  const auto reply = tracer_->Run(request);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reply->stop_ns, 0);
  request.pid = 0x7ffffff0;
  EXPECT_EQ(tracer_->Run(request)->status.code(), absl::StatusCode::kNotFound);
}

TEST_F(RefusalTest, MalformedRequests) {
  AttachPuppet puppet({"spin"});
  HoldRequest request = MapAndUnmap(puppet);
  request.max_stop_ns = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(tracer_->Run(request).status()));
  request = RequestFor(puppet, {UnmapOp(ResultOf(0), 4096)});
  EXPECT_TRUE(absl::IsInvalidArgument(tracer_->Run(request).status()));
}

// The only thread computes in a restartable sequence nearly all the time: it is never moved out of one.
TEST_F(RefusalTest, RestartableSequence) {
  AttachPuppet puppet({"main-rseq:2"});
  const auto [start, end] = puppet.section();
  int inside = 0, held = 0;
  for (int i = 0; i < 200; ++i) {
    HoldRequest request = MapAndUnmap(puppet);
    request.ops.insert(request.ops.begin(), ReadThreadsOp{});
    request.ops = {ReadThreadsOp{}, MapOp(4096), UnmapOp(ResultOf(1), 4096)};
    const auto reply = tracer_->Run(request);
    ASSERT_TRUE(reply.ok());
    if (absl::IsNotFound(reply->status)) break;  // it lives for two seconds
    ASSERT_FALSE(reply->results.empty()) << reply->status;
    const uint64_t pc = reply->results[0].threads.at(0).pc;
    if (pc >= start && pc < end) {
      ++inside;
      EXPECT_TRUE(absl::IsUnavailable(reply->status)) << reply->status;
      EXPECT_THAT(std::string(reply->status.message()), HasSubstr("restartable sequence"));
    } else {
      held += reply->status.ok();
    }
  }
  std::cout << inside << " times inside, " << held << " held outside\n";
  EXPECT_GT(inside, 20);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, LiveTiles) {
  AttachPuppet puppet({"main-tiles:1"});
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Hold(puppet);
    if (status.ok()) continue;  // before the first tile, or at the end
    refused += absl::StrContains(status.message(), "live AMX tiles");
  }
  const int code = puppet.Finish();
  if (code == 77) GTEST_SKIP() << "no AMX here";
  EXPECT_GT(refused, 0);
  EXPECT_EQ(code, 0);
}

// In vfork a thread cannot stop: the others go on at the deadline, and the tracer ends to free it.
TEST_F(RefusalTest, ThreadInVfork) {
  AttachPuppet puppet({"spin", "vfork"});
  HoldRequest request = MapAndUnmap(puppet);
  request.max_stop_ns = 30 * kNsPerMs;
  int refused = 0;
  for (int i = 0; i < 50 && refused < 5;
       ++i) {  // most holds meet it inside its vfork, but not each on a busy host
    const auto reply = tracer_->Run(request);
    if (reply.ok() && reply->status.ok()) continue;
    ++refused;
    EXPECT_FALSE(puppet.traced());
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, MainThreadThatHasExited) {
  AttachPuppet puppet({"spin:2", "churn", "leader-exits"});
  ASSERT_TRUE(puppet.Becomes('Z'));
  for (int i = 0; i < 10; ++i) {
    const absl::Status status = Hold(puppet);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("main thread has exited"));
  }
  EXPECT_EQ(puppet.Finish(), 0);
}

// The process executes itself again and again: every hold ends with a clear answer, none touches the new program.
TEST_F(RefusalTest, ProcessThatExecutes) {
  AttachPuppet puppet({"spin:2", "exec:60"});
  int good = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto reply = tracer_->Run(MapAndUnmap(puppet));
    (reply.ok() && reply->status.ok() ? good : refused) += 1;
  }
  std::cout << good << " held, " << refused << " refused\n";
  EXPECT_GT(good, 0);
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(RefusalTest, ProcessThatIsKilled) {
  for (int i = 0; i < 40; ++i) {
    AttachPuppet puppet({"spin:2", "sleep", "churn"});
    const HoldRequest request = MapAndUnmap(puppet);
    std::thread killer([&] {
      ::usleep(static_cast<useconds_t>(i * 50));
      ::kill(puppet.pid(), SIGKILL);
    });
    absl::Status status;
    // It may take its time to die: then a hold may be given up first.
    for (int k = 0; k < 200 && !absl::IsNotFound(status); ++k) {
      const auto reply = tracer_->Run(request);
      status = reply.ok() ? reply->status : reply.status();
      EXPECT_NE(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    }
    killer.join();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    int end = 0;  // nobody but us waits for it: the tracer has let go of it
    ASSERT_EQ(::waitpid(puppet.pid(), &end, 0), puppet.pid());
    EXPECT_TRUE(WIFSIGNALED(end));
  }
}

}  // namespace
}  // namespace perfd::agent
