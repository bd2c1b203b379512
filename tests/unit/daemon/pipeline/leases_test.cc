// The clocks of nodes and the pauses of leases on their way through the daemon.
#include "core/analysis/lease_windows.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kUs = 1000;

class PipelineLeasesTest : public PipelineFixture {
 protected:
  struct Joined {
    uint64_t connection = 0;
    std::shared_ptr<NotingLink> link;
  };

  Joined Join(const std::string& node, const std::string& boot_id = "boot", bool leases = true) {
    AgentFacts facts;
    facts.node = node;
    facts.stream_id = "stream-" + node;
    facts.boot_id = boot_id;
    facts.abilities.pause_leases = leases;
    Joined joined;
    joined.link = std::make_shared<NotingLink>();
    joined.connection = *pipeline_->AgentConnected(facts, joined.link);
    return joined;
  }

  // The node's clock shows the job's time less `behind_ns`; the way there and back takes so long.
  void Answer(const Joined& node, int64_t behind_ns, int64_t there_ns, int64_t back_ns) {
    const int64_t sent = node.link->probes.back().first;
    clock_.Pass(there_ns);
    const int64_t here = sent + there_ns - behind_ns;
    clock_.Pass(back_ns);
    pipeline_->ClockAnswer(node.connection, sent, here);
  }

  static void ExpectNear(const ClockReading& reading, int64_t behind_ns, int64_t within_ns) {
    EXPECT_LE(std::abs(reading.here_ns + behind_ns - reading.job_ns), reading.error_ns);
    EXPECT_LE(reading.error_ns, within_ns);
  }
};

TEST_F(PipelineLeasesTest, AnAgentIsAskedSomeTimesInARowAndThenWithEveryHeartbeat) {
  const Joined node = Join("a");
  ASSERT_EQ(node.link->probes.size(), 1u);
  EXPECT_EQ(node.link->probes[0].second, std::nullopt);
  for (int i = 0; i < 7; ++i)
    Answer(node, 70 * kNsPerSecond, i == 3 ? 50 * kUs : 5000 * kUs, 50 * kUs);
  ASSERT_EQ(node.link->probes.size(), 8u);
  Answer(node, 70 * kNsPerSecond, 5000 * kUs, 50 * kUs);
  EXPECT_EQ(node.link->probes.size(), 8u) << "enough";
  pipeline_->Heartbeat(node.connection, {});
  ASSERT_EQ(node.link->probes.size(), 9u);
  ASSERT_TRUE(node.link->probes[8].second.has_value());
  ExpectNear(*node.link->probes[8].second, 70 * kNsPerSecond, 60 * kUs);
}

TEST_F(PipelineLeasesTest, AnOlderAgentIsNotAsked) {
  const Joined node = Join("a", "boot", false);
  pipeline_->Heartbeat(node.connection, {});
  EXPECT_TRUE(node.link->probes.empty());
}

TEST_F(PipelineLeasesTest, OnlyTheAnswerThatIsAwaitedCounts) {
  const Joined node = Join("a");
  const int64_t sent = node.link->probes[0].first;
  pipeline_->ClockAnswer(node.connection, sent + 1, 5);
  pipeline_->ClockAnswer(node.connection + 1, sent, 5);
  EXPECT_EQ(node.link->probes.size(), 1u);
  clock_.Pass(kUs);
  pipeline_->ClockAnswer(node.connection, sent, 5);
  EXPECT_EQ(node.link->probes.size(), 2u);
  pipeline_->ClockAnswer(node.connection, sent, 5);  // once more
  EXPECT_EQ(node.link->probes.size(), 2u);
}

TEST_F(PipelineLeasesTest, AReadingOutlivesTheConnectionButNotTheBoot) {
  Answer(Join("a"), 70 * kNsPerSecond, 50 * kUs, 50 * kUs);
  const Joined again = Join("a");
  ASSERT_EQ(again.link->probes.size(), 1u);
  EXPECT_TRUE(again.link->probes[0].second.has_value());
  const Joined booted = Join("a", "another boot");
  EXPECT_EQ(booted.link->probes[0].second, std::nullopt);
}

