// Readers from a host are the caller's own children, with its socket and nothing else.
#include "agent/spawn/helper_host.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/reader/arguments.h"
#include "agent/spawn/helper_process.h"

namespace perfd::agent {
namespace {

constexpr int kPatienceMs = 10'000;

struct Sockets {
  Sockets() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    own = UniqueFd(ends[0]);
    theirs = UniqueFd(ends[1]);
  }
  UniqueFd own;
  UniqueFd theirs;
};

pid_t ParentOf(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  while (status >> word) {
    if (word == "PPid:") {
      pid_t parent = 0;
      status >> parent;
      return parent;
    }
  }
  return 0;
}

std::set<std::string> DescriptorsOf(pid_t pid) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd")))
    names.insert(entry.path().filename());
  return names;
}

// By itself, within 5 s: less than the helper waits for its first message.
bool Ended(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    siginfo_t end{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT | WNOHANG) == 0 &&
        end.si_pid == pid)
      return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// One that waits for its first message, and so stays.
std::vector<std::string> Waiting() {
  return FormatArguments(
      UnwindArguments{{.pid = ::getpid(), .uid = ::getuid(), .gid = ::getgid()}, 1u << 30});
}

TEST(HelperHostTest, TheyAreChildrenOfTheCallerWithItsSocketAlone) {
  auto host = HelperHost::Start("reader", PERFD_READER);
  ASSERT_TRUE(host.ok()) << host.status();
  Sockets sockets;
  const auto pid = (*host)->Spawn(Waiting(), sockets.theirs.get());
  ASSERT_TRUE(pid.ok()) << pid.status();
  sockets.theirs.Reset();
  EXPECT_EQ(ParentOf(*pid), ::getpid());
  const std::set<std::string> own = {"0", "1", "2", "3"};
  for (int i = 0; i < 500 && DescriptorsOf(*pid) != own; ++i)  // until it has put its socket there
    absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(DescriptorsOf(*pid), own);
  sockets.own.Reset();  // it sees that nobody is there
  EXPECT_EQ(EndHelper(*pid, kPatienceMs), "exit status 0");
}

TEST(HelperHostTest, WhatItIsToldArrivesWordForWord) {
  auto host = HelperHost::Start("reader", PERFD_READER);
  ASSERT_TRUE(host.ok()) << host.status();
  const uint64_t before_ns = HelpersCpuNs();
  for (int i = 0; i < 20; ++i) {
    const Sockets sockets;
    const auto pid = (*host)->Spawn({"1", "a b", "", "--c"}, sockets.theirs.get());
    ASSERT_TRUE(pid.ok()) << pid.status();
    EXPECT_EQ(EndHelper(*pid, kPatienceMs), "exit status 2") << "not its arguments, it says";
  }
  EXPECT_GT(HelpersCpuNs(), before_ns);
}

TEST(HelperHostTest, AHostThatWasKilledSaysSo) {
  auto host = HelperHost::Start("reader", PERFD_READER);
  ASSERT_TRUE(host.ok()) << host.status();
  ::kill((*host)->pid(), SIGKILL);
  const Sockets sockets;
  for (int i = 0; i < 3; ++i) {
    const auto pid = (*host)->Spawn(Waiting(), sockets.theirs.get());
    EXPECT_FALSE(pid.ok()) << i;
  }
}

TEST(HelperHostTest, AllEndWithTheThread) {
  pid_t host_pid = 0;
  pid_t helper_pid = 0;
  std::thread starting([&] {
    static Sockets sockets;
    auto host = HelperHost::Start("reader", PERFD_READER);
    ASSERT_TRUE(host.ok()) << host.status();
    const auto pid = (*host)->Spawn(Waiting(), sockets.theirs.get());
    ASSERT_TRUE(pid.ok()) << pid.status();
    host_pid = (*host)->pid();
    helper_pid = *pid;
    absl::SleepFor(absl::Seconds(1));   // until they have asked for the signal
    static HelperHost* kept = nullptr;  // its end is the thread's
    kept = host->release();
    ASSERT_NE(kept, nullptr);
  });
  starting.join();
  ASSERT_GT(helper_pid, 0);
  EXPECT_TRUE(Ended(helper_pid));
  EXPECT_TRUE(Ended(host_pid));
  EXPECT_EQ(EndHelper(helper_pid, kPatienceMs), "signal 9 (Killed)");
  EXPECT_EQ(EndHelper(host_pid, kPatienceMs), "signal 9 (Killed)");
}

}  // namespace
}  // namespace perfd::agent
