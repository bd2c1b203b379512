// agent/experiment/plan/trace_summary.h - what the accesses of a loop touch, and whether its runs can be repeated as they are.
//
// Shape    trace records of every thread -> one range per reference; the ranges that are written; whether any of them is also read.
// Units    run-time addresses, bytes; iterations are passes through the header.
// Errors   none; a trace that saw only the first iterations is stretched along each reference's stride and marked partial.
// Threads  thread-safe (pure).
// Source   hazards of measuring, "A variant stores garbage": runs are interleaved freely only if nothing is read and written.
#ifndef AGENT_EXPERIMENT_PLAN_TRACE_SUMMARY_H_
#define AGENT_EXPERIMENT_PLAN_TRACE_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agent/variant/copy.h"
#include "agent/variant/thread_block.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

// Between two accesses: 0 at a fixed address; none where they do not go once along a range in equal steps, or the trace does not tell.
std::optional<uint64_t> StepOf(const TraceRecord& record);

struct TraceSummary {
  std::vector<TracedReference> references;  // over all threads; one per reference that was executed
  std::vector<uint64_t>
      not_executed;  // instructions of the others whose addresses a trace could tell
  std::vector<uint64_t>
      stepping;  // instructions that each thread goes to another address with in each pass, in equal steps
  std::vector<std::pair<uint64_t, uint64_t>> written;  // address, bytes; disjoint, sorted
  std::vector<int32_t> writers;  // of each of them: the only thread that writes there, or -1
  uint64_t written_bytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>> touched;  // read or written; disjoint, sorted
  bool in_situ = false;                                // something is both read and written
  bool partial = false;                                // stretched
  bool untraced = false;  // a reference whose addresses are unknown writes memory
  bool blind = false;     // there is a reference whose addresses are unknown: `touched` is not all
};

struct ThreadTrace {
  std::vector<TraceRecord> records;  // index as `references`
  uint64_t traced_iterations = 0;
  uint64_t whole_iterations = 0;
};

TraceSummary SummarizeTrace(std::span<const Reference> references,
                            std::span<const ThreadTrace> threads, LoadBias bias);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_TRACE_SUMMARY_H_
