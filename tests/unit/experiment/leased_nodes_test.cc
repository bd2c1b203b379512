// Nodes of one profile with a pause lease: each by its own clock, in a time that only passes when it is asked to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>

#include "agent/experiment/node_experimenter.h"
#include "agent/experiment/preparation.h"
#include "core/analysis/job_pauses.h"
#include "tests/unit/experiment/fake_injector.h"
#include "tests/unit/experiment/own_loop.h"

namespace perfd::agent {
namespace {

constexpr int64_t kJobBegin = 1'700'000'000 * kNsPerSecond + 123'456'789;
constexpr int64_t kPeriod = 250 * kNsPerMs;
constexpr int64_t kWindow = 200 * kNsPerMs;
constexpr int64_t kProbe = 20'000;

class NodeClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns.fetch_add(kProbe) + kProbe; }
  int64_t UnixNs() const override { return 1'700'000'000 * kNsPerSecond; }
  mutable std::atomic<int64_t> now_ns = 0;
};

struct Arm {
  int64_t from_ns, until_ns;  // of the node's clock
  int32_t loop;
  int64_t countdown;
};

// A node, the truth about its clock, and what it did.
struct Node {
  NodeClock clock;
  int64_t true_job_ns = 0;  // job time where its clock shows 0
  FakeTruth truth;
  FakeLog log;
  std::vector<Arm> arms;
  std::vector<PauseSpan> pauses;  // in true job time
  ExperimentUpdate update;
  int naps = 0;
};

class LeasedNodesTest : public ::testing::Test {
 protected:
  LeasedNodesTest() {
    order_.profile_id = "p1";
    order_.variants = {"LS", "FP", "DL1"};
    order_.repetitions = 9;
    order_.budget.overhead_ratio = 0.5;
    order_.loops = {OwnTarget(0), OwnTarget(1), OwnTarget(2)};
    order_.lease = PauseLease{kPeriod, kWindow, 2, {}};
  }
  void SetUp() override {
    if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  }

  // Its clock shows `here_ns` when the job's does kJobBegin. Its ranks pause for 20 ms.
  Node& AddNode(int64_t here_ns) {
    Node& node = nodes_.emplace_back();
    node.true_job_ns = kJobBegin - here_ns;
    node.clock.now_ns = here_ns;
    node.truth.fork_ns = 18 * kNsPerMs;
    node.truth.entries_per_second = 2000;
    node.truth.on_call = [&node](const std::string& call) {
      node.clock.now_ns += call == "entry_count" ? 50 * kNsPerMs : 2 * kNsPerMs;
    };
    node.truth.on_shadow = [&node](const ShadowRequest& request, ShadowAnswer& answer) {
      return Pause(node, request, answer);
    };
    return node;
  }

  // As an injector does: it waits for the moment, then for the entries, then the rank stands still.
  static absl::Status Pause(Node& node, const ShadowRequest& request, ShadowAnswer& answer) {
    const int64_t now = node.clock.now_ns;
    node.arms.push_back(
        {request.arm_from_ns, request.arm_until_ns, request.loop, request.countdown});
    if (request.arm_until_ns != 0 && now > request.arm_until_ns)
      return absl::UnavailableError("its window was over");
    const int64_t entry = 2 * kNsPerSecond / static_cast<int64_t>(node.truth.entries_per_second);
    const int64_t begin =
        std::max(now, request.arm_from_ns) + entry * (1 + request.countdown / request.team);
    if (request.arm_until_ns != 0 && begin > request.arm_until_ns) {
      node.clock.now_ns = request.arm_until_ns;
      return absl::DeadlineExceededError("it was not entered in time");
    }
    answer.pause_begin_ns = begin;
    answer.pause_ns = 20 * kNsPerMs;
    node.clock.now_ns = begin + answer.pause_ns;
    node.pauses.push_back({node.true_job_ns + begin, node.true_job_ns + begin + answer.pause_ns});
    return absl::OkStatus();
  }

