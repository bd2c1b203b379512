#include "core/analysis/hot/hot_phases.h"

#include <algorithm>
#include <map>

#include "core/analysis/hot/hot_set.h"

namespace perfd {
namespace {

class Decision {
 public:
  Decision(std::span<const LoopHeat> heat, std::vector<PhaseLoop> before, const PhaseLimits& limits,
           int64_t now_ns)
      : heat_(heat), limits_(limits), now_ns_(now_ns) {
    step_.loops = std::move(before);
    for (const LoopHeat& loop : heat_) {
      by_id_[loop.id] = &loop;
      recent_ns_ += loop.recent_ns;
      recent_samples_ += loop.recent_samples;
    }
  }

  PhaseStep Step() {
    if (recent_samples_ < kLeastRecent) {
      // Nobody knows what was hot in this time.
      for (PhaseLoop& loop : step_.loops) loop.cold_since_ns = 0;
      return std::move(step_);
    }
    Cool();
    for (const size_t candidate : Candidates()) {
      if (!MayEnter(heat_[candidate].id) || !MakeRoom()) continue;
      Enter(heat_[candidate].id);
    }
    return std::move(step_);
  }

 private:
  double Share(uint64_t ns) const {
    return recent_ns_ == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(recent_ns_);
  }
  const LoopHeat* Find(const std::string& id) const {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : it->second;
  }
  PhaseLoop* Known(const std::string& id) {
    const auto it = std::find_if(step_.loops.begin(), step_.loops.end(),
                                 [&](const PhaseLoop& loop) { return loop.id == id; });
    return it == step_.loops.end() ? nullptr : &*it;
  }

  void Cool() {
    for (PhaseLoop& loop : step_.loops) {
      const LoopHeat* heat = Find(loop.id);
      const bool cold = heat == nullptr || Share(heat->recent_ns) < kLeaveShare;
      if (!cold)
        loop.cold_since_ns = 0;
      else if (loop.cold_since_ns == 0)
        loop.cold_since_ns = now_ns_;
      if (loop.active && ColdFor(loop) >= kColdNs) GiveUp(loop);
    }
  }

  int64_t ColdFor(const PhaseLoop& loop) const {
    return loop.cold_since_ns == 0 ? -1 : now_ns_ - loop.cold_since_ns;
  }

  void GiveUp(PhaseLoop& loop) {
    loop.active = false;
    step_.given_up.push_back(loop.id);
  }

  std::vector<size_t> HotBy(uint64_t LoopHeat::*ns) const {
    std::vector<LoopWeight> weights;
    for (const LoopHeat& loop : heat_) weights.push_back({loop.*ns});
    return HotSet(weights, limits_.coverage_ratio, limits_.max_loops);
  }

  // Heaviest of this phase first.
  std::vector<size_t> Candidates() const {
    std::vector<size_t> found;
    const auto add = [&](const std::vector<size_t>& hot, double least) {
      for (const size_t i : hot) {
        const LoopHeat& loop = heat_[i];
        if (loop.settled || loop.recent_samples < kLeastOwn || Share(loop.recent_ns) < least)
          continue;
        if (std::find(found.begin(), found.end(), i) == found.end()) found.push_back(i);
      }
    };
    add(HotBy(&LoopHeat::recent_ns), kEnterShare);
    add(HotBy(&LoopHeat::whole_ns), kReenterShare);
    std::stable_sort(found.begin(), found.end(),
                     [&](size_t a, size_t b) { return heat_[a].recent_ns > heat_[b].recent_ns; });
    return found;
  }

  bool MayEnter(const std::string& id) {
    if (const PhaseLoop* known = Known(id); known != nullptr)
      return !known->active && known->returns < kMostReturns;
    return static_cast<int32_t>(step_.loops.size()) < MostLoops(limits_.max_loops);
  }

  // What is settled needs its place least, then what has been cold for longest.
  bool MakeRoom() {
    int32_t active = 0;
    PhaseLoop* least = nullptr;
    int64_t least_rank = 0;
    for (PhaseLoop& loop : step_.loops) {
      if (!loop.active) continue;
      ++active;
      const LoopHeat* heat = Find(loop.id);
      const bool settled = heat != nullptr && heat->settled;
      const int64_t rank = settled ? INT64_MAX : ColdFor(loop);
      if (rank < kPressedNs || rank <= least_rank) continue;
      least_rank = rank;
      least = &loop;
    }
    if (active < limits_.max_loops) return true;
    if (least == nullptr) return false;
    GiveUp(*least);
    return true;
  }

  void Enter(const std::string& id) {
    step_.taken.push_back(id);
    if (PhaseLoop* known = Known(id); known != nullptr) {
      known->active = true;
      known->cold_since_ns = 0;
      ++known->returns;
      return;
    }
    step_.loops.push_back({.id = id});
  }

  const std::span<const LoopHeat> heat_;
  const PhaseLimits limits_;
  const int64_t now_ns_;
  std::map<std::string, const LoopHeat*> by_id_;
  uint64_t recent_ns_ = 0;
  uint64_t recent_samples_ = 0;
  PhaseStep step_;
};

}  // namespace

int32_t MostLoops(int32_t max_loops) {
  return std::max(max_loops, std::min(3 * max_loops, kMostSites));
}

PhaseStep NextPhase(std::span<const LoopHeat> heat, std::vector<PhaseLoop> before,
                    const PhaseLimits& limits, int64_t now_ns) {
  return Decision(heat, std::move(before), limits, now_ns).Step();
}

}  // namespace perfd
