// ProcessInjector: one shadow from the plan to the answer.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/procfs/open_as_owner.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/injector/process_injector.h"
#include "agent/shadow/protect_list.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "agent/shadow/shadow_reading.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// A team that stands still waits for what the agent is to tell it: then every look counts.
constexpr int64_t kEagerPollNs = 50'000;
constexpr int64_t kPollNs = kNsPerMs;
constexpr int64_t kLongestPollNs = 5 * kNsPerMs;
constexpr int64_t kDoorbellPollNs =
    25 * kNsPerMs;                   // with a doorbell: for a cancel, a rank that ends
constexpr int64_t kScanNs = 20'000;  // of the agent's CPU time, waking included
constexpr uint64_t kGatherNs = 1'000'000;
constexpr uint32_t kRetries = 8;
constexpr int64_t kGraceNs = 3 * kNsPerSecond;  // for a shadow that must be killed and reaped
constexpr double kSoftShare = 0.85;             // of the hard limit: no run begins later
constexpr uint64_t kAgentWaitNs = 50'000'000;
constexpr int64_t kLongestEarlyNs = kNsPerSecond;  // of a caller that comes before its window

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// A copy of each page that is written, of those that there are; and what is put aside.
uint64_t BytesWritten(const ShadowRequest& request, const MemoryFacts& memory) {
  uint64_t bytes = std::min(request.written_bytes, memory.anonymous);
  for (const auto& range : request.restores) bytes += std::min(range.second, uint64_t{1} << 40);
  Evict most = Evict::kNothing;
  for (const RunSpec& run : request.runs) most = std::max(most, run.evict);
  return bytes + EvictBytesOfThisCpu(most) * static_cast<uint64_t>(std::max(1, request.team));
}

absl::StatusOr<const CodeCopy*> CopyOf(const InstalledLoop& installed, const RunSpec& request) {
  const auto variant = static_cast<size_t>(request.variant);
  if (request.instances == 0) return &installed.copies[variant];
  if (variant >= installed.batched.size()) return installed.batches;
  RETURN_IF_ERROR(installed.batched[variant].status());
  return &*installed.batched[variant];
}

// Where the copy begins at a place, counted round.
uint64_t EntryOf(const CodeCopy& copy, int32_t place) {
  const size_t at = static_cast<size_t>(std::max(0, place)) % (copy.shifts.size() + 1);
  return copy.entry + (at == 0 ? 0 : copy.shifts[at - 1]);
}

bool IsEntryOf(const CodeCopy& copy, uint64_t address) {
  const uint64_t shift = address - copy.entry;
  return shift == 0 ||
         std::find(copy.shifts.begin(), copy.shifts.end(), shift) != copy.shifts.end();
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

absl::Status SetOomScore(int32_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/oom_score_adj");
  const UniqueFd file = OpenAsOwner(path, O_WRONLY | O_CLOEXEC);
  if (file.get() < 0 || write(file.get(), "1000", 4) != 4) return FileError(errno, "write", path);
  return absl::OkStatus();
}

}  // namespace

int32_t MostRuns(int32_t team) {
  const auto slots = static_cast<int32_t>(kResultSlots) / std::max(1, team);
  return std::min(static_cast<int32_t>(kMaxRuns), slots) - static_cast<int32_t>(kProbeRuns);
}

absl::Status ProcessInjector::AddRun(const PatchSite& site, const RunSpec& request,
                                     ShadowPlan* plan, uint32_t* selves) const {
  const InstalledLoop& installed = site.built.installed;
  if (request.variant < 0 || static_cast<size_t>(request.variant) >= installed.copies.size())
    return absl::InvalidArgumentError(absl::StrCat("no variant ", request.variant));
  const auto variant = static_cast<size_t>(request.variant);
  ASSIGN_OR_RETURN(const CodeCopy* chosen, CopyOf(installed, request));
  const CodeCopy& copy = *chosen;
  RunEntry& run = plan->runs[plan->run_count++];
  run.copy = EntryOf(copy, request.place);
  run.iteration_limit = request.iteration_limit;
  run.instances = request.instances;
  run.flags |= static_cast<uint32_t>(request.evict) << kRunEvictShift;
  if (request.restore) run.flags |= kRunRestore;
  if (request.learn) run.flags |= kRunLearn;
  if (copy.flush_denormals) run.flags |= kRunFtz | kRunDaz;
  if (installed.names[variant].Has(Change::kTrace)) run.flags |= kRunTrace;
  if (copy.edits.pinned > 0 || !copy.self_pointers.empty()) run.flags |= kRunPinned;
  // Runs of the same copy share their entries.
  for (uint32_t i = 0; i + 1 < plan->run_count && !copy.self_pointers.empty(); ++i) {
    if (!IsEntryOf(copy, plan->runs[i].copy)) continue;
    run.self_first = plan->runs[i].self_first;
    run.self_count = plan->runs[i].self_count;
    return absl::OkStatus();
  }
  run.self_first = static_cast<uint16_t>(*selves);
  run.self_count = static_cast<uint16_t>(copy.self_pointers.size());
  for (const SelfPointer& self : copy.self_pointers) {
    if (*selves >= kMaxSelfWords)
      return absl::ResourceExhaustedError("too many pointers into the thread block");
    plan->selves[(*selves)++] = {self.word, 0, self.value};
  }
  return absl::OkStatus();
}

