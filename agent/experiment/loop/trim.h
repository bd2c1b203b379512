// agent/experiment/loop/trim.h - when memory is left out of a loop's shadows, and when that is given up.
//
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_LOOP_TRIM_H_
#define AGENT_EXPERIMENT_LOOP_TRIM_H_

#include <optional>
#include <string>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

// What shadows need of the rank's memory. None: not known yet, or it did not suffice.
std::optional<Footprint> FootprintOf(const LoopKnowledge& known, Phase phase);
// Why memory is not left out, for people; empty: it is, or nothing is forked.
std::string TrimRecord(const LoopKnowledge& known, Phase phase);
// Learns that it could not be left out, or whether a shadow without it missed something: such a one tells nothing else.
void LearnTrimFailure(LoopKnowledge& known, const absl::Status& failure);
bool LearnMissedMemory(LoopKnowledge& known, const ShadowAnswer& answer);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_TRIM_H_
