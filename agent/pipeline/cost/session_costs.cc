#include "agent/pipeline/cost/session_costs.h"

#include <algorithm>

#include "agent/pipeline/cost/agent_share.h"

namespace perfd::agent {
namespace {

uint64_t Since(uint64_t before, uint64_t now) {
  return now - std::min(now, before);
}

}  // namespace

void SessionCosts::Begin(int64_t now_ns, const UsedCpu& used) {
  span_begin_ns_ = living_ns_ = now_ns;
  start_watch_.Begin(now_ns);
  before_ = used;
  unseen_looks_ = std::max(unseen_looks_, 1);  // what the agent took to begin, nobody has looked at
}

void SessionCosts::RecordStart(int32_t rank_pid) {
  ++starts_;
  start_watch_.Record(rank_pid);
}

// Of threads that began and ended between two looks, or ended since the last one, nobody knows how long they waited.
bool SessionCosts::WaitsAreKnown(const CpuUse& ranks) const {
  return unseen_looks_ == 0 && !ranks.unknown && ranks.ended == 0 && starts_ <= ranks.appeared;
}

void SessionCosts::RecordAgent(const CostLook& look) {
  const UsedCpu before = std::exchange(before_, look.agent);
  const AgentSpan agent = {.agent_cpu_ns = Since(before.agent_ns, look.agent.agent_ns),
                           .rank_wait_ns = look.ranks.wait_ns,
                           .waits_known = WaitsAreKnown(look.ranks),
                           .shared_cores = prices_.shared_cores};
  starts_ = 0;
  unseen_looks_ = std::max(0, unseen_looks_ - 1);
  const uint64_t lost_ns = LostToAgentNs(agent);
  window_.lost_to_agent_ns += lost_ns;
  const uint64_t own_ns = Since(before.session_ns, look.agent.session_ns);
  const uint64_t steered_ns = own_ns - std::min(own_ns, std::exchange(fixed_ns_, 0));
  // Lost to each part of the agent as to all of it.
  const double share = agent.agent_cpu_ns == 0
                           ? 0
                           : static_cast<double>(lost_ns) / static_cast<double>(agent.agent_cpu_ns);
  const auto steered_lost_ns =
      std::min(lost_ns, static_cast<uint64_t>(share * static_cast<double>(steered_ns)));
  span_.governor.lost_to_agent_ns += steered_lost_ns;
  span_.other_ns += static_cast<int64_t>(lost_ns - steered_lost_ns);
}

std::vector<BusyStarter> SessionCosts::Record(const CostLook& look) {
  // Those that have ended since the last look are not counted any more: rather too short a life
  // than too long. A pause between two programs of the job says nothing about how many live at a
  // time.
  if (look.living > 0) last_living_ = static_cast<uint64_t>(look.living);
  const int64_t last_ns = std::exchange(living_ns_, look.now_ns);
  window_.rank_wall_ns +=
      last_living_ * static_cast<uint64_t>(std::max<int64_t>(0, look.now_ns - last_ns));
  window_.job_cpu_ns += look.ranks.cpu_ns;
  // Of starts the kernel tells events that rest as well.
  const double starts_ns = prices_.start_ns * static_cast<double>(starts_);
  span_.starts_ns += starts_ns / static_cast<double>(std::max<uint64_t>(last_living_, 1));
  window_.following_ns += starts_ns + KernelSamplingNs({.switches = look.ranks.switches,
                                                        .switch_cost_ns = prices_.switch_ns,
                                                        .on_share = look.on_share});
  span_.governor.job_cpu_ns += look.ranks.cpu_ns;
  span_.governor.switches += look.ranks.switches;
  RecordAgent(look);
  return start_watch_.Probe({prices_.start_ns, budget_ratio_}, look.threads, look.read_ns);
}

CostSpan SessionCosts::EndSpan(int64_t now_ns) {
  CostSpan out = std::exchange(span_, {});
  out.governor.wall_ns = now_ns - std::exchange(span_begin_ns_, now_ns);
  out.governor.sample_cost_ns = prices_.sample_ns;
  out.governor.switch_cost_ns = prices_.switch_ns;
  return out;
}

}  // namespace perfd::agent
