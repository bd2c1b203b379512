#include "agent/shadow/run/armed_shadow.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/procfs/open_as_owner.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/injection.h"
#include "agent/shadow/protect_list.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/run/in_situ_threads.h"
#include "agent/shadow/run/make_plan.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A team that stands still waits for what the agent is to tell it: then every look counts.
constexpr int64_t kEagerPollNs = 50'000;
constexpr int64_t kPollNs = kNsPerMs;
constexpr int64_t kLongestPollNs = 5 * kNsPerMs;
constexpr int64_t kDoorbellPollNs =
    25 * kNsPerMs;                              // with a doorbell: for a cancel, a rank that ends
constexpr int64_t kScanNs = 20'000;             // of the agent's CPU time, waking included
constexpr int64_t kGraceNs = 3 * kNsPerSecond;  // for a shadow that must be killed and reaped
constexpr int64_t kLongestEarlyNs = kNsPerSecond;  // of a caller that comes before its window

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// How often to look for what came within `waited_ns` not yet, and may take as long again: the looks of that time and half of
// what lies between two of them cost the least together.
int64_t PollNs(int64_t waited_ns) {
  const double best =
      std::sqrt(2.0 * kScanNs * static_cast<double>(std::max<int64_t>(0, waited_ns)));
  return std::clamp(static_cast<int64_t>(best), kEagerPollNs, kLongestPollNs);
}

// Everything is ready, the arming waits for its moment. How long the loop may stay armed then.
absl::StatusOr<int64_t> AwaitMoment(const ShadowRequest& request) {
  if (request.arm_until_ns == 0) return request.timeout_ns;
  const int64_t early = std::min(request.arm_from_ns - Now(), kLongestEarlyNs);
  if (early > 0) absl::SleepFor(absl::Nanoseconds(early));
  const int64_t left = request.arm_until_ns - Now();
  if (left <= 0) return absl::CancelledError("its window was over before it could be armed");
  return std::min(left, request.timeout_ns);
}

std::vector<RestoreRange> NobodysRanges(const std::vector<std::pair<uint64_t, uint64_t>>& memory) {
  std::vector<RestoreRange> ranges;
  ranges.reserve(memory.size());
  for (const auto& [address, bytes] : memory) ranges.push_back({address, bytes, kSharedOut, 0});
  return ranges;
}

absl::Status SetOomScore(int32_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/oom_score_adj");
  const UniqueFd file = OpenAsOwner(path, O_WRONLY | O_CLOEXEC);
  if (file.get() < 0 || write(file.get(), "1000", 4) != 4) return FileError(errno, "write", path);
  return absl::OkStatus();
}

// What the agent knows of the arming when it is about to sleep.
struct Moment {
  uint32_t phase = kPhaseIdle;
  bool served = false;
  bool disarmed = false;
  bool hears_doorbell = false;
  int64_t waited_ns = 0;
  int64_t left_ns = 0;        // until it gives up
  int64_t agent_wait_ns = 0;  // a team that waits for an answer does so for so long
};

bool IsUnderWay(uint32_t phase) {
  return phase == kPhaseShadow || phase == kPhaseGather;
}

// Until it looks again.
int64_t NapNs(const Moment& now) {
  int64_t nap_ns = now.served              ? kPollNs
                   : IsUnderWay(now.phase) ? kEagerPollNs
                                           : PollNs(now.waited_ns);
  nap_ns = std::min(nap_ns, now.agent_wait_ns / 8);
  if (now.disarmed) return nap_ns;
  if (now.hears_doorbell)
    nap_ns = now.phase == kPhaseShadow && !now.served ? kPollNs : kDoorbellPollNs;
  return std::min(nap_ns, std::max(kEagerPollNs, now.left_ns));
}

}  // namespace

