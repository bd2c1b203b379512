// What sampling costs a running process whose threads wait for each other, without anybody reading the samples.
//
// Usage: sampling_bench PID [rounds]
// In turn, half a second each: no event, events at 199 Hz, at 1 Hz, and events that count nothing, on every thread of PID. The rate of
// switches tells how fast the process goes on, as long as it waits the same number of times for every piece of work (a kernel of
// tests/puppets/kernels.c with OMP_WAIT_POLICY=passive). One JSON line per kind, against the rounds' own turn without events.
#include <linux/perf_event.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "agent/procfs/procfs.h"
#include "agent/sample/ring/perf_event.h"
#include "agent/sample/sampling_event.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr absl::Duration kSettle = absl::Milliseconds(20);
constexpr absl::Duration kTurn = absl::Milliseconds(500);

struct Kind {
  const char* name;
  double hz;  // 0: counts nothing; negative: no event at all
};
constexpr Kind kKinds[] = {{"none", -1}, {"199 Hz", 199}, {"1 Hz", 1}, {"dummy", 0}};

perf_event_attr AttrOf(const Kind& kind) {
  EventEncoding encoding = CpuClockEncoding();
  if (kind.hz == 0) encoding.config = PERF_COUNT_SW_DUMMY;
  SamplingOptions options;
  options.frequency_hz = std::max(kind.hz, 1.0);
  perf_event_attr attr = MakeSamplingAttr(encoding, options);
  if (kind.hz == 0) attr.sample_freq = attr.freq = 0;
  return attr;
}

// Switches per second under this kind of event; negative: it could not be measured.
double Rate(const ProcFs& procfs, int32_t pid, const Kind& kind) {
  std::vector<PerfRing> rings;
  if (kind.hz >= 0) {
    const auto tids = procfs.Threads(pid);
    if (!tids.ok()) return -1;
    for (const int32_t tid : *tids) {
      PerfOpenResult opened = OpenPerfEvent(AttrOf(kind), {.id = tid});
      if (!opened.fd.valid()) return -1;
      auto ring = PerfRing::Create(std::move(opened.fd), 65'536);
      if (!ring.ok()) return -1;
      rings.push_back(*std::move(ring));
    }
  }
  const SystemClock clock;
  absl::SleepFor(kSettle);
  const int64_t begin = clock.MonotonicNs();
  const auto switches = [&]() -> absl::StatusOr<uint64_t> {
    ASSIGN_OR_RETURN(const std::vector<ThreadSchedule> threads, procfs.Schedule(pid));
    uint64_t sum = 0;
    for (const ThreadSchedule& thread : threads) sum += thread.switches;
    return sum;
  };
  const auto before = switches();
  absl::SleepFor(kTurn);
  const auto after = switches();
  if (!before.ok() || !after.ok() || *after <= *before) return -1;
  return static_cast<double>(*after - *before) * 1e9 /
         static_cast<double>(clock.MonotonicNs() - begin);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

int Run(int32_t pid, int rounds) {
  const ProcFs procfs;
  std::vector<double> slower[std::size(kKinds)];
  double threads = 1, base_rate = 0;
  if (const auto tids = procfs.Threads(pid); tids.ok()) threads = static_cast<double>(tids->size());
  for (int round = 0; round < rounds; ++round) {
    double base = 0;
    for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
      const double rate = Rate(procfs, pid, kKinds[kind]);
      if (rate <= 0) {
        std::fprintf(stderr, "process %d is gone, idle, or may not be sampled\n", pid);
        return 1;
      }
      if (kind == 0) base = rate;
      slower[kind].push_back(base / rate - 1);
    }
    base_rate += base / rounds;
  }
  for (size_t kind = 1; kind < std::size(kKinds); ++kind) {
    const double median = Quantile(slower[kind], 0.5);
    std::printf(
        "{\"figure\": \"sampling\", \"events\": \"%s\", \"slower\": %.4f, \"quartiles\": [%.4f, "
        "%.4f], "
        "\"switches_per_thread_and_second\": %.0f, \"us_per_switch\": %.2f, \"rounds\": %d}\n",
        kKinds[kind].name, median, Quantile(slower[kind], 0.25), Quantile(slower[kind], 0.75),
        base_rate / threads, median * 1e6 / base_rate, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace perfd::agent

int main(int argc, char** argv) {
  const int pid = argc > 1 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  if (pid <= 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: sampling_bench PID [rounds]\n");
    return 2;
  }
  return perfd::agent::Run(pid, rounds);
}
