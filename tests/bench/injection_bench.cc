// What altering loops costs a rank: injection_bench [--part pass|stops|memory|narrow|faults]... [--quick] [--json]
// Needs root (or CAP_SYS_PTRACE); starts the processes it measures on, and ends them. Prints tables, or JSON lines.
#include "tests/bench/injection_bench.h"

#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "agent/experiment/preparation.h"
#include "agent/shadow/forking/preconditions.h"
#include "core/base/clock.h"
#include "tests/bench/bench_table.h"

namespace perfd::agent {
namespace {

constexpr int64_t kQuickSeconds = 45;
constexpr int64_t kSeconds = 290;
constexpr unsigned kSlackSeconds =
    60;  // after that something hangs: the kernel ends us, and our children with us

struct Part {
  const char* name;
  absl::Status (*run)(const BenchSetup&);
};
constexpr Part kParts[] = {{"pass", BenchPassThrough},
                           {"stops", BenchStops},
                           {"memory", BenchMemory},
                           {"narrow", BenchTrim},
                           {"faults", BenchFaults}};

// A folder of its own for the journals, gone at the end.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/injection-bench-XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int RunParts(const BenchSetup& setup, const std::vector<std::string>& parts) {
  int failures = 0;
  for (const Part& part : kParts) {
    if (!parts.empty() && std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    const absl::Status status = part.run(setup);
    if (status.ok()) continue;
    fprintf(stderr, "injection_bench: %s: %s\n", part.name, status.ToString().c_str());
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

InjectorOptions InjectorOptionsOf(const BenchSetup& setup) {
  InjectorOptions options;
  options.tracer = setup.tracer;
  options.journal = setup.journal;
  options.max_stop_ns = 500 * kNsPerMs;
  options.max_shadow_ns = 10 * kNsPerSecond;
  return options;
}

bool OutOfTime(const BenchSetup& setup, const std::string& what) {
  if (SystemClock().MonotonicNs() < setup.deadline_ns) return false;
  PrintRemark("left out, the time is up: " + what, setup.json);
  return true;
}

uint64_t MostBytes() {
  const auto node = ReadNodeMemory();
  uint64_t left = node.ok() ? node->available : 0;
  const CgroupMemory group = ReadCgroupMemory(::getpid());
  if (group.limit) left = std::min(left, *group.limit - std::min(*group.limit, group.current));
  // Beside the process: what it writes of itself after a shadow, at most a gigabyte, and as much again for everybody else.
  constexpr uint64_t kBeside = uint64_t{2} << 30;
  return left > kBeside ? left - kBeside : 0;
}

}  // namespace perfd::agent

int main(int argc, char** argv) {
  using namespace perfd;
  using namespace perfd::agent;
  BenchSetup setup;
  std::vector<std::string> parts;
  int64_t working_set_mb = 16, seconds = 0;
  std::string tracer_program = PERFD_TRACER;
  CLI::App app{"What altering loops costs a rank, measured on processes of its own."};
  app.add_option("--part", parts, "pass, stops, memory, narrow, faults; default: all")
      ->check(CLI::IsMember({"pass", "stops", "memory", "narrow", "faults"}));
  app.add_option("--sizes", setup.megabytes, "memory sizes, MB, with commas")->delimiter(',');
  app.add_option("--working-set", working_set_mb, "of the loop of the memory part, MB")
      ->check(CLI::Range(3, 4096));
  app.add_option("--seconds", seconds, "begin nothing new after so long");
  app.add_option("--tracer", tracer_program, "perf-agent-tracer");
  app.add_flag("--quick", setup.quick, "fewer repetitions, small sizes: under a minute");
  app.add_flag("--json", setup.json, "one JSON object per row");
  CLI11_PARSE(app, argc, argv);
  if (seconds <= 0) seconds = setup.quick ? kQuickSeconds : kSeconds;
  alarm(static_cast<unsigned>(seconds) + kSlackSeconds);
  setup.deadline_ns = SystemClock().MonotonicNs() + seconds * kNsPerSecond;
  setup.working_set_bytes = working_set_mb << 20;
  setup.ticks_per_ns = MeasureTicksPerNs();
  const Scratch scratch;
  const auto journal = Journal::Make(scratch.path());
  if (journal.ok()) setup.journal = &*journal;
  auto tracer = Tracer::Start({tracer_program, {}});
  if (!tracer.ok() || setup.journal == nullptr || setup.ticks_per_ns <= 0) {
    fprintf(stderr, "injection_bench: %s\n",
            !tracer.ok() ? tracer.status().ToString().c_str()
                         : "it needs /tmp and an invariant time stamp counter");
    return 1;
  }
  setup.tracer = tracer->get();
  PrintHost(argc, argv, setup.json);
  return RunParts(setup, parts);
}