// Files may be opened and memory be taken at any moment: all is looked at anew, the trimmed fork last.
absl::Status ArmedShadow::Plan() {
  ASSIGN_OR_RETURN(const RankHazards hazards, forecast_.CheckHazards());
  facts_ = hazards.memory;
  const absl::Status room =
      JudgeMemory(facts_, hazards.node, hazards.cgroup, BytesWritten(request_, facts_),
                  rank_.options.ranks_at_once);
  if (!room.ok()) return absl::UnavailableError(room.message());  // there may be more another time
  const PlanLimits limits{rank_.region->blocks(), rank_.options.max_shadow_ns};
  ASSIGN_OR_RETURN(plan_, MakePlan(site_, request_, limits, rank_.ticks));
  plan_.generation = ++rank_.generation;
  if (!request_.footprint) return absl::OkStatus();
  auto work = forks_.Begin(*request_.footprint, request_.team);
  if (!work.ok()) return absl::AbortedError(work.status().message());
  trim_.emplace(rank_, forecast_.cost(), forks_, *std::move(work));
  plan_.flags |= kPlanTrim;
  return absl::OkStatus();
}

// Nobody reads the plan before the mode says so, and nobody may still read the last one. Without anybody in place a phase that
// was left behind means nothing.
absl::Status ArmedShadow::Arm() {
  LiveRegion& region = *rank_.region;
  const uint64_t at = SiteAddress();
  RETURN_IF_ERROR(region.SetMode(site_.number(), kModeIdle));
  ASSIGN_OR_RETURN(const bool busy, region.IsBusy());
  if (busy) return absl::UnavailableError("the last shadow is not over yet");
  RETURN_IF_ERROR(AwaitNobodyInSitu(rank_));
  ASSIGN_OR_RETURN(Site state, region.Read<Site>(at));
  RETURN_IF_ERROR(region.Beat());
  RETURN_IF_ERROR(region.Write(region.PlanAddress(), plan_));
  RETURN_IF_ERROR(
      region.Write(at + offsetof(Site, countdown), std::max<int64_t>(0, request_.countdown) + 1));
  RETURN_IF_ERROR(region.Write(at + offsetof(Site, failures), uint32_t{0}));
  RETURN_IF_ERROR(region.Write(at + offsetof(Site, last_outcome), uint32_t{kOutcomeNone}));
  RETURN_IF_ERROR(region.Write(at + offsetof(Site, pause_ticks), uint64_t{0}));
  RETURN_IF_ERROR(region.Write(at + offsetof(Site, state),
                               SiteState(SiteRound(state.state) + 1, 0, kPhaseArmed)));
  return region.SetMode(site_.number(), kModeArmed);
}

// The shadow's own mappings cannot change any more: what it shares with others is exactly what they say.
absl::Status ArmedShadow::WriteRanges(const std::vector<MapEntry>& maps) {
  const LiveRegion& region = *rank_.region;
  ASSIGN_OR_RETURN(std::vector<ProtectRange> ranges,
                   ProtectList(maps, rank_.code.injection.region, forecast_.differs_in_fork()));
  const uint64_t plan_at = region.PlanAddress();
  RETURN_IF_ERROR(region.WriteMany(plan_at + offsetof(ShadowPlan, protects), ranges));
  RETURN_IF_ERROR(region.Write(plan_at + offsetof(ShadowPlan, protect_count),
                               static_cast<uint32_t>(ranges.size())));
  const std::vector<RestoreRange> requested(plan_.restores, plan_.restores + plan_.restore_count);
  const std::vector<RestoreRange> restores = ClipRestores(maps, requested);
  if (restores.size() > kMaxRestores)
    return absl::ResourceExhaustedError("too many ranges to restore");
  std::vector<RestoreRange> all = restores;
  const auto add = [&](const std::vector<std::pair<uint64_t, uint64_t>>& memory) {
    const size_t before = all.size();
    for (const RestoreRange& range : ClipRestores(maps, NobodysRanges(memory))) {
      if (all.size() < kMaxRestores) all.push_back(range);
    }
    return uint64_t{all.size() - before};
  };
  const uint64_t written = add(request_.written.ranges), read = add(request_.written.read_once);
  RETURN_IF_ERROR(region.WriteMany(plan_at + offsetof(ShadowPlan, restores), all));
  RETURN_IF_ERROR(region.Write(plan_at + offsetof(ShadowPlan, memory.written_count), written));
  RETURN_IF_ERROR(region.Write(plan_at + offsetof(ShadowPlan, memory.read_count), read));
  RETURN_IF_ERROR(region.Write(plan_at + offsetof(ShadowPlan, restore_count),
                               static_cast<uint32_t>(restores.size())));
  RETURN_IF_ERROR(
      region.Write(plan_at + offsetof(ShadowPlan, memory.mapped_bytes), MappedBytes(maps)));
  protects_ = std::move(ranges);
  return absl::OkStatus();
}

