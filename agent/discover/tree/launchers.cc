#include "agent/discover/tree/launchers.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace perfd::agent {
namespace {

constexpr double kIdleShare = 0.005;
constexpr double kNamedIdleShare = 0.02;  // mpirun hands on what its ranks print
constexpr double kWorkShare = 0.05;
constexpr uint64_t kShortLifetimeNs = 1'000'000'000;  // what starting takes: a script in Python
constexpr uint64_t kLifetimePart = 10;                // of what those below have used

// In the kernel: wait4 and waitid, sigsuspend and sigtimedwait, poll, select, epoll.
constexpr absl::string_view kChannels[] = {"do_wait",     "kernel_wait4",          "kernel_waitid",
                                           "sigsuspend",  "do_sigtimedwait",       "do_poll",
                                           "do_sys_poll", "poll_schedule_timeout", "do_select",
                                           "ep_poll",     "do_epoll_wait"};

// Compilers append to names: do_poll.constprop.0.
bool IsWaitForChildren(absl::string_view channel) {
  channel = channel.substr(0, channel.find('.'));
  return channel.empty() || channel == "0" ||
         std::find(std::begin(kChannels), std::end(kChannels), channel) != std::end(kChannels);
}

double Share(uint64_t used_ns, int64_t probe_ns) {
  return probe_ns <= 0 ? 0 : static_cast<double>(used_ns) / static_cast<double>(probe_ns);
}

}  // namespace

bool IsIdle(const ProbedUse& use, int64_t probe_ns, bool named_so) {
  return Share(use.used_ns, probe_ns) <= (named_so ? kNamedIdleShare : kIdleShare);
}

bool Works(const ProbedUse& use, int64_t probe_ns) {
  return Share(use.used_ns, probe_ns) >= kWorkShare;
}

bool OnlyWaits(const WatchedParent& parent, const std::vector<WatchedChild>& below,
               int64_t probe_ns) {
  if (parent.is_rank && !parent.named_so) return false;
  if (!IsIdle(parent.use, probe_ns, parent.named_so)) return false;
  if (!parent.named_so && !IsWaitForChildren(parent.wait_channel)) return false;
  uint64_t lifetime_ns = 0;
  bool worth_naming = false;
  for (const WatchedChild& child : below) {
    lifetime_ns += child.use.lifetime_ns;
    worth_naming |= child.is_rank || Works(child.use, probe_ns);
  }
  return worth_naming &&
         parent.use.lifetime_ns <= std::max(kShortLifetimeNs, lifetime_ns / kLifetimePart);
}

uint64_t ThreadsCpuNs(const ProcFs& procfs, int32_t pid) {
  uint64_t sum = 0;
  for (const int32_t tid : procfs.Threads(pid).value_or(std::vector<int32_t>()))
    sum += procfs.CpuNs(pid, tid).value_or(0);
  return sum;
}

}  // namespace perfd::agent
