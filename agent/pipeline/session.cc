#include "agent/pipeline/session.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/procfs/process_rights.h"
#include "core/base/log.h"

namespace perfd {
namespace {

constexpr int64_t kDrainNs = 100 * kNsPerMs;
constexpr int64_t kLookNs = kNsPerSecond;
constexpr absl::Duration kResolveTimeout = absl::Seconds(60);
constexpr absl::Duration kSuspendTimeout = absl::Seconds(4);  // well within the stop timeout of a service manager
constexpr int64_t kScanNs = 2 * kNsPerSecond;
constexpr int64_t kScanShare = 200;  // looking for late ranks may use 1/200 of a core
// Some 50 us each, agent and reader together: a quarter of a percent of one CPU, whatever the frequency and the number of
// threads.
constexpr double kStacksPerSecond = 50;
// Of the budget, where loops are altered too; what sampling really takes is charged to the altering.
constexpr double kSamplingPart = 0.5;

uint64_t OwnCpuNs() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * kNsPerSecond + static_cast<uint64_t>(ts.tv_nsec);
}

}  // namespace

Session::Session(SessionRequest request, SessionTools tools)
    : request_(std::move(request)),
      tools_(std::move(tools)),
      scan_(*tools_.clock),
      ranks_(*tools_.procfs, request_.requester.privileged),
      delivery_(std::make_shared<WindowDelivery>(tools_.output, request_.profile_id, tools_.node)),
      windows_(tools_.resolver, *tools_.clock, delivery_),
      notices_(tools_.node),
      experiment_(tools_.make_experimenter, tools_.resolver),
      stack_choice_(kStacksPerSecond) {}

void Session::Suspend() {
  suspended_ = true;
  stop_ = true;
}

void Session::Announce(NodeProgress::Phase phase) {
  SessionNews news;
  news.profile_id = request_.profile_id;
  news.phase = phase;
  news.ranks = ranks_.infos();
  news.threads = source_ != nullptr ? source_->thread_count() : 0;
  news.notices = notices_.Take(delivery_->TakeNotices());
  news.last_sequence = delivery_->last_sequence();
  news.first_sample = first_sample_announced_;
  tools_.output->OnNews(news);
}

void Session::Run() {
  Announce(NodeProgress::Phase::kDiscovering);
  if (!(FollowsJob() ? DiscoverInTime() : Discover())) return;
  Sample();
  Finish();
  stacks_.reset();  // its readers end here, not when the session is cleared away
}

bool Session::Discover() {
  const ProfileSpec& spec = request_.spec;
  auto discovery = tools_.finder->Find(spec.target, spec.ranks, request_.requester, &scan_);
  if (!discovery.ok()) {
    const bool none = absl::IsNotFound(discovery.status());
    if (none) notices_.Info(discovery.status(), 0);
    else notices_.Error(discovery.status(), 0);
    Announce(none ? NodeProgress::Phase::kFinished : NodeProgress::Phase::kFailed);
    return false;
  }
  for (const RejectedProcess& rejected : discovery->rejected)
    notices_.Error(rejected.reason, rejected.pid);
  for (const std::string& warning : discovery->warnings)
    notices_.Say(Notice::Severity::kWarning, warning, 0);
  if (!discovery->ranks.empty() && OpenSource(*discovery)) return true;
  const bool failed = !discovery->ranks.empty() || !discovery->rejected.empty();
  Announce(failed ? NodeProgress::Phase::kFailed : NodeProgress::Phase::kFinished);
  return false;
}

bool Session::OpenSource(const Discovery& discovery) {
  auto source = tools_.open_source(request_.spec, discovery);
  if (!source.ok()) {
    notices_.Error(source.status(), 0);
    return false;
  }
  source_ = std::move(source->source);
  sample_cost_ns_ = source->sample_cost_ns;
  switch_cost_ns_ = source->switch_cost_ns;
  bool any = false;
  for (const RankInfo& info : discovery.ranks) any |= AddRank(info);
  return any;
}

bool Session::AddRank(const RankInfo& info) {
  const int64_t now = tools_.clock->MonotonicNs();
  if (auto known = refused_.find(info.pid); known != refused_.end() && known->second == info.start_ticks) return false;
  refused_[info.pid] = info.start_ticks;  // until it has been added
  if (!tools_.claim_pids({info.pid}).empty()) {
    notices_.Error(
              absl::FailedPreconditionError(absl::StrCat("rank ", info.rank, " (pid ", info.pid,
                                                         ") is already measured by another profile; cancel that one "
                                                         "or wait for its end")),
              info.pid);
    return false;
  }
  // Events first, maps second: whatever is mapped in between is in one of the two.
  absl::Status status = source_->AddProcess(info.pid);
  if (status.ok()) status = ranks_.Add(info, now);
  if (status.ok()) {
    refused_.erase(info.pid);
    return true;
  }
  source_->RemoveProcess(info.pid);
  if (FollowsJob() && absl::IsNotFound(status)) return false;  // it has ended meanwhile
  notices_.Error(
            absl::Status(status.code(), absl::StrCat("rank ", info.rank, " (pid ", info.pid,
                                                     ") cannot be sampled: ", status.message())),
            info.pid);
  return false;
}