// The kernel itself writes to a thread's own data (restartable sequences), and to its stack for signals: what is read-only there ends
// the shadow without a word.
absl::Status ArmedShadow::CheckThreads(const std::vector<MapEntry>& maps) const {
  const LiveRegion& region = *rank_.region;
  ASSIGN_OR_RETURN(const ChildControl child, region.Read<ChildControl>(region.ChildAddress()));
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> records, region.Records());
  for (uint32_t place = 0; place < std::min(plan_.team, kMaxTeam); ++place) {
    if (child.records[place] >= records.size()) continue;
    const ThreadRecord& record = records[child.records[place]];
    for (const uint64_t address : {record.fs_base, record.registers.rsp}) {
      const MapEntry* const map = FindMapping(maps, address);
      if (map != nullptr && map->shared)
        return absl::FailedPreconditionError(absl::StrCat(
            "thread ", record.tid,
            " has its stack or its own data in shared memory, which no shadow may write to"));
    }
  }
  return absl::OkStatus();
}

absl::Status ArmedShadow::Serve() {
  struct Head {
    uint32_t done, error_step;
    int32_t error;
    uint32_t generation, waiting, go;
  };
  static_assert(offsetof(ChildControl, go) == 20);
  const LiveRegion& region = *rank_.region;
  RETURN_IF_ERROR(region.IsThere());
  ASSIGN_OR_RETURN(Head head, region.Read<Head>(region.ChildAddress()));
  if (head.generation != plan_.generation || head.waiting == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(uint32_t inner,
                   region.Read<uint32_t>(SiteAddress() + offsetof(Site, child_pid)));
  if (inner == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(int32_t child, FindChild(rank_.info.pid, static_cast<int32_t>(inner)));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(child));
  RETURN_IF_ERROR(CheckShadow(*rank_.options.admitted, rank_.info.pid, child));
  RETURN_IF_ERROR(CheckThreads(maps));
  RETURN_IF_ERROR(WriteRanges(maps));
  RETURN_IF_ERROR(SetOomScore(child));
  served_ = true;
  return region.Write(region.ChildAddress() + offsetof(ChildControl, go), uint32_t{1});
}

// What the leader, and then its shadow, waits for.
absl::Status ArmedShadow::Answer(uint32_t phase) {
  if (phase != kPhaseShadow) return absl::OkStatus();
  absl::Status status;
  if (trim_ && !trim_->answered()) status = trim_->AnswerLeader(plan_);
  if (status.ok() && !served_) status = Serve();
  // A shadow that is not served gives up by itself.
  if (absl::IsNotFound(status) && Memory::Open(rank_.info.pid, rank_.info.start_ticks).ok())
    return absl::OkStatus();
  return status;
}

absl::Status ArmedShadow::Await(int64_t timeout_ns) {
  LiveRegion& region = *rank_.region;
  const int64_t begin = Now(), give_up = begin + timeout_ns;
  const int64_t last = give_up + static_cast<int64_t>(plan_.shadow_ns) + kGraceNs;
  Moment moment;
  moment.agent_wait_ns = static_cast<int64_t>(plan_.agent_wait_ns);
  moment.hears_doorbell = region.doorbell().can_wait();
  int64_t nap_ns = kEagerPollNs;
  for (uint32_t doorbell = 0;; region.doorbell().Await(doorbell, nap_ns)) {
    RETURN_IF_ERROR(region.BeatIfDue());
    ASSIGN_OR_RETURN(doorbell, region.doorbell().Count());
    // Before the state: whoever is still in place may change it.
    ASSIGN_OR_RETURN(const uint32_t inside, region.InSitu());
    ASSIGN_OR_RETURN(Site state, region.Read<Site>(SiteAddress()));
    moment.phase = SitePhase(state.state);
    if (state.generation_done == plan_.generation && moment.phase != kPhaseShadow)
      return absl::OkStatus();
    RETURN_IF_ERROR(Answer(moment.phase));
    // A thread that is held up right there may still open the gathering.
    if (moment.disarmed && !IsUnderWay(moment.phase) && (inside == 0 || Now() >= last)) {
      RETURN_IF_ERROR(rank_.hold.MayAlter());
      return absl::DeadlineExceededError(
          "the loop was not entered, or its team did not meet, in time");
    }
    // One more look after the disarming: a thread may just have come in.
    if ((Now() >= give_up || rank_.hold.Cancelled()) && !moment.disarmed) {
      RETURN_IF_ERROR(region.SetMode(site_.number(), kModeIdle));
      moment.disarmed = true;
    }
    if (Now() >= last) return absl::InternalError("a shadow does not end");
    moment.served = served_;
    moment.waited_ns = Now() - begin;
    moment.left_ns = give_up - Now();
    nap_ns = NapNs(moment);
  }
}

absl::Status ArmedShadow::ReadTraces(ShadowReading* reading) const {
  const LiveRegion& region = *rank_.region;
  const InstalledLoop& installed = site_.built.installed;
  size_t references = 0;
  for (size_t i = 0; i < request_.runs.size(); ++i) {
    if ((plan_.runs[i + 1].flags & kRunTrace) == 0 || request_.runs[i].form != CopyForm::kUsual)
      continue;
    reading->trace_run = static_cast<int32_t>(i);
    ASSIGN_OR_RETURN(const CodeCopy* traced, CopyOf(installed, request_.runs[i]));
    references = traced->references.size();
  }
  for (uint32_t place = 0; place < plan_.team && reading->trace_run >= 0; ++place) {
    const uint32_t record = std::min<uint32_t>(reading->child.records[place], region.blocks() - 1);
    const size_t count = std::min<size_t>(references, kTraceCount);
    ASSIGN_OR_RETURN(
        std::vector<TraceRecord> trace,
        region.ReadMany<TraceRecord>(region.BlockAddress(record) + kBlockTrace, count));
    reading->traces.push_back(std::move(trace));
    if (installed.excluded_paths.empty()) continue;
    ASSIGN_OR_RETURN(const uint64_t excluded_path,
                     region.Read<uint64_t>(region.BlockAddress(record) + kBlockExcludedPath));
    reading->excluded_paths.push_back(excluded_path);
  }
  return absl::OkStatus();
}

absl::StatusOr<ShadowAnswer> ArmedShadow::Collect() const {
  const LiveRegion& region = *rank_.region;
  ShadowReading reading;
  reading.protects = protects_;
  if (trim_) reading.trimmed_out = trim_->chosen().ranges;
  ASSIGN_OR_RETURN(reading.site, region.Read<Site>(SiteAddress()));
  ASSIGN_OR_RETURN(reading.child, region.Read<ChildControl>(region.ChildAddress()));
  const size_t slots = size_t{plan_.run_count} * plan_.team;
  ASSIGN_OR_RETURN(reading.results, region.ReadMany<RunResult>(region.ResultsAddress(), slots));
  RETURN_IF_ERROR(ReadTraces(&reading));
  if (reading.child.fault_count > 0) {
    const auto maps = ProcFs().Maps(rank_.info.pid);
    reading.early_end.fault_in_rank =
        maps.ok() && FindMapping(*maps, reading.child.fault.address) != nullptr;
  }
  if (EndedByCall(reading.site.last_outcome)) {
    const auto maps = ProcFs().Maps(rank_.info.pid);
    const TrapRecord& trap = reading.child.trap;
    reading.early_end.trapped =
        LocateCall(trap.call, trap.place, maps.ok() ? *maps : std::vector<MapEntry>());
  }
  reading.team = plan_.team;
  reading.runs = request_.runs.size();
  reading.copies = AllCopies(site_.built.installed);
  for (const RunSpec& run : request_.runs) reading.variants.push_back(run.variant);
  ASSIGN_OR_RETURN(ShadowAnswer answer, ReadAnswer(reading));
  answer.pause_ns = rank_.ticks.ToNs(reading.site.pause_ticks);
  answer.fork_ns = rank_.ticks.ToNs(reading.site.fork_ticks);
  answer.pause_begin_ns = rank_.ticks.MonotonicAt(reading.site.first_arrival);
  return answer;
}

// Of the last arming; 0: no team met.
int64_t ArmedShadow::PauseNs() const {
  const auto ticks = rank_.region->Read<uint64_t>(SiteAddress() + offsetof(Site, pause_ticks));
  const uint64_t most = rank_.ticks.ToTicks(60 * kNsPerSecond);
  return ticks.ok() ? rank_.ticks.ToNs(std::min(*ticks, most)) : 0;
}

absl::StatusOr<ShadowAnswer> ArmedShadow::End(const absl::Status& ended) {
  const absl::Status trimmed = trim_ ? trim_->End() : absl::OkStatus();
  if (!ended.ok()) {
    rank_.region->SetMode(site_.number(), kModeIdle).IgnoreError();
    ++rank_.cost.failed_arms;
    return ended;
  }
  RETURN_IF_ERROR(trimmed);
  return Collect();
}

void ArmedShadow::ChargeArmed(const std::vector<ThreadRecord>& before) {
  if (const auto after = rank_.region->Records(); after.ok()) {
    const uint64_t most = MostEntries(NewEntries(before, *after, site_.number()));
    rank_.cost.pass_through_ns += kSlowEntryNs * static_cast<int64_t>(most);
  }
  const auto now = rank_.region->Read<Site>(SiteAddress());
  if (now.ok()) ChargeSite(*now, plan_, &site_, &rank_.cost);
}

void ArmedShadow::ChargeEnd(const absl::Status& ended, absl::StatusOr<ShadowAnswer>* answer) {
  if (answer->ok()) {
    ShadowAnswer& done = **answer;
    done.later_fault_ns = forecast_.LearnShadow(trim_ ? Trimmed(facts_, trim_->chosen()) : facts_,
                                                done.fork_ns, !trim_);
    ++rank_.cost.shadows;
    rank_.cost.pause_ns += done.pause_ns;
    rank_.cost.longest_pause_ns = std::max(rank_.cost.longest_pause_ns, done.pause_ns);
    rank_.cost.failed_arms += static_cast<uint64_t>(done.failed_gathers);
  }
  // Also of a shadow that came to nothing: the team stood still for it.
  const int64_t pause_ns = answer->ok() ? (*answer)->pause_ns : PauseNs();
  if (!answer->ok()) rank_.cost.pass_through_ns += pause_ns;
  if (ended.ok() || pause_ns > 0) rank_.hold.Audit("shadow", &site_, pause_ns, answer->status());
}

absl::StatusOr<ShadowAnswer> ArmedShadow::Run() {
  forecast_.LearnLaterFaults();
  RETURN_IF_ERROR(Plan());
  ASSIGN_OR_RETURN(const int64_t timeout_ns, AwaitMoment(request_));
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> before, rank_.region->Records());
  RETURN_IF_ERROR(Arm());
  const absl::Status ended = Await(timeout_ns);
  ChargeArmed(before);
  absl::StatusOr<ShadowAnswer> answer = End(ended);
  ChargeEnd(ended, &answer);
  return answer;
}

}  // namespace perfd::agent
