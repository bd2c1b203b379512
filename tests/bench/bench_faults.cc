// What the later faults of a shadow cost: pages written to again once it is gone, against what the agent is told (page_costs.h).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "agent/spawn/page_costs.h"
#include "core/analysis/cluster_median.h"
#include "core/base/clock.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/injection_bench.h"

namespace perfd::agent {
namespace {

constexpr size_t kPage = 4096;
constexpr int kForks = 15;

// ns per page; negative: no child.
double AfterFork(size_t pages) {
  void* const start =
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return -1;
  madvise(start, pages * kPage, MADV_NOHUGEPAGE);
  auto* const bytes = static_cast<volatile char*>(start);
  for (size_t i = 0; i < pages; ++i) bytes[i * kPage] = 1;
  double ns = -1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0 && waitpid(child, nullptr, 0) == child) {
    const SystemClock clock;
    const int64_t begin = clock.MonotonicNs();
    for (size_t i = 0; i < pages; ++i) bytes[i * kPage] = 2;
    ns = static_cast<double>(clock.MonotonicNs() - begin) / static_cast<double>(pages);
  }
  munmap(start, pages * kPage);
  return ns;
}

}  // namespace

absl::Status BenchFaults(const BenchSetup& setup) {
  const BenchTable table("faults", "A page that is written to again after a shadow, ns",
                         {"running threads", "pages", "after a fork", "as the agent measures"},
                         setup.json);
  for (const int threads : {1, 2}) {
    std::atomic<bool> over = false;
    std::thread company;
    if (threads == 2)
      company = std::thread([&] {
        while (!over) {
        }
      });
    for (const size_t pages : {size_t{128}, size_t{1024}, size_t{16384}}) {
      std::vector<double> forked, measured;
      for (int i = 0; i < (setup.quick ? 3 : kForks); ++i) {
        forked.push_back(AfterFork(pages));
        measured.push_back(
            AskPageCosts(setup.tracer->program()).value_or(PageCosts{-1, -1}).rewrite_ns);
      }
      table.Row({int64_t{threads}, static_cast<int64_t>(pages), Median(forked), Median(measured)});
    }
    over = true;
    if (company.joinable()) company.join();
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
