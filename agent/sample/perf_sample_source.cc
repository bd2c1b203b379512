#include "agent/sample/perf_sample_source.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr int64_t kRescanNs = kNsPerSecond;
// The kernel may write while we read: one Drain of one ring ends after this many times its size.
constexpr uint64_t kMaxLaps = 4;

// `lost`: of this ring since its begin, as its records or its counter say; they tell of the same losses.
void NoteLost(uint64_t lost, SampleRing& ring, SampleSink& sink) {
  if (lost <= ring.lost_reported) return;
  sink.OnLost(lost - ring.lost_reported);
  ring.lost_reported = lost;
}

// Above the sysctl an event with a frequency is refused (EINVAL); clock events would obey, at a cost nobody wants.
double ClampFrequency(const ProcFs& procfs, double hz) {
  const absl::StatusOr<int64_t> limit = procfs.SysctlInt("kernel/perf_event_max_sample_rate");
  if (limit.ok() && *limit > 0) hz = std::min(hz, static_cast<double>(*limit));
  return std::clamp(hz, kMinFrequencyHz, kMaxFrequencyHz);
}

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

absl::StatusOr<std::unique_ptr<PerfSampleSource>> PerfSampleSource::Create(
    const SamplingOptions& options, const ProcFs& procfs, const Clock* clock) {
  SamplingOptions clamped = options;
  clamped.frequency_hz = ClampFrequency(procfs, options.frequency_hz);
  ASSIGN_OR_RETURN(ChosenEvent event, ChooseEvent(clamped, ProbePerfEvent));
  ThreadRings rings(procfs, std::move(event), RingBytes(clamped, PageBytes()));
  absl::Status by_cgroup = absl::CancelledError();
  if (!options.cgroup.empty()) {
    by_cgroup = rings.AddCgroup(options.cgroup);
    if (!by_cgroup.ok()) LogInfo("sampling per thread instead: {}", Text(by_cgroup));
  }
  std::unique_ptr<PerfSampleSource> source(
      new PerfSampleSource(procfs, clock, std::move(rings), clamped.frequency_hz));
  source->by_cgroup_ = by_cgroup.ok();
  return source;
}

PerfSampleSource::PerfSampleSource(ProcFs procfs, const Clock* clock, ThreadRings rings,
                                   double frequency_hz)
    : procfs_(std::move(procfs)),
      clock_(clock),
      rings_(std::move(rings)),
      frequency_hz_(frequency_hz),
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

void PerfSampleSource::Drain(SampleSink& sink) {
  // The sink may add processes: only indices stay valid.
  for (size_t i = 0; i < rings_.size(); ++i) DrainRing(rings_.at(i), sink);
  rings_.Sweep();
  FollowThreads();
  for (const int32_t pid : rings_.TakeExecs()) {
    sink.OnTask({.kind = TaskEvent::Kind::kExec, .pid = pid, .tid = pid});
  }
  for (const LateThread& late : rings_.TakeLate()) {
    sink.OnLateThread(late.pid, late.tid, late.cpu_ns);
  }
}

void PerfSampleSource::DrainRing(SampleRing& ring, SampleSink& sink) {
  // Closed before this reading started: nothing can arrive after it, unless it was cut short.
  const bool closed_before = ring.closing;
  uint64_t budget = kMaxLaps * ring.ring.data_bytes();
  RingBuffer& buffer = ring.ring.buffer();
  bool emptied = false;
  while (budget > 0) {
    const std::span<const std::byte> record = buffer.Next();
    emptied = record.empty();
    if (emptied) break;
    budget -= std::min<uint64_t>(budget, record.size());
    Deliver(ring.decoder.Decode(record), ring, sink);
  }
  for (; ring.corrupt_reported < buffer.corrupt(); ++ring.corrupt_reported) sink.OnMalformed();
  ring.read_since_close = closed_before && emptied;
  // The kernel tells of a loss when the next record has room; at the end there is no next record.
  if (ring.read_since_close) NoteLost(ring.ring.LostRecords(), ring, sink);
}

void PerfSampleSource::ReportLost(SampleSink& sink) {
  for (size_t i = 0; i < rings_.size(); ++i) {
    SampleRing& ring = rings_.at(i);
    NoteLost(ring.ring.LostRecords(), ring, sink);
  }
}

void PerfSampleSource::Deliver(const PerfRecord& record, SampleRing& ring, SampleSink& sink) {
  std::visit(Overloaded{
                 [&](const MalformedRecord&) { sink.OnMalformed(); },
                 [](const IgnoredRecord&) {},
                 [&](const Sample& sample) { sink.OnSample(sample); },
                 [&](const MappingEvent& event) { sink.OnMapping(event); },
                 [&](const TaskEvent& event) {
                   OnTaskRecord(event, ring);
                   sink.OnTask(event);
                 },
                 [&](const LostRecord& lost) {
                   ring.lost_recorded += lost.count;
                   NoteLost(ring.lost_recorded, ring, sink);
                 },
                 [&](const ThrottleRecord& throttle) {
                   if (throttle.begin) sink.OnThrottled();
                 },
             },
             record);
}

void PerfSampleSource::OnTaskRecord(const TaskEvent& event, SampleRing& ring) {
  if (by_cgroup_) return;
  switch (event.kind) {
    case TaskEvent::Kind::kThreadStarted:
      started_.emplace_back(event.pid, event.tid);
      break;
    case TaskEvent::Kind::kProcessForked:
      rings_.NoteForked(event.pid);
      break;
    case TaskEvent::Kind::kExec:
      rings_.NoteExec(ring, event.pid);
      break;
    case TaskEvent::Kind::kExited:
      if (event.tid == ring.tid) rings_.NoteExit(ring);
      break;
  }
}

void PerfSampleSource::FollowThreads() {
  for (const auto& [pid, tid] : started_) rings_.OpenThread(pid, tid, /*announced=*/true);
  started_.clear();
  rings_.FollowLeaders();
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns < next_rescan_ns_) return;
  next_rescan_ns_ = now_ns + kRescanNs;
  rings_.Rescan();
}

absl::Status PerfSampleSource::SetFrequency(double hz) {
  frequency_hz_ = ClampFrequency(procfs_, hz);
  return rings_.SetFrequency(frequency_hz_);
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

}  // namespace perfd
