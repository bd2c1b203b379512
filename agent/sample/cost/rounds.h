// agent/sample/cost/rounds.h - what something costs, from short rounds without it and with it in turns.
//
// Shape    CostFromRounds(what, without, with) -> ns, never negative. A round returns ns per time that it was done; negative: it did
//          not end in time, and does not count.
// Method   nearly the quickest of each kind: nothing makes a round quicker, much makes one slower. Medians are three times too high
//          where a host lends the CPU away; the very quickest may come of a clock that jumps.
// Bounds   no round begins after a second.
// Errors   kDeadlineExceeded, with `what`: none of a kind ended in time; else as `with`.
// Threads  any; blocks the caller.
#ifndef AGENT_SAMPLE_COST_ROUNDS_H_
#define AGENT_SAMPLE_COST_ROUNDS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

// Of `count` rounds of each kind.
absl::StatusOr<double> MeasureCost(absl::string_view what, int count,
                                   absl::FunctionRef<double()> without,
                                   absl::FunctionRef<absl::StatusOr<double>()> with);

// The pure part.
absl::StatusOr<double> CostFromRounds(absl::string_view what, std::vector<double> without,
                                      std::vector<double> with);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_COST_ROUNDS_H_