  // Each in a time of its own: they have nothing in common but the windows.
  void Run(Node& node, ClockReading reading, int64_t duration_ns = 60 * kNsPerSecond) {
    ExperimentRequest request;
    request.plan = order_;
    if (request.plan.lease.has_value()) request.plan.lease->clock = reading;
    request.node = "n";
    RankLoops places;
    places.rank = RankOf(sleeper_.pid(), 0);
    for (size_t i = 0; i < order_.loops.size(); ++i)
      places.loops.push_back(OwnPlace(static_cast<int>(i)));
    request.ranks = {places};
    request.begin_ns = node.clock.now_ns;
    request.end_ns = request.begin_ns + duration_ns;
    ExperimenterOptions options;
    options.clock = &node.clock;
    options.leases = &lease_table_;
    std::atomic<int> injectors = 0;
    options.sleep = [&node](int64_t ns) {
      ++node.naps;
      node.clock.now_ns += ns;
    };
    options.open_injector = [&](const RankInfo&, const InjectorOptions&) {
      ++injectors;
      return std::make_unique<FakeInjector>(node.truth, &node.log);
    };
    NodeExperimenter experimenter(std::move(options));
    experimenter.Begin(request);
    const int64_t deadline = SystemClock().MonotonicNs() + 30 * kNsPerSecond;
    while (SystemClock().MonotonicNs() < deadline) {
      ExperimentUpdate update = experimenter.Drain();
      Append(std::move(update), node.update);
      if (node.log.uninstalls > 0 && Over(node.update)) break;
      absl::SleepFor(absl::Milliseconds(1));
    }
    experimenter.End();
    Append(experimenter.Drain(), node.update);
    ASSERT_EQ(injectors, 1);
  }

  static void Append(ExperimentUpdate more, ExperimentUpdate& update) {
    for (LoopMeasurement& loop : more.measurements) update.measurements.push_back(std::move(loop));
    for (const LeasedPause& pause : more.pauses) update.pauses.push_back(pause);
    update.pauses_dropped += more.pauses_dropped;
  }
  static bool Over(const ExperimentUpdate& update) {
    std::map<std::string, bool> over;
    for (const LoopMeasurement& loop : update.measurements)
      over[loop.loop_id] = loop.state != MeasureState::kOpen || !loop.reason.empty();
    return over.size() == 3 &&
           std::all_of(over.begin(), over.end(), [](const auto& loop) { return loop.second; });
  }

  static ClockReading Exact(const Node& node, int64_t error_ns = 1000) {
    return {node.clock.now_ns, node.true_job_ns + node.clock.now_ns, error_ns};
  }

  // As the daemon adds them up, from clocks that do not agree and the records.
  JobPauses Job() const {
    JobPauses job;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      for (const PauseSpan& span : nodes_[i].pauses)
        job.Add(name, span.begin_ns - nodes_[i].true_job_ns, span.end_ns - nodes_[i].true_job_ns);
      for (const LeasedPause& pause : nodes_[i].update.pauses) job.AddLeased(name, pause);
      job.AddLost(nodes_[i].update.pauses_dropped);
    }
    return job;
  }

  static void ExpectWithinWindows(const Node& node) {
    for (const Arm& arm : node.arms) {
      const int64_t from = arm.from_ns + node.true_job_ns, until = arm.until_ns + node.true_job_ns;
      EXPECT_EQ(from % kPeriod, 0);
      EXPECT_LT(arm.from_ns, arm.until_ns);
      const int64_t windows = (until - from) / kPeriod + 1;
      EXPECT_LE(until, from + (windows - 1) * kPeriod + kWindow);
      EXPECT_EQ(from / kPeriod % windows, 0) << "several windows as one begin at a multiple";
    }
    for (const PauseSpan& pause : node.pauses)
      EXPECT_LE(pause.begin_ns % kPeriod, kWindow) << "in no window";
  }

