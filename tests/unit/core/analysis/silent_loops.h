// tests/unit/core/analysis/silent_loops.h - loops about which perfd has to be silent, each judged as a job; and one that it may name.
//
// Shape    whoever shows verdicts to anybody is tried with all of them: no name, and no gain where `priced` is false.
#ifndef TESTS_UNIT_CORE_ANALYSIS_SILENT_LOOPS_H_
#define TESTS_UNIT_CORE_ANALYSIS_SILENT_LOOPS_H_

#include <string>
#include <utility>
#include <vector>

#include "core/analysis/job_verdict.h"
#include "tests/unit/core/analysis/some_figures.h"

namespace perfd {

struct SilentLoop {
  const char* what;
  Silence why;
  bool priced;  // figures of single variants stand, though the loop has no name
  LoopVerdict verdict;
};

// With classes, a fix and remarks: everything that could say too much.
inline LoopMeasurement MeasuredLoop(int32_t rank = 0) {
  LoopMeasurement loop = Loop({Figures("REF", 1), Figures("LS", 0.98), Figures("FP", 0.3),
                               Figures("DL1", 0.4), Figures("S2L", 0.6), Figures("NO_STORE", 0.5)},
                              rank);
  VariantFigures ref = Figures("REF", 1);
  ref.cycles = 1000;
  loop.trip_classes = {{3, 4, 4, {ref, Figures("LS", 0.97), Figures("FP", 0.3)}},
                       {70, 90, 5, {ref, Figures("LS", 0.99), Figures("FP", 0.2)}}};
  loop.team = 2;
  loop.fidelity = {1, 0.97, 1.03, 15, 40, 4, CachesBefore::kWarm};
  loop.protocol = "warm";
  return loop;
}

inline LoopVerdict JudgedAs(const std::vector<LoopMeasurement>& ranks, const std::string& id) {
  std::vector<const LoopMeasurement*> all;
  for (const LoopMeasurement& rank : ranks) all.push_back(&rank);
  const LoopTime time{.share = 0.5,
                      .share_low = 0.48,
                      .share_high = 0.52,
                      .slowest_share = 0.5,
                      .slowest_node = "n1",
                      .slowest_pid = 100,
                      .slowest_rank = "rank 0 on n1",
                      .rank_times = {10, 9}};
  LoopVerdict verdict = JudgeLoop(std::move(all), time);
  verdict.loop_id = id;
  return verdict;
}

inline std::vector<SilentLoop> SilentLoops(const std::string& id) {
  std::vector<SilentLoop> loops;
  const auto add = [&](const char* what, Silence why, bool priced, auto change) {
    LoopMeasurement loop = MeasuredLoop();
    change(loop);
    loops.push_back({what, why, priced, JudgedAs({loop}, id)});
  };
  const auto slower = [](const char* variant, double value) {
    return [variant, value](LoopMeasurement& loop) {
      for (VariantFigures& f : loop.figures) {
        if (f.variant == variant) f.saturation = {value, value - 0.01, value + 0.01};
      }
      loop.trip_classes.clear();
    };
  };
  add("three times slower in the shadow", Silence::kFidelity, false, [](auto& l) {
    l.fidelity = {3, 2.9, 3.1};
  });
  add("a third of its time in the shadow", Silence::kFidelity, false, [](auto& l) {
    l.fidelity = {0.33, 0.3, 0.36};
  });
  add("somewhat faster in the shadow", Silence::kFidelity, true, [](auto& l) {
    l.fidelity = {0.7, 0.65, 0.75};
  });
  add("threads share lines", Silence::kSharedLines, false, [](auto& l) {
    l.references = {{.instruction = 1, .writes = true, .highest = 8, .shared = true}};
  });
  add("a perfect cache is worse than memory", Silence::kContradictory, false, slower("DL1", 1.4));
  add("less work, far more time", Silence::kContradictory, false, slower("LS", 1.4));
  add("without stores far less than without memory", Silence::kContradictory, false, [&](auto& l) {
    slower("FP", 0.7)(l);
    slower("NO_STORE", 0.3)(l);
  });
  add("a footprint of the first level", Silence::kContradictory, false, [](auto& l) {
    for (VariantFigures& f : l.figures) f.edits = {1, 0, 1, 1};
    l.references = {{.instruction = 1, .reads = true, .lowest = 4096, .highest = 8192}};
    l.trip_classes.clear();
  });
  add("two runs", Silence::kFewRuns, false, [](auto& l) {
    for (VariantFigures& f : l.figures) f.valid_runs = 2;
    l.trip_classes.clear();
  });
  LoopMeasurement other = MeasuredLoop(1);
  std::swap(other.figures[1].saturation, other.figures[2].saturation);
  other.figures[3] = Figures("DL1", 1);
  other.figures.resize(4);
  other.trip_classes.clear();
  loops.push_back({"as many ranks say the opposite", Silence::kRanksDiffer, true,
                   JudgedAs({MeasuredLoop(), other}, id)});
  return loops;
}

// What no silent loop may be called.
inline std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (int i = 1; i < kBoundCount; ++i) names.emplace_back(BoundName(static_cast<Bound>(i)));
  return names;
}

}  // namespace perfd

#endif  // TESTS_UNIT_CORE_ANALYSIS_SILENT_LOOPS_H_
