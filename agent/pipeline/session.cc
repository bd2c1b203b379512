#include "agent/pipeline/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/pipeline/cost/own_cpu.h"
#include "agent/procfs/process_rights.h"
#include "core/base/cpu_time.h"
#include "core/base/log.h"

namespace perfd::agent {
namespace {

constexpr int64_t kDrainNs = 100 * kNsPerMs;
constexpr int64_t kScanNs = kNsPerSecond;
// What the rate asked for costs a job of many switches is seen soon after the beginning.
constexpr std::array<int64_t, 3> kFirstProbesNs = {100 * kNsPerMs, 300 * kNsPerMs, 600 * kNsPerMs};
constexpr absl::Duration kResolveTimeout = absl::Seconds(60);
// Well within the stop timeout of a service manager.
constexpr absl::Duration kSuspendTimeout = absl::Seconds(4);
// Some 50 us each, agent and reader together: a quarter of a percent of one CPU, whatever the
// frequency and the number of threads.
constexpr double kStacksPerSecond = 50;
constexpr double kAutoStacksPerSecond = 20;
// Of the budget, where loops are altered too; what sampling really takes is charged to the
// altering.
constexpr double kSamplingPart = 0.35;

// Of the part for sampling, whatever starts of threads cost.
constexpr double kLeastOfBudget = 0.25;

// Of elapsed time.
double StartsRatio(const CostSpan& span) {
  const int64_t wall_ns = span.governor.wall_ns;
  return wall_ns <= 0 ? 0 : span.starts_ns / static_cast<double>(wall_ns);
}

// Else a rank that stood looks like one that had nothing to do.
void SaySuspensions(const TrackedRanks& ranks, SessionNotices& notices) {
  for (const TrackedProcess* rank : ranks.SuspendedRanks()) {
    notices.Say(
        Notice::Severity::kInfo,
        absl::StrFormat("rank %d (pid %d) stood for about %.1f s, suspended by %s", rank->info.rank,
                        rank->info.pid, static_cast<double>(rank->suspended.ns) / kNsPerSecond,
                        rank->suspended.by),
        rank->info.pid);
  }
}

}  // namespace

Session::Session(SessionRequest request, SessionTools tools)
    : request_(std::move(request)),
      tools_(std::move(tools)),
      scan_(*tools_.clock, request_.ranks_change()),
      ranks_(*tools_.procfs, request_.requester.privileged),
      delivery_(std::make_shared<WindowDelivery>(tools_.output, request_.profile_id, tools_.node)),
      windows_(tools_.resolver, *tools_.clock, delivery_, request_.spec.hotspots.callpaths),
      notices_(tools_.node),
      changes_(request_.ranks_change(), &notices_),
      experiment_(tools_.make_experimenter, tools_.resolver),
      stack_choice_(windows_.paths().kept() ? kStacksPerSecond : kAutoStacksPerSecond) {}

void Session::Suspend() {
  suspended_ = true;
  stop_ = true;
}

void Session::Announce(NodeProgress::Phase phase) {
  SessionUpdate update;
  update.profile_id = request_.profile_id;
  update.phase = phase;
  update.ranks = ranks_.infos();
  update.threads = source_ != nullptr ? source_->thread_count() : 0;
  update.notices = notices_.Drain(delivery_->DrainNotices());
  update.last_sequence = delivery_->last_sequence();
  update.first_sample = first_sample_announced_;
  tools_.output->OnUpdate(update);
}

// Its windows bear the daemon's time; whoever compares with logs of the node should know.
void Session::RecordClock() {
  const int64_t ahead_ns = request_.clock_ahead_ns;
  if (ahead_ns == 0) return;
  notices_.Say(Notice::Severity::kInfo,
               absl::StrFormat("the clock of node %s is %.0f s %s perfd's: the report tells "
                               "perfd's time",
                               tools_.node, std::abs(static_cast<double>(ahead_ns)) / kNsPerSecond,
                               ahead_ns > 0 ? "ahead of" : "behind"),
               0);
}

void Session::Run() {
  RecordClock();
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
    if (none)
      notices_.Info(discovery.status(), 0);
    else
      notices_.Error(discovery.status(), 0);
    Announce(none ? NodeProgress::Phase::kFinished : NodeProgress::Phase::kFailed);
    return false;
  }
  for (const RejectedProcess& rejected : refusals_.AtOnce(discovery->rejected))
    notices_.Error(rejected.reason, rejected.pid);
  for (const std::string& warning : discovery->warnings)
    notices_.Say(Notice::Severity::kWarning, warning, 0);
  notices_.Say(discovery->launchers, spec.target.tree);
  if (!discovery->ranks.empty() && OpenSource(*discovery) == Taken::kYes) return true;
  const bool failed =
      !discovery->ranks.empty() || !discovery->rejected.empty() || !discovery->launchers.empty();
  Announce(failed ? NodeProgress::Phase::kFailed : NodeProgress::Phase::kFinished);
  return false;
}

