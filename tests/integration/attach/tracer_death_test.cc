// The tracer dies or hangs at every operation and at random instants: the process runs on, and computes the same.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "tests/integration/attach/hold_fixture.h"

namespace perfd::agent {
namespace {

class TracerDeathTest : public HoldTest {
 protected:
  // Holds once with the argument; true when the tracer died of it. A stop that takes too long because the host gives its CPUs
  // to others is given up, and says nothing of the operation: tried again.
  static bool DiesAt(HoldRequest request, const char* flag, int operation) {
    request.max_stop_ns = kStopNs;
    absl::Status given_up;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const auto tracer = StartTracer({flag, std::to_string(operation)});
      const auto reply = tracer->Run(request);
      if (!reply.ok()) return true;
      if (reply->status.ok()) return false;
      given_up = reply->status;
      std::cout << "given up, and tried again: " << operation << ": " << given_up << "\n";
      if (!absl::IsDeadlineExceeded(given_up)) break;
    }
    ADD_FAILURE() << operation << ": " << given_up;
    return false;
  }

  // Kills at the first operation, the second, ... until a hold has fewer operations than that.
  static int KillAtEveryOperation(const AttachPuppet& puppet) {
    return KillAtEveryOperation(puppet, MapAndUnmap(puppet));
  }
  static int KillAtEveryOperation(const AttachPuppet& puppet, const HoldRequest& request) {
    int operation = 1;
    while (operation < kMostOperations && DiesAt(request, "--die-before-operation", operation)) {
      EXPECT_FALSE(puppet.traced()) << operation;
      ++operation;
    }
    return operation - 1;
  }

  static constexpr int kMostOperations = 400, kMostAttempts = 8;  // of one operation
  static constexpr int64_t kStopNs = 100 * kNsPerMs;
};

TEST_F(TracerDeathTest, KilledAtEveryOperation) {
  AttachPuppet puppet({"spin:2", "alarm", "futex", "pipe"});
  const int kills = KillAtEveryOperation(puppet) + KillAtEveryOperation(puppet);
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 60);
  EXPECT_LT(kills, kMostOperations);
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
}

// The thread that makes the call is in a wait that starts again, by itself or through the frame.
TEST_F(TracerDeathTest, KilledAtEveryOperationInThreadsThatWait) {
  for (const char* role : {"sleep", "poll", "futex-timeout", "futex"}) {
    AttachPuppet puppet({role});
    EXPECT_GT(KillAtEveryOperation(puppet), 20) << role;
    EXPECT_EQ(puppet.Finish(), 0) << role;
    EXPECT_EQ(puppet.eintr(), 0) << role;
  }
}

// For these waits any stop ends in EINTR unless it is repaired, and a tracer that is killed before it could repair does not:
// at most one per kill. Everything else must be right.
TEST_F(TracerDeathTest, KilledAtEveryOperationInThreadsThatSeeEintr) {
  for (const char* role : {"epoll", "sigwait", "semaphore", "receive"}) {
    AttachPuppet puppet({role});
    const int kills = KillAtEveryOperation(puppet);
    EXPECT_GT(kills, 20) << role;
    EXPECT_EQ(puppet.Finish(), 0) << role;
    EXPECT_LE(puppet.eintr(), 6) << role;  // the operations between stop and repair
  }
}

// Threads are moved into a copy of their loop, calls are made, and they are moved back.
TEST_F(TracerDeathTest, KilledAtEveryOperationWhileThreadsAreMoved) {
  AttachPuppet puppet({"spin:2", "alarm"});
  const auto place = MapLoopCopy(*tracer_, puppet);
  ASSERT_TRUE(place.ok()) << place.status();
  int kills = 0;
  for (int round = 0; round < 4; ++round)
    kills += KillAtEveryOperation(
        puppet, RequestFor(puppet, {MoveIntoCopy(puppet, *place), MapOp(4096),
                                    UnmapOp(ResultOf(1), 4096), MoveOutOfCopy(puppet, *place)}));
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 100);
  EXPECT_EQ(puppet.Finish(), 0);
}

