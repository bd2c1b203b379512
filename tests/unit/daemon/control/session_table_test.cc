#include "daemon/control/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using Phase = NodeProgress::Phase;

constexpr int64_t kSecond = kNsPerSecond;
const Requester kAlice{1000, "alice", false};
const Requester kRoot{0, "root", true};

ProfileSpec CommandSpec() {
  ProfileSpec spec;
  spec.name = "test";
  spec.target.command = "lulesh";
  spec.duration_ns = 60 * kSecond;
  return spec;
}

AgentFacts Agent(const std::string& node) {
  AgentFacts facts;
  facts.node = node;
  facts.stream_id = "stream-" + node;
  return facts;
}

// A table with a clock of its own; decisions are collected.
class ControlTest : public testing::Test {
 protected:
  Moment now() const { return {mono_, 1'000'000'000'000 + mono_}; }
  void Pass(int64_t ns) {
    mono_ += ns;
    Note(table_.Tick(now()));
  }
  void Note(const Decisions& decisions) { log_.insert(log_.end(), decisions.begin(), decisions.end()); }
  void Connect(const std::string& node) { Note(table_.AgentConnected(Agent(node), now())); }

  std::string Submit(const ProfileSpec& spec = CommandSpec(), const Requester& who = kAlice) {
    auto status = table_.Plan({spec, who, ""}, now());
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return "";
    status->id = absl::StrCat("p-", 100 + ++submitted_);
    const std::string id = status->id;
    Note(table_.Add(*std::move(status), now()));
    return id;
  }

  void Tell(const std::string& node, const std::string& id, Phase phase, int ranks = 0, uint64_t last = 0,
            std::vector<Notice> notices = {}) {
    SessionUpdate update;
    update.profile_id = id;
    update.phase = phase;
    update.ranks = ranks;
    update.last_sequence = last;
    update.notices = std::move(notices);
    Note(table_.Update(node, update, now()));
  }

  void Window(const std::string& node, const std::string& id, uint64_t sequence, uint64_t samples = 10,
              int64_t duration_ns = 5 * kSecond, uint64_t missing = 0) {
    Note(table_.Stored({id, node, "stream-" + node, sequence, now().unix_ns, duration_ns, samples, missing}, now()));
  }

  std::optional<ProfileStatus> Finalising() const {
    for (auto it = log_.rbegin(); it != log_.rend(); ++it) {
      if (const auto* final_status = std::get_if<FinaliseProfile>(&*it)) return final_status->status;
    }
    return std::nullopt;
  }
  ProfileState State(const std::string& id) const { return table_.Status(id, now())->state; }
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const Decision& decision : log_) {
      if (const auto* value = std::get_if<T>(&decision)) found.push_back(*value);
    }
    return found;
  }
  static bool HasNotice(const ProfileStatus& status, absl::StatusCode code, const std::string& text) {
    return std::any_of(status.notices.begin(), status.notices.end(), [&](const Notice& notice) {
      return notice.code == code && absl::StrContains(notice.text, text);
    });
  }

  SessionTable table_;
  Decisions log_;
  int64_t mono_ = 5 * kSecond;
  int submitted_ = 0;
};

TEST_F(ControlTest, NoAgentMeansUnavailable) {
  const auto status = table_.Plan({CommandSpec(), kAlice, ""}, now()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("perf-agent"));
}

TEST_F(ControlTest, InvalidSpecIsRefused) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.target.command.reset();
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlTest, OnlyThePrivilegedNameOtherUsers) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.target.user = "bob";
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now()).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(table_.Plan({spec, kRoot, ""}, now()).ok());
  spec.target.user = "alice";
  EXPECT_TRUE(table_.Plan({spec, kAlice, ""}, now()).ok());
}

