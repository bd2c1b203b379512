// A process that is not what it was when it was admitted is let alone: nothing is mapped, nothing written, whatever changed.
#include "agent/procfs/admission.h"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/integration/attach/hold_fixture.h"

namespace perfd::agent {
namespace {

constexpr uid_t kUser = 54321;

void GiveUpCapabilities(uint32_t permitted) {
  __user_cap_header_struct whose{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct sets[2] = {{permitted, permitted, 0}, {0, 0, 0}};
  ::syscall(SYS_capset, &whose, sets);
}

using SelfChange = std::function<void(int done)>;  // done: where the word goes that it is made

// A child that runs as an ordinary user with some capabilities, and changes itself when it is told to.
class ChangingProcess {
 public:
  explicit ChangingProcess(const SelfChange& change) {
    int go[2], done[2];
    if (::pipe(go) != 0 || ::pipe(done) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) Live(go[0], done[1], change);
    go_ = go[1];
    done_ = done[0];
    ::close(go[0]);
    ::close(done[1]);
    AwaitWord();
  }
  ~ChangingProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(go_);
    ::close(done_);
  }
  ChangingProcess(const ChangingProcess&) = delete;
  ChangingProcess& operator=(const ChangingProcess&) = delete;
  int32_t pid() const { return pid_; }
  void Change() {
    if (::write(go_, "g", 1) != 1) std::abort();
    AwaitWord();
  }

 private:
  [[noreturn]] static void Live(int go, int done, const SelfChange& change) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // To keep capabilities over the change of the user: as a program with file capabilities has them.
    ::prctl(PR_SET_KEEPCAPS, 1);
    if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, 0) != 0) ::_exit(2);
    GiveUpCapabilities(1u << CAP_SETUID | 1u << CAP_SETGID);
    ::prctl(PR_SET_DUMPABLE, 1);
    char byte = 'r';
    if (::write(done, &byte, 1) != 1 || ::read(go, &byte, 1) != 1) ::_exit(3);
    change(done);
    if (::write(done, &byte, 1) != 1) ::_exit(4);
    for (;;) ::pause();
  }
  void AwaitWord() {
    char byte = 0;
    if (::read(done_, &byte, 1) != 1) std::abort();
  }
  pid_t pid_ = 0;
  int go_ = -1, done_ = -1;
};

class HoldOfTheAdmittedTest : public HoldTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: it makes a process of another user";
    HoldTest::SetUp();
  }
  // What a hold that maps something says after the change.
  absl::Status HoldAfter(const SelfChange& change) {
    ChangingProcess process(change);
    const auto admitted = ReadAdmission(ProcFs(), process.pid());
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    HoldRequest request{process.pid(), admitted->start_ticks, kLongStopNs, {MapOp(4096)}};
    request.admitted = *admitted;
    const auto before = tracer_->Run(request);
    EXPECT_TRUE(before.ok() && before->status.ok()) << before.status() << before->status;
    process.Change();
    const auto maps = ProcFs().Maps(process.pid());
    const auto after = tracer_->Run(request);
    EXPECT_TRUE(after.ok()) << after.status();
    // What is mapped may join a neighbour, or not.
    if (!after->status.ok()) {
      EXPECT_EQ(maps->size(), ProcFs().Maps(process.pid())->size()) << "something was mapped";
    }
    return after->status;
  }
};

TEST_F(HoldOfTheAdmittedTest, NothingChanged) {
  EXPECT_TRUE(HoldAfter([](int) {}).ok());
}

TEST_F(HoldOfTheAdmittedTest, AnotherUser) {
  EXPECT_TRUE(absl::IsPermissionDenied(HoldAfter([](int) { (void)!::seteuid(0); })));
  EXPECT_TRUE(
      absl::IsPermissionDenied(HoldAfter([](int) { (void)!::setresuid(kUser, kUser, kUser); })));
}

TEST_F(HoldOfTheAdmittedTest, AnotherGroup) {
  EXPECT_TRUE(absl::IsPermissionDenied(HoldAfter([](int) { (void)!::setegid(0); })));
}

TEST_F(HoldOfTheAdmittedTest, OtherCapabilities) {
  EXPECT_TRUE(
      absl::IsPermissionDenied(HoldAfter([](int) { GiveUpCapabilities(1u << CAP_SETUID); })));
}

TEST_F(HoldOfTheAdmittedTest, NotToBeDumpedAnyMore) {
  EXPECT_TRUE(absl::IsPermissionDenied(HoldAfter([](int) { ::prctl(PR_SET_DUMPABLE, 0); })));
}

// One thread is enough: who may change the memory of one may change what the others do.
TEST_F(HoldOfTheAdmittedTest, OneThreadOfAnotherUser) {
  EXPECT_TRUE(absl::IsPermissionDenied(HoldAfter([](int) {
    static std::atomic<bool> done{false};
    std::thread([] {
      ::syscall(SYS_setresuid, -1, 0, -1);  // of this thread alone, which the library would not do
      done = true;
      for (;;) ::pause();
    }).detach();
    while (!done) std::this_thread::yield();
  })));
}

TEST_F(HoldOfTheAdmittedTest, AnotherProgram) {
  // Which of the changes is named is all the same: an exec takes these capabilities away, too.
  EXPECT_FALSE(HoldAfter([](int done) {
                 // The word comes from the new program.
                 const std::string script = absl::StrCat("printf x >&", done, "; while :; do :; done");
                 ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
               }).ok());
}

}  // namespace
}  // namespace perfd::agent
