// Data: every key of a job file, in file order.
#include <algorithm>
#include <array>

#include "core/spec/spec_key.h"

namespace perfd {
namespace {

using S = ProfileSpec;
constexpr double kMs = 1e6;
constexpr double kSecond = 1e9;
constexpr double kDay = 86400 * kSecond;
constexpr char kVariantNames[] =
    "LS|FP|DL1|NO_DIV|NO_SQRT|NO_RED|NO_CALL|S2L|NO_STORE|GROUP(k)|PREFETCH(p)|CTRL|REF_FTZ|REF_"
    "CTL";

SpecField None(S&) {
  return std::monostate();
}

// clang-format off
constexpr std::array kKeys = {
  SpecKey{"apiVersion", KeyType::kConstant, 0, 0, "perfd/v1", "perfd/v1",
    "Version of this file format.", None},
  SpecKey{"kind", KeyType::kConstant, 0, 0, "Profile", "Profile",
    "What the file describes.", None},
  SpecKey{"metadata", KeyType::kSection, 0, 0, "", "",
    "For people.", None},
  SpecKey{"metadata.name", KeyType::kText, 0, 128, "", "lulesh-hot-loops",
    "Free text shown in lists and reports.",
    [](S& s) -> SpecField { return &s.name; }},
  SpecKey{"target", KeyType::kSection, 0, 0, "", "",
    "Which processes: exactly one of slurm_job, command and pids. The only section without a default.", None},
  SpecKey{"target.slurm_job", KeyType::kInteger, 1, 4294967295.0, "", "4711",
    "All steps of this Slurm job, on every node.",
    [](S& s) -> SpecField { return &s.target.slurm_job; }},
  SpecKey{"target.command", KeyType::kText, 1, 255, "", "lulesh2.0",
    "Processes whose executable has this base name; '?' for each byte of it that is not UTF-8.",
    [](S& s) -> SpecField { return &s.target.command; }},
  SpecKey{"target.pids", KeyType::kPids, 1, 4096, "", "[1234, 1235]",
    "These process ids, on one node.",
    [](S& s) -> SpecField { return &s.target.pids; }},
  SpecKey{"target.tree", KeyType::kBoolean, 0, 0, "", "true",
    "With pids: all that run below these processes are meant, too, now and as they start. Those that only wait for their "
    "children (time, timeout, a shell, mpirun) are left out.",
    [](S& s) -> SpecField { return &s.target.tree; }},
  SpecKey{"target.user", KeyType::kText, 0, 255, "", "alice",
    "With command: only processes of this user. Default: your own.",
    [](S& s) -> SpecField { return &s.target.user; }},
  SpecKey{"target.node", KeyType::kText, 0, 255, "", "\"node[1-4],node17\"",
    "Only this node, or these. Default: every node; with pids: the node of whoever asks.",
    [](S& s) -> SpecField { return &s.target.node; }},
  SpecKey{"ranks", KeyType::kRanks, 0, 2147483647.0, "", "\"0-7,9\"",
    "Only these ranks.",
    [](S& s) -> SpecField { return &s.ranks; }},
  SpecKey{"duration", KeyType::kSpan, kSecond, 7 * kDay, "", "60s",
    "How long to sample; auto: until every hot loop is known, or nothing more is learnt, at least 20 s and at most max_duration.",
    [](S& s) -> SpecField { return &s; }},
  SpecKey{"max_duration", KeyType::kLongestSpan, kSecond, 7 * kDay, "", "10m",
    "With duration: auto, how long at most.",
    [](S& s) -> SpecField { return &s; }},
  SpecKey{"budget", KeyType::kSection, 0, 0, "", "",
    "What the profile may cost.", None},
  SpecKey{"budget.overhead", KeyType::kPercent, 0, 0.5, "", "2%",
    "Added wall time over elapsed time.",
    [](S& s) -> SpecField { return &s.budget.overhead_ratio; }},
  SpecKey{"budget.stop", KeyType::kDuration, kMs, kSecond, "", "20ms",
    "Longest single stop of a rank.",
    [](S& s) -> SpecField { return &s.budget.stop_ns; }},
  SpecKey{"budget.shadow", KeyType::kDuration, 10 * kMs, 10 * kSecond, "", "500ms",
    "Longest pause of a rank for one shadow.",
    [](S& s) -> SpecField { return &s.budget.shadow_ns; }},
  SpecKey{"hotspots", KeyType::kSection, 0, 0, "", "",
    "How hot loops are found.", None},
  SpecKey{"hotspots.event", KeyType::kText, 1, 128, "", "auto",
    "auto (cycles where the CPU can, else cpu-clock), cpu-clock, or an event name of libpfm4.",
    [](S& s) -> SpecField { return &s.hotspots.event; }},
  SpecKey{"hotspots.frequency", KeyType::kFrequency, 1, 10000, "", "199Hz",
    "Samples per second and thread; lowered automatically to stay within budget.overhead.",
    [](S& s) -> SpecField { return &s.hotspots.frequency_hz; }},
  SpecKey{"hotspots.coverage", KeyType::kPercent, 0, 1, "", "80%",
    "The hot set ends when its loops hold this share of the loop time.",
    [](S& s) -> SpecField { return &s.hotspots.coverage_ratio; }},
  SpecKey{"hotspots.max_loops", KeyType::kInteger, 1, 1000, "", "12",
    "Most loops in the hot set.",
    [](S& s) -> SpecField { return &s.hotspots.max_loops; }},
  SpecKey{"hotspots.callpaths", KeyType::kChoice, 0, 0, "auto|off|fp|dwarf", "auto",
    "Call paths: auto (a few, to tell what loops call; none is kept), off, or kept: by frame pointers, or by unwinding copies of stacks.",
    [](S& s) -> SpecField { return &s.hotspots.callpaths; }},
  SpecKey{"variants", KeyType::kSection, 0, 0, "", "",
    "Which altered copies of the hot loops are timed in shadows.", None},
  SpecKey{"variants.set", KeyType::kVariants, 0, 32, kVariantNames, "[LS, FP, DL1]",
    "Names of the catalogue, combined with +: NO_RED+NO_DIV; an empty list measures none.",
    [](S& s) -> SpecField { return &s.variants.set; }},
  SpecKey{"variants.repetitions", KeyType::kInteger, 3, 1000, "", "31",
    "Valid repetitions wanted of each variant.",
    [](S& s) -> SpecField { return &s.variants.repetitions; }},
  SpecKey{"variants.mode", KeyType::kChoice, 0, 0, "shadow|recovery", "shadow",
    "recovery: very short loops that provably end and store nothing run their variants in the job's own threads (outside "
    "promise P1); only where the site allows it (perf-agent --allow-recovery). All others run in shadows.",
    [](S& s) -> SpecField { return &s.variants.mode; }},
  SpecKey{"memory", KeyType::kSection, 0, 0, "", "",
    "What to learn about memory accesses.", None},
  SpecKey{"memory.latency_threshold", KeyType::kInteger, 0, 65535, "", "30",
    "Sample loads that take longer than this many cycles, where the processor can; 0: sample no accesses.",
    [](S& s) -> SpecField { return &s.memory.latency_threshold_cycles; }},
  SpecKey{"memory.dtlb", KeyType::kBoolean, 0, 0, "", "true",
    "Tell how sampled accesses fared in the DTLB.",
    [](S& s) -> SpecField { return &s.memory.dtlb; }},
  SpecKey{"memory.trace", KeyType::kChoice, 0, 0, "auto|off", "auto",
    "Record addresses in shadows and simulate the caches.",
    [](S& s) -> SpecField { return &s.memory.trace; }},
  SpecKey{"coherence", KeyType::kSection, 0, 0, "", "",
    "Cache coherence between threads.", None},
  SpecKey{"coherence.enabled", KeyType::kBoolean, 0, 0, "", "true",
    "Find true and false sharing.",
    [](S& s) -> SpecField { return &s.coherence_enabled; }},
  SpecKey{"pages", KeyType::kSection, 0, 0, "", "",
    "Placement of pages on NUMA nodes.", None},
  SpecKey{"pages.enabled", KeyType::kBoolean, 0, 0, "", "true",
    "Compute placement hints.",
    [](S& s) -> SpecField { return &s.pages.enabled; }},
  SpecKey{"pages.apply", KeyType::kBoolean, 0, 0, "", "false",
    "Move pages of the running job according to the hints.",
    [](S& s) -> SpecField { return &s.pages.apply; }},
};
// clang-format on

constexpr std::array<absl::string_view, 3> kUnmeasured = {"memory.trace", "coherence", "pages"};

}  // namespace

std::span<const SpecKey> SpecKeys() {
  return kKeys;
}

const SpecKey* FindSpecKey(absl::string_view path) {
  const auto it = std::find_if(kKeys.begin(), kKeys.end(),
                               [path](const SpecKey& key) { return key.path == path; });
  return it == kKeys.end() ? nullptr : &*it;
}

absl::string_view LeafName(absl::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

absl::string_view SectionName(absl::string_view path) {
  const size_t dot = path.find('.');
  return dot == absl::string_view::npos ? absl::string_view() : path.substr(0, dot);
}

bool IsMeasured(absl::string_view section) {
  return std::find(kUnmeasured.begin(), kUnmeasured.end(), section) == kUnmeasured.end();
}

}  // namespace perfd
