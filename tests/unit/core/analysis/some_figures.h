// tests/unit/core/analysis/some_figures.h - measurements of a loop, made up.
#ifndef TESTS_UNIT_CORE_ANALYSIS_SOME_FIGURES_H_
#define TESTS_UNIT_CORE_ANALYSIS_SOME_FIGURES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/model/loop_measurement.h"

namespace perfd {

inline VariantFigures Figures(const char* variant, double value, double half = 0.01,
                              int32_t thread = kTeam) {
  VariantFigures f;
  f.variant = variant;
  f.base = "REF";
  f.thread = thread;
  f.saturation = {value, value - half, value + half};
  f.valid_runs = 31;
  f.edits.changed = 1;
  f.shadows = 5;
  return f;
}

// Ran, and none of its runs counts.
inline VariantFigures Void(const char* variant) {
  VariantFigures figures = Figures(variant, 0, 0);
  figures.invalid_runs = figures.valid_runs;
  figures.valid_runs = 0;
  return figures;
}

inline LoopMeasurement Loop(std::vector<VariantFigures> figures, int32_t rank = 0) {
  LoopMeasurement loop;
  loop.node = "n1";
  loop.rank = rank;
  loop.pid = 100 + rank;
  loop.loop_id = "abc";
  loop.state = MeasureState::kMeasured;
  loop.figures = std::move(figures);
  return loop;
}

inline std::string Joined(const std::vector<std::string>& names) {
  return absl::StrJoin(names, " ");
}

}  // namespace perfd

#endif  // TESTS_UNIT_CORE_ANALYSIS_SOME_FIGURES_H_
