// What a NodeExperimenter does when the daemon orders other loops: core/model/measure_order.h.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/experiment/node_experimenter.h"
#include "agent/procfs/cgroup/suspension.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

// Twice as many as a rank has sites for: loops that are refused need none.
constexpr size_t kMostKnown = 64;
// Mapping a cache, making it executable, putting the first jump in.
constexpr int64_t kInstallStops = 3;

bool Contains(const std::vector<MeasureLoop>& loops, const std::string& loop_id) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const MeasureLoop& loop) { return loop.loop_id == loop_id; });
}

bool Names(const MeasureOrder& order, const std::string& loop_id) {
  return Contains(order.loops, loop_id);
}

// Loops that are not looked for in a rank.
RankLoops Unplaced(const RankInfo& rank, const std::vector<MeasureLoop>& loops) {
  RankLoops places;
  places.rank = rank;
  for (const MeasureLoop& loop : loops) places.loops.emplace_back().target = loop;
  return places;
}

}  // namespace

void NodeExperimenter::Revise(ExperimentRequest request) {
  std::optional<Retired> retired;
  {
    MutexLock lock(&mutex_);
    retired = retired_;
    if (!retired.has_value()) {
      if (revised_.has_value() && request.plan.revision <= revised_->plan.revision) return;
      revised_ = std::move(request);
      wake_.SignalAll();
      return;
    }
  }
  AnswerLate(request.plan, retired->state, retired->why);
}

// The last act of Run: whoever comes from now on is answered by whom he asks.
void NodeExperimenter::Retire(MeasureState state, const absl::Status& why) {
  for (;;) {
    std::optional<ExperimentRequest> order;
    {
      MutexLock lock(&mutex_);
      order = std::exchange(revised_, std::nullopt);
      if (!order.has_value()) {
        retired_ = Retired{state, why};
        return;
      }
    }
    AnswerLate(order->plan, state, why);
  }
}

// Nothing is measured any more: every loop of the order says so, in every rank.
void NodeExperimenter::AnswerLate(const MeasureOrder& order, MeasureState state,
                                  const absl::Status& why) {
  if (order.revision <= request_.plan.revision) return;
  request_.plan.revision = order.revision;
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  const std::vector<MeasureLoop>& known = request_.plan.loops;
  for (size_t loop = 0; loop < known.size(); ++loop) {
    if (!Names(order, known[loop].loop_id)) continue;
    bool again = false;
    for (RankExperiments* bench : benches) {
      if (!bench->given_up(loop)) continue;
      bench->TakeUp(loop);
      bench->Close(loop, std::string(why.message()));
      again = true;
    }
    if (again) Publish(loop, benches);
  }
  std::vector<MeasureLoop> late;
  for (const MeasureLoop& loop : order.loops) {
    if (!Names(request_.plan, loop.loop_id)) late.push_back(loop);
  }
  for (const RankLoops& places : request_.ranks) {
    const auto left = std::find_if(left_.begin(), left_.end(), [&](const LeftRank& other) {
      return other.places->rank.pid == places.rank.pid;
    });
    if (left == left_.end())
      RecordUnmeasured(Unplaced(places.rank, late), state, why);
    else
      RecordUnmeasured(Unplaced(left->places->rank, late), left->state(), left->why);
  }
}

// Until an order comes or everything is to end, or about so long.
void NodeExperimenter::Nap(int64_t ns) const {
  const int64_t nap = std::min(ns, kNapNs);
  if (options_.sleep) return options_.sleep(nap);
  MutexLock lock(&mutex_);
  if (!stop_ && !revised_.has_value()) wake_.WaitWithTimeout(&mutex_, absl::Nanoseconds(nap));
}

// A newer order came in, or the loops of the last one can be bought now.
bool NodeExperimenter::OrderIsDue() const {
  {
    MutexLock lock(&mutex_);
    if (revised_.has_value()) return true;
  }
  return !waiting_.empty() && InstallWaitNs() <= 0;
}

void NodeExperimenter::TakeUpOrder() {
  std::optional<ExperimentRequest> order;
  {
    MutexLock lock(&mutex_);
    order = std::exchange(revised_, std::nullopt);
  }
  if (order.has_value() && order->plan.revision > request_.plan.revision) TakeUpLoops(*order);
  for (RankExperiments* bench : AllRankExperiments()) bench->RemoveGivenUp();
  AddWaiting();
  SpendHeld(AllRankExperiments());
}

// True: go on. Without revisions there is no later order, and everything is taken out as soon as all is known.
bool NodeExperimenter::AwaitOrder() const {
  const bool suspended = std::any_of(left_.begin(), left_.end(), [](const LeftRank& left) {
    return left.state() == MeasureState::kOpen;
  });
  if (request_.plan.revision == 0 && !suspended) return false;
  Nap(kNapNs);
  return true;
}

// True: nothing is bought before the loops that wait are installed. They are the least advanced of all, and what is cheaper
// would be bought again and again before the budget has enough for them.
bool NodeExperimenter::AwaitInstall() const {
  if (waiting_.empty()) return false;
  Nap(kNapNs);
  return true;
}