// However the agent ends: the tracer goes with the thread that started it.
TEST_F(TracerDeathTest, DiesWithItsStarter) {
  AttachPuppet puppet({"spin"});
  std::unique_ptr<Tracer> tracer;
  std::thread starter([&] {
    tracer = StartTracer();
    EXPECT_TRUE(tracer->Run(MapAndUnmap(puppet)).ok());
  });
  starter.join();
  const pid_t orphan = tracer->pid();
  for (int i = 0; i < 1000; ++i) {
    const auto stamp = ProcFs().Stamp(orphan);
    if (stamp.ok() && stamp->state == 'Z') break;
    ::usleep(1000);
  }
  EXPECT_EQ(ProcFs().Stamp(orphan)->state, 'Z');
  EXPECT_EQ(puppet.Finish(), 0);
}

TEST_F(TracerDeathTest, KilledAtRandom) {
  constexpr int kKills = 100;
  AttachPuppet puppet({"spin:2", "alarm", "sleep", "futex", "fork", "churn"});
  const HoldRequest request = MapAndUnmap(puppet);
  std::mt19937 random(7);
  int killed = 0, good = 0;
  for (int i = 0; i < kKills; ++i) {
    const auto tracer = StartTracer();
    const pid_t pid = tracer->pid();
    const auto delay_us = static_cast<useconds_t>(random() % 20000);
    ASSERT_TRUE(tracer->Run(request).ok());
    std::thread killer([=] {
      ::usleep(delay_us);
      ::kill(pid, SIGKILL);  // not reaped before the tracer object knows of it: the pid is its own
    });
    absl::Status status;
    while (status.ok() && tracer->pid() == pid) {  // another pid: killed between two holds
      const auto reply = tracer->Run(request);
      status = reply.status();
      good += reply.ok();
    }
    killer.join();
    killed += !status.ok();
    ASSERT_FALSE(puppet.traced());
    EXPECT_NE(puppet.state(), 't');
  }
  std::cout << killed << " kills during a hold, " << good << " holds in between\n";
  EXPECT_GT(killed, kKills / 2);
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
}

// Each hang takes as long as a stop may take: every operation in turn is for who has the time.
int OperationsBetweenHangs() {
  return std::getenv("PERFD_EVERY_OPERATION") != nullptr ? 1 : 7;
}

// Stopped while it holds the process: its own timer cannot act, the agent ends it within twice the stop and a slack.
TEST_F(TracerDeathTest, HungAtEverySeventhOperation) {
  AttachPuppet puppet({"spin:2", "futex", "sleep"});
  const int step = OperationsBetweenHangs();
  int hung = 0;
  for (int operation = 1; operation < kMostOperations; operation += step) {
    const int64_t start_ns = SystemClock().MonotonicNs();
    if (!DiesAt(MapAndUnmap(puppet), "--hang-before-operation", operation)) break;
    ++hung;
    EXPECT_LT(SystemClock().MonotonicNs() - start_ns, 20 * kStopNs);
    EXPECT_FALSE(puppet.traced()) << operation;
  }
  std::cout << hung << " hangs\n";
  EXPECT_GT(hung, 30 / step);
  EXPECT_EQ(puppet.Finish(), 0);
  EXPECT_EQ(puppet.eintr(), 0);
}

TEST_F(TracerDeathTest, TheNextRunStartsAnotherTracer) {
  AttachPuppet puppet({"spin"});
  ::kill(tracer_->pid(), SIGKILL);
  const auto died = tracer_->Run(MapAndUnmap(puppet));
  const auto reply = died.ok() ? died : tracer_->Run(MapAndUnmap(puppet));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->status.ok()) << reply->status;
  EXPECT_EQ(puppet.Finish(), 0);
}

}  // namespace
}  // namespace perfd::agent
