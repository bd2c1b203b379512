// One stolen key, or one user's own program, must not decide what anybody reads: random tries over the whole of
// Pipeline, Ingest and a real store. What may be brought is worked out here from the setting alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/wire/wire.h"
#include "daemon/store/profile_id.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

constexpr size_t kTries = 10'000;
constexpr size_t kAtOnce = 500;

struct Rogue {
  std::string node;
  uint32_t uid = 0;
  bool user_mode = false;
  uint64_t connection = 0;
};

class RogueSendersTest : public PipelineFixture {
 protected:
  // In memory: ten thousand commits of a busy disk are not what is tested.
  RogueSendersTest() {
    std::string name = "/dev/shm/perfd-store-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return;
    std::filesystem::remove_all(folder_);
    folder_ = name;
  }

  // Of a node, by its certificate; or a user's own.
  static AgentFacts FactsOf(const std::string& node, uint32_t uid, bool user_mode) {
    AgentFacts facts;
    facts.node = node;
    facts.stream_id = "stream-" + node;
    facts.uid = uid;
    facts.user_mode = user_mode;
    if (!user_mode) facts.certificate_expiry_seconds = 4'000'000'000;
    return facts;
  }
  absl::StatusOr<uint64_t> Register(const AgentFacts& facts) {
    return pipeline_->AgentConnected(facts, std::make_shared<NotingLink>());
  }
  Rogue ConnectAs(const std::string& node, uint32_t uid, bool user_mode) {
    const auto connection = Register(FactsOf(node, uid, user_mode));
    EXPECT_TRUE(connection.ok()) << connection.status();
    return {node, uid, user_mode, connection.value_or(0)};
  }

  std::string SubmitTo(uint32_t uid, const std::vector<std::string>& nodes) {
    SubmitRequest request;
    request.spec.target.command = "app";
    request.requester = {uid, absl::StrCat("user", uid), false};
    request.nodes = nodes;
    const auto status = pipeline_->Submit(request);
    EXPECT_TRUE(status.ok()) << status.status();
    return Know(status.ok() ? status->id : "", uid, nodes);
  }

  std::string StoreOver(uint32_t uid, ProfileState state, const std::vector<std::string>& nodes) {
    ProfileStatus status = Profile(uid, state);
    for (const std::string& node : nodes) status.nodes.push_back({.node = node});
    status.finished_unix_ns = clock_.UnixNs();
    status.id = *store_->Create(status);
    EXPECT_TRUE(store_->StoreStatus(status).ok());
    return Know(status.id, uid, nodes);
  }

  std::string Know(const std::string& id, uint32_t uid, const std::vector<std::string>& nodes) {
    asked_[id] = {uid, {nodes.begin(), nodes.end()}};
    return id;
  }

  // What a sender may bring, by the words of docs/security.md.
  bool IsRight(const Rogue& sender, const perfd::Window& window) const {
    const auto profile = asked_.find(window.profile_id);
    if (profile == asked_.end() || window.node != sender.node) return false;
    const auto own = [&](const auto& part) {
      return part.profile_id == window.profile_id && part.node == window.node;
    };
    return profile->second.nodes.contains(sender.node) &&
           (!sender.user_mode || profile->second.uid == sender.uid) &&
           std::all_of(window.audit.begin(), window.audit.end(), own) &&
           std::all_of(window.findings.measurements.begin(), window.findings.measurements.end(),
                       own);
  }

  size_t Below(size_t bound) {
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }

  std::string AnyNode() { return nodes_[Below(nodes_.size())]; }
  std::string AnyProfile() { return FormatProfileId(static_cast<int64_t>(1 + Below(14))); }

  IncomingWindow AnyWindow(const Rogue& sender) {
    const auto mostly = [&](const std::string& value, const std::string& other) {
      return Below(4) > 0 ? value : other;
    };
    IncomingWindow incoming =
        PipelineFixture::Window(AnyProfile(), mostly(sender.node, AnyNode()), 1 + Below(1 << 20));
    perfd::Window& window = incoming.window;
    window.stream_id = mostly("stream-" + sender.node, "stream-" + AnyNode());
    for (size_t i = Below(3); i > 0; --i) {
      AuditEntry entry;
      entry.unix_ns = 1;
      entry.profile_id = mostly(window.profile_id, AnyProfile());
      entry.node = mostly(window.node, AnyNode());
      entry.action = "install";
      entry.outcome = "FORGED";
      entry.origin = {"root (uid 0)", "uid 0"};
      window.audit.push_back(entry);
    }
    for (size_t i = Below(2); i > 0; --i) {
      LoopMeasurement loop;
      loop.profile_id = mostly(window.profile_id, AnyProfile());
      loop.node = mostly(window.node, AnyNode());
      loop.loop_id = "FORGED";
      loop.state = MeasureState::kMeasured;
      window.findings.measurements.push_back(loop);
    }
    incoming.body = wire::ToProto(window).SerializeAsString();
    return incoming;
  }

