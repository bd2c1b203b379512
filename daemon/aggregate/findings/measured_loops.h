// daemon/aggregate/findings/measured_loops.h - what variants told of the loops of a profile, merged over windows and agents.
//
// Shape    of each (node, pid, loop) the measurement with the highest revision is kept, whatever the order of arrival; the
//          assembly is kept once per loop, as ranks of one binary share it. Pauses of the audit log become spans of
//          their node (core/analysis/job_pauses.h); the log itself is the store's (daemon/store/audit_table.h).
// Limits   beyond `figures` new measurements lose their figures per thread, beyond `loops` they are lost: counted in lost.
// Threads  thread-compatible.
#ifndef DAEMON_AGGREGATE_FINDINGS_MEASURED_LOOPS_H_
#define DAEMON_AGGREGATE_FINDINGS_MEASURED_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/analysis/injection_total.h"
#include "core/analysis/job_pauses.h"
#include "core/model/loop_measurement.h"

namespace perfd::daemon {

struct MeasureLimits {
  size_t loops = 800'000;      // 64,000 ranks x 12 loops
  size_t figures = 4'000'000;  // about 1 GB
  size_t listings = 4'096;
  bool frozen = false;  // only what takes no more than what it replaces
};

struct LoopListing {
  std::string loop_id;
  VariantListing listing;

  bool operator==(const LoopListing&) const = default;
};

struct MeasuredState {
  std::vector<LoopMeasurement> loops;  // by node, pid, loop; without listings
  std::vector<LoopListing> listings;   // by loop, variant
  JobPauses pauses;
  int64_t audited_ns = 0;
  uint64_t audited = 0;
  uint64_t lost = 0;

  bool operator==(const MeasuredState&) const = default;
};

class MeasuredLoops {
 public:
  explicit MeasuredLoops(MeasureLimits limits = {}) : limits_(limits) {}

  void Add(LoopMeasurement loop);
  void AddAudit(const AuditEntry& entry);
  // Pauses of a node within windows of the lease, and how many more it could not tell.
  void AddLeased(const std::string& node, const std::vector<LeasedPause>& pauses, uint64_t dropped);
  void Absorb(const MeasuredState& other);

  MeasuredState State() const;
  // Of memory, about.
  size_t Bytes() const;
  // From now on a measurement is lost that takes more than the one it replaces; pauses are not.
  void Freeze() { limits_.frozen = true; }

  // Reading without a copy.
  using Key = std::tuple<std::string, int32_t, std::string>;  // node, pid, loop
  const std::map<Key, LoopMeasurement>& loops() const { return loops_; }
  const std::map<std::pair<std::string, std::string>, VariantListing>& listings() const {
    return listings_;  // by loop, variant
  }
  const JobPauses& pauses() const { return pauses_; }
  int64_t audited_ns() const { return audited_ns_; }
  uint64_t lost() const { return lost_; }

 private:
  void AddListing(const std::string& loop_id, VariantListing listing);

  MeasureLimits limits_;
  std::map<Key, LoopMeasurement> loops_;
  std::map<std::pair<std::string, std::string>, VariantListing> listings_;
  size_t figures_ = 0;  // of all loops_
  JobPauses pauses_;
  int64_t audited_ns_ = 0;
  uint64_t audited_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_FINDINGS_MEASURED_LOOPS_H_
