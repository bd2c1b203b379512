// Which nodes of a profile hold a lease, what their orders may spend, and what they are told about their pauses.
#include <map>

#include "core/analysis/lease_windows.h"
#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kMs = 1'000'000;
const std::vector<MeasureLoop> kLoops = {{"id", "key", "module", "/bin/app", 0x1000, 0x1010}};

class LeasesTest : public ControlTest {
 protected:
  // Its clock is read when the loops are ordered.
  void Join(const std::string& node, bool leases, std::optional<int64_t> error_ns) {
    AgentFacts facts = Agent(node);
    facts.abilities.pause_leases = leases;
    Record(table_.AgentConnected(facts, now()));
    if (error_ns) errors_[node] = *error_ns;
  }
  ClockReading Reading(const std::string& node) const {
    return {7 * kSecond, now().job_ns, errors_.at(node)};
  }
  std::string Order(const std::vector<std::string>& nodes, ProfileSpec spec = CommandSpec()) {
    const std::string id = Submit(spec);
    for (const std::string& node : nodes) {
      Report(node, id, Phase::kSampling, 1);
      Window(node, id, 1);
    }
    Pass(10 * kSecond);
    for (const auto& [node, error] : errors_) table_.ClockRead(node, Reading(node));
    Record(table_.HotLoops(id, kLoops, now()));
    return id;
  }
  MeasureOrder OrderOf(const std::string& node) const {
    for (const MeasureNode& order : All<MeasureNode>()) {
      if (order.node == node) return order.order;
    }
    ADD_FAILURE() << "no order for " << node;
    return {};
  }
  void Paused(const std::string& node, const std::string& id, uint64_t sequence,
              std::vector<LeasedPause> pauses) {
    StoredWindow window{id, node, "stream-" + node, sequence, now().unix_ns, kSecond, 10, 0};
    window.pauses = std::move(pauses);
    Record(table_.Stored(window, now()));
  }

  std::map<std::string, int64_t> errors_;
};

TEST_F(LeasesTest, EveryNodeWithALeaseMaySpendTheWholeBudget) {
  Join("a", true, kMs);
  Join("b", true, kMs);
  Order({"a", "b"});
  const double whole = CommandSpec().budget.overhead_ratio;
  for (const char* node : {"a", "b"}) {
    const MeasureOrder order = OrderOf(node);
    EXPECT_DOUBLE_EQ(order.budget.overhead_ratio, whole);
    ASSERT_TRUE(order.lease.has_value());
    EXPECT_EQ(order.lease->nodes, 2);
    EXPECT_EQ(order.lease->clock, Reading(node));
    EXPECT_EQ(order.lease->period_ns, PlanLease(CommandSpec().budget, 2).period_ns);
  }
}

TEST_F(LeasesTest, ASingleNodeWaitsForNoWindow) {
  Join("a", true, kMs);
  Order({"a"});
  EXPECT_FALSE(OrderOf("a").lease.has_value());
  EXPECT_DOUBLE_EQ(OrderOf("a").budget.overhead_ratio, CommandSpec().budget.overhead_ratio);
}

TEST_F(LeasesTest, BesideAnOlderAgentTheBudgetIsSplit) {
  Join("a", true, kMs);
  Join("b", false, kMs);
  Order({"a", "b"});
  for (const char* node : {"a", "b"}) {
    EXPECT_FALSE(OrderOf(node).lease.has_value());
    EXPECT_DOUBLE_EQ(OrderOf(node).budget.overhead_ratio, CommandSpec().budget.overhead_ratio / 2);
  }
}

TEST_F(LeasesTest, AClockThatIsNotTrustedKeepsItsNodeOut) {
  Join("a", true, kMostClockErrorNs);
  Join("b", true, 1);
  Join("c", true, kMostClockErrorNs + 1);
  Join("d", true, std::nullopt);
  Order({"a", "b", "c", "d"});
  const double part = CommandSpec().budget.overhead_ratio / 4;
  for (const char* node : {"a", "b"}) {
    ASSERT_TRUE(OrderOf(node).lease.has_value()) << node;
    EXPECT_DOUBLE_EQ(OrderOf(node).budget.overhead_ratio, 2 * part);
  }
  for (const char* node : {"c", "d"}) {
    EXPECT_FALSE(OrderOf(node).lease.has_value()) << node;
    EXPECT_DOUBLE_EQ(OrderOf(node).budget.overhead_ratio, part);
  }
}

