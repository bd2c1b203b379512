#include "agent/sample/cost/switch_cost.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "agent/sample/cost/rounds.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

constexpr int kTurns = 100;  // of a round: 200 switches
constexpr int kRounds = 12;  // of each kind
constexpr int kWaitMs = 200;
constexpr int64_t kLongestRoundNs = 100 * kNsPerMs;

bool Await(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  uint64_t count = 0;
  return ::poll(&ready, 1, kWaitMs) == 1 && ::read(fd, &count, sizeof count) == sizeof count;
}

bool Wake(int fd) {
  const uint64_t one = 1;
  return ::write(fd, &one, sizeof one) == sizeof one;
}

// Two threads on one CPU that take turns.
class Pair {
 public:
  Pair() {
    for (UniqueFd& fd : wake_) fd = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(std::max(0, ::sched_getcpu())), &one);
    answering_ = std::thread([this, one] {
      ::sched_setaffinity(0, sizeof one, &one);
      tid_ = ::gettid();
      while (Await(wake_[1].get()) && !over_) Wake(wake_[0].get());
    });
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~Pair() {
    over_ = true;
    Wake(wake_[1].get());
    answering_.join();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  int32_t answering_tid() const { return tid_; }
  // ns per switch; negative: it took too long.
  double Round() const {
    const SystemClock clock;
    const int64_t begin = clock.MonotonicNs();
    for (int i = 0; i < kTurns; ++i) {
      if (!Wake(wake_[1].get()) || !Await(wake_[0].get())) return -1;
      if (clock.MonotonicNs() - begin > kLongestRoundNs) return -1;
    }
    return static_cast<double>(clock.MonotonicNs() - begin) / (2 * kTurns);
  }

 private:
  std::array<UniqueFd, 2> wake_;
  std::atomic<bool> over_ = false;
  std::atomic<int32_t> tid_ = 0;
  std::thread answering_;
};

absl::StatusOr<double> RoundWith(const Pair& pair, const ChosenEvent& event) {
  std::array<UniqueFd, 2> events;
  const std::array<int32_t, 2> tids = {0, pair.answering_tid()};
  for (size_t i = 0; i < tids.size(); ++i) {
    PerfOpenResult opened = OpenPerfEvent(event.attr, {.id = tids[i]});
    if (!opened.fd.valid())
      return PerfOpenError(opened.error, event.name, "threads of the agent (calibration)");
    events[i] = std::move(opened.fd);
  }
  return pair.Round();
}

absl::StatusOr<double> Measure(const ChosenEvent& event) {
  const Pair pair;
  ASSIGN_OR_RETURN(const double near,
                   MeasureCost(
                       "a switch of threads", kRounds, [&pair] { return pair.Round(); },
                       [&] { return RoundWith(pair, event); }));
  return kFarFactor * near;
}

}  // namespace

absl::StatusOr<double> MeasureSwitchCost(const ChosenEvent& event) {
  absl::StatusOr<double> cost = 0.0;
  std::thread measuring([&] { cost = Measure(event); });  // it is bound to a CPU and then gone
  measuring.join();
  return cost;
}

}  // namespace perfd::agent