  struct Wanted {
    uint32_t uid = 0;
    std::set<std::string> nodes;
  };
  std::map<std::string, Wanted> asked_;
  std::vector<std::string> nodes_;
  std::mt19937_64 random_;
};

// Whoever knows the name of a stream could else mark its windows as stored, or take the place of who sends them.
TEST_F(RogueSendersTest, NobodyGoesOnWithTheStreamOfAnother) {
  Begin();
  const Rogue node = ConnectAs("node1", 0, false), own = ConnectAs("evil", 1001, true);
  const std::string id = SubmitTo(1001, {"node1", "evil"});
  const auto window = [&](const Rogue& of, const std::string& stream, uint64_t sequence) {
    IncomingWindow incoming = PipelineFixture::Window(id, of.node, sequence);
    incoming.window.stream_id = stream;
    return incoming;
  };
  // Nobody's yet: who brings the first window has it, the other one's are not taken for seen.
  AgentFacts copied = FactsOf("node2", 0, false);
  copied.stream_id = "stream-node1";
  const auto early = Register(copied);
  ASSERT_TRUE(early.ok()) << early.status();
  ASSERT_TRUE(Accept(node.connection, window(node, "stream-node1", 5)).ok());
  pipeline_->RefuseWindow(*early, kSite, id, 6, absl::InvalidArgumentError("forged"),
                          [](const absl::Status& status) {
                            EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
                          });
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(store_->Stream("stream-node1")->last, 5u);
  ASSERT_TRUE(Accept(own.connection, window(own, "stream-evil", 1)).ok());

  const auto refused = [&](AgentFacts facts, const std::string& stream) {
    facts.stream_id = stream;
    const absl::Status status = Register(facts).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refused(copied, "stream-node1"),
              HasSubstr("is one of node node1, not of node node2: stop the agent"));
  EXPECT_THAT(refused(FactsOf("mine", 1002, true), "stream-evil"),
              HasSubstr("one of user 1001, not of user 1002"));
  refused(FactsOf("mine", 1002, true), "stream-node1");
  refused(FactsOf("node3", 0, false), "stream-evil");
  // The node itself, its user elsewhere, and who is trusted on perfd's own host.
  EXPECT_TRUE(Register(FactsOf("node1", 0, false)).ok());
  AgentFacts moved = FactsOf("elsewhere", 1001, true);
  moved.stream_id = "stream-evil";
  EXPECT_TRUE(Register(moved).ok());
  AgentFacts local = FactsOf("renamed", 0, false);
  local.stream_id = "stream-node1";
  local.certificate_expiry_seconds.reset();
  const auto trusted = Register(local);
  ASSERT_TRUE(trusted.ok()) << trusted.status();
  ASSERT_TRUE(Accept(*trusted, window(node, "stream-node1", 7)).ok());
  EXPECT_EQ(store_->Stream("stream-node1")->owner, "node renamed");
  // A certificate proves a node, whatever the agent says of itself.
  AgentFacts disguised = FactsOf("node2", 0, true);
  disguised.certificate_expiry_seconds = 4'000'000'000;
  disguised.stream_id = "stream-renamed";
  refused(disguised, "stream-node1");
}