// The runs that were wished for stand between runs of an empty copy: first, and two at the end.
absl::StatusOr<ShadowPlan> ProcessInjector::MakePlan(const PatchSite& site,
                                                     const ShadowRequest& request) const {
  if (request.team < 1 || static_cast<uint32_t>(request.team) > rank_.region->blocks())
    return absl::FailedPreconditionError(absl::StrCat(
        "a team of ", request.team, ": there is room for ", rank_.region->blocks(), " threads"));
  const size_t runs = request.runs.size() + kProbeRuns;
  if (runs > kMaxRuns || runs * static_cast<size_t>(request.team) > kResultSlots ||
      request.restores.size() > kMaxRestores)
    return absl::InvalidArgumentError(absl::StrCat("a shadow of ", runs, " runs and ",
                                                   request.restores.size(),
                                                   " ranges to restore is too large"));
  ShadowPlan plan{};
  plan.site = site.number();
  plan.team = static_cast<uint32_t>(request.team);
  plan.retries = kRetries;
  plan.flags = kPlanPinCpu | kPlanWaitForAgent;
  plan.gather_ns = kGatherNs;
  const int64_t longest =
      std::clamp<int64_t>(request.shadow_ns, kNsPerMs, rank_.options.max_shadow_ns);
  plan.shadow_ns = static_cast<uint64_t>(longest);
  plan.soft_ticks =
      rank_.ticks.ToTicks(static_cast<int64_t>(kSoftShare * static_cast<double>(longest)));
  plan.agent_wait_ns = std::min(kAgentWaitNs, plan.shadow_ns / 2);
  for (size_t level = 0; level < kEvictLevels; ++level)
    plan.evict_bytes[level] = EvictBytesOfThisCpu(static_cast<Evict>(level));
  uint32_t selves = 0;
  plan.runs[plan.run_count++].copy = site.empty_copy;
  for (const RunSpec& run : request.runs) RETURN_IF_ERROR(AddRun(site, run, &plan, &selves));
  for (size_t i = 1; i < kProbeRuns; ++i) plan.runs[plan.run_count++].copy = site.empty_copy;
  for (size_t i = 0; i < request.restores.size(); ++i) {
    const int32_t writer = i < request.writers.size() ? request.writers[i] : -1;
    plan.restores[plan.restore_count++] = {request.restores[i].first, request.restores[i].second,
                                           writer < 0 ? kSharedOut : static_cast<uint32_t>(writer),
                                           0};
  }
  return plan;
}

// Nobody reads the plan before the mode says so, and nobody may still read the last one. Without anybody in place a phase that
// was left behind means nothing.
absl::Status ProcessInjector::Arm(const PatchSite& site, const ShadowPlan& plan,
                                  int64_t countdown) {
  const uint64_t at = rank_.region->SiteAddress(site.number());
  RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeIdle));
  ASSIGN_OR_RETURN(uint32_t busy, rank_.region->Read<uint32_t>(rank_.region->address() +
                                                               offsetof(RegionHeader, busy)));
  if (busy != 0) return absl::UnavailableError("the last shadow is not over yet");
  RETURN_IF_ERROR(AwaitNobodyInSitu());
  ASSIGN_OR_RETURN(Site state, rank_.region->Read<Site>(at));
  RETURN_IF_ERROR(rank_.region->Beat());
  RETURN_IF_ERROR(rank_.region->Write(rank_.region->PlanAddress(), plan));
  RETURN_IF_ERROR(
      rank_.region->Write(at + offsetof(Site, countdown), std::max<int64_t>(0, countdown) + 1));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, failures), uint32_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, last_outcome), uint32_t{kOutcomeNone}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, pause_ticks), uint64_t{0}));
  RETURN_IF_ERROR(rank_.region->Write(at + offsetof(Site, state),
                                      SiteState(SiteRound(state.state) + 1, 0, kPhaseArmed)));
  return rank_.region->SetMode(site.number(), kModeArmed);
}

