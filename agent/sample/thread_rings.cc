#include "agent/sample/thread_rings.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"
#include "agent/sample/perf_clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A process whose threads create threads faster than we can open them is caught up with by later rescans.
constexpr int kMaxPasses = 20;
constexpr size_t kMaxForked = 65536;
// The end of a leader is written before exec has made another thread the leader: look again a few times.
constexpr int kLeaderTries = 5;
constexpr int32_t kMaxCpus = 8192;  // CONFIG_NR_CPUS_RANGE_END with MAXSMP, arch/x86/Kconfig
constexpr char kOnlineCpus[] = "/sys/devices/system/cpu/online";

perf_event_attr Staggered(perf_event_attr attr, int32_t id) {
  attr.sample_freq = StaggeredRate(attr, attr.sample_freq, id);  // one union with sample_period
  return attr;
}

int StackRingsOf(const std::vector<std::unique_ptr<SampleRing>>& rings) {
  return static_cast<int>(std::count_if(rings.begin(), rings.end(), [](const auto& ring) {
    return ring->events.layout(0).Has(PERF_SAMPLE_STACK_USER);
  }));
}

// `stacks`: its samples carry a piece of the stack, where there is all the room for it: samples come first.
absl::StatusOr<OpenedRing> OpenRing(const perf_event_attr& attr, const PerfTarget& target,
                                    bool stacks, RingMaker& maker, absl::string_view event,
                                    const std::string& subject) {
  if (stacks) {
    const perf_event_attr stacked = WithPieceOfStack(attr);
    PerfOpenResult opened = OpenPerfEvent(stacked, target);
    if (opened.fd.valid()) {
      auto ring = maker.MakeExactly(std::move(opened.fd), kPieceRingBytes);
      if (ring.ok()) return OpenedRing{*std::move(ring), stacked};
    }
  }
  PerfOpenResult opened = OpenPerfEvent(attr, target);
  if (!opened.fd.valid()) return PerfOpenError(opened.error, event, subject);
  ASSIGN_OR_RETURN(PerfRing ring, maker.Make(std::move(opened.fd)));
  return OpenedRing{std::move(ring), attr};
}

absl::StatusOr<SampledProcess> ReadProcess(const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const uint64_t start_ticks, procfs.StartTicks(pid));
  ASSIGN_OR_RETURN(const ProcessStatus status, procfs.Status(pid));
  return SampledProcess{start_ticks, RightsOf(status)};
}

bool HasEnded(const ProcFs& procfs, int32_t pid) {
  const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
  return status.ok() && (status->state == 'Z' || status->state == 'X');
}

}  // namespace

std::vector<int32_t> ParseCpuList(absl::string_view text) {
  std::vector<int32_t> cpus;
  for (absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(text), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int32_t first = 0;
    int32_t last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || first > last || last >= kMaxCpus) {
      return {};
    }
    for (int32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

ThreadRings::ThreadRings(ProcFs procfs, ChosenEvent event, uint64_t ring_bytes, RingBudget* budget)
    : procfs_(std::move(procfs)),
      event_(std::move(event)),
      maker_(std::make_unique<RingMaker>(ring_bytes, budget)),
      clock_offset_ns_(PerfClockOffsetNs(procfs_)) {}

absl::Status ThreadRings::Add(OpenedRing opened, const PerfTarget& target, int32_t pid) {
  const int32_t tid = target.cgroup ? 0 : target.id;
  std::vector<IdentifiedEvent> events{{EventLayout::Of(opened.attr), {}}};
  const AccessEvents& accesses = event_.accesses;
  if (accesses.size() > 0) {
    ASSIGN_OR_RETURN(const uint64_t own, opened.ring.Id());
    events[0].ids.push_back(own);
  }
  for (size_t i = 0; i < accesses.size(); ++i) {
    const uint64_t id = maker_->AddEvent(accesses.at(i), target, opened.ring);
    events.push_back({EventLayout::Of(accesses.at(i).attr), {}});
    if (id != 0) events.back().ids.push_back(id);
  }
  ASSIGN_OR_RETURN(EventSet set, EventSet::Create(events, clock_offset_ns_));
  const int32_t number = tid != 0 ? tid : static_cast<int32_t>(rings_.size());
  const uint64_t rate = StaggeredRate(event_.attr, event_.attr.sample_freq, number);
  rings_.push_back(std::make_unique<SampleRing>(SampleRing{.ring = std::move(opened.ring),
                                                           .events = std::move(set),
                                                           .pid = pid,
                                                           .tid = tid,
                                                           .rate = rate}));
  if (tid != 0) open_tids_.insert(tid);
  return absl::OkStatus();
}

absl::Status ThreadRings::Open(int32_t pid, int32_t tid) {
  const PerfTarget target{.id = tid};
  ASSIGN_OR_RETURN(
      OpenedRing opened,
      OpenRing(Staggered(event_.attr, tid), target, StackRingsOf(rings_) < event_.stack_rings,
               *maker_, event_.name, absl::StrCat("thread ", tid, " of process ", pid)));
  // Short threads must not be seen more often than long ones; without a sideband it rests from the next slot on, or never.
  if (rests_ && opened.ring.AddSideband(opened.attr, target).ok()) opened.ring.Rest();
  return Add(std::move(opened), target, pid);
}

absl::Status ThreadRings::OpenNewThreads(int32_t pid, bool* found) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tids, procfs_.Threads(pid));
  for (const int32_t tid : tids) {
    if (HasRing(tid)) continue;
    const absl::Status opened = Open(pid, tid);
    if (absl::IsNotFound(opened)) continue;  // ended since the listing
    RETURN_IF_ERROR(opened);
    *found = true;
    if (forked_.contains(pid)) ReportLate(pid, tid);
  }
  return absl::OkStatus();
}

