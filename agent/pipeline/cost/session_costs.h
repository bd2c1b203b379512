// agent/pipeline/cost/session_costs.h - what a session costs its job, added up for the governor's looks and for windows.
//
// Shape    Begin; Record at each look at the ranks, the other Record* as it is seen; EndSpan at each look of the governor, EndWindow
//          at the end of each window. Spans and windows add up to the same.
// Rules    what ranks lost to the agent is settled at each look: in full where threads may have waited unseen, and from
//          the begin to the first look.
// Units    ns.
// Threads  thread-compatible.
// Source   core/analysis/budget_governor.h, agent/pipeline/cost/agent_share.h.
#ifndef AGENT_PIPELINE_COST_SESSION_COSTS_H_
#define AGENT_PIPELINE_COST_SESSION_COSTS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "agent/pipeline/cost/start_watch.h"
#include "agent/wall/process_time.h"
#include "core/analysis/budget_governor.h"

namespace perfd::agent {

// Of the node and the event in use.
struct SamplingPrices {
  double sample_ns = 0;      // of taking one sample
  double switch_ns = 0;      // of a switch of a sampled thread
  double start_ns = 0;       // of a thread that a sampled one starts
  bool shared_cores = true;  // CPUs may be one core
};

// Since they began.
struct UsedCpu {
  uint64_t session_ns = 0;  // the session's thread, and unwinding for it
  uint64_t agent_ns = 0;    // all of the agent
};

struct CostSpan {
  GovernorSpan governor;  // without what the caller knows: ranks, on_share, budget and frequencies
  // Lost to the rest of the agent: resolving, measuring, sending, readers, the tracer.
  int64_t other_ns = 0;
  double starts_ns = 0;  // what the threads cost that ranks started, in the mean of the ranks
};

struct WindowCosts {
  uint64_t job_cpu_ns = 0;
  uint64_t rank_wall_ns = 0;  // ranks lived so long, summed over them
  uint64_t lost_to_agent_ns = 0;
  double following_ns =
      0;  // what the switches of sampled threads cost, and the threads that they start
};

// What was seen at a look at the ranks.
struct CostLook {
  CpuUse ranks;  // since the look before
  UsedCpu agent;
  int living = 0;
  double on_share = 1;  // of the time since the look before events were on
  int64_t now_ns = 0;
  int64_t read_ns = 0;                  // records up to then have been read
  std::map<int32_t, uint64_t> threads;  // that each rank has, by its pid
};

class SessionCosts {
 public:
  void SetPrices(const SamplingPrices& prices) { prices_ = prices; }
  const SamplingPrices& prices() const { return prices_; }
  void Begin(int64_t now_ns, const UsedCpu& used);
  // What ranks may lose, of elapsed time.
  void SetBudget(double ratio) { budget_ratio_ = ratio; }
  void RecordSample() { ++span_.governor.samples; }
  // A process of the rank started a thread or a process, whether it is seen at the next look or not.
  void RecordStart(int32_t rank_pid);
  // Threads can have begun that nothing told of.
  void RecordUnseen() { unseen_looks_ = kUnseenLooks; }
  // Of what the session's thread uses so much is nothing that the governor could steer.
  void RecordFixed(uint64_t ns) { fixed_ns_ += ns; }
  // Ranks whose starts cost more than the budget, each once.
  std::vector<BusyStarter> Record(const CostLook& look);

  CostSpan EndSpan(int64_t now_ns);
  WindowCosts EndWindow() { return std::exchange(window_, {}); }

 private:
  // Until a rescan has given every thread an event, those that it begins are told of by nobody.
  static constexpr int kUnseenLooks = 2;

  bool WaitsAreKnown(const CpuUse& ranks) const;
  void RecordAgent(const CostLook& look);

  SamplingPrices prices_;
  double budget_ratio_ = 0;
  int64_t span_begin_ns_ = 0;
  int64_t living_ns_ = 0;     // when living ranks were counted last
  uint64_t last_living_ = 0;  // and how many, if any
  uint64_t starts_ = 0;       // since the last look
  StartWatch start_watch_;
  int unseen_looks_ = 0;
  uint64_t fixed_ns_ = 0;  // since the last look
  UsedCpu before_;         // at the last look
  CostSpan span_;
  WindowCosts window_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_COST_SESSION_COSTS_H_