TEST_F(ControlTest, PidsNeedANode) {
  ProfileSpec spec;
  spec.target.pids = {42};
  Connect("a");
  EXPECT_EQ(table_.Plan({spec, kAlice, "elsewhere"}, now())->nodes[0].node, "a");
  Connect("b");
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now())->nodes[0].node, "b");
  EXPECT_EQ(table_.Plan({spec, kAlice, "elsewhere"}, now()).status().code(), absl::StatusCode::kInvalidArgument);
  spec.target.node = "a";
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now())->nodes[0].node, "a");
  spec.target.node = "c";
  EXPECT_EQ(table_.Plan({spec, kAlice, "b"}, now()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ControlTest, UserAgentsServeTheirUserOnly) {
  AgentFacts facts = Agent("a");
  facts.user_mode = true;
  facts.uid = kAlice.uid;
  Note(table_.AgentConnected(facts, now()));
  EXPECT_TRUE(table_.Plan({CommandSpec(), kAlice, ""}, now()).ok());
  EXPECT_EQ(table_.Plan({CommandSpec(), Requester{1001, "bob", false}, ""}, now()).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ControlTest, ActiveProfilesAreLimited) {
  Connect("a");
  for (int i = 0; i < 64; ++i) Submit();
  EXPECT_EQ(table_.Plan({CommandSpec(), kAlice, ""}, now()).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ControlTest, WholeLife) {
  Connect("a");
  const std::string id = Submit();
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 60 * kSecond);
  EXPECT_EQ(State(id), ProfileState::kDiscovering);
  Pass(kSecond / 2);
  Tell("a", id, Phase::kDiscovering, 2);
  SessionUpdate first{.profile_id = id, .phase = Phase::kSampling, .ranks = 2, .threads = 4, .notices = {},
                      .last_sequence = 0, .first_sample = true};
  Note(table_.Update("a", first, now()));
  EXPECT_EQ(State(id), ProfileState::kSampling);
  EXPECT_EQ(table_.Status(id, now())->submit_to_first_sample_ns, kSecond / 2);
  for (uint64_t i = 1; i <= 11; ++i) {
    Pass(5 * kSecond);
    Window("a", id, i);
  }
  EXPECT_NEAR(table_.Status(id, now())->progress_ratio, 55.0 / 60, 0.01);
  Tell("a", id, Phase::kFinished, 2, 12);
  EXPECT_EQ(State(id), ProfileState::kAnalyzing);
  EXPECT_FALSE(Finalising().has_value());  // the last window is not stored yet
  Window("a", id, 12);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->samples, 120u);
  EXPECT_EQ(State(id), ProfileState::kAnalyzing);  // until the report is stored
  Note(table_.Finalised(id, true, now()));
  EXPECT_FALSE(table_.Active(id));
}

TEST_F(ControlTest, AReportThatCannotBeStoredIsTriedAgain) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Tell("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 1u);
  Note(table_.Finalised(id, false, now()));
  Pass(kSecond - 1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 1u);
  Pass(1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 2u);
}

TEST_F(ControlTest, NothingFoundAnywhereFailsAndSaysWhat) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Tell("a", id, Phase::kFinished);
  EXPECT_FALSE(Finalising().has_value());
  Tell("b", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kNotFound, "command 'lulesh' of user alice on a, b"));
}

TEST_F(ControlTest, NothingFoundOnOneNodeIsNormal) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Tell("b", id, Phase::kFinished, 0, 0, {{Notice::Severity::kError, absl::StatusCode::kNotFound, "", 0, "no rank"}});
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Tell("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, DiscoveryEndsAfterTenSeconds) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Tell("a", id, Phase::kDiscovering);
  Pass(10 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kDeadlineExceeded, "node b did not answer"));
  EXPECT_EQ(All<StopNode>().size(), 2u);  // neither may begin later
}

struct NoticeCase {
  const char* name;
  Notice notice;
  ProfileState expected;
};

class NoticeTest : public ControlTest, public testing::WithParamInterface<NoticeCase> {};

TEST_P(NoticeTest, DecidesWhetherTheResultIsWhole) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Tell("a", id, Phase::kFinished, 2, 1, {GetParam().notice});
  EXPECT_EQ(Finalising()->state, GetParam().expected);
}

using Severity = Notice::Severity;
using Code = absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    All, NoticeTest,
    testing::Values(
        NoticeCase{"info", {Severity::kInfo, Code::kNotFound, "", 7, "x"}, ProfileState::kDone},
        NoticeCase{"rank_ended", {Severity::kWarning, Code::kNotFound, "", 7, "x"}, ProfileState::kPartial},
        NoticeCase{"foreign_rank", {Severity::kWarning, Code::kPermissionDenied, "", 7, "x"}, ProfileState::kPartial},
        NoticeCase{"governor", {Severity::kWarning, Code::kResourceExhausted, "", 7, "x"}, ProfileState::kDone},
        NoticeCase{"error", {Severity::kError, Code::kInternal, "", 0, "x"}, ProfileState::kPartial},
        NoticeCase{"loss", {Severity::kWarning, Code::kDataLoss, "", 0, "x"}, ProfileState::kPartial}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ControlTest, MissingWindowsMakeItPartial) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 5, 10, 5 * kSecond, 3);  // gaps of an earlier profile do not count
  Window("a", id, 9, 10, 5 * kSecond, 6);
  Tell("a", id, Phase::kFinished, 1, 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kDataLoss, "up to 3 windows of node a"));
}

TEST_F(ControlTest, AnAgentThatComesBackGoesOn) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1, 10, 20 * kSecond);
  Note(table_.AgentGone("a", now()));
  EXPECT_EQ(table_.Status(id, now())->nodes[0].phase, Phase::kDisconnected);
  Pass(60 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  log_.clear();
  Connect("a");
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 40 * kSecond);
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 2);
  Tell("a", id, Phase::kFinished, 1, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, AnAgentThatStaysAwayIsGivenUp) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Note(table_.AgentGone("a", now()));
  Pass(60 * kSecond);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kUnavailable, "did not come back within 60 s"));
}

