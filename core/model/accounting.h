// core/model/accounting.h - where every sample went: kept, or dropped for a named reason.
//
// Shape    seen == kept + sum(dropped); lost samples never arrived and are counted beside it.
// Units    samples, unless the name says otherwise.
#ifndef CORE_MODEL_ACCOUNTING_H_
#define CORE_MODEL_ACCOUNTING_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace perfd {

enum class DropReason {
  kForeignProcess,  // a process that is not part of the profile (cgroup and CPU-wide events)
  kQueueFull,       // a bounded queue of ours was full
  kMalformed,       // a record that contradicts its own header
  kSpoolFull,       // the spool on disk had no room (counted in samples of the dropped window)
};
inline constexpr size_t kDropReasonCount = 4;

const char* DropReasonName(DropReason reason);

struct Accounting {
  uint64_t seen = 0;  // sample records read from the kernel
  uint64_t kept = 0;  // counted in a row
  std::array<uint64_t, kDropReasonCount> dropped{};
  uint64_t lost = 0;  // PERF_RECORD_LOST(_SAMPLES): overwritten in the kernel before we read them
  uint64_t throttled = 0;  // PERF_RECORD_THROTTLE events
  uint64_t stack_truncated =
      0;  // call paths that ended before the outermost frame; counted as far as they go
  uint64_t stack_skipped =
      0;  // kept samples without a call path: beyond the rate or a queue, or unreadable
  uint64_t late_threads = 0;  // threads first seen after they had already run
  uint64_t late_thread_cpu_ns =
      0;  // the CPU time they had used by then: time the profile did not see

  void Drop(DropReason reason, uint64_t count = 1) {
    dropped[static_cast<size_t>(reason)] += count;
  }
  uint64_t TotalDropped() const;
  bool Balanced() const { return seen == kept + TotalDropped(); }
  Accounting& operator+=(const Accounting& other);
  bool operator==(const Accounting&) const = default;
};

// What the profile itself cost on one node. All measured, not modelled, except where `estimated`.
struct OverheadFigures {
  uint64_t agent_cpu_ns = 0;  // CPU time of the agent and its readers
  // Estimated, over all threads: samples, switches and starts of threads x their calibrated costs.
  uint64_t kernel_sampling_ns = 0;
  uint64_t job_cpu_ns = 0;  // CPU time of the ranks in the same span
  uint64_t stop_ns = 0;  // time ranks stood still for the tracer, summed over them; not for shadows
  uint64_t stops = 0;
  // How long ranks lived in the same span, summed over them; 0: not told. A rank that ended counts until its end; while none
  // lives (a job between two steps) the number of before counts.
  uint64_t rank_wall_ns = 0;
  // Estimated: what the ranks can have lost by agent_cpu_ns, at most (agent/pipeline/cost/agent_share.h); all of it if nobody told.
  uint64_t lost_to_agent_ns = 0;

  OverheadFigures& operator+=(const OverheadFigures& other);
  bool operator==(const OverheadFigures&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_ACCOUNTING_H_
