// agent/sample/perf_sample_source.h - SampleSource on perf_event_open: a ring per thread, or per CPU of a cgroup.
//
// Shape    Create chooses the event by trying it; then as SampleSource says.
// Rules    with a cgroup everything in it is sampled, and the sink sorts out what is not the job's; a cgroup that perf
//          refuses falls back to threads. FORK records open new threads; a rescan per second finds what they missed.
// Slower   a frequency below the one of Create is reached by resting in between: the timer of an event costs at every switch of
//          its thread, also when samples are rare. The period becomes longer instead for a thread whose event cannot rest, and
//          for all where none can.
// Errors   Create: as ChooseEvent. Records that do not decode reach OnMalformed.
// Source   perf_event_open(2).
#ifndef AGENT_SAMPLE_PERF_SAMPLE_SOURCE_H_
#define AGENT_SAMPLE_PERF_SAMPLE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"
#include "agent/sample/pace/duty_cycle.h"
#include "agent/sample/pace/new_threads.h"
#include "agent/sample/sample_source.h"
#include "agent/sample/thread_rings.h"
#include "core/base/clock.h"
#include "core/model/profile.h"

namespace perfd::agent {

class PerfSampleSource final : public SampleSource {
 public:
  // `clock` and `budget` outlive the source; without a budget rings may take what the kernel gives. *thinned (may be null): what
  // of the options the memory for rings does not allow, with the figures.
  static absl::StatusOr<std::unique_ptr<PerfSampleSource>> Create(
      const SamplingOptions& options, const ProcFs& procfs, const Clock* clock,
      RingBudget* budget = nullptr, std::vector<Notice>* thinned = nullptr);

  absl::Status AddProcess(int32_t pid) override;
  void RemoveProcess(int32_t pid) override;
  bool removal_spares() const override { return !by_cgroup_; }
  void Drain(SampleSink& sink) override;
  void ReportLost(SampleSink& sink) override;
  absl::Status SetFrequency(double hz) override;
  SamplingSetup setup() const override;
  double on_share() const override { return may_rest_ ? rings_.OnShare(duty_.share()) : 1; }
  int thread_count() const override;

  // For SamplingCosts: of this source, and what Create would choose.
  static absl::StatusOr<ChosenEvent> EventFor(const SamplingOptions& options, const ProcFs& procfs);
  const ChosenEvent& event() const { return rings_.event(); }

 private:
  PerfSampleSource(ProcFs procfs, const Clock* clock, ThreadRings rings, double frequency_hz);

  void DrainRing(SampleRing& ring, SampleSink& sink);
  void Deliver(size_t of_event, const PerfRecord& record, SampleRing& ring, SampleSink& sink);
  // `period`: of a sample that was taken then.
  uint64_t StandsFor(uint64_t period, uint64_t time_ns, const SampleRing& ring) const;
  void FollowThreads(SampleSink& sink);
  void Pace();
  void RecordHeldUp(SampleSink& sink);

  ProcFs procfs_;
  const Clock* clock_;
  ThreadRings rings_;
  const double full_hz_;  // of the events while they are on
  double frequency_hz_;   // in the mean
  DutyCycle duty_;
  bool may_rest_ = true;
  bool restless_told_ = false;
  int64_t next_slot_ns_ = 0;
  int64_t rest_since_ns_ = 0;  // or since it was last looked how long it had become
  bool by_cgroup_ = false;
  int64_t next_rescan_ns_ = 0;
  absl::flat_hash_set<int32_t> cgroup_pids_;
  NewThreads new_threads_;
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_PERF_SAMPLE_SOURCE_H_