void Session::Sample() {
  started_ns_ = scanned_ns_ = tools_.clock->MonotonicNs();
  windows_.Begin();
  UsedCpu used = UsedSoFar();
  // The agent's beginning is part of its first span.
  if (!tools_.cpu_ns) used.agent_ns = windows_.agent_cpu_ns();
  costs_.Begin(started_ns_, used);
  Announce(NodeProgress::Phase::kSampling);
  const int64_t end_ns = started_ns_ + request_.remaining_ns;
  while (!stop_) {
    DrainOnce();
    FindLoops();
    const int64_t now = tools_.clock->MonotonicNs();
    if (now - scanned_ns_ >= kScanNs)
      ScanForRanks();
    else if (FirstScanIsDue(now))
      ScanEarly();
    const bool more_may_come = FollowsJob() || scan_.tree().lives();
    if (now >= end_ns || (ranks_.living() == 0 && !more_may_come) || experiment_.Finished()) break;
    if (windows_.IsDue(request_.spec.duration_ns)) CloseWindow();
    windows_.Submit();
    Rest(std::min(kDrainNs, end_ns - now));
  }
  DrainOnce();
  source_->ReportLost(*this);
}

uint64_t Session::CpuNs() const {
  return tools_.cpu_ns ? tools_.cpu_ns() : ThreadCpuNs();
}

UsedCpu Session::UsedSoFar() const {
  UsedCpu used;
  used.session_ns = CpuNs() + (stacks_ == nullptr ? 0 : stacks_->unwind_cpu_ns());
  used.agent_ns = tools_.cpu_ns ? used.session_ns : AgentCpuNs();
  return used;
}

void Session::Rest(int64_t ns) {
  if (tools_.sleep)
    tools_.sleep(ns);
  else
    absl::SleepFor(absl::Nanoseconds(ns));
}

void Session::DrainOnce() {
  drained_ns_ = tools_.clock->MonotonicNs();
  stack_choice_.Begin(drained_ns_);
  source_->Drain(*this);
  ExchangeStacks();
  // A child that is gone already, or that may not be sampled, is no trouble of the rank's profile.
  for (int32_t pid : std::exchange(children_, {})) source_->AddProcess(pid).IgnoreError();
}

void Session::ScanForRanks() {
  scanned_ns_ = tools_.clock->MonotonicNs();
  first_probes_ = kFirstProbesNs.size();
  RecordEnded();
  FindNewRanks();
  AdjustFrequency(EndSpan());
  RecordStackTroubles();
  if (!notices_.empty()) Announce(NodeProgress::Phase::kSampling);
}

void Session::FindLoops() {
  experiment_.Advance();
  if (!experiment_.Waits()) return;
  std::vector<ProcessImage> images;
  for (const TrackedProcess* process : ranks_.LivingRanks())
    images.push_back({process->info, process->admission, process->executable,
                      process->space.Mappings(), process->image});
  ExperimentRequest request;
  request.requester = UserText(request_.requester.uid);
  request.node = tools_.node;
  request.begin_ns = started_ns_;
  request.end_ns = started_ns_ + request_.remaining_ns;
  experiment_.Locate(std::move(images), std::move(request));
}

