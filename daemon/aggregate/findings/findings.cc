#include "daemon/aggregate/findings/findings.h"

namespace perfd::daemon {

void Findings::Add(const Window& window, const std::vector<uint32_t>& place) {
  for (const LoopMeasurement& loop : window.findings.measurements) measured_.Add(loop);
  for (const AuditEntry& entry : window.audit) measured_.AddAudit(entry);
  measured_.AddLeased(window.node, window.leased.pauses, window.leased.dropped);
  memory_.Add(window, place);
}

void Findings::Absorb(const FindingsState& state, const std::vector<uint32_t>& place) {
  measured_.Absorb(state.measured);
  memory_.Absorb(state.memory, place);
}

FindingsState Findings::State(const std::vector<uint32_t>& place) const {
  return {measured_.State(), memory_.State(place)};
}

void Findings::Freeze() {
  measured_.Freeze();
  memory_.Freeze();
}

}  // namespace perfd::daemon