bool ThreadRings::IsSame(int32_t pid) const {
  const auto known = processes_.find(pid);
  const absl::StatusOr<SampledProcess> process = ReadProcess(procfs_, pid);
  // Reads can also fail for want of a descriptor, which says nothing about the process.
  if (!process.ok()) return !absl::IsNotFound(process.status());
  return known != processes_.end() && *process == known->second;
}

absl::Status ThreadRings::OpenAllThreads(int32_t pid) {
  bool found = true;
  for (int pass = 0; pass < kMaxPasses && found; ++pass) {
    found = false;
    RETURN_IF_ERROR(OpenNewThreads(pid, &found));
  }
  return absl::OkStatus();
}

// Only such as were opened a moment ago: what they hold is lost.
void ThreadRings::ForgetRingsFrom(size_t first) {
  for (size_t i = first; i < rings_.size(); ++i) open_tids_.erase(rings_[i]->tid);
  rings_.resize(first);
}

absl::Status ThreadRings::AddProcess(int32_t pid) {
  if (processes_.contains(pid)) {
    if (IsSame(pid)) return absl::OkStatus();
    CloseProcess(pid);  // the pid has been reused
  }
  ASSIGN_OR_RETURN(const SampledProcess process, ReadProcess(procfs_, pid));
  const size_t before = rings_.size();
  absl::Status status = OpenAllThreads(pid);
  // The first threads must not take the memory that the last ones need.
  while (absl::IsResourceExhausted(status) && maker_->Halve()) {
    ForgetRingsFrom(before);
    status = OpenAllThreads(pid);
  }
  const absl::StatusOr<SampledProcess> again = ReadProcess(procfs_, pid);
  const bool same = again.ok() && *again == process;
  const bool any = std::any_of(rings_.begin(), rings_.end(), [&](const auto& ring) {
    return ring->pid == pid && !ring->closing;
  });
  if (status.ok() && (!same || !any)) {
    status = absl::NotFoundError(absl::StrCat("process ", pid, " has ended or changed its owner"));
  }
  if (status.ok()) {
    processes_[pid] = process;
    forked_.erase(pid);
  } else {
    CloseProcess(pid);
  }
  return status;
}

absl::Status ThreadRings::AddCgroup(const std::string& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FileError(errno, "open", directory);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(kOnlineCpus, PageBytes()));
  const std::vector<int32_t> cpus = ParseCpuList(text);
  if (cpus.empty()) return absl::InternalError(absl::StrCat(kOnlineCpus, " does not parse"));
  maker_->LimitRings(static_cast<int>(cpus.size()), kUnlimitedBytes);
  for (const int32_t cpu : cpus) {
    const PerfTarget target{.id = fd.get(), .cpu = cpu, .cgroup = true};
    auto opened = OpenRing(Staggered(event_.attr, static_cast<int32_t>(rings_.size())), target,
                           StackRingsOf(rings_) < event_.stack_rings, *maker_, event_.name,
                           absl::StrCat("cgroup ", directory, " on CPU ", cpu));
    if (!opened.ok()) {
      rings_.clear();
      return opened.status();
    }
    // Later the cgroup may be gone.
    opened->ring.AddSideband(opened->attr, target).IgnoreError();
    absl::Status added = Add(*std::move(opened), target, 0);
    if (!added.ok()) {
      rings_.clear();
      return added;
    }
  }
  return absl::OkStatus();
}