bool Session::MayAlter() const {
  return tools_.make_experimenter != nullptr && (!tools_.may_alter || tools_.may_alter()) &&
         !request_.spec.variants.set.empty();
}

// The agent's part is this thread's and that of unwinding: reading code is paid once and does not
// grow with the frequency.
CostSpan Session::EndSpan() {
  CostSpan span = costs_.EndSpan(tools_.clock->MonotonicNs());
  GovernorSpan& governor = span.governor;
  governor.ranks = ranks_.living();
  governor.on_share = source_->on_share();
  const double budget_ratio =
      request_.spec.budget.overhead_ratio * (MayAlter() ? kSamplingPart : 1);
  governor.budget_ratio = std::max(budget_ratio - StartsRatio(span), kLeastOfBudget * budget_ratio);
  governor.current_hz = source_->setup().frequency_hz;
  governor.requested_hz = static_cast<double>(request_.spec.hotspots.frequency_hz);
  return span;
}

// The agent's own beginning is no reason to sample less: it does not come again.
void Session::ScanEarly() {
  RecordEnded();
  CostSpan span = EndSpan();
  span.other_ns += static_cast<int64_t>(std::exchange(span.governor.lost_to_agent_ns, 0));
  AdjustFrequency(span);
}

bool Session::FirstScanIsDue(int64_t now_ns) {
  if (first_probes_ == kFirstProbesNs.size()) return false;
  if (now_ns - started_ns_ < kFirstProbesNs[first_probes_]) return false;
  ++first_probes_;
  return true;
}

void Session::AdjustFrequency(const CostSpan& costs) {
  const GovernorSpan& span = costs.governor;
  const GovernorDecision decision = NextFrequency(span);
  // What the governor cannot lower any more must not starve the altering of all it has.
  const bool lowest = decision.frequency_hz >= span.current_hz;
  const double ratio =
      lowest ? std::min(decision.cost_ratio, span.budget_ratio) : decision.cost_ratio;
  experiment_.Charge(
      static_cast<int64_t>((ratio + StartsRatio(costs)) * static_cast<double>(span.wall_ns)) +
          costs.other_ns,
      request_.spec.budget.overhead_ratio);
  if (decision.frequency_hz == span.current_hz) return;
  CloseWindow();  // a window has one frequency
  const absl::Status status = source_->SetFrequency(decision.frequency_hz);
  if (!status.ok()) {
    LogWarning("{}: {}", request_.profile_id, Text(status));
    return;
  }
  LogInfo("{}: {:.1f} Hz -> {:.1f} Hz: {}", request_.profile_id, span.current_hz,
          decision.frequency_hz, decision.reason);
}

void Session::CloseWindow() {
  WindowFacts facts;
  facts.setup = source_->setup();
  facts.ranks = ranks_.infos();
  RecordEnded();
  facts.costs = costs_.EndWindow();
  facts.processes = ranks_.DrainTimes();
  if (facts.setup.frequency_hz > 0)
    facts.period_ns = kNsPerSecond * source_->on_share() / facts.setup.frequency_hz;
  facts.sample_cost_ns = costs_.prices().sample_ns;
  facts.experiment = experiment_.Drain();
  for (const Notice& notice : facts.experiment.notices)
    notices_.Say(notice.severity, notice.text, notice.pid);
  windows_.Close(std::move(facts));
}

void Session::Finish() {
  experiment_.End();
  AwaitStacks();
  CloseWindow();
  SaySuspensions(ranks_, notices_);
  RecordLastRefusals();
  changes_.End();
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
  if (!suspended_)
    Announce(NodeProgress::Phase::kFinished);
  else if (!notices_.empty() || delivery_->HasNotices())
    Announce(NodeProgress::Phase::kSampling);
}

}  // namespace perfd::agent