// The shadow's own mappings cannot change any more: what it shares with others is exactly what they say.
absl::Status ProcessInjector::ServeShadow(const PatchSite& site, const ShadowPlan& plan,
                                          bool* served) {
  struct Head {
    uint32_t done, error_step;
    int32_t error;
    uint32_t generation, waiting, go;
  };
  static_assert(offsetof(ChildControl, go) == 20);
  RETURN_IF_ERROR(rank_.region->IsThere());
  ASSIGN_OR_RETURN(Head head, rank_.region->Read<Head>(rank_.region->ChildAddress()));
  if (head.generation != plan.generation || head.waiting == 0) return absl::OkStatus();
  const uint64_t at = rank_.region->SiteAddress(site.number());
  ASSIGN_OR_RETURN(uint32_t inner, rank_.region->Read<uint32_t>(at + offsetof(Site, child_pid)));
  if (inner == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(int32_t child, FindChild(rank_.info.pid, static_cast<int32_t>(inner)));
  ASSIGN_OR_RETURN(std::vector<MapEntry> maps, ProcFs().Maps(child));
  ASSIGN_OR_RETURN(std::vector<ProtectRange> ranges,
                   ProtectList(maps, rank_.code.injection.region, memory_walk_.differs_in_fork()));
  const uint64_t plan_at = rank_.region->PlanAddress();
  RETURN_IF_ERROR(rank_.region->WriteMany(plan_at + offsetof(ShadowPlan, protects), ranges));
  RETURN_IF_ERROR(rank_.region->Write(plan_at + offsetof(ShadowPlan, protect_count),
                                      static_cast<uint32_t>(ranges.size())));
  const std::vector<RestoreRange> requested(plan.restores, plan.restores + plan.restore_count);
  const std::vector<RestoreRange> restores = ClipRestores(maps, requested);
  if (restores.size() > kMaxRestores)
    return absl::ResourceExhaustedError("too many ranges to restore");
  RETURN_IF_ERROR(rank_.region->WriteMany(plan_at + offsetof(ShadowPlan, restores), restores));
  RETURN_IF_ERROR(rank_.region->Write(plan_at + offsetof(ShadowPlan, restore_count),
                                      static_cast<uint32_t>(restores.size())));
  RETURN_IF_ERROR(SetOomScore(child));
  protects_ = std::move(ranges);
  *served = true;
  return rank_.region->Write(rank_.region->ChildAddress() + offsetof(ChildControl, go),
                             uint32_t{1});
}

absl::Status ProcessInjector::AwaitShadow(const PatchSite& site, const ShadowPlan& plan,
                                          int64_t timeout_ns) {
  const uint64_t at = rank_.region->SiteAddress(site.number());
  const int64_t begin = Now(), give_up = begin + timeout_ns;
  const int64_t last = give_up + static_cast<int64_t>(plan.shadow_ns) + kGraceNs;
  bool served = false, disarmed = false;
  int64_t nap_ns = kEagerPollNs;
  for (uint32_t doorbell = 0;; rank_.region->doorbell().Await(doorbell, nap_ns)) {
    RETURN_IF_ERROR(rank_.region->BeatIfDue());
    ASSIGN_OR_RETURN(doorbell, rank_.region->doorbell().Count());
    // Before the state: whoever is still in place may change it.
    ASSIGN_OR_RETURN(const uint32_t inside, rank_.region->InSitu());
    ASSIGN_OR_RETURN(Site state, rank_.region->Read<Site>(at));
    const uint32_t phase = SitePhase(state.state);
    if (state.generation_done == plan.generation && phase != kPhaseShadow) return absl::OkStatus();
    const bool under_way = phase == kPhaseShadow || phase == kPhaseGather;
    absl::Status status;
    if (phase == kPhaseShadow && trim_ && !trim_->answered) status = AnswerLeader(plan);
    if (status.ok() && phase == kPhaseShadow && !served) status = ServeShadow(site, plan, &served);
    // A shadow that is not served gives up by itself.
    if (!status.ok() && absl::IsNotFound(status) &&
        Memory::Open(rank_.info.pid, rank_.info.start_ticks).ok())
      status = absl::OkStatus();
    RETURN_IF_ERROR(status);
    // A thread that is held up right there may still open the gathering.
    if (disarmed && !under_way && (inside == 0 || Now() >= last)) {
      RETURN_IF_ERROR(rank_.hold.MayAlter());
      return absl::DeadlineExceededError(
          "the loop was not entered, or its team did not meet, in time");
    }
    // One more look after the disarming: a thread may just have come in.
    if ((Now() >= give_up || rank_.hold.Cancelled()) && !disarmed) {
      RETURN_IF_ERROR(rank_.region->SetMode(site.number(), kModeIdle));
      disarmed = true;
    }
    if (Now() >= last) return absl::InternalError("a shadow does not end");
    nap_ns = served ? kPollNs : under_way ? kEagerPollNs : PollNs(Now() - begin);
    // A team that waits for an answer does so for plan.agent_wait_ns.
    nap_ns = std::min(nap_ns, static_cast<int64_t>(plan.agent_wait_ns / 8));
    if (rank_.region->doorbell().can_wait() && !disarmed)
      nap_ns = phase == kPhaseShadow && !served ? kPollNs : kDoorbellPollNs;
    if (!disarmed) nap_ns = std::min(nap_ns, std::max(kEagerPollNs, give_up - Now()));
  }
}

absl::StatusOr<ShadowAnswer> ProcessInjector::Collect(const PatchSite& site, const ShadowPlan& plan,
                                                      const ShadowRequest& request) {
  ShadowReading reading;
  reading.protects = protects_;
  if (trim_) reading.trimmed_out = trim_->chosen.ranges;
  ASSIGN_OR_RETURN(reading.site,
                   rank_.region->Read<Site>(rank_.region->SiteAddress(site.number())));
  ASSIGN_OR_RETURN(reading.child, rank_.region->Read<ChildControl>(rank_.region->ChildAddress()));
  const size_t slots = size_t{plan.run_count} * plan.team;
  ASSIGN_OR_RETURN(reading.results,
                   rank_.region->ReadMany<RunResult>(rank_.region->ResultsAddress(), slots));
  const InstalledLoop& installed = site.built.installed;
  size_t references = 0;
  for (size_t i = 0; i < request.runs.size(); ++i) {
    if ((plan.runs[i + 1].flags & kRunTrace) == 0) continue;
    reading.trace_run = static_cast<int32_t>(i);
    ASSIGN_OR_RETURN(const CodeCopy* traced, CopyOf(installed, request.runs[i]));
    references = traced->references.size();
  }
  for (uint32_t place = 0; place < plan.team && reading.trace_run >= 0; ++place) {
    const uint32_t record =
        std::min<uint32_t>(reading.child.records[place], rank_.region->blocks() - 1);
    const size_t count = std::min<size_t>(references, kTraceCount);
    ASSIGN_OR_RETURN(std::vector<TraceRecord> trace,
                     rank_.region->ReadMany<TraceRecord>(
                         rank_.region->BlockAddress(record) + kBlockTrace, count));
    reading.traces.push_back(std::move(trace));
    if (installed.excluded_paths.empty()) continue;
    ASSIGN_OR_RETURN(
        const uint64_t excluded_path,
        rank_.region->Read<uint64_t>(rank_.region->BlockAddress(record) + kBlockExcludedPath));
    reading.excluded_paths.push_back(excluded_path);
  }
  if (reading.child.fault_count > 0) {
    const auto maps = ProcFs().Maps(rank_.info.pid);
    reading.fault_in_rank = maps.ok() && FindMapping(*maps, reading.child.fault.address) != nullptr;
  }
  reading.team = plan.team;
  reading.runs = request.runs.size();
  for (const CodeCopy& copy : installed.copies) reading.copies.push_back(&copy);
  for (const auto& copy : installed.batched) {
    if (copy.ok()) reading.copies.push_back(&*copy);
  }
  for (const RunSpec& run : request.runs) reading.variants.push_back(run.variant);
  ASSIGN_OR_RETURN(ShadowAnswer answer, ReadAnswer(reading));
  answer.pause_ns = rank_.ticks.ToNs(reading.site.pause_ticks);
  answer.fork_ns = rank_.ticks.ToNs(reading.site.fork_ticks);
  answer.pause_begin_ns = rank_.ticks.MonotonicAt(reading.site.first_arrival);
  return answer;
}

// Of the last arming; 0: no team met.
int64_t ProcessInjector::PauseNs(const PatchSite& site) const {
  const auto ticks = rank_.region->Read<uint64_t>(rank_.region->SiteAddress(site.number()) +
                                                  offsetof(Site, pause_ticks));
  const uint64_t most = rank_.ticks.ToTicks(60 * kNsPerSecond);
  return ticks.ok() ? rank_.ticks.ToNs(std::min(*ticks, most)) : 0;
}

absl::StatusOr<ShadowAnswer> ProcessInjector::EndShadow(const PatchSite& site,
                                                        const ShadowPlan& plan,
                                                        const ShadowRequest& request,
                                                        const absl::Status& ended) {
  // Marks that were left are noted whatever else happened.
  const absl::Status trimmed = trim_ ? EndTrim() : absl::OkStatus();
  if (!ended.ok()) {
    rank_.region->SetMode(site.number(), kModeIdle).IgnoreError();
    ++rank_.cost.failed_arms;
    return ended;
  }
  RETURN_IF_ERROR(trimmed);
  return Collect(site, plan, request);
}

absl::StatusOr<ShadowAnswer> ProcessInjector::RunShadow(const ShadowRequest& request) {
  ASSIGN_OR_RETURN(PatchSite * site, rank_.PatchedSiteOf(request.loop));
  LearnLaterFaults();
  ASSIGN_OR_RETURN(const RankHazards hazards, CheckHazards());
  const MemoryFacts& facts = hazards.memory;
  const absl::Status room = JudgeMemory(facts, hazards.node, hazards.cgroup,
                                        BytesWritten(request, facts), rank_.options.ranks_at_once);
  if (!room.ok()) return absl::UnavailableError(room.message());  // there may be more another time
  ASSIGN_OR_RETURN(ShadowPlan plan, MakePlan(*site, request));
  plan.generation = ++rank_.generation;
  trim_.reset();
  if (request.footprint) {
    auto work = BeginTrim(*request.footprint, request.team);
    if (!work.ok()) return absl::AbortedError(work.status().message());
    trim_ = *std::move(work);
    plan.flags |= kPlanTrim;
  }
  ASSIGN_OR_RETURN(const int64_t timeout_ns, AwaitMoment(request));
  ASSIGN_OR_RETURN(const std::vector<ThreadRecord> before, rank_.region->Records());
  RETURN_IF_ERROR(Arm(*site, plan, request.countdown));
  absl::Status ended = AwaitShadow(*site, plan, timeout_ns);
  ChargeArmed(*site, plan, before);
  absl::StatusOr<ShadowAnswer> answer = EndShadow(*site, plan, request, ended);
  if (answer.ok()) {
    forked_ = trim_ ? Trimmed(facts, trim_->chosen) : facts;
    answer->later_fault_ns = shadow_cost_.LaterFaultNs(forked_);
    // What is left of a narrowed fork is mostly the same for all: it says nothing about the rest.
    if (!trim_) shadow_cost_.LearnFork(forked_, answer->fork_ns);
    // What is left of a narrowed fork is what the loop writes again anyway, and few pages besides: no share of the rest.
    faults_before_.reset();
    auto faults = ReadMinorFaults(rank_.info.pid);
    if (faults.ok() && !trim_) faults_before_ = *faults;
    shadow_end_ns_ = Now();
    ++rank_.cost.shadows;
    rank_.cost.pause_ns += answer->pause_ns;
    rank_.cost.longest_pause_ns = std::max(rank_.cost.longest_pause_ns, answer->pause_ns);
    rank_.cost.failed_arms += static_cast<uint64_t>(answer->failed_gathers);
  }
  // Also of a shadow that came to nothing: the team stood still for it.
  const int64_t pause_ns = answer.ok() ? answer->pause_ns : PauseNs(*site);
  if (!answer.ok()) rank_.cost.pass_through_ns += pause_ns;
  if (ended.ok() || pause_ns > 0) rank_.hold.Audit("shadow", site, pause_ns, answer.status());
  return answer;
}

}  // namespace perfd::agent