  SleepingRank sleeper_;
  MeasureOrder order_;
  LeaseTable lease_table_;
  std::deque<Node> nodes_;
};

TEST_F(LeasedNodesTest, PausesOfTwoNodesOverlapAndCountOnce) {
  lease_table_.SetCharge("p1", 1);
  Node& a = AddNode(5000 * kNsPerSecond);
  Node& b = AddNode(77 * kNsPerSecond + 31'415'926);
  Run(a, Exact(a));
  Run(b, Exact(b));
  ASSERT_GT(a.pauses.size(), 10u);
  ASSERT_EQ(a.update.pauses.size(), a.pauses.size());
  for (const Node* node : {&a, &b}) {
    ExpectWithinWindows(*node);
    for (const LoopMeasurement& loop : node->update.measurements)
      EXPECT_NE(loop.state, MeasureState::kRefused) << loop.reason;
  }
  std::map<int64_t, Arm> first;
  for (const Arm& arm : a.arms) first.emplace((arm.from_ns + a.true_job_ns) / kPeriod, arm);
  size_t common = 0;
  for (const Arm& arm : b.arms) {
    const auto it = first.find((arm.from_ns + b.true_job_ns) / kPeriod);
    if (it == first.end()) continue;
    ++common;
    EXPECT_EQ(it->second.loop, arm.loop);
    EXPECT_EQ(it->second.countdown, arm.countdown);
  }
  EXPECT_GE(common, a.arms.size() - 2);
  const int64_t of_a = static_cast<int64_t>(a.pauses.size()) * 20 * kNsPerMs;
  const int64_t of_b = static_cast<int64_t>(b.pauses.size()) * 20 * kNsPerMs;
  EXPECT_LE(Job().TotalNs(), std::max(of_a, of_b) + 2 * 20 * kNsPerMs);
  EXPECT_GE(Job().TotalNs(), std::max(of_a, of_b));
}

// The clock of one may be off by 1.1 ms both ways, and its pauses last 2 ms: they may not overlap at all.
TEST_F(LeasedNodesTest, WhatIsNotSureToOverlapIsSummed) {
  lease_table_.SetCharge("p1", 1);
  Node& a = AddNode(5000 * kNsPerSecond);
  Node& b = AddNode(77 * kNsPerSecond);
  b.truth.on_shadow = [&b](const ShadowRequest& request, ShadowAnswer& answer) {
    const absl::Status status = Pause(b, request, answer);
    answer.pause_ns = 2 * kNsPerMs;
    if (status.ok()) b.pauses.back().end_ns = b.pauses.back().begin_ns + answer.pause_ns;
    return status;
  };
  Run(a, Exact(a), 15 * kNsPerSecond);
  Run(b, Exact(b, 1'100'000), 5 * kNsPerSecond);
  ExpectWithinWindows(b);
  ASSERT_GT(b.pauses.size(), 3u);
  int64_t sum = 0;
  for (const Node& node : nodes_) {
    for (const PauseSpan& pause : node.pauses) sum += pause.end_ns - pause.begin_ns;
  }
  EXPECT_EQ(Job().TotalNs(), sum);
}

TEST_F(LeasedNodesTest, AClockThatIsNotTrustedArmsNothingUntilItIsReadAgain) {
  Node& node = AddNode(100 * kNsPerSecond);
  const ClockReading good = Exact(node);
  const int64_t heard = node.clock.now_ns + 20 * kNsPerSecond;
  Run(node, Exact(node, 3 * kNsPerMs), 10 * kNsPerSecond);
  EXPECT_EQ(node.arms.size(), 0u);
  for (const LoopMeasurement& loop : node.update.measurements)
    EXPECT_NE(loop.state, MeasureState::kMeasured);
  node.log = {};
  node.update = {};
  lease_table_.SetClock({heard, good.job_ns + heard - good.here_ns, 1000});
  node.clock.now_ns = heard;
  Run(node, Exact(node, 3 * kNsPerMs), 60 * kNsPerSecond);
  EXPECT_GT(node.arms.size(), 3u);
  ExpectWithinWindows(node);
}