void Session::Sample() {
  started_ns_ = looked_ns_ = span_begin_ns_ = tools_.clock->MonotonicNs();
  windows_.Begin();
  span_own_cpu_ns_ = OwnCpuNs();
  if (request_.spec.hotspots.callpaths == CallPaths::kDwarf && tools_.open_stacks != nullptr)
    stacks_ = std::make_unique<StackWorker>(tools_.open_stacks, *tools_.clock);
  Announce(NodeProgress::Phase::kSampling);
  const int64_t end_ns = started_ns_ + request_.remaining_ns;
  while (!stop_) {
    DrainOnce();
    LookForLoops();
    const int64_t now = tools_.clock->MonotonicNs();
    if (now - looked_ns_ >= kLookNs) LookAround();
    if (now >= end_ns || (ranks_.living() == 0 && !FollowsJob()) || experiment_.Finished()) break;
    if (windows_.IsDue(request_.spec.duration_ns)) CloseWindow();
    windows_.Submit();
    Rest(std::min(kDrainNs, end_ns - now));
  }
  DrainOnce();
  source_->ReportLost(*this);
}

void Session::Rest(int64_t ns) {
  if (tools_.sleep) tools_.sleep(ns);
  else absl::SleepFor(absl::Nanoseconds(ns));
}

void Session::DrainOnce() {
  drained_ns_ = tools_.clock->MonotonicNs();
  stack_choice_.Begin(drained_ns_);
  source_->Drain(*this);
  ExchangeStacks();
  // A child that is gone already, or that may not be sampled, is no trouble of the rank's profile.
  for (int32_t pid : std::exchange(children_, {})) source_->AddProcess(pid).IgnoreError();
}

void Session::LookAround() {
  looked_ns_ = tools_.clock->MonotonicNs();
  NoteEnded();
  FindNewRanks();
  AdjustFrequency();
  NoteStackTroubles();
  if (!notices_.empty()) Announce(NodeProgress::Phase::kSampling);
}

void Session::LookForLoops() {
  experiment_.Advance();
  if (!experiment_.Waits()) return;
  std::vector<ProcessImage> images;
  for (const TrackedProcess* process : ranks_.LivingRanks())
    images.push_back({process->info, process->gid, process->executable, process->space.Mappings()});
  ExperimentRequest request;
  request.requester = UserText(request_.requester.uid);
  request.node = tools_.node;
  request.begin_ns = started_ns_;
  request.end_ns = started_ns_ + request_.remaining_ns;
  experiment_.Look(std::move(images), std::move(request));
}

void Session::NoteEnded() {
  std::vector<const TrackedProcess*> ended, changed;
  const uint64_t begin_cpu_ns = OwnCpuNs();
  const TrackedRanks::Used used = ranks_.Refresh(drained_ns_, &ended, &changed);
  span_own_cpu_ns_ += OwnCpuNs() - begin_cpu_ns;  // nothing that the governor could steer
  for (const TrackedProcess* process : changed) {
    source_->RemoveProcess(process->info.pid);
    notices_.Warning(ChangedOwnerError(*process), process->info.pid);
  }
  job_cpu_ns_ += used.cpu_ns;
  // Those that have ended since the last look are not counted any more: rather too short a life than too long. A pause between
  // two programs of the job says nothing about how many live at a time.
  if (ranks_.living() > 0) last_living_ = static_cast<uint64_t>(ranks_.living());
  const int64_t now_ns = tools_.clock->MonotonicNs();
  const int64_t last_ns = std::max(std::exchange(living_ns_, now_ns), started_ns_);
  rank_wall_ns_ += last_living_ * static_cast<uint64_t>(std::max<int64_t>(0, now_ns - last_ns));
  span_job_cpu_ns_ += used.cpu_ns;
  span_switches_ += used.switches;
  switching_ns_ += KernelSamplingNs({.switches = used.switches,
                                     .switch_cost_ns = switch_cost_ns_,
                                     .on_share = source_->on_share()});
  const double seconds =
      static_cast<double>(tools_.clock->MonotonicNs() - started_ns_) / static_cast<double>(kNsPerSecond);
  for (const TrackedProcess* process : ended) {
    if (!ranks_.Lives(process->info.pid)) source_->RemoveProcess(process->info.pid);
    if (process->helper) continue;
    notices_.Warning(
              absl::NotFoundError(absl::StrFormat("rank %d (pid %d) ended after %.1f s; its samples are kept",
                                                  process->info.rank, process->info.pid, seconds)),
              process->info.pid);
  }
}

