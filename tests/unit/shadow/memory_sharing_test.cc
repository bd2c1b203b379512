#include "agent/shadow/forking/memory_sharing.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

int Sleep(void*) {
  for (;;) pause();
}

// A child that shares the memory, as vfork makes it, or not.
class Child {
 public:
  explicit Child(int flags) : stack_(64 << 10) {
    pid_ = clone(Sleep, stack_.data() + stack_.size(), flags | SIGCHLD, nullptr);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  alignas(16) std::vector<char> stack_;
  pid_t pid_;
};

TEST(MemorySharingTest, AChildWithItsOwnMemoryDoesNotMatter) {
  const Child child(0);
  const std::vector<int32_t> others = {getpid(), child.pid()};
  EXPECT_TRUE(CheckAlone(getpid(), others).ok()) << CheckAlone(getpid(), others);
}

TEST(MemorySharingTest, AChildInTheSameMemoryIsNamed) {
  const Child child(CLONE_VM);
  const std::vector<int32_t> others = {child.pid()};
  EXPECT_THAT(std::string(CheckAlone(getpid(), others).message()),
              HasSubstr("shares its memory without being a thread"));
}

TEST(MemorySharingTest, WhoHasEndedDoesNotMatter) {
  pid_t pid;
  {
    const Child child(0);
    pid = child.pid();
  }
  EXPECT_TRUE(CheckAlone(getpid(), std::vector<int32_t>{pid}).ok());
}

// kcmp may not tell us about some, like the first process of a container that has more rights.
TEST(MemorySharingTest, TheFirstProcessIsNoReasonToRefuse) {
  EXPECT_TRUE(CheckAlone(getpid(), std::vector<int32_t>{1}).ok());
}

// As where the kernel has no kcmp, or a filter keeps it from us: nothing is known then.
TEST(MemorySharingTest, NoAnswerIsARefusal) {
  const absl::Status status = CheckAlone(-1, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("kcmp"));
}

TEST(MemorySharingTest, ChildrenAreFoundOrNothingIsSaid) {
  const Child child(0);
  const auto children = ChildrenOf(getpid(), std::vector<int32_t>{gettid()});
  ASSERT_TRUE(children.ok()) << children.status();
  EXPECT_THAT(*children, Contains(child.pid()));
  EXPECT_FALSE(ChildrenOf(getpid(), std::vector<int32_t>{gettid(), -1}).ok());
}

}  // namespace
}  // namespace perfd::agent
