// daemon/control/loop_choice.h - which loops a profile orders its nodes to measure, as the program goes from phase to phase.
//
// Units    monotonic ns; revisions are Unix ns, so that a daemon that was restarted goes on with ones that agents take for newer.
// Threads  thread-compatible.
#ifndef DAEMON_CONTROL_LOOP_CHOICE_H_
#define DAEMON_CONTROL_LOOP_CHOICE_H_

#include <cstdint>
#include <vector>

#include "core/analysis/hot/hot_phases.h"
#include "core/analysis/hot/until_known.h"
#include "core/base/clock.h"
#include "core/model/measure_order.h"
#include "core/model/profile_spec.h"
#include "daemon/control/events.h"

namespace perfd::daemon {

// What is hot, as far as it is told: of a profile with variants every compute loop of the job; without, what samples tell of the hot ones.
struct HeatNow {
  std::vector<HeatedLoop> loops = {};
  ShareKnowledge shares = {};
};

class LoopChoice {
 public:
  bool ordered() const { return revision_ != 0; }
  uint64_t revision() const { return revision_; }  // of the last order; 0: there was none
  const std::vector<MeasureLoop>& loops() const { return loops_; }  // of the last order
  // The first choice is not asked for before.
  int64_t first_ns() const { return first_ns_; }
  void AskLater(Moment now);
  void Begin(std::vector<MeasureLoop> loops, Moment now);

  bool IsDue(Moment now) const { return now.monotonic_ns >= heat_ns_; }
  void Looked(Moment now);
  // Every compute loop of the job. True: another set is to be measured from now on.
  bool ChooseAgain(const std::vector<HeatedLoop>& loops, const HotspotSpec& spec, Moment now);
  // Of those that are measured now, out of every compute loop.
  std::vector<LoopLearning> KnowledgeOf(const std::vector<HeatedLoop>& loops) const;

 private:
  std::vector<MeasureLoop> loops_;
  uint64_t revision_ = 0;
  std::vector<PhaseLoop> phases_;  // every loop that was ever ordered
  int64_t first_ns_ = 0;
  int64_t heat_ns_ = 0;  // the heat is not asked for before
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_LOOP_CHOICE_H_