// 16 entries of each thread take 16 s: eight seconds are the longest that is offered.
TEST_F(LeasedNodesTest, RareLoopsAreArmedInLongWindowsOnly) {
  Node& node = AddNode(100 * kNsPerSecond);
  node.truth.entries_per_second = 2;
  lease_table_.SetClock({100 * kNsPerSecond, node.true_job_ns + 100 * kNsPerSecond, 0});
  Run(node, Exact(node, 0), 19 * kNsPerSecond);
  ASSERT_GT(node.arms.size(), 0u);
  ExpectWithinWindows(node);
  for (const Arm& arm : node.arms) EXPECT_GT(arm.until_ns - arm.from_ns, 7 * kNsPerSecond);
}

// The rank was not ready in time: the injector says so, and nothing is paused outside.
TEST_F(LeasedNodesTest, ALateStepIsTriedAgainInAnotherWindow) {
  Node& node = AddNode(100 * kNsPerSecond);
  int shadows = 0;
  node.truth.on_call = [&](const std::string& call) {
    node.clock.now_ns += call == "shadow" && ++shadows % 3 == 0 ? 300 * kNsPerMs : kNsPerMs;
  };
  Run(node, Exact(node));
  EXPECT_GT(node.arms.size(), node.pauses.size());
  EXPECT_GT(node.pauses.size(), 3u);
  ExpectWithinWindows(node);
}

TEST_F(LeasedNodesTest, AloneNothingWaitsForWindows) {
  order_.lease.reset();
  Node& node = AddNode(100 * kNsPerSecond);
  Run(node, {});
  EXPECT_GT(node.pauses.size(), 10u);
  EXPECT_EQ(node.naps, 0);
  for (const Arm& arm : node.arms) {
    EXPECT_EQ(arm.from_ns, 0);
    EXPECT_EQ(arm.until_ns, 0);
  }
  EXPECT_TRUE(node.update.pauses.empty());
}

// 1 % of 40 s: 400 ms, of which stops take some.
TEST_F(LeasedNodesTest, TheBudgetBuysAsMuchLessAsPausesCost) {
  order_.budget.overhead_ratio = 0.01;
  order_.repetitions = 100;
  order_.variants = {"LS", "FP", "DL1", "NO_DIV", "NO_RED", "S2L", "NO_STORE"};
  std::map<double, size_t> bought;
  for (const double charge : {1.0, 2.0}) {
    lease_table_.SetCharge("p1", charge);
    Node& node = AddNode(100 * kNsPerSecond);
    Run(node, Exact(node), 20 * kNsPerSecond);
    bought[charge] = node.pauses.size();
    const double spent = 0.020 * charge * static_cast<double>(node.pauses.size());
    EXPECT_LE(spent, 0.01 * 20 + 0.040 * charge);
  }
  EXPECT_GE(bought[1], 5u);
  EXPECT_LT(bought[2], bought[1]);
}

// A pause that begins after its window is not told as one of it, and costs as much as without a lease.
TEST_F(LeasedNodesTest, WhatBeginsAfterItsWindowIsNotOfIt) {
  lease_table_.SetCharge("p1", 1);
  Node& node = AddNode(100 * kNsPerSecond);
  node.truth.on_shadow = [&node](const ShadowRequest& request, ShadowAnswer& answer) {
    answer.pause_begin_ns = request.arm_until_ns + 10 * kNsPerMs;
    answer.pause_ns = 20 * kNsPerMs;
    node.clock.now_ns = answer.pause_begin_ns + answer.pause_ns;
    node.arms.push_back(
        {request.arm_from_ns, request.arm_until_ns, request.loop, request.countdown});
    return absl::OkStatus();
  };
  Run(node, Exact(node));
  EXPECT_GT(node.arms.size(), 3u);
  EXPECT_TRUE(node.update.pauses.empty());
}

}  // namespace
}  // namespace perfd::agent
