#include "agent/sample/perf_sample_source.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "agent/sample/explanations.h"
#include "agent/sample/ring/ring_budget.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kRescanNs = kNsPerSecond;
// Switching costs an interrupt per thread; a window of a second still has ten of them.
constexpr int64_t kSlotNs = 100 * kNsPerMs;
// Slots that end a little late, as they do on a busy node, are late on and off alike.
constexpr int64_t kHeldUpNs = 5 * kSlotNs;
constexpr int kMostStackThreads = 1024;

// `lost`: of this ring since its begin, as its records or its counter say; they tell of the same losses.
void RecordLost(uint64_t lost, SampleRing& ring, SampleSink& sink) {
  if (lost <= ring.lost_reported) return;
  sink.OnLost(lost - ring.lost_reported);
  ring.lost_reported = lost;
}

// A ring that others write into, too: its LOST records are of all, and its own counter of those of time.
uint64_t LostOfTime(const SampleRing& ring, const ChosenEvent& event) {
  const bool counted = event.attr.read_format != 0;
  return ring.events.size() > 1 && counted ? ring.ring.LostRecords() : ring.lost_recorded;
}

// As the kernel's own counters say, which it costs a call to read.
void RecordLostAtLast(SampleRing& ring, SampleSink& sink) {
  RecordLost(ring.ring.LostRecords(), ring, sink);
  if (const uint64_t lost = ring.ring.DrainLostFurther(); lost > 0) sink.OnLostAccesses(lost);
}

// Above the sysctl an event with a frequency is refused (EINVAL); clock events would obey, at a cost nobody wants.
double ClampFrequency(const ProcFs& procfs, double hz) {
  const absl::StatusOr<int64_t> limit = procfs.SysctlInt("kernel/perf_event_max_sample_rate");
  if (limit.ok() && *limit > 0) hz = std::min(hz, static_cast<double>(*limit));
  return std::clamp(hz, kMinFrequencyHz, kMaxFrequencyHz);
}

void Follow(const TaskEvent& event, SampleRing& ring, ThreadRings& rings, NewThreads& threads) {
  switch (event.kind) {
    case TaskEvent::Kind::kThreadStarted:
      threads.Announce(event.pid, event.tid);
      break;
    case TaskEvent::Kind::kProcessForked:
      rings.RecordForked(event.pid);
      break;
    case TaskEvent::Kind::kExec:
      rings.RecordExec(ring, event.pid);
      break;
    case TaskEvent::Kind::kExited:
      if (event.tid == ring.tid) rings.RecordExit(ring);
      break;
    case TaskEvent::Kind::kRenamed:
      break;
  }
}

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

SamplingOptions Clamped(SamplingOptions options, const ProcFs& procfs) {
  options.frequency_hz = ClampFrequency(procfs, options.frequency_hz);
  return options;
}

void AddNotice(Notice::Severity severity, std::string text, std::vector<Notice>* notices) {
  if (notices == nullptr) return;
  Notice& notice = notices->emplace_back();
  notice.severity = severity;
  notice.text = std::move(text);
}

// Of what is closing it matters to nobody.
void PaceAccesses(ThreadRings& rings) {
  for (const AccessEvents::Change& change : rings.accesses().Adjust(rings.size()))
    for (size_t i = 0; i < rings.size(); ++i)
      rings.at(i).ring.SetRateOf(change.event, change.period).IgnoreError();
}

// A copy of the stack needs a ring eight times as large, for every thread.
void LeaveStacksOut(SamplingOptions* options, std::vector<Notice>* thinned) {
  if (options->callpaths != CallPaths::kDwarf || options->threads <= kMostStackThreads) return;
  options->callpaths = CallPaths::kOff;
  AddNotice(Notice::Severity::kWarning,
            absl::StrCat("call paths are left out: ", options->threads,
                         " threads, and stacks are copied of ", kMostStackThreads,
                         " at most; callpaths: fp has no such limit"),
            thinned);
}

