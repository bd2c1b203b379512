#include "agent/sample/cost/start_cost.h"

#include <pthread.h>

#include "agent/sample/cost/rounds.h"
#include "agent/sample/cost/switch_cost.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kStarts = 2;  // of a round
// Of each kind: many short ones, because half of them are disturbed where others run.
constexpr int kRounds = 100;

void* EndAtOnce(void* argument) {
  return argument;
}

// ns per start; negative: no thread can be started.
double Round() {
  const SystemClock clock;
  const int64_t begin_ns = clock.MonotonicNs();
  for (int i = 0; i < kStarts; ++i) {
    pthread_t thread = {};
    if (::pthread_create(&thread, nullptr, EndAtOnce, nullptr) != 0) return -1;
    ::pthread_join(thread, nullptr);
  }
  return static_cast<double>(clock.MonotonicNs() - begin_ns) / kStarts;
}

absl::StatusOr<double> RoundWith(const ChosenEvent& event) {
  const PerfOpenResult opened = OpenPerfEvent(event.attr, {.id = 0});
  if (!opened.fd.valid())
    return PerfOpenError(opened.error, event.name, "a thread of the agent (calibration)");
  return Round();
}

}  // namespace

absl::StatusOr<double> MeasureStartCost(const ChosenEvent& event) {
  if (Round() < 0) return absl::ResourceExhaustedError("no thread can be started");
  ASSIGN_OR_RETURN(const double near, MeasureCost("a start of a thread", kRounds, Round,
                                                  [&event] { return RoundWith(event); }));
  return kFarFactor * near;
}

}  // namespace perfd::agent
