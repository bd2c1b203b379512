// What helpers have used of CPUs, against the kernel's own sum for ended children.
#include "agent/spawn/helper_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

constexpr int kPatienceMs = 30'000;

absl::StatusOr<pid_t> StartShell(const std::string& script) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::InternalError("socketpair");
  const UniqueFd own(ends[0]);
  const UniqueFd theirs(ends[1]);
  return StartHelper({"shell", "/bin/sh", {"-c", script}}, theirs.get());
}

uint64_t EndedChildrenNs() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * kNsPerSecond +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

TEST(HelperProcessTest, WhatHelpersUseIsCountedWhileTheyRunAndAfterTheyEnded) {
  const uint64_t before_ns = HelpersCpuNs();
  const uint64_t children_ns = EndedChildrenNs();
  const auto first = StartShell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3");
  const auto second = StartShell("while :; do :; done");
  ASSERT_TRUE(first.ok() && second.ok());
  uint64_t seen_ns = 0;
  for (int i = 0; i < 3000 && seen_ns < 50 * kNsPerMs; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
    const uint64_t now_ns = HelpersCpuNs() - before_ns;
    EXPECT_GE(now_ns, seen_ns);
    seen_ns = now_ns;
  }
  EXPECT_GE(seen_ns, static_cast<uint64_t>(50 * kNsPerMs));  // while both run
  EXPECT_GT(HelperCpuNs(*second), 0u);
  EXPECT_EQ(EndHelper(*first, kPatienceMs), "exit status 3");
  EXPECT_EQ(EndHelper(*second, 0), "signal 9 (Killed)");
  const uint64_t after_ns = HelpersCpuNs() - before_ns;
  EXPECT_GE(after_ns, seen_ns);
  // The kernel's sum is in whole microseconds.
  EXPECT_NEAR(static_cast<double>(after_ns), static_cast<double>(EndedChildrenNs() - children_ns),
              1e5);
  EXPECT_EQ(HelpersCpuNs() - before_ns, after_ns);
}

TEST(HelperProcessTest, AProgramThatCannotBeStartedIsNamed) {
  const auto started = StartHelper({"reader", "/nowhere/perf-agent-reader"}, 0);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(std::string(started.status().message()).find("/nowhere/perf-agent-reader"),
            std::string::npos);
}

}  // namespace
}  // namespace perfd::agent