void RecordSmallRings(const SamplingOptions& options, uint64_t bytes,
                      std::vector<Notice>* thinned) {
  const uint64_t wanted = RingBytes(options, PageBytes());
  if (bytes >= wanted) return;
  AddNotice(Notice::Severity::kInfo,
            absl::StrCat("rings of ", bytes >> 10, " KiB instead of ", wanted >> 10,
                         " for each of ", options.threads,
                         " threads: there is no more memory for them; samples that find no room "
                         "are counted as lost"),
            thinned);
}

}  // namespace

absl::StatusOr<ChosenEvent> PerfSampleSource::EventFor(const SamplingOptions& options,
                                                       const ProcFs& procfs) {
  return ChooseEvent(Clamped(options, procfs), ProbePerfEvent);
}

absl::StatusOr<std::unique_ptr<PerfSampleSource>> PerfSampleSource::Create(
    const SamplingOptions& options, const ProcFs& procfs, const Clock* clock, RingBudget* budget,
    std::vector<Notice>* thinned) {
  SamplingOptions chosen = Clamped(options, procfs);
  const auto make = [&](std::optional<ThreadRings>* rings) -> absl::Status {
    ASSIGN_OR_RETURN(ChosenEvent event, ChooseEvent(chosen, ProbePerfEvent));
    event.stack_rings = StackRings(chosen, LockableBytes(procfs));
    rings->emplace(procfs, std::move(event), RingBytes(chosen, PageBytes()), budget);
    return absl::OkStatus();
  };
  std::optional<ThreadRings> rings;
  RETURN_IF_ERROR(make(&rings));
  absl::Status by_cgroup = absl::CancelledError();
  if (!options.cgroup.empty()) {
    by_cgroup = rings->AddCgroup(options.cgroup);
    if (!by_cgroup.ok()) LogInfo("sampling per thread instead: {}", Text(by_cgroup));
  }
  if (!by_cgroup.ok()) {
    LeaveStacksOut(&chosen, thinned);
    rings.reset();  // gives back what it holds
    RETURN_IF_ERROR(make(&rings));
    rings->maker().LimitRings(chosen.threads, LockableBytes(procfs));
  }
  RecordSmallRings(chosen, rings->maker().ring_bytes(), thinned);
  std::unique_ptr<PerfSampleSource> source(
      new PerfSampleSource(procfs, clock, *std::move(rings), chosen.frequency_hz));
  source->by_cgroup_ = by_cgroup.ok();
  return source;
}

PerfSampleSource::PerfSampleSource(ProcFs procfs, const Clock* clock, ThreadRings rings,
                                   double frequency_hz)
    : procfs_(std::move(procfs)),
      clock_(clock),
      rings_(std::move(rings)),
      full_hz_(frequency_hz),
      frequency_hz_(frequency_hz),
      duty_(static_cast<uint32_t>(clock->MonotonicNs())),
      next_rescan_ns_(clock->MonotonicNs() + kRescanNs) {}

absl::Status PerfSampleSource::AddProcess(int32_t pid) {
  if (!by_cgroup_) return rings_.AddProcess(pid);
  RETURN_IF_ERROR(procfs_.StartTicks(pid).status());
  cgroup_pids_.insert(pid);
  return absl::OkStatus();
}

void PerfSampleSource::RemoveProcess(int32_t pid) {
  cgroup_pids_.erase(pid);
  if (!by_cgroup_) rings_.CloseProcess(pid);
}

// Who was forked, what was mapped, which program runs: the samples of one ring can need what is said in another.
void PerfSampleSource::Drain(SampleSink& sink) {
  RecordHeldUp(sink);
  // The sink may add processes: their rings have their turn next time. Those that are here stay where they are.
  const size_t count = rings_.size();
  for (size_t i = 0; i < count; ++i) rings_.at(i).Snapshot();
  std::vector<Explanation> explanations;
  for (size_t i = 0; i < count; ++i) {
    SampleRing& ring = rings_.at(i);
    CollectExplanations(ring.ring.buffer(), ring.events, i, &explanations);
  }
  SortByTime(&explanations);
  for (const Explanation& e : explanations) Deliver(0, e.record, rings_.at(e.ring), sink);
  for (size_t i = 0; i < count; ++i) DrainRing(rings_.at(i), sink);
  rings_.Sweep();
  const auto followed_ns = static_cast<uint64_t>(clock_->MonotonicNs());
  FollowThreads(sink);
  for (const int32_t pid : rings_.DrainExecs()) {
    sink.OnTask({.kind = TaskEvent::Kind::kExec, .pid = pid, .tid = pid, .time_ns = followed_ns});
  }
  for (const LateThread& late : rings_.DrainLate()) {
    sink.OnLateThread(late.pid, late.tid, late.cpu_ns);
  }
  PaceAccesses(rings_);
  Pace();
}