// Job time does not jump with the daemon's wall clock.
TEST_F(PipelineLeasesTest, TheWallClockMayBeSet) {
  const Joined node = Join("a");
  Answer(node, 70 * kNsPerSecond, 50 * kUs, 50 * kUs);
  clock_.unix_ns += 3600 * kNsPerSecond;
  Answer(node, 70 * kNsPerSecond, 50 * kUs, 50 * kUs);
  ExpectNear(*node.link->probes.back().second, 70 * kNsPerSecond, 60 * kUs);
}

TEST_F(PipelineLeasesTest, PausesOfWindowsBecomeAChargeAndCountOnce) {
  const Joined a = Join("a"), b = Join("b");
  for (const Joined* node : {&a, &b}) {
    Answer(*node, 70 * kNsPerSecond, 50 * kUs, 50 * kUs);
  }
  ProfileSpec spec;
  spec.target.command = "app";
  const std::string id = pipeline_->Submit({spec, {1000, "user", false}, ""})->id;
  for (const auto& [node, name] : {std::pair(a, "a"), std::pair(b, "b")}) {
    SessionUpdate update{.profile_id = id,
                         .phase = NodeProgress::Phase::kSampling,
                         .ranks = 1,
                         .threads = 1,
                         .notices = {},
                         .last_sequence = 0,
                         .first_sample = true};
    pipeline_->OnSessionUpdate(node.connection, update);
    IncomingWindow first = Window(id, name, 1);
    CodeLocation location;
    location.category = Category::kLoop;
    location.module_id = "abcdef";
    location.module_path = "/bin/app";
    location.function = "kernel";
    location.function_low = 0x1000;
    location.loop = LoopFacts{};
    location.loop->header = 0x1010;
    first.window.ranks = {{name, 100, 1000, 7, 0, 1, RankSource::kPmix, "job", "app"}};
    first.window.threads = {{0, 100, 100}};
    first.window.locations = {location};
    first.window.rows = {{0, 0, 10, 10}};
    first.body = wire::ToProto(first.window).SerializeAsString();
    ASSERT_TRUE(Accept(node.connection, first).ok());
  }
  // Merging is done on another thread.
  for (int i = 0; i < 500 && a.link->orders.empty(); ++i) {
    clock_.Pass(kNsPerSecond / 10);
    pipeline_->Tick();
    absl::SleepFor(absl::Milliseconds(2));
  }
  for (const Joined* node : {&a, &b}) {
    ASSERT_FALSE(node->link->orders.empty());
    EXPECT_TRUE(node->link->orders[0].order.lease.has_value());
  }
  for (const auto& [node, name] : {std::pair(a, "a"), std::pair(b, "b")}) {
    IncomingWindow paused = Window(id, name, 2);
    AuditEntry entry;
    entry.profile_id = id;
    entry.node = name;
    entry.unix_ns = 5 + 20 * kNsPerMs;  // when it was over
    entry.action = "shadow";
    entry.pause_ns = 20 * kNsPerMs;
    paused.window.audit = {entry};
    paused.window.leased.pauses = {{7, 3, 20 * kNsPerMs, 10 * kUs}};
    paused.body = wire::ToProto(paused.window).SerializeAsString();
    ASSERT_TRUE(Accept(node.connection, paused).ok());
  }
  for (int i = 0; i < 500 && b.link->charges.empty(); ++i) {
    clock_.Pass(kNsPerSecond / 10);
    pipeline_->Tick();
    absl::SleepFor(absl::Milliseconds(2));
  }
  ASSERT_FALSE(b.link->charges.empty());
  EXPECT_EQ(b.link->charges.back(), (ChargeNode{"b", id, 1}));
  End(a.connection, id, 2);
  End(b.connection, id, 2);
  pipeline_->Stop();
  const auto report = store_->FinalReport(id);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->findings.injection.added_wall_ns, 20 * kNsPerMs);
  EXPECT_EQ(report->findings.injection.shared_ns, 20 * kNsPerMs);
}

}  // namespace
}  // namespace perfd::daemon
