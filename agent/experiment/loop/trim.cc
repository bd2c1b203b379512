#include "agent/experiment/loop/trim.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr int32_t kMostMisses = 2;  // after the first one whole mappings are kept
constexpr int32_t kMostTrimFailures = 3;
constexpr int32_t kMostGuessFailures = 2;
// Before anything is traced: an instance touches no more than its time allows, around what the registers point to at its entry.
constexpr double kMostTouchedPerNs = 16;  // bytes, each for the first time
constexpr double kMostGuessed = 4 << 20;  // more around each pointer leaves too little out

std::optional<Footprint> Guess(const LoopKnowledge& known) {
  // What a batch of instances touches lies where the code between them finds it, not around today's registers.
  const double bytes = kMostTouchedPerNs * InstanceNs(known);
  if (known.batch.instances > 0 || known.trim.guess_failures >= kMostGuessFailures || bytes <= 0 ||
      bytes > kMostGuessed)
    return std::nullopt;
  Footprint footprint;
  footprint.around = static_cast<uint64_t>(bytes);
  return footprint;
}

// Recovery mode forks nothing.
bool ForksProbed(Phase phase) {
  return StageOf(phase) == Stage::kMeasure && phase != Phase::kInSitu;
}

}  // namespace

std::optional<Footprint> FootprintOf(const LoopKnowledge& known, Phase phase) {
  if (phase == Phase::kProbe) return Guess(known);
  if (!ForksProbed(phase) || known.probe.trace.blind || known.trim.misses >= kMostMisses ||
      known.trim.failures >= kMostTrimFailures)
    return std::nullopt;
  Footprint footprint;
  footprint.whole_areas = known.trim.misses > 0;
  for (const auto& [address, bytes] : known.probe.trace.touched)
    footprint.ranges.push_back({address, address + std::min(bytes, UINT64_MAX - address)});
  return footprint;
}

std::string TrimRecord(const LoopKnowledge& known, Phase phase) {
  constexpr char kNone[] = "no memory is left out: ";
  const std::string& record = known.trim.record;
  if (phase == Phase::kProbe && record.empty())
    return "what of the rank's memory could be left out is known only after a first shadow";
  if (phase == Phase::kProbe) return kNone + record;
  if (StageOf(phase) != Stage::kMeasure) return "";
  if (known.probe.trace.blind)
    return absl::StrCat(kNone, "the addresses of one of its instructions are not known");
  if (known.trim.misses >= kMostMisses)
    return absl::StrCat(kNone, "the loop touches other memory each time");
  return record.empty() ? "" : kNone + record;
}

void LearnTrimFailure(LoopKnowledge& known, const absl::Status& failure) {
  known.trim.record = std::string(failure.message());
  ++(IsProbed(known) ? known.trim.failures : known.trim.guess_failures);
}

bool LearnMissedMemory(LoopKnowledge& known, const ShadowAnswer& answer) {
  known.trim.failures = 0;
  if (!answer.missed_memory) return false;
  if (IsProbed(known))
    ++known.trim.misses;
  else
    known.trim.guess_failures = kMostGuessFailures;  // the next probe forks all of it
  return true;
}

}  // namespace perfd::agent