TEST_F(ControlTest, AnEndThatIsNotStoredWaitsForTheAgent) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Tell("a", id, Phase::kFinished, 1, 2);
  Note(table_.AgentGone("a", now()));
  log_.clear();
  Connect("a");
  EXPECT_TRUE(All<StartNode>().empty());  // it had ended: it only has to deliver
  Window("a", id, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, ANodeThatNeverEndsHitsTheDeadline) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(180 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_EQ(All<StopNode>().size(), 1u);
}

TEST_F(ControlTest, CancelKeepsWhatWasMeasured) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Note(*table_.Cancel(id, "alice", now()));
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_FALSE(Finalising().has_value());
  Window("a", id, 2);
  Tell("a", id, Phase::kFinished, 1, 2);
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
  EXPECT_EQ(Finalising()->samples, 20u);
  Note(table_.Finalised(id, true, now()));
  EXPECT_EQ(table_.Cancel(id, "alice", now()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ControlTest, CancelDoesNotWaitForEver) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Note(*table_.Cancel(id, "alice", now()));
  Pass(10 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
}

TEST_F(ControlTest, CancelWithoutAgentsEndsAtOnce) {
  Connect("a");
  const std::string id = Submit();
  Note(table_.AgentGone("a", now()));
  Note(*table_.Cancel(id, "alice", now()));
  EXPECT_EQ(Finalising()->state, ProfileState::kCancelled);
}

class RestartTest : public ControlTest {
 protected:
  ProfileStatus Stored(Phase phase, int64_t covered_ns) const {
    ProfileStatus status;
    status.id = "p-000007";
    status.state = ProfileState::kSampling;
    status.requester = kAlice;
    status.spec = CommandSpec();
    status.submitted_unix_ns = now().unix_ns - 30 * kSecond;
    status.started_unix_ns = now().unix_ns - 29 * kSecond;
    status.submit_to_first_sample_ns = kSecond;
    status.samples = 50;
    NodeProgress node;
    node.node = "a";
    node.phase = phase;
    node.ranks = 1;
    node.covered_ns = covered_ns;
    node.windows = static_cast<uint64_t>(covered_ns / (5 * kSecond));
    status.nodes = {node};
    return status;
  }
};

TEST_F(RestartTest, GoesOnWithWhatIsLeft) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  Connect("a");
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 35 * kSecond);
  Tell("a", "p-000007", Phase::kFinished, 1, 9);
  Window("a", "p-000007", 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->samples, 60u);
  EXPECT_EQ(Finalising()->submit_to_first_sample_ns, kSecond);
}

TEST_F(RestartTest, AgentThatDoesNotComeBackIsGivenUp) {
  table_.Restore(Stored(Phase::kSampling, 25 * kSecond), now());
  Pass(60 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
}

TEST_F(RestartTest, ANodeThatHadEndedIsNotAskedAgain) {
  for (const Phase phase : {Phase::kFinished, Phase::kSampling}) {
    SCOPED_TRACE(NodePhaseName(phase));
    log_.clear();
    const int64_t covered = phase == Phase::kFinished ? 20 * kSecond : 60 * kSecond;
    table_.Restore(Stored(phase, covered), now());
    Connect("a");
    EXPECT_TRUE(All<StartNode>().empty());
    Pass(5 * kSecond);
    Window("a", "p-000007", 30);  // a sign of life: there may be more
    Pass(10 * kSecond - 1);
    EXPECT_FALSE(Finalising().has_value());
    Pass(1);
    ASSERT_TRUE(Finalising().has_value());
    EXPECT_EQ(Finalising()->state, ProfileState::kDone);
    Note(table_.Finalised("p-000007", true, now()));
  }
}

TEST_F(ControlTest, ProfilesNobodyKnowsAreStopped) {
  AgentFacts facts = Agent("a");
  facts.active_profiles = {"p-000099"};
  Note(table_.AgentConnected(facts, now()));
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_EQ(All<StopNode>()[0].profile_id, "p-000099");
}

TEST_F(ControlTest, NoticesAreBounded) {
  Connect("a");
  const std::string id = Submit();
  for (int i = 0; i < 1000; ++i) {
    Tell("a", id, Phase::kSampling, 1, 0, {{Severity::kInfo, Code::kOk, "", 0, absl::StrCat("n", i)}});
    Tell("a", id, Phase::kSampling, 1, 0, {{Severity::kInfo, Code::kOk, "", 0, "again"}});
  }
  EXPECT_EQ(table_.Status(id, now())->notices.size(), 256u);
}

TEST_F(ControlTest, IdleRanksAreNoFailure) {
  Connect("a");
  const std::string id = Submit();
  Tell("a", id, Phase::kSampling, 1);
  Window("a", id, 1, 0);
  Tell("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kOk, "no CPU time"));
}

}  // namespace
}  // namespace perfd
