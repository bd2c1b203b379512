// agent/pipeline/experimenter.h - what a session sees of the part that alters loops: it is told where the loops are, and
//                                 asked from time to time what it has found out.
//
// Shape    Begin once the daemon has said which loops; Revise when it says otherwise; Drain at every window; End before the
//          session ends. AddRank for ranks that come late is not needed: they are measured by the next profile.
// Errors   never returned: a rank or a loop that cannot be measured has a LoopMeasurement that says why.
// Threads  Begin, Revise, Drain and End from the session's thread; OriginalAddress from any. Works on threads of its own.
// Bounds   End returns within some seconds, with every rank restored or a notice that says what is left.
#ifndef AGENT_PIPELINE_EXPERIMENTER_H_
#define AGENT_PIPELINE_EXPERIMENTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/procfs/admission.h"
#include "core/base/address.h"
#include "core/model/code.h"
#include "core/model/identity.h"
#include "core/model/loop_measurement.h"
#include "core/model/measure_order.h"
#include "core/model/pause_lease.h"
#include "core/model/profile.h"

namespace perfd::agent {

// Where one loop lies in one process.
struct LoopSite {
  MeasureLoop target;
  LoadBias bias{};
  FunctionFacts function;
  bool moved = false;   // in anonymous memory that has the file's bytes
  std::string refusal;  // not empty: it was not found there, and why
};

struct RankLoops {
  RankInfo rank;
  std::vector<LoopSite> loops;  // in the order of the plan
  // Since it was taken in. None: tests of ranks that are no processes.
  std::optional<Admission> admission = std::nullopt;
};

struct ExperimentRequest {
  MeasureOrder plan;
  std::string requester;  // for the audit log
  std::string node;
  std::vector<RankLoops> ranks;
  int64_t begin_ns = 0;  // monotonic: when the profile began on this node
  int64_t end_ns = 0;    // when it is to end
};

// Since the last Drain. Measurements are whole: each replaces the earlier ones of its loop and rank.
struct ExperimentUpdate {
  std::vector<LoopMeasurement> measurements;
  std::vector<AuditEntry> audit;
  std::vector<Notice> notices;
  std::vector<LeasedPause> pauses;  // within windows of the lease; each once
  uint64_t pauses_dropped = 0;      // that were too many to be kept until now
  uint64_t stops = 0;
  uint64_t stop_ns = 0;  // ranks stood still for a tracer, summed over them
};

class Experimenter {
 public:
  virtual ~Experimenter() = default;
  virtual void Begin(ExperimentRequest request) = 0;
  // A later order (core/model/measure_order.h says what it means), with the places of all its loops. Of the rest of the
  // request only the loops count. Comes back at once; an experimenter that cannot change keeps to the first order. Also
  // after End, when all that is left to do is to say why its loops are not measured.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who can change takes it over
  virtual void Revise(ExperimentRequest /*request*/) {}
  // Wall time that sampling has cost the job since the last call: it comes out of the same budget.
  virtual void Charge(int64_t /*wall_ns*/) {}
  virtual ExperimentUpdate Drain() = 0;
  virtual void End() = 0;
  // True when there is no more to come: of a dry run, once every rank was looked at. Its session ends then.
  virtual bool Finished() const { return false; }
  // Of an address in a copy: the instruction it was copied from, so that samples stay with their loop.
  virtual std::optional<RuntimeAddress> OriginalAddress(int32_t pid,
                                                        RuntimeAddress address) const = 0;
};

using MakeExperimenter = std::function<std::unique_ptr<Experimenter>()>;

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_EXPERIMENTER_H_
