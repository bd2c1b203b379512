// LoopExperiment: what the caches hold before each run. Warm first: back to back, everything is where the run before left it.
// Where the loop takes longer in the rank itself, one shadow runs REF after each way of emptying caches, and what comes nearest
// to live is kept.
#include <algorithm>
#include <cmath>

#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

constexpr double kDistantFidelity = 0.10;  // farther from live than this: try the other protocols
constexpr double kDistantBatch =
    0.20;  // the same of a chain: short instances scatter more, live above all
constexpr double kWorthEvicting =
    0.05;                              // nearer than what evicts less, or it is not worth its time
constexpr double kMostEvicting = 100;  // instances that one eviction may cost ...
constexpr double kUnlike = 0.69;       // ... unless warm is half of live (ln 2), or less
constexpr double kLineBytes = 64;
constexpr int kRunsEach = 2;  // the first one also brings the buffer in: the last one counts

// A walk through the buffer of each level; it differs between machines, and the budget learns what it really took.
constexpr int64_t kEvictNs[kEvictLevels] = {0, 25'000, 1'000'000, 4'000'000};

// Of the thread in the middle, as live instances are timed; 0: a thread has no result.
double MiddleCycles(const ShadowAnswer& answer, size_t run) {
  std::vector<double> cycles;
  for (const ShadowRun& result : answer.runs) {
    if (static_cast<size_t>(result.run) != run) continue;
    if (!result.ok) return 0;
    cycles.push_back(static_cast<double>(result.cycles));
  }
  if (cycles.empty()) return 0;
  std::sort(cycles.begin(), cycles.end());
  return cycles[cycles.size() / 2];
}

}  // namespace

bool LoopExperiment::NeedsProtocol() const {
  if (protocol_chosen_ || in_situ_ || stage_ != Stage::kMeasure || runs_.empty()) return false;
  if (live_cycles_ <= 0 || run_cycles_ <= 0) return false;
  const double distant = instances_ > 0 ? kDistantBatch : kDistantFidelity;
  return std::log(live_cycles_ / run_cycles_) > distant && Protocols().size() > 1;
}

int64_t LoopExperiment::EvictNs(Evict level) const {
  return kEvictNs[static_cast<size_t>(level)];
}

// What one run of a thread reads and writes at most, in lines of the caches; 0: not known.
uint64_t LoopExperiment::SweptBytes() const {
  if (trips_.empty() || instances_ > 0) return 0;
  uint64_t touched = 0;
  for (const auto& [address, bytes] : trace_.touched) touched += bytes;
  const double lines =
      static_cast<double>(trips_.back()) * static_cast<double>(trace_.references.size());
  const double each = static_cast<double>(touched) / std::max(1, entry_count_.team);
  return static_cast<uint64_t>(std::min(each, lines * kLineBytes));
}

// Emptying all caches takes far longer than a short instance: only where nothing less can be like live. A run that goes over
// more than emptying a level does leaves that level without anything of before by itself.
std::vector<Evict> LoopExperiment::Protocols() const {
  const bool unlike = std::log(live_cycles_ / run_cycles_) >= kUnlike;
  const uint64_t swept = SweptBytes();
  std::vector<Evict> levels = {Evict::kNothing};
  for (const Evict level : {Evict::kFirst, Evict::kSecond, Evict::kAll}) {
    const uint64_t bytes = setup_.evict_bytes[static_cast<size_t>(level)];
    const bool empty_anyway = bytes > 0 && swept >= bytes;
    const bool payable = level == Evict::kFirst || unlike ||
                         kMostEvicting * InstanceNs() >= static_cast<double>(EvictNs(level));
    if (payable && !empty_anyway) levels.push_back(level);
  }
  return levels;
}

std::vector<RunSpec> LoopExperiment::ProtocolRuns() const {
  const bool restore = trace_.in_situ;
  std::vector<RunSpec> runs;
  if (Learns()) runs.push_back({.variant = kRefIndex, .restore = restore, .learn = true});
  for (int i = 0; i < kWarmUps; ++i) runs.push_back({.variant = kRefIndex, .restore = restore});
  for (const Evict level : Protocols()) {
    for (int i = 0; i < kRunsEach; ++i)
      runs.push_back({.variant = kRefIndex, .evict = level, .restore = restore});
  }
  return runs;
}

int64_t LoopExperiment::ProtocolNs() const {
  int64_t ns = Learns() ? 2 * RestoreNs() : 0;
  for (const RunSpec& run : ProtocolRuns()) ns += RunNs() + EvictNs(run.evict);
  return ns;
}

StepCost LoopExperiment::ChooseProtocol(RankInjector& injector, const StepRoom& room) {
  std::vector<RunSpec> runs = ProtocolRuns();
  Place(runs);
  ShadowAnswer answer;
  StepCost cost = RunShadow(injector, room, runs, trace_.in_situ, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  cost.predicted_ns = FixedCost(room.prediction) + ProtocolNs();
  if (room.trim && MissedMemory(answer)) return cost;
  if (!LeftEarly(answer, runs)) TakeNearest(answer, runs);
  return cost;
}

// Within one shadow runs differ by the caches only; how warm runs compare with live is known from all instances so far.
void LoopExperiment::TakeNearest(const ShadowAnswer& answer, const std::vector<RunSpec>& runs) {
  protocol_chosen_ = true;
  double warm = 0, nearest = 0, factor = 1;
  Evict best = Evict::kNothing;
  for (size_t run = 0; run < runs.size(); ++run) {
    const bool last = run + 1 == runs.size() || runs[run + 1].evict != runs[run].evict;
    const double cycles = last ? MiddleCycles(answer, run) : 0;
    if (cycles <= 0) continue;
    if (runs[run].evict == Evict::kNothing) warm = cycles;
    if (warm <= 0) return;
    const double gap = std::abs(std::log(run_cycles_ * cycles / warm / live_cycles_));
    if (runs[run].evict != Evict::kNothing && gap > nearest - kWorthEvicting) continue;
    nearest = gap;
    factor = cycles / warm;
    best = runs[run].evict;
  }
  if (best == Evict::kNothing) return;
  evict_ = best;
  run_cycles_ *= factor;
  ForgetRuns();
}

}  // namespace perfd::agent