// An agent that stands still ends no rest. What its samples would have told of that time is lost like what a full ring loses:
// the planned part of the rest is in what the others stand for.
void PerfSampleSource::RecordHeldUp(SampleSink& sink) {
  const int64_t now_ns = clock_->MonotonicNs();
  const int64_t held_ns = now_ns - next_slot_ns_;
  if (rest_since_ns_ == 0 || next_slot_ns_ == 0 || held_ns < kHeldUpNs) return;
  const double unplanned = static_cast<double>(held_ns) /
                           static_cast<double>(now_ns - std::exchange(rest_since_ns_, now_ns));
  const double lost_ns = static_cast<double>(rings_.DrainRestedNs()) * std::min(unplanned, 1.0);
  sink.OnLost(static_cast<uint64_t>(std::llround(lost_ns * frequency_hz_ / kNsPerSecond)));
}

void PerfSampleSource::Pace() {
  const int64_t now_ns = clock_->MonotonicNs();
  if (!may_rest_ || now_ns < next_slot_ns_) return;
  next_slot_ns_ = now_ns + kSlotNs;
  if (duty_.Next()) {
    rings_.GoOn();
    rest_since_ns_ = 0;
    return;
  }
  if (rest_since_ns_ == 0) rest_since_ns_ = now_ns;
  const absl::Status rested = rings_.Rest(frequency_hz_);
  if (rested.ok()) {
    if (rings_.restless() > 0 && !std::exchange(restless_told_, true))
      LogInfo("{} threads sample at a longer period instead of resting: {}", rings_.restless(),
              Text(rings_.why_restless()));
    return;
  }
  may_rest_ = false;
  LogInfo("events sample at longer periods instead of resting: {}", Text(rested));
  const absl::Status slower = rings_.SetFrequency(frequency_hz_);
  if (!slower.ok()) LogWarning("{}", Text(slower));
}

void PerfSampleSource::DrainRing(SampleRing& ring, SampleSink& sink) {
  RingBuffer& buffer = ring.ring.buffer();
  for (auto record = buffer.Pop(); !record.empty(); record = buffer.Pop()) {
    if (RecordDecoder::ExplainsSamples(record)) continue;
    const EventSet::Decoded decoded = ring.events.Decode(record);
    Deliver(decoded.event, decoded.record, ring, sink);
  }
  for (; ring.corrupt_reported < buffer.corrupt(); ++ring.corrupt_reported) sink.OnMalformed();
  ring.read_since_close = ring.closed_before_probe;
  // The kernel tells of a loss when the next record has room; at the end there is no next record.
  if (ring.read_since_close) RecordLostAtLast(ring, sink);
}

void PerfSampleSource::ReportLost(SampleSink& sink) {
  for (size_t i = 0; i < rings_.size(); ++i) {
    RecordLostAtLast(rings_.at(i), sink);
  }
}

void PerfSampleSource::Deliver(size_t of_event, const PerfRecord& record, SampleRing& ring,
                               SampleSink& sink) {
  std::visit(Overloaded{
                 [&](const MalformedRecord&) { sink.OnMalformed(); },
                 [](const IgnoredRecord&) {},
                 [&](Sample sample) {
                   AccessEvents& accesses = rings_.accesses();
                   accesses.Count(of_event);
                   uint64_t period = sample.period;
                   if (of_event > 0) period = accesses.PeriodOf(of_event, period);
                   if (of_event == 0 && IsClockEvent(rings_.event().attr)) period = ring.rate;
                   sample.period = StandsFor(period, sample.time_ns, ring);
                   if (of_event > 0) return sink.OnAccess(sample);
                   const KernelCauses* causes = rings_.event().kernel_causes.get();
                   if (sample.kernel && causes != nullptr)
                     sample.entry.cause = causes->Of(sample.entry.chain);
                   sink.OnSample(sample);
                 },
                 [&](const MappingEvent& event) { sink.OnMapping(event); },
                 [&](const TaskEvent& event) {
                   if (!by_cgroup_) Follow(event, ring, rings_, new_threads_);
                   sink.OnTask(event);
                 },
                 [&](const LostRecord& lost) {
                   ring.lost_recorded += lost.count;
                   RecordLost(LostOfTime(ring, rings_.event()), ring, sink);
                 },
                 [&](const ThrottleRecord& throttle) {
                   if (throttle.begin && of_event == 0) sink.OnThrottled();
                   if (throttle.begin && of_event > 0) sink.OnLostAccesses(1);  // at least
                 },
             },
             record);
}