TEST_F(LeasesTest, ADryRunPausesNobody) {
  Join("a", true, kMs);
  Join("b", true, kMs);
  ProfileSpec spec = CommandSpec();
  spec.dry_run = true;
  Order({"a", "b"}, spec);
  EXPECT_FALSE(OrderOf("a").lease.has_value());
}

TEST_F(LeasesTest, NodesAreToldWhatTheirPausesStandFor) {
  Join("a", true, kMs);
  Join("b", true, kMs);
  const std::string id = Order({"a", "b"});
  Paused("a", id, 2, {{.generation = 1, .pause_ns = 10 * kMs}});
  Paused("b", id, 2, {{.generation = 1, .pause_ns = 10 * kMs}});
  EXPECT_TRUE(All<ChargeNode>().empty());
  Pass(3 * kSecond);
  std::vector<ChargeNode> told = All<ChargeNode>();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].profile_id, id);
  EXPECT_DOUBLE_EQ(told[0].charge, 1) << "they stood still at the same time";
  Pass(3 * kSecond);
  EXPECT_EQ(All<ChargeNode>().size(), 2u) << "no pause, no news";

  Paused("a", id, 3, {{.generation = 2, .pause_ns = 10 * kMs}});
  Paused("b", id, 3, {{.generation = 3, .pause_ns = 10 * kMs}});
  Pass(3 * kSecond);
  told = All<ChargeNode>();
  ASSERT_EQ(told.size(), 4u);
  EXPECT_DOUBLE_EQ(told[3].charge, 1.5) << "30 ms of the job for 20 ms of each";
}

TEST_F(LeasesTest, ARestartedDaemonReadsTheClocksFirst) {
  Join("a", true, kMs);
  Join("b", true, kMs);
  const std::string id = Order({"a", "b"});
  SessionTable restarted(limits_);
  restarted.Restore(*table_.Status(id, now()), now());
  EXPECT_TRUE(restarted.WantingLoops(now()).empty()) << "nobody is back";
  for (const char* node : {"a", "b"}) {
    AgentFacts facts = Agent(node);
    facts.abilities.pause_leases = true;
    restarted.AgentConnected(facts, now());
  }
  restarted.ClockRead("a", Reading("a"));
  EXPECT_TRUE(restarted.WantingLoops(now()).empty());
  restarted.ClockRead("b", Reading("b"));
  EXPECT_EQ(restarted.WantingLoops(now()).size(), 1u);
  for (const Decision& decision : restarted.HotLoops(id, kLoops, now())) {
    const auto* order = std::get_if<MeasureNode>(&decision);
    if (order != nullptr) {
      EXPECT_TRUE(order->order.lease.has_value()) << order->node;
    }
  }
}

TEST_F(LeasesTest, ARestartedDaemonDoesNotWaitForEver) {
  Join("a", true, kMs);
  const std::string id = Order({"a"});
  SessionTable restarted(limits_);
  restarted.Restore(*table_.Status(id, now()), now());
  Pass(10 * kSecond - 1);
  EXPECT_TRUE(restarted.WantingLoops(now()).empty());
  Pass(1);
  EXPECT_EQ(restarted.WantingLoops(now()).size(), 1u);
}

TEST_F(LeasesTest, PausesOfNodesWithoutALeaseChangeNoCharge) {
  Join("a", true, kMs);
  Join("b", false, kMs);
  const std::string id = Order({"a", "b"});
  Paused("a", id, 2, {{.generation = 1, .pause_ns = 10 * kMs}});
  Pass(3 * kSecond);
  EXPECT_TRUE(All<ChargeNode>().empty());
}

}  // namespace
}  // namespace perfd::daemon
