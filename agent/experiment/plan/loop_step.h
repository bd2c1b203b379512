// agent/experiment/plan/loop_step.h - what a LoopExperiment is told: of its loop, and before each step; and what a step has cost.
//
// Units    ns of wall time.
// Source   design section 6, steps 5 to 8; promise P4.
#ifndef AGENT_EXPERIMENT_PLAN_LOOP_STEP_H_
#define AGENT_EXPERIMENT_PLAN_LOOP_STEP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/shadow/cpu_state.h"
#include "agent/shadow/rank_injector.h"
#include "core/base/address.h"
#include "core/model/identity.h"

namespace perfd::agent {

inline constexpr double kShortNs =
    2'000;  // an instance below is better measured with others in a row (loop_chain.cc)
inline constexpr double kShadowShare = 0.7;  // of the longest pause; the rest is for surprises

struct LoopSetup {
  std::string profile_id;
  std::string node;
  RankInfo rank;
  std::string loop_id;
  std::string location_key;
  int32_t loop_to_inject = 0;  // index in the injector
  LoadBias bias{};
  std::vector<std::string> asked;  // canonical names of the request
  int32_t repetitions = 31;
  int64_t shadow_ns = 0;    // longest pause
  double ticks_per_ns = 0;  // of the TSC
  bool recovery = false;    // the request allows recovery mode
  // Of each way of emptying caches (EvictBytesOfThisCpu); 0: not known.
  std::array<uint64_t, kEvictLevels> evict_bytes{};
};

// What a step may use.
struct StepRoom {
  int64_t credit_ns = 0;   // wall time that may be added now
  int64_t timeout_ns = 0;  // for the loop to be entered; at most left_ns
  // Within a window of a lease (lease_gate.h): when the loop may be armed, CLOCK_MONOTONIC; 0: at once.
  int64_t arm_from_ns = 0;
  int64_t arm_until_ns = 0;
  uint64_t generation = 0;      // all nodes let as many entries pass; 0: drawn for this rank alone
  int64_t most_countdown = 29;  // entries of a thread
  ShadowPrediction prediction;
  std::optional<ShadowPrediction> trimmed =
      std::nullopt;             // without the memory outside the footprint, if that helps
  bool trim = false;            // `prediction` is that one
  int64_t left_ns = INT64_MAX;  // until everything is to be taken out
};

struct StepCost {
  int64_t pause_begin_ns = 0;  // CLOCK_MONOTONIC; 0: nothing stood still
  int64_t pause_ns = 0;
  int64_t later_ns = 0;      // estimated: faults afterwards
  int64_t predicted_ns = 0;  // what this step was expected to cost
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_LOOP_STEP_H_