// A clock tells of the period that it was opened with, whatever it was set to since, and of no event does the kernel know how
// long we let it rest. Source: kernel/events/core.c perf_swevent_hrtimer (hw.last_period), perf_swevent_init_hrtimer.
uint64_t PerfSampleSource::StandsFor(uint64_t period, uint64_t time_ns,
                                     const SampleRing& ring) const {
  const bool rests = may_rest_ && !ring.restless && duty_.share() > 0;
  // While the agent stands still no rest follows.
  const bool held_up = static_cast<int64_t>(time_ns) - next_slot_ns_ > kHeldUpNs;
  if (!rests || (held_up && next_slot_ns_ != 0)) return period;
  // A foreign period may be anything; 2^53 ns are a hundred days.
  return static_cast<uint64_t>(
      std::llround(std::min(static_cast<double>(period) / duty_.share(), 0x1p53)));
}

// Those that are left out and stay are found by the rescan.
void PerfSampleSource::FollowThreads(SampleSink& sink) {
  new_threads_.Learn([this](int32_t tid) { return rings_.HasRing(tid); });
  const NewThreads::Choice choice = new_threads_.Next();
  for (const NewThread& thread : choice.left_out) {
    rings_.LeaveOut(thread.tid);
    sink.OnLateThread(thread.pid, thread.tid, 0);
  }
  for (const NewThread& thread : choice.open) {
    const absl::Status opened = rings_.OpenThread(thread.pid, thread.tid, /*announced=*/true);
    // Of a process that is removed: neither.
    if (rings_.HasRing(thread.tid) || absl::IsNotFound(opened)) new_threads_.Given(thread.tid);
  }
  rings_.FollowLeaders();
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns < next_rescan_ns_) return;
  next_rescan_ns_ = now_ns + kRescanNs;
  rings_.Rescan();
}

absl::Status PerfSampleSource::SetFrequency(double hz) {
  const bool was_faster = frequency_hz_ > full_hz_;
  frequency_hz_ = ClampFrequency(procfs_, hz);
  if (!may_rest_ || frequency_hz_ > full_hz_) {
    duty_.SetShare(1);
    rings_.GoOn();
    rest_since_ns_ = 0;
    return rings_.SetFrequency(frequency_hz_);
  }
  duty_.SetShare(frequency_hz_ / full_hz_);
  if (was_faster) RETURN_IF_ERROR(rings_.SetFrequency(full_hz_));
  RETURN_IF_ERROR(rings_.SetRestless(frequency_hz_));
  next_slot_ns_ = 0;  // a slot that began under another share does not count as one of this
  Pace();
  return absl::OkStatus();
}

SamplingSetup PerfSampleSource::setup() const {
  SamplingSetup setup;
  setup.event = rings_.event().name;
  setup.frequency_hz = frequency_hz_;
  setup.kernel_included = rings_.event().kernel_included;
  setup.method = by_cgroup_ ? "cgroup" : "per-thread";
  setup.provenance = Provenance::kSampled;
  return setup;
}

int PerfSampleSource::thread_count() const {
  if (!by_cgroup_) return rings_.thread_count();
  int count = 0;
  for (const int32_t pid : cgroup_pids_) {
    const absl::StatusOr<std::vector<int32_t>> tids = procfs_.Threads(pid);
    if (tids.ok()) count += static_cast<int>(tids->size());
  }
  return count;
}

}  // namespace perfd::agent
