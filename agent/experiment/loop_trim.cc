// When a LoopExperiment leaves memory out of its shadows, and when it gives that up.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/experiment/loop_experiment.h"

namespace perfd::agent {
namespace {

constexpr int32_t kMostMisses = 2;  // after the first one whole mappings are kept
constexpr int32_t kMostTrimFailures = 3;
constexpr int32_t kMostGuessFailures = 2;
// Before anything is traced: an instance touches no more than its time allows, around what the registers point to at its entry.
constexpr double kMostTouchedPerNs = 16;  // bytes, each for the first time
constexpr double kMostGuessed = 4 << 20;  // more around each pointer leaves too little out

}  // namespace

std::optional<Footprint> LoopExperiment::footprint() const {
  Footprint footprint;
  if (stage_ == Stage::kProbe) {
    // What a row of instances touches lies where the code between them finds it, not around today's registers.
    const double bytes = kMostTouchedPerNs * InstanceNs();
    if (in_situ_ || instances_ > 0 || guess_failures_ >= kMostGuessFailures || bytes <= 0 ||
        bytes > kMostGuessed)
      return std::nullopt;
    footprint.around = static_cast<uint64_t>(bytes);
    return footprint;
  }
  // Recovery mode forks nothing.
  if (stage_ != Stage::kMeasure || in_situ_ || trace_.blind || trim_misses_ >= kMostMisses ||
      trim_failures_ >= kMostTrimFailures)
    return std::nullopt;
  footprint.whole_areas = trim_misses_ > 0;
  for (const auto& [address, bytes] : trace_.touched)
    footprint.ranges.push_back({address, address + std::min(bytes, UINT64_MAX - address)});
  return footprint;
}

std::string LoopExperiment::TrimRecord() const {
  if (stage_ == Stage::kProbe && trim_record_.empty())
    return "what of the rank's memory could be left out is known only after a first shadow";
  if (stage_ == Stage::kProbe) return "no memory is left out: " + trim_record_;
  if (stage_ != Stage::kMeasure) return "";
  if (trace_.blind)
    return "no memory is left out: the addresses of one of its instructions are not known";
  if (trim_misses_ >= kMostMisses)
    return "no memory is left out: the loop touches other memory each time";
  return trim_record_.empty() ? "" : "no memory is left out: " + trim_record_;
}

// Where memory can be left out it is worth it (RankExperiments asks): what is saved buys further shadows.
StepRoom LoopExperiment::Trimmed(const StepRoom& room) {
  StepRoom used = room;
  if (!room.trimmed) return used;
  used.prediction = *room.trimmed;
  used.trim = true;
  return used;
}

bool LoopExperiment::ForkIsTooLong(const StepRoom& room) {
  const int64_t longest = LongestNs();
  if (setup_.shadow_ns <= 0 || room.prediction.fork_ns <= longest) return false;
  const double fork_ms = static_cast<double>(room.prediction.fork_ns) / 1e6;
  std::string reason =
      absl::StrFormat("a fork of this rank takes %.0f ms; that needs budget.shadow of %.0f ms",
                      fork_ms, fork_ms / kShadowShare);
  if (const std::string note = TrimRecord(); !note.empty()) reason += " (" + note + ")";
  LeaveUnfinished(stage_ == Stage::kProbe ? MeasureState::kRefused : MeasureState::kOpen, reason);
  return true;
}

// Aborted is what injectors say when they could not leave memory out.
bool LoopExperiment::TrimFailed(const absl::Status& status) {
  if (!absl::IsAborted(status)) return false;
  RecordTrim(status);
  ++(stage_ == Stage::kProbe ? guess_failures_ : trim_failures_);
  return true;
}

// Such a shadow tells nothing about the variants.
bool LoopExperiment::MissedMemory(const ShadowAnswer& answer) {
  trim_failures_ = 0;
  if (!answer.missed_memory) return false;
  if (stage_ == Stage::kProbe)
    guess_failures_ = kMostGuessFailures;  // the next look forks all of it
  else
    ++trim_misses_;
  return true;
}

}  // namespace perfd::agent