// Ranks that start late, and ranks that replaced themselves, belong to the job too. Named pids do not grow.
void Session::FindNewRanks() {
  const int64_t now = tools_.clock->MonotonicNs();
  if (!request_.spec.target.pids.empty() || now < next_scan_ns_) return;
  const uint64_t begin_ns = OwnCpuNs();
  const auto discovery = tools_.finder->Find(request_.spec.target, request_.spec.ranks, request_.requester, &scan_);
  const uint64_t cost_ns = OwnCpuNs() - begin_ns;
  span_own_cpu_ns_ += cost_ns;  // nothing that the governor could steer
  next_scan_ns_ = now + std::max(kScanNs, kScanShare * static_cast<int64_t>(cost_ns));
  if (!discovery.ok()) return;
  for (const RankInfo& info : discovery->ranks) {
    if (ranks_.Knows(info) || !AddRank(info)) continue;
    notices_.Say(Notice::Severity::kInfo,
                 absl::StrCat("rank ", info.rank, " (pid ", info.pid, ") joined late"), info.pid);
  }
}

bool Session::MayAlter() const {
  return tools_.make_experimenter != nullptr && !request_.spec.variants.set.empty();
}

// The agent's part is this thread's and that of unwinding: reading code is paid once and does not grow with the frequency.
GovernorSpan Session::EndSpan() {
  const int64_t now_ns = tools_.clock->MonotonicNs();
  const uint64_t own_cpu_ns = OwnCpuNs();
  const uint64_t stack_cpu_ns = stacks_ == nullptr ? 0 : stacks_->unwind_cpu_ns();
  return {
      .wall_ns = now_ns - std::exchange(span_begin_ns_, now_ns),
      .ranks = ranks_.living(),
      .job_cpu_ns = std::exchange(span_job_cpu_ns_, 0),
      .samples = std::exchange(span_samples_, 0),
      .sample_cost_ns = sample_cost_ns_,
      .switches = std::exchange(span_switches_, 0),
      .switch_cost_ns = switch_cost_ns_,
      .on_share = source_->on_share(),
      .agent_cpu_ns = own_cpu_ns - std::exchange(span_own_cpu_ns_, own_cpu_ns) + stack_cpu_ns -
                      std::exchange(stack_cpu_ns_, stack_cpu_ns),
      .budget_ratio = request_.spec.budget.overhead_ratio * (MayAlter() ? kSamplingPart : 1),
      .current_hz = source_->setup().frequency_hz,
      .requested_hz = static_cast<double>(request_.spec.hotspots.frequency_hz),
  };
}

void Session::AdjustFrequency() {
  const GovernorSpan span = EndSpan();
  const GovernorDecision decision = NextFrequency(span);
  // What the governor cannot lower any more must not starve the altering of all it has.
  const double ratio = std::min(decision.cost_ratio, span.budget_ratio);
  experiment_.Charge(static_cast<int64_t>(ratio * static_cast<double>(span.wall_ns)),
                     request_.spec.budget.overhead_ratio);
  if (decision.frequency_hz == span.current_hz) return;
  CloseWindow();  // a window has one frequency
  const absl::Status status = source_->SetFrequency(decision.frequency_hz);
  if (!status.ok()) {
    LogWarning("{}: {}", request_.profile_id, Text(status));
    return;
  }
  LogInfo("{}: {:.1f} Hz -> {:.1f} Hz: {}", request_.profile_id, span.current_hz, decision.frequency_hz,
          decision.reason);
}

void Session::CloseWindow() {
  WindowFacts facts;
  facts.setup = source_->setup();
  facts.ranks = ranks_.infos();
  NoteEnded();
  facts.job_cpu_ns = std::exchange(job_cpu_ns_, 0);
  facts.rank_wall_ns = std::exchange(rank_wall_ns_, 0);
  facts.sources_cpu_ns = stacks_ == nullptr ? 0 : stacks_->source_cpu_ns();
  facts.sample_cost_ns = sample_cost_ns_;
  facts.switching_ns = static_cast<uint64_t>(std::exchange(switching_ns_, 0));
  facts.experiment = experiment_.Take();
  for (const Notice& notice : facts.experiment.notices) notices_.Say(notice.severity, notice.text, notice.pid);
  windows_.Close(std::move(facts));
}

void Session::Finish() {
  experiment_.End();
  AwaitStacks();
  CloseWindow();
  if (!suspended_) Announce(NodeProgress::Phase::kAnalyzing);
  const absl::Duration timeout = suspended_ ? kSuspendTimeout : kResolveTimeout;
  const bool all = windows_.AwaitAll(timeout, [this] { Rest(20 * kNsPerMs); });
  delivery_->Flush();
  if (!all) {
    notices_.Warning(absl::DataLossError(absl::StrCat(
                         "the code of the last windows could not be read within ",
                         absl::FormatDuration(timeout), "; their samples are missing")),
                     0);
  }
  // A suspended session goes on elsewhere: it has not finished, but what it lost is lost.
  if (!suspended_) Announce(NodeProgress::Phase::kFinished);
  else if (!notices_.empty() || delivery_->HasNotices()) Announce(NodeProgress::Phase::kSampling);
}

}  // namespace perfd
