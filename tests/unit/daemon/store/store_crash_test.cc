// kill -9 in the middle of writing: what was acknowledged is there, and nothing is there twice.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {
namespace {

constexpr uint64_t kAcknowledged = 300;

class StoreCrashTest : public StoreFixture {
 protected:
  // Appends for ever and reports each acknowledged sequence; never returns.
  [[noreturn]] void Write(int pipe_fd, uint64_t first) {
    if (!Open().ok()) ::_exit(2);
    for (uint64_t sequence = first;; ++sequence) {
      WindowRecord record = Record("p-000001", sequence);
      record.body = absl::StrCat(sequence);
      while (store_->QueueLength() > 64) ::usleep(100);
      const absl::Status queued = store_->Append(
          std::move(record), [pipe_fd, sequence](const absl::StatusOr<AppendResult>& result) {
            if (!result.ok() || ::write(pipe_fd, &sequence, sizeof(sequence)) != sizeof(sequence))
              ::_exit(3);
          });
      if (!queued.ok()) ::_exit(4);
    }
  }

  // The sequences a child acknowledged before it was killed.
  std::set<uint64_t> RunAndKill(uint64_t first) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::pipe(fds), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(fds[0]);
      Write(fds[1], first);
    }
    ::close(fds[1]);
    std::set<uint64_t> acknowledged;
    uint64_t sequence = 0;
    while (acknowledged.size() < kAcknowledged &&
           ::read(fds[0], &sequence, sizeof(sequence)) == sizeof(sequence)) {
      acknowledged.insert(sequence);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(fds[0], &sequence, sizeof(sequence)) == sizeof(sequence))
      acknowledged.insert(sequence);
    ::close(fds[0]);
    return acknowledged;
  }
};

TEST_F(StoreCrashTest, AcknowledgedWindowsSurviveExactlyOnce) {
  std::set<uint64_t> acknowledged;
  for (int life = 0; life < 3; ++life) {
    // Each life begins a little before the last acknowledged one, as an agent does that missed an acknowledgement.
    const uint64_t first = acknowledged.empty() ? 1 : *acknowledged.rbegin() - 20;
    const std::set<uint64_t> now = RunAndKill(first);
    ASSERT_GE(now.size(), kAcknowledged);
    acknowledged.insert(now.begin(), now.end());
  }
  ASSERT_TRUE(Open().ok());
  std::set<uint64_t> stored;
  for (const std::string& body : Windows("p-000001")) {
    EXPECT_TRUE(stored.insert(std::stoull(body)).second) << "stored twice: " << body;
  }
  uint64_t checked = 0;
  for (const uint64_t sequence : acknowledged) {
    EXPECT_TRUE(stored.contains(sequence)) << "lost: " << sequence;
    if (checked++ % 37 == 0) {
      EXPECT_TRUE(Append(Record("p-000001", sequence))->duplicate);
    }
  }
}

}  // namespace
}  // namespace perfd::daemon
