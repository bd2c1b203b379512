// agent/sample/sampling_event.h - what to sample and how often -> the attribute that the kernel takes. Pure.
//
// Units    frequency in Hz per thread; clock events are programmed by their period in ns, others by frequency.
// Source   perf_event_open(2); kernel/events/core.c perf_swevent_init_hrtimer: a clock event turns its frequency into a
//          fixed period when it is opened and takes a period, not a frequency, from PERF_EVENT_IOC_PERIOD ever after.
//          So clock events are opened with a period in the first place.
// Aliasing A program whose period is a multiple of ours is sampled unfairly. Varying the period while it runs costs more:
//          each PERF_EVENT_IOC_PERIOD forgets how far the thread had come (__perf_event_period clears period_left). Done
//          every 100 ms, a thread that works 2 ms in 22 lost a third of its samples, one that works 4 in 200 all.
#ifndef AGENT_SAMPLE_SAMPLING_EVENT_H_
#define AGENT_SAMPLE_SAMPLING_EVENT_H_

#include <linux/perf_event.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/kernel/kernel_causes.h"
#include "agent/sample/event_names.h"
#include "core/model/profile_spec.h"

namespace perfd::agent {

// An event whose samples tell of accesses to memory (agent/sample/memory).
struct AccessEvent {
  EventEncoding event{};
  std::optional<EventEncoding> leader{};  // has to lead the event's group
  uint32_t latency_threshold = 0;         // cycles: faster loads are not seen; 0: all are
  uint64_t first_period = 1'000'000;
  uint64_t period_step = 1;  // periods are multiples of it
};

struct SamplingOptions {
  std::string event = "auto";
  double frequency_hz = 199;
  CallPaths callpaths = CallPaths::kOff;
  uint32_t stack_bytes =
      8192;  // with callpaths dwarf: copied per sample; made a multiple of 8, at most 32 KiB
  std::string cgroup{};  // Discovery::cgroup; empty: one event per thread
  int threads =
      0;  // that are to be sampled at once, so that locked memory suffices for all; 0: nobody knows
  std::shared_ptr<const KernelCauses> kernel_causes{};  // null: samples of the kernel have no cause
  uint64_t ring_bytes =
      0;  // per thread or CPU, rounded to a power of two of pages; 0: chosen by callpaths
  std::vector<AccessEvent> accesses{};  // sampled besides (access_events.h); those that were tried
};

// What each sample has, whatever is asked for.
inline constexpr uint64_t kBaseSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                            PERF_SAMPLE_PERIOD;

// Samples, or some of them, carry a copy of the stack.
bool CopiesStacks(CallPaths callpaths);
// With callpaths auto: in so many rings samples carry a piece of the stack (WithPieceOfStack), as the first threads are
// much like the others; in all others they are as without.
int StackRings(const SamplingOptions& options, uint64_t lockable_bytes);
perf_event_attr WithPieceOfStack(perf_event_attr attr);

inline constexpr double kMinFrequencyHz = 1;
inline constexpr double kMaxFrequencyHz = 10'000;

// cpu-clock and task-clock: their period is CPU time in ns.
bool IsClockEvent(const perf_event_attr& attr);

// The value of attr.sample_period or attr.sample_freq, and of PERF_EVENT_IOC_PERIOD, for this rate.
uint64_t RateValue(const perf_event_attr& attr, double hz);

// The same for one of several rings, told apart by a number of it (a thread, or the place of a CPU): the period of a clock is up to 1 % off, so that no two
// rings go on sampling at the same distance in time. What they see together is counted by that (agent/wall).
uint64_t StaggeredRate(const perf_event_attr& attr, uint64_t rate, int32_t id);

// Counts the event, times of CLOCK_MONOTONIC in every record; what is sampled, and how often, is for the caller to add.
perf_event_attr AttrOf(const EventEncoding& encoding);

perf_event_attr MakeSamplingAttr(const EventEncoding& encoding, const SamplingOptions& options);

// What opens an event of accesses, sampled once in so many: samples tell address, latency and source.
perf_event_attr MakeAccessAttr(const EventEncoding& encoding, uint64_t period);

// Of the event that has to lead its group: it counts.
perf_event_attr MakeLeaderAttr(const EventEncoding& encoding);

// For a node that may sample user code only.
void LeaveKernelOut(const SamplingOptions& options, perf_event_attr* attr);

uint64_t RingBytes(const SamplingOptions& options, uint64_t page_bytes);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_SAMPLING_EVENT_H_
