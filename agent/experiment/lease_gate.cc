#include "agent/experiment/lease_gate.h"

#include <algorithm>
#include <vector>

namespace perfd::agent {
namespace {

// Until the daemon has seen how well pauses overlap: not too sure of it.
constexpr double kFirstCharge = 2;

}  // namespace

double LeaseGate::Charge() const {
  if (!active()) return 1;
  const double told = lease_table_ == nullptr ? 0 : lease_table_->charge(profile_id_);
  const double nodes = static_cast<double>(lease_->nodes);
  return std::clamp(told > 0 ? told : kFirstCharge, 1.0, std::max(1.0, nodes));
}

// The order's own reading until the board has a later one.
ClockReading LeaseGate::Clock() const {
  const auto newer = lease_table_ == nullptr ? std::nullopt : lease_table_->clock();
  return newer.has_value() && newer->here_ns >= lease_->clock.here_ns ? *newer : lease_->clock;
}

std::optional<LeaseTurn> LeaseGate::NextTurn(int64_t now_ns, size_t loops,
                                             const EntryNs& entry_ns) const {
  if (!active()) return std::nullopt;
  const ClockReading clock = Clock();
  if (!Trusted(clock, now_ns)) return std::nullopt;
  std::vector<int> levels(loops, -1);
  for (size_t loop = 0; loop < loops; ++loop) {
    const std::optional<int64_t> entry = entry_ns(loop);
    if (!entry.has_value()) continue;
    const double wait = kEntriesAwaited * static_cast<double>(*entry);
    levels[loop] = LevelFor(*lease_, static_cast<int64_t>(std::min(wait, 1e15)));
  }
  const uint64_t first = NextGeneration(*lease_, JobTime(clock, now_ns) + kReadyNs);
  for (uint64_t generation = first; generation <= first + (uint64_t{1} << kMostLevel);
       ++generation) {
    const auto loop = LoopOfGeneration(generation, loops, [&](size_t candidate) {
      return levels[candidate] >= 0 && generation % (uint64_t{1} << levels[candidate]) == 0;
    });
    if (!loop.has_value()) continue;
    const LeaseWindow window = WindowOf(*lease_, generation, levels[*loop]);
    return LeaseTurn{
        *loop,
        {generation, HereTime(clock, window.begin_ns), HereTime(clock, window.end_ns) - kDisarmNs,
         window.begin_ns, window.end_ns, clock}};
  }
  return std::nullopt;
}

std::optional<LeasedPause> LeaseGate::Record(const LeaseSlot& slot, int64_t begin_ns,
                                             int64_t end_ns) {
  const int64_t begin = JobTime(slot.clock, begin_ns);
  if (begin < slot.begin_job_ns || begin > slot.end_job_ns || end_ns < begin_ns)
    return std::nullopt;
  return LeasedPause{slot.generation, begin - slot.begin_job_ns,
                     std::min(end_ns - begin_ns, kLongestPauseNs), ErrorAt(slot.clock, begin_ns)};
}

void KeepWithin(const LeaseSlot& slot, int64_t entry_ns, StepRoom& room) {
  room.arm_from_ns = slot.begin_ns;
  room.arm_until_ns = slot.end_ns;
  room.timeout_ns = std::min(room.timeout_ns, slot.end_ns - slot.begin_ns);
  room.generation = slot.generation;
  // The same on all nodes where they can: entries are as long on each, or nearly.
  const int64_t half = (slot.end_ns - slot.begin_ns) / 2;
  room.most_countdown =
      std::clamp<int64_t>(half / std::max<int64_t>(1, entry_ns), 1, room.most_countdown);
}

}  // namespace perfd::agent
