// agent/sample/sample_source.h - samples of the threads of some processes, and the events that explain them.
//
// Shape    AddProcess(pid) for each rank, then Drain(sink) every fraction of a second: everything that the kernel
//          wrote since the last call reaches the sink: mappings and task events first, in the order of time whichever
//          ring they come from, then the samples, each ring in order. New threads are covered by the source itself.
// Units    times in ns of CLOCK_MONOTONIC; periods in ns of CPU time (cpu-clock) or in events, rests included.
// Errors   AddProcess: kNotFound (gone), kPermissionDenied (names the sysctl or capability), kResourceExhausted
//          (descriptors, locked memory), kUnimplemented (no such event here). Drain never fails.
// Threads  thread-bound: one thread owns a source.
// Calls    a sink may call AddProcess and RemoveProcess from inside Drain.
// Loss     kernel overruns and throttling reach the sink; nothing is dropped silently. The kernel tells of an overrun
//          when it next has room: call ReportLost after the last Drain.
#ifndef AGENT_SAMPLE_SAMPLE_SOURCE_H_
#define AGENT_SAMPLE_SAMPLE_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/model/window.h"
#include "core/perfdata/records/sample.h"

namespace perfd::agent {

class SampleSink {
 public:
  virtual ~SampleSink() = default;
  virtual void OnSample(const Sample& sample) = 0;
  // Of an event of accesses, which stands for no time.
  virtual void OnAccess(const Sample& /*sample*/) {}
  // That no sample tells of.
  virtual void OnLostAccesses(uint64_t /*accesses*/) {}
  virtual void OnMapping(const MappingEvent& event) = 0;
  virtual void OnTask(const TaskEvent& event) = 0;
  virtual void OnLost(uint64_t records) = 0;
  virtual void OnThrottled() = 0;
  virtual void OnMalformed() = 0;
  // A thread was first seen after it had already used cpu_ns.
  virtual void OnLateThread(int32_t pid, int32_t tid, uint64_t cpu_ns) = 0;
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Samples every thread of `pid` from now on, present and future.
  virtual absl::Status AddProcess(int32_t pid) = 0;
  // Stops sampling it; unread samples of it are still delivered by the next Drain.
  virtual void RemoveProcess(int32_t pid) = 0;
  // Whether the process has no event of this source then.
  virtual bool removal_spares() const { return true; }
  virtual void Drain(SampleSink& sink) = 0;
  // Losses that no record has told of, each once. A source that counts none has none to tell.
  virtual void ReportLost(SampleSink& /*sink*/) {}
  virtual absl::Status SetFrequency(double hz) = 0;
  virtual SamplingSetup setup() const = 0;
  // Of the time, planned: events rest in between (below 1: the frequency of setup() is the mean).
  virtual double on_share() const { return 1; }
  virtual int thread_count() const = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_SAMPLE_SOURCE_H_