void ThreadRings::ReportLate(int32_t pid, int32_t tid) {
  const absl::StatusOr<uint64_t> cpu_ns = procfs_.CpuNs(pid, tid);
  // Gone already: how long it ran is not known, but that it was missed is.
  if (!cpu_ns.ok() || *cpu_ns > 0) late_.push_back({pid, tid, cpu_ns.ok() ? *cpu_ns : 0});
}

absl::Status ThreadRings::OpenThread(int32_t pid, int32_t tid, bool announced) {
  if (!processes_.contains(pid) || HasRing(tid)) return absl::OkStatus();
  absl::Status status = Open(pid, tid);
  // A thread that is listed but cannot be opened any more is ending: it was sampled until now, or has been announced.
  const bool was_missed = announced || !absl::IsNotFound(status);
  if (was_missed && !told_late_.contains(tid)) {
    if (absl::IsNotFound(status))
      late_.push_back({pid, tid, 0});  // how long it ran nobody can tell any more
    else
      ReportLate(pid, tid);
  }
  if (status.ok() || absl::IsNotFound(status)) {
    told_late_.erase(tid);
    return status;
  }
  if (told_late_.insert(tid).second && told_late_.size() == 1) {
    LogWarning("a new thread cannot be sampled: {}", Text(status));
  }
  return status;
}

void ThreadRings::RecordForked(int32_t pid) {
  if (forked_.size() < kMaxForked) forked_.insert(pid);
}

// exec leaves one thread, which takes the pid as its tid whatever it was before, and keeps its event. Everything else
// of the process is gone. Source: fs/exec.c de_thread.
void ThreadRings::RecordExec(SampleRing& seen_in, int32_t pid) {
  // Closing: a rescan was faster and has opened the thread anew.
  if (seen_in.tid == 0 || seen_in.pid != pid || seen_in.closing) return;
  for (const auto& ring : rings_) {
    if (ring->pid != pid || ring.get() == &seen_in) continue;
    ring->closing = true;
    open_tids_.erase(ring->tid);
  }
  open_tids_.erase(seen_in.tid);
  seen_in.tid = pid;
  open_tids_.insert(pid);
  if (processes_.contains(pid) && !IsSame(pid)) CloseProcess(pid);
}

void ThreadRings::RecordExit(SampleRing& ring) {
  if (ring.closing) return;
  ring.closing = true;
  open_tids_.erase(ring.tid);
  if (ring.tid == ring.pid) leader_ended_[ring.pid] = kLeaderTries;
}

void ThreadRings::CloseProcess(int32_t pid) {
  processes_.erase(pid);
  for (const auto& ring : rings_) {
    if (ring->pid != pid || ring->tid == 0 || ring->closing) continue;
    ring->ring.Disable();
    ring->closing = true;
    open_tids_.erase(ring->tid);
  }
}

void ThreadRings::RescanProcess(int32_t pid, const absl::flat_hash_set<int32_t>& told) {
  const absl::StatusOr<std::vector<int32_t>> tids = procfs_.Threads(pid);
  const bool gone = absl::IsNotFound(tids.status()) || !IsSame(pid);
  if (gone) CloseProcess(pid);
  if (gone || !tids.ok()) return;
  for (const auto& ring : rings_) {
    if (ring->pid != pid || ring->closing ||
        std::binary_search(tids->begin(), tids->end(), ring->tid)) {
      continue;
    }
    ring->ring.Disable();
    ring->closing = true;
    open_tids_.erase(ring->tid);
  }
  for (const int32_t tid : *tids) {
    // The leader of a process can end before its threads: it stays listed, and there is nothing to sample.
    if (HasRing(tid) || (tid == pid && HasEnded(procfs_, pid))) continue;
    if (told.contains(tid)) told_late_.insert(tid);
    OpenThread(pid, tid, /*announced=*/false).IgnoreError();  // said, and tried again
    // A leader without a ring that runs: a thread that was too young to have one has called exec.
    if (tid == pid && HasRing(pid)) execs_.push_back(pid);
  }
}

void ThreadRings::FollowLeaders() {
  std::vector<int32_t> pids;
  for (auto& [pid, tries] : leader_ended_) {
    if (tries-- > 0) pids.push_back(pid);
  }
  for (const int32_t pid : pids) {
    if (processes_.contains(pid) && !HasRing(pid)) RescanProcess(pid, told_late_);
  }
  absl::erase_if(leader_ended_, [](const auto& entry) { return entry.second <= 0; });
}

