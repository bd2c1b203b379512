// agent/pipeline/session_windows.h - the windows of one session: samples are counted, a window closes, the resolver gets it.
//
// Shape    Begin; count into builder(); Close when IsDue; Submit now and then; at the end AwaitAll.
// Units    times in ns.
// Threads  thread-bound (the session's thread).
// Loss     kMaxPending windows wait for room at the resolver; older ones are counted as queue_full in the next one.
#ifndef AGENT_PIPELINE_SESSION_WINDOWS_H_
#define AGENT_PIPELINE_SESSION_WINDOWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "agent/pipeline/cost/session_costs.h"
#include "agent/pipeline/experimenter.h"
#include "agent/pipeline/read_budget.h"
#include "agent/pipeline/resolver.h"
#include "agent/pipeline/window_delivery.h"
#include "core/base/clock.h"
#include "core/model/profile_spec.h"
#include "core/model/window.h"

namespace perfd::agent {

// Length of a window: short ones early so that news comes soon, then the usual length.
int64_t WindowLengthNs(int64_t duration_ns, int windows_sent);

// What a window says besides its counts.
struct WindowFacts {
  SamplingSetup setup;
  std::vector<RankInfo> ranks;
  WindowCosts costs;
  std::vector<ProcessTime> processes;
  double period_ns =
      0;  // of CPU time between two samples of a thread while events are on; 0: not known
  double sample_cost_ns = 0;
  ExperimentUpdate experiment;
};

// Whether samples are to have call paths, and which of them windows carry. Unless somebody asked for them, only where they can
// tell something: as long as next to nothing runs outside of loops, no path is looked for. Thread-safe.
class PathPolicy {
 public:
  static constexpr uint64_t kLeastSamples = 50;
  static constexpr double kLeastShare = 0.05;

  explicit PathPolicy(CallPaths callpaths) : callpaths_(callpaths) {}

  // Windows carry call paths, and say how many are missing or cut off.
  bool kept() const {
    return callpaths_ == CallPaths::kFramePointer || callpaths_ == CallPaths::kDwarf;
  }
  bool wanted() const { return kept() || tell_something_; }
  // How much of a window could have been called by loops.
  void Learn(const Window& window);
  void Strip(WindowPaths& paths) const;

 private:
  const CallPaths callpaths_;
  std::atomic<uint64_t> samples_ = 0;
  std::atomic<uint64_t> outside_ = 0;
  std::atomic<bool> tell_something_ = false;
};

class SessionWindows {
 public:
  static constexpr size_t kMaxPending = 64;

  SessionWindows(Resolver* resolver, const Clock& clock, std::shared_ptr<WindowDelivery> delivery,
                 CallPaths callpaths);

  WindowBuilder& builder() { return builder_; }
  Accounting& accounting() { return builder_.accounting(); }
  const PathPolicy& paths() const { return *paths_; }
  void SkipPaths(uint64_t samples);
  void CutPath();
  // What the agent uses counts from here on; without, since this was made.
  void CountAgent();
  uint64_t agent_cpu_ns() const {
    return agent_cpu_ns_;
  }  // when the window that is open began to count
  void Begin();
  bool IsDue(int64_t duration_ns) const;
  void Close(WindowFacts facts);
  // Gives the resolver as many as it takes.
  void Submit();
  // Until all are delivered; `rest` is called between two looks. False: some are not, after `timeout`.
  bool AwaitAll(absl::Duration timeout, const std::function<void()>& rest);

 private:
  Resolver* const resolver_;
  const Clock& clock_;
  const std::shared_ptr<WindowDelivery> delivery_;  // also held by the resolver's callbacks
  const std::shared_ptr<ReadBudget> budget_;        // also held by the resolver
  const std::shared_ptr<WallTimes> wall_times_;     // the same
  const std::shared_ptr<PathPolicy> paths_;         // the same
  WindowBuilder builder_;
  std::vector<std::unique_ptr<RawWindow>> pending_;  // the resolver's queue was full
  int64_t started_ns_ = 0;
  int64_t started_unix_ns_ = 0;
  uint64_t agent_cpu_ns_ = 0;  // of the agent when the last window ended, or at CountAgent
  int closed_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_WINDOWS_H_