TEST_F(RogueSendersTest, NothingOfWhatTheyBringIsStoredAndTheOwnersAreTold) {
  const char* given = std::getenv("PERFD_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(absl::StrCat("PERFD_TEST_SEED=", seed));
  RecordProperty("seed", absl::StrCat(seed));
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  random_.seed(seed);

  Begin(absl::Milliseconds(20));  // many tries share a commit
  const std::array<Rogue, 6> senders = {
      ConnectAs("node1", 0, false), ConnectAs("node2", 0, false),  ConnectAs("node3", 0, false),
      ConnectAs("rogue", 0, false), ConnectAs("evil", 1001, true), ConnectAs("other", 1002, true)};
  for (const Rogue& sender : senders) nodes_.push_back(sender.node);
  nodes_.insert(nodes_.end(), {"node9", "perfd", ""});
  const std::vector<std::string> active = {
      SubmitTo(1000, {"node1", "node2"}), SubmitTo(1000, {"node3"}), SubmitTo(1001, {"node1"}),
      SubmitTo(1001, {"node2", "evil"}), SubmitTo(1002, {"node1", "node2", "node3"})};
  StoreOver(1000, ProfileState::kPartial, {"node1"});
  StoreOver(1001, ProfileState::kPartial, {"node2", "evil"});
  StoreOver(1002, ProfileState::kDone, {"node3"});
  StoreOver(1000, ProfileState::kFailed, {});
  const std::string gone = StoreOver(1000, ProfileState::kDone, {"node1", "node2", "node3"});
  asked_.erase(gone);  // and so it is unknown to perfd, as p-000011 and beyond, which never were
  {
    auto db = Database::Open(store_->directory() + "/perfd.db");
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE(db->Exec("DELETE FROM profile WHERE id=10").ok());
  }
  ASSERT_EQ(gone, "p-000010");
  // What is there in good order: one window of each sender that was asked, with one entry.
  size_t stored = 0;
  for (const std::string& id : active) {
    for (const Rogue& sender : senders) {
      if (!asked_.at(id).nodes.contains(sender.node)) continue;
      IncomingWindow window = PipelineFixture::Window(id, sender.node, (1 << 21) + ++stored);
      AuditEntry entry;
      entry.profile_id = id;
      entry.node = sender.node;
      entry.outcome = "ok";
      window.window.audit = {entry};
      ASSERT_TRUE(IsRight(sender, window.window));
      ASSERT_TRUE(Accept(sender.connection, std::move(window)).ok());
    }
  }

  size_t tries = 0;
  std::array<size_t, 6> by_sender{};
  while (tries < kTries) {
    std::vector<std::unique_ptr<Notification>> answers;
    while (answers.size() < kAtOnce) {
      const size_t who = Below(senders.size());
      IncomingWindow window = AnyWindow(senders[who]);
      // What a sender may bring may decide what is read of its own share: there is nothing to find in that.
      if (window.window.stream_id == "stream-" + senders[who].node &&
          IsRight(senders[who], window.window))
        continue;
      ++by_sender[who];
      answers.push_back(std::make_unique<Notification>());
      pipeline_->AcceptWindow(
          senders[who].connection, std::move(window),
          [answer = answers.back().get()](const absl::Status& status) {
            // At random numbers a stream soon has all the gaps that it may have.
            EXPECT_TRUE(status.ok() || absl::StrContains(status.message(), "gaps_per_stream"))
                << status << ": it would come again";
            answer->Notify();
          });
    }
    for (const auto& answer : answers) answer->WaitForNotification();
    tries += answers.size();
  }
  for (const size_t tried : by_sender) EXPECT_GT(tried, kTries / 20) << "everybody tries";
  pipeline_->Stop();

  uint64_t windows = 0;
  const auto counts = store_->WindowCounts();
  for (const auto& [id, count] : *counts) windows += count;
  EXPECT_EQ(windows, stored);
  const auto audit = store_->Audit({.profile_id = "", .uid = std::nullopt, .limit = 1000});
  EXPECT_EQ(audit->size(), stored);
  for (const AuditEntry& entry : *audit) {
    EXPECT_EQ(entry.outcome, "ok");
    EXPECT_EQ(entry.origin.brought_by,
              entry.node == "evil" ? "uid 1001" : absl::StrCat("certificate agent/", entry.node));
    const uint32_t owner = asked_.at(entry.profile_id).uid;
    EXPECT_EQ(entry.origin.requester, absl::StrCat("user", owner, " (uid ", owner, ")"));
  }
  EXPECT_EQ(pipeline_->Figures().windows_stored, stored);
  for (const std::string& id : active) {
    const Requester owner{asked_.at(id).uid, "owner", false};
    const auto report = pipeline_->GetReport(owner, id);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->status.samples, 10 * asked_.at(id).nodes.size()) << id;
    EXPECT_TRUE(report->findings.verdicts.empty()) << id;
    std::string notices;
    for (const Notice& notice : report->status.notices) {
      absl::StrAppend(&notices, notice.text, "\n");
      if (notice.node == "rogue") {
        EXPECT_EQ(notice.code, absl::StatusCode::kPermissionDenied) << "the result lacks nothing";
      }
    }
    EXPECT_THAT(notices, HasSubstr("perfd refused windows of node rogue")) << id;
    EXPECT_THAT(notices, HasSubstr("perfd refused windows of a user-mode agent")) << id;
  }
}

}  // namespace
}  // namespace perfd::daemon