void ThreadRings::Rescan() {
  if (!rings_.empty() && rings_.front()->tid == 0) return;  // a cgroup needs none
  std::vector<int32_t> pids;
  for (const auto& [pid, start_ticks] : processes_) pids.push_back(pid);
  // Those that have ended are forgotten.
  const absl::flat_hash_set<int32_t> told = std::exchange(told_late_, {});
  for (const int32_t pid : pids) RescanProcess(pid, told);
}

void ThreadRings::Sweep() {
  std::erase_if(rings_, [](const auto& ring) { return ring->closing && ring->read_since_close; });
}

absl::Status ThreadRings::SetRate(SampleRing& ring, uint64_t value) const {
  int32_t id = ring.tid;
  if (id == 0) {  // of a CPU: its place among them
    const auto is_it = [&](const auto& other) { return other.get() == &ring; };
    id = static_cast<int32_t>(std::find_if(rings_.begin(), rings_.end(), is_it) - rings_.begin());
  }
  value = StaggeredRate(event_.attr, value, id);
  RETURN_IF_ERROR(ring.ring.SetRate(value));
  ring.rate = value;
  return absl::OkStatus();
}

absl::Status ThreadRings::SetFrequency(double hz) {
  const uint64_t value = RateValue(event_.attr, hz);
  event_.attr.sample_freq = value;  // for threads to come; one union with sample_period
  absl::Status first_error;
  for (const auto& ring : rings_) {
    if (!ring->closing) first_error.Update(SetRate(*ring, value));
  }
  return first_error;
}

absl::Status ThreadRings::MayRest(SampleRing& ring) {
  if (ring.restless) return why_restless_;
  if (ring.ring.has_sideband()) return absl::OkStatus();
  if (ring.tid == 0) return absl::UnavailableError("the events of the cgroup cannot rest");
  const absl::Status added = ring.ring.AddSideband(event_.attr, {.id = ring.tid});
  return absl::IsNotFound(added) ? absl::OkStatus() : added;  // not found: the thread has ended
}

// One thread without a second event (descriptors are short) must not keep the timers of all others running.
absl::Status ThreadRings::Rest(double mean_hz) {
  bool any = false;
  absl::Status why;
  for (const auto& ring : rings_) {
    if (ring->closing) continue;
    if (absl::Status may = MayRest(*ring); !may.ok()) {
      why = std::move(may);
      if (std::exchange(ring->restless, true)) continue;
      why_restless_ = why;
      // What cannot even be slowed is sampled more often than the others: its samples stand for less time each.
      if (absl::Status slow = SetRate(*ring, RateValue(event_.attr, mean_hz)); !slow.ok())
        LogWarning("thread {}: {}", ring->tid, Text(slow));
      continue;
    }
    any = true;
    ring->ring.Rest();
  }
  rests_ = why.ok() || any;
  return any ? absl::OkStatus() : why;
}

absl::Status ThreadRings::SetRestless(double mean_hz) {
  absl::Status first_error;
  for (const auto& ring : rings_) {
    if (ring->restless && !ring->closing)
      first_error.Update(SetRate(*ring, RateValue(event_.attr, mean_hz)));
  }
  return first_error;
}

int ThreadRings::restless() const {
  return static_cast<int>(std::count_if(rings_.begin(), rings_.end(), [](const auto& ring) {
    return ring->restless && !ring->closing;
  }));
}

double ThreadRings::OnShare(double share) const {
  const auto open =
      std::count_if(rings_.begin(), rings_.end(), [](const auto& ring) { return !ring->closing; });
  if (open == 0) return share;
  const double part = static_cast<double>(restless()) / static_cast<double>(open);
  return part + (1 - part) * share;
}

void ThreadRings::GoOn() {
  if (!std::exchange(rests_, false)) return;
  for (const auto& ring : rings_) {
    if (!ring->closing) ring->ring.GoOn();
  }
}

uint64_t ThreadRings::DrainRestedNs() {
  uint64_t sum = 0;
  if (!rests_) return sum;
  for (const auto& ring : rings_) {
    if (!ring->restless) sum += ring->ring.DrainRestedNs();
  }
  return sum;
}

int ThreadRings::thread_count() const {
  return static_cast<int>(open_tids_.size());
}

}  // namespace perfd::agent