// Every bench has a place for every loop that was ever taken up; what is given up in the others is in this one, too.
void NodeExperimenter::OpenResumed() {
  for (LeftRank& left : std::exchange(left_, {})) {
    const RankLoops& places = *left.places;
    if (!absl::IsUnavailable(left.why) || !CheckNotSuspended(ProcFs(), places.rank.pid).ok()) {
      left_.push_back(std::move(left));
      continue;
    }
    const size_t opened = AllRankExperiments().size();
    OpenRank(places);
    if (AllRankExperiments().size() == opened) continue;
    RankExperiments* const bench = AllRankExperiments().back();
    std::vector<LoopSite> late;
    for (size_t loop = places.loops.size(); loop < request_.plan.loops.size(); ++loop) {
      late.emplace_back().target = request_.plan.loops[loop];
      late.back().refusal = "the rank was suspended when this loop became hot";
    }
    bench->Add(late, request_, ticks_per_ns_);
    for (size_t loop = 0; !newest_.empty() && loop < request_.plan.loops.size(); ++loop) {
      const std::string& id = request_.plan.loops[loop].loop_id;
      if (!Contains(newest_, id)) bench->GiveUp(loop);
    }
    SpendHeld({bench});
  }
}

void NodeExperimenter::TakeUpLoops(const ExperimentRequest& order) {
  request_.plan.revision = order.plan.revision;
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  const std::vector<MeasureLoop>& known = request_.plan.loops;
  for (size_t loop = 0; loop < known.size(); ++loop) {
    const bool named = Names(order.plan, known[loop].loop_id);
    bool changed = false;
    for (RankExperiments* bench : benches) {
      if (bench->given_up(loop) != named) continue;
      named ? bench->TakeUp(loop) : bench->GiveUp(loop);
      changed = true;
    }
    if (changed) Publish(loop, benches);
  }
  newest_ = order.plan.loops;
  waiting_.clear();
  for (const MeasureLoop& loop : order.plan.loops) {
    if (Names(request_.plan, loop.loop_id)) continue;
    waiting_.push_back(loop);
  }
  waiting_ranks_ = order.ranks;
  const size_t room = kMostKnown - std::min(kMostKnown, known.size());
  if (waiting_.size() <= room) return;
  std::vector<MeasureLoop> taken(waiting_.begin(),
                                 waiting_.begin() + static_cast<std::ptrdiff_t>(room));
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(room));
  LeaveWaiting(MeasureState::kRefused,
               absl::ResourceExhaustedError(
                   absl::StrCat("at most ", kMostKnown, " loops are looked at in one profile")));
  waiting_ = std::move(taken);
}

// How long until the waiting loops may be installed; negative: not within this profile.
int64_t NodeExperimenter::InstallWaitNs() const {
  int64_t cost = 0;
  for (const RankExperiments* bench : AllRankExperiments())
    cost += kInstallStops * bench->MeanStopNs();
  const int64_t now = options_.clock->MonotonicNs();
  const int64_t wait = budget_->WaitNs(
      static_cast<int64_t>(gate_->OutsideCharge() * static_cast<double>(cost)), now);
  return wait < 0 || now + wait + kReserveNs >= request_.end_ns ? -1 : wait;
}

void NodeExperimenter::AddWaiting() {
  if (waiting_.empty() || stop_) return;
  const int64_t wait = InstallWaitNs();
  if (wait > 0) return;
  if (wait < 0) {
    return LeaveWaiting(MeasureState::kOpen,
                        absl::ResourceExhaustedError(
                            "the budget does not buy the stops that put it in; a longer duration "
                            "or a larger budget.overhead does"));
  }
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  for (RankExperiments* bench : benches) AddTo(bench);
  for (const LeftRank& left : left_)
    RecordUnmeasured(Unplaced(left.places->rank, waiting_), left.state(), left.why);
  const size_t first = request_.plan.loops.size();
  request_.plan.loops.insert(request_.plan.loops.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (size_t loop = first; loop < request_.plan.loops.size(); ++loop) Publish(loop, benches);
}

// Every bench has a place for every loop, or the numbers of loops would differ between ranks.
void NodeExperimenter::AddTo(RankExperiments* bench) {
  const auto rank =
      std::find_if(waiting_ranks_.begin(), waiting_ranks_.end(), [&](const RankLoops& places) {
        return places.rank.pid == bench->rank().pid &&
               places.rank.start_ticks == bench->rank().start_ticks;
      });
  std::vector<LoopSite> places;
  for (const MeasureLoop& loop : waiting_) {
    LoopSite place;
    place.refusal = "the rank had ended before this loop was hot";
    if (rank != waiting_ranks_.end()) {
      const auto found = std::find_if(
          rank->loops.begin(), rank->loops.end(),
          [&](const LoopSite& candidate) { return candidate.target.loop_id == loop.loop_id; });
      if (found != rank->loops.end()) place = *found;
    }
    place.target = loop;
    places.push_back(std::move(place));
  }
  bench->Add(places, request_, ticks_per_ns_);
}

void NodeExperimenter::LeaveWaiting(MeasureState state, const absl::Status& why) {
  for (const RankExperiments* bench : AllRankExperiments())
    RecordUnmeasured(Unplaced(bench->rank(), waiting_), state, why);
  for (const LeftRank& left : left_)
    RecordUnmeasured(Unplaced(left.places->rank, waiting_), left.state(), left.why);
  waiting_.clear();
}

// The code is the same in all ranks: the first that has measured the loop shows it.
void NodeExperimenter::ChooseLister(size_t loop) {
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  const auto lists = [&](const RankExperiments* bench) { return bench->experiment(loop).Lists(); };
  if (std::any_of(benches.begin(), benches.end(), lists)) return;
  const auto able = std::find_if(benches.begin(), benches.end(), [&](const RankExperiments* bench) {
    return bench->experiment(loop).HasFigures();
  });
  if (able != benches.end()) (*able)->ShowListings(loop);
}

}  // namespace perfd::agent
