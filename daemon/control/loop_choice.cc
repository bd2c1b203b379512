#include "daemon/control/loop_choice.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace perfd::daemon {
namespace {

constexpr int64_t kAgainNs = 2 * kNsPerSecond;  // between two choices

uint64_t RevisionAt(Moment now) {
  return static_cast<uint64_t>(std::max<int64_t>(1, now.unix_ns));
}

}  // namespace

void LoopChoice::AskLater(Moment now) {
  first_ns_ = now.monotonic_ns + kAgainNs;
}

void LoopChoice::Looked(Moment now) {
  heat_ns_ = now.monotonic_ns + kAgainNs;
}

void LoopChoice::Begin(std::vector<MeasureLoop> loops, Moment now) {
  loops_ = std::move(loops);
  revision_ = RevisionAt(now);
  Looked(now);
  phases_.clear();
  for (const MeasureLoop& loop : loops_) phases_.push_back({.id = loop.loop_id});
}

bool LoopChoice::ChooseAgain(const std::vector<HeatedLoop>& loops, const HotspotSpec& spec,
                             Moment now) {
  Looked(now);
  std::vector<LoopHeat> heat;
  std::map<std::string, const HeatedLoop*> by_id;
  for (const HeatedLoop& loop : loops) {
    heat.push_back(loop.heat);
    by_id[loop.heat.id] = &loop;
  }
  PhaseStep step =
      NextPhase(heat, phases_, {.coverage_ratio = spec.coverage_ratio, .max_loops = spec.max_loops},
                now.monotonic_ns);
  phases_ = std::move(step.loops);
  if (step.taken.empty() && step.given_up.empty()) return false;
  std::vector<const HeatedLoop*> active;
  for (const PhaseLoop& phase : phases_) {
    const auto it = by_id.find(phase.id);
    if (phase.active && it != by_id.end()) active.push_back(it->second);
  }
  std::stable_sort(active.begin(), active.end(), [](const HeatedLoop* a, const HeatedLoop* b) {
    return a->heat.recent_ns > b->heat.recent_ns;
  });
  loops_.clear();
  for (const HeatedLoop* loop : active) loops_.push_back(loop->loop);
  revision_ = std::max(revision_ + 1, RevisionAt(now));
  return true;
}

std::vector<LoopLearning> LoopChoice::KnowledgeOf(const std::vector<HeatedLoop>& loops) const {
  std::map<std::string, const LoopLearning*> by_id;
  for (const HeatedLoop& loop : loops) by_id[loop.heat.id] = &loop.knowledge;
  std::vector<LoopLearning> known;
  for (const MeasureLoop& loop : loops_) {
    const auto it = by_id.find(loop.loop_id);
    known.push_back(it == by_id.end() ? LoopLearning() : *it->second);
  }
  return known;
}

}  // namespace perfd::daemon
