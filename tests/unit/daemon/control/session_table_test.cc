#include "daemon/control/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/daemon/control/control_fixture.h"

namespace perfd::daemon {
namespace {

using ::testing::HasSubstr;

TEST_F(ControlTest, NoAgentMeansUnavailable) {
  const auto status = table_.Plan({CommandSpec(), kAlice, ""}, now()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("perf-agent"));
}

TEST_F(ControlTest, InvalidSpecIsRefused) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.target.command.reset();
  EXPECT_EQ(table_.Plan({spec, kAlice, ""}, now()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlTest, ActiveProfilesAreLimited) {
  Connect("a");
  const auto free = [&](const Requester& who, bool by_site = false) {
    SubmitRequest request{CommandSpec(), who, ""};
    request.by_site = by_site;
    return table_.Plan(request, now()).ok();
  };
  const auto refused_by = [&](Limit limit, const Requester& who) {
    const uint64_t before = limits_.Hits()[static_cast<size_t>(limit)];
    const absl::Status status = table_.Plan({CommandSpec(), who, ""}, now()).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(RowOf(limit).key)));
    EXPECT_EQ(limits_.Hits()[static_cast<size_t>(limit)], before + 1);
  };
  for (int i = 0; i < 8; ++i) Submit();
  refused_by(Limit::kProfilesPerUser, kAlice);
  EXPECT_TRUE(free(kAlice, true)) << "what the site asks for is not hers";
  for (uint32_t i = 8; i < 56; ++i) Submit(CommandSpec(), {2000 + i, "other", false});
  refused_by(Limit::kProfiles, {1001, "bob", false});
  EXPECT_TRUE(free({1001, "bob", false}, true)) << "kept back for the site";
  for (int i = 56; i < 64; ++i) Submit(CommandSpec(), {0, "root", true});
  EXPECT_FALSE(free({0, "root", true}));
  EXPECT_FALSE(free(kAlice, true));
}

TEST_F(ControlTest, AgentsInUserModeTakeNoPlacesOfOthers) {
  LimitValues low = StandardLimits();
  low[static_cast<size_t>(Limit::kProfiles)] = 3;
  limits_.Set(low);
  const auto join = [&](const std::string& node, uint32_t uid) {
    AgentFacts facts = Agent(node);
    facts.user_mode = uid != 0;
    facts.uid = uid;
    Record(table_.AgentConnected(facts, now()));
  };
  for (uint32_t user = 2000; user < 2007; ++user) {
    join(absl::StrCat("own", user), user);
    for (int i = 0; i < 8; ++i) Submit(CommandSpec(), {user, "other", false});
    EXPECT_EQ(table_.Plan({CommandSpec(), {user, "other", false}, ""}, now()).status().code(),
              absl::StatusCode::kResourceExhausted)
        << "their own bound";
  }
  EXPECT_EQ(*limits_.UsesOf(kAlice, 0)[static_cast<size_t>(Limit::kProfiles)].used, 0);
  join("site", 0);
  EXPECT_TRUE(table_.Plan({CommandSpec(), kAlice, ""}, now()).ok());
  Submit();
  EXPECT_EQ(*limits_.UsesOf(kAlice, 0)[static_cast<size_t>(Limit::kProfiles)].used, 1);
}

TEST_F(ControlTest, APlanTakesAPlaceUntilItsProfileIsOverOrItCameToNothing) {
  Connect("a");
  const SubmitRequest request{CommandSpec(), kAlice, ""};
  const auto code = [&] { return table_.Plan(request, now()).status().code(); };
  for (int i = 0; i < 6; ++i) Submit();
  auto first = table_.Plan(request, now());
  ASSERT_TRUE(first.ok());
  std::optional<PlannedProfile> second = *table_.Plan(request, now());
  EXPECT_EQ(code(), absl::StatusCode::kResourceExhausted);
  second.reset();
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  first->status.id = "p-1";
  Record(table_.Add(*std::move(first), now()));
  second = *table_.Plan(request, now());
  EXPECT_EQ(code(), absl::StatusCode::kResourceExhausted);
  Record(*table_.Cancel("p-1", "alice", now()));
  Report("a", "p-1", Phase::kFinished);
  Record(table_.Finalised("p-1", true, now()));
  ASSERT_FALSE(table_.Active("p-1"));
  EXPECT_EQ(code(), absl::StatusCode::kOk);
}

TEST_F(ControlTest, OneProfileMayAskForSoMuch) {
  Connect("a");
  LimitValues low = StandardLimits();
  low[static_cast<size_t>(Limit::kProfileMinutes)] = 2;
  low[static_cast<size_t>(Limit::kFrequency)] = 500;
  low[static_cast<size_t>(Limit::kCallPathFrequency)] = 100;
  limits_.Set(low);
  const auto key_that_refuses = [&](const ProfileSpec& spec) -> std::string {
    const absl::Status status = table_.Plan({spec, kAlice, ""}, now()).status();
    EXPECT_TRUE(table_.Plan({spec, kRoot, ""}, now()).ok()) << "root has no limit of its own";
    SubmitRequest of_site{spec, kAlice, ""};
    of_site.by_site = true;
    EXPECT_TRUE(table_.Plan(of_site, now()).ok());
    for (const Limit limit : {Limit::kProfileMinutes, Limit::kFrequency, Limit::kCallPathFrequency})
      if (absl::StrContains(status.message(), RowOf(limit).key))
        return std::string(RowOf(limit).key);
    return status.ok() ? "" : std::string(status.message());
  };
  ProfileSpec spec = CommandSpec();
  spec.duration_ns = 120 * kSecond;
  spec.hotspots.frequency_hz = 500;
  EXPECT_EQ(key_that_refuses(spec), "");
  spec.duration_ns += kSecond;
  EXPECT_EQ(key_that_refuses(spec), "limits.profile_minutes");
  spec.duration_ns -= kSecond;
  spec.hotspots.frequency_hz = 501;
  EXPECT_EQ(key_that_refuses(spec), "limits.frequency_hz");
  spec.hotspots.frequency_hz = 101;
  EXPECT_EQ(key_that_refuses(spec), "") << "without call paths";
  spec.hotspots.callpaths = CallPaths::kDwarf;
  EXPECT_EQ(key_that_refuses(spec), "limits.callpath_frequency_hz");
  spec.hotspots.frequency_hz = 100;
  EXPECT_EQ(key_that_refuses(spec), "");
}

TEST_F(ControlTest, AUsersActiveProfilesHaveSoManyRanksAndThreads) {
  for (const char* node : {"a", "b"}) Connect(node);
  LimitValues low = StandardLimits();
  low[static_cast<size_t>(Limit::kRanksPerUser)] = 10;
  low[static_cast<size_t>(Limit::kThreadsPerUser)] = 40;
  limits_.Set(low);
  const auto report = [&](const std::string& node, const std::string& id, int ranks, int threads) {
    SessionUpdate update;
    update.profile_id = id;
    update.phase = Phase::kSampling;
    update.ranks = ranks;
    update.threads = threads;
    Record(table_.Update(node, update, now()));
  };
  const auto stopped = [&](const std::string& id) {
    const auto stops = All<StopNode>();
    return std::any_of(stops.begin(), stops.end(),
                       [&](const auto& s) { return s.profile_id == id; });
  };
  const auto used = [&](Limit limit) {
    return *limits_.UsesOf(kAlice, 0)[static_cast<size_t>(limit)].used;
  };
  const std::string first = Submit();
  report("a", first, 4, 16);
  report("b", first, 2, 8);
  report("b", first, 2, 8);
  EXPECT_EQ(used(Limit::kRanksPerUser), 6);
  EXPECT_EQ(used(Limit::kThreadsPerUser), 24);
  const std::string second = Submit();
  report("a", second, 4, 16);
  EXPECT_FALSE(stopped(second)) << "exactly as many as there are";
  const std::string of_root = Submit(CommandSpec(), kRoot);
  report("a", of_root, 1000, 4000);
  const std::string of_bob = Submit(CommandSpec(), {1001, "bob", false});
  report("a", of_bob, 10, 40);
  for (const std::string& id : {of_root, of_bob}) EXPECT_FALSE(stopped(id)) << id;
  report("b", second, 1, 1);
  EXPECT_TRUE(stopped(second));
  EXPECT_FALSE(stopped(first));
  report("b", second, 2, 2);
  EXPECT_EQ(limits_.Hits()[static_cast<size_t>(Limit::kRanksPerUser)], 1u) << "refused once";
  EXPECT_EQ(used(Limit::kRanksPerUser), 10) << "a profile that ends takes no more";
  EXPECT_TRUE(HasNotice(
      table_.Status(second, now()).value(), absl::StatusCode::kCancelled,
      "cancelled by perfd: the limit of 10 ranks of active profiles of one user is reached"));
  report("a", first, 4, 17);
  EXPECT_TRUE(stopped(first)) << "a thread more than there are";
  EXPECT_EQ(limits_.Hits()[static_cast<size_t>(Limit::kThreadsPerUser)], 1u);
  for (const std::string& id : {first, second}) {
    for (const char* node : {"a", "b"}) Report(node, id, Phase::kFinished);
    Record(table_.Finalised(id, true, now()));
    EXPECT_FALSE(table_.Active(id));
  }
  EXPECT_EQ(used(Limit::kRanksPerUser), 0) << "what is over holds nothing";
  EXPECT_EQ(used(Limit::kThreadsPerUser), 0);
}

TEST_F(ControlTest, WhatGoesOnAfterARestartHasItsPlaceWhateverTheLimitIs) {
  Connect("a");
  LimitValues low = StandardLimits();
  low[static_cast<size_t>(Limit::kProfilesPerUser)] = 1;
  limits_.Set(low);
  for (int i = 0; i < 2; ++i) {
    ProfileStatus status;
    status.id = absl::StrCat("p-", i);
    status.requester = kAlice;
    status.state = ProfileState::kDiscovering;
    NodeProgress& node = status.nodes.emplace_back();
    node.node = "a";
    node.ranks = 7;
    node.threads = 70;
    table_.Restore(status, now());
  }
  EXPECT_TRUE(table_.Active("p-1"));
  EXPECT_EQ(limits_.UsesOf(kAlice, 0)[static_cast<size_t>(Limit::kRanksPerUser)].used, 14);
  EXPECT_EQ(limits_.UsesOf(kAlice, 0)[static_cast<size_t>(Limit::kThreadsPerUser)].used, 140);
  EXPECT_EQ(table_.Plan({CommandSpec(), kAlice, ""}, now()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// A day's seconds are spent at the begin; what was not needed comes back, once.
TEST_F(ControlTest, SecondsOfAlteredLoopsThatWereNotNeededComeBack) {
  Connect("a");
  const auto used = [&] {
    return *limits_
                .UsesOf(kAlice, now().unix_ns)[static_cast<size_t>(Limit::kAlteringSecondsPerUser)]
                .used;
  };
  ProfileSpec spec = CommandSpec();
  spec.variants.set = {"LS"};
  spec.duration_ns = 1000 * kSecond;
  spec.budget.overhead_ratio = 0.05;
  const std::string id = Submit(spec);
  EXPECT_EQ(used(), 50);
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Pass(100 * kSecond);
  Record(*table_.Cancel(id, "alice", now()));
  Report("a", id, Phase::kFinished, 1, 1);
  {
    const auto plan = table_.Plan({spec, kAlice, ""}, now());
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(used(), 100);
  }
  EXPECT_EQ(used(), 50) << "a plan that came to nothing";
  Record(table_.Finalised(id, false, now()));  // its report could not be stored yet
  EXPECT_EQ(used(), 50);
  Pass(500 * kSecond);
  Record(table_.Finalised(id, true, now()));
  ASSERT_FALSE(table_.Active(id));
  EXPECT_GE(used(), 5);
  EXPECT_LE(used(), 6) << "not for the time in which the store was away";
  // One that never began, and one that the site asked for.
  const std::string never = Submit(spec);
  Record(*table_.Cancel(never, "alice", now()));
  Report("a", never, Phase::kFinished);
  Record(table_.Finalised(never, true, now()));
  EXPECT_LE(used(), 6);
  SubmitRequest by_site{spec, kAlice, ""};
  by_site.by_site = true;
  EXPECT_TRUE(table_.Plan(by_site, now()).ok());
  EXPECT_LE(used(), 6);
}

TEST_F(ControlTest, ARefusedRequestTakesNoPlace) {
  Connect("a");
  ProfileSpec spec = CommandSpec();
  spec.target.node = "elsewhere";
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(table_.Plan({spec, kAlice, ""}, now()).ok());
  Submit();
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(ControlTest, WhatANodeSaysThatWasNotAskedIsNotBelievedAndTheOwnerIsTold) {
  Connect("a");
  const std::string id = Submit();
  SessionUpdate rogue{
      .profile_id = id,
      .phase = Phase::kSampling,
      .ranks = 99,
      .threads = 99,
      .notices = {{Notice::Severity::kWarning, absl::StatusCode::kOk, "a", 0, "lie"}},
      .last_sequence = 0,
      .first_sample = true};
  Record(table_.Update("rogue", rogue, now()));
  Record(table_.Update("rogue", rogue, now()));
  EXPECT_EQ(State(id), ProfileState::kDiscovering);
  const ProfileStatus status = *table_.Status(id, now());
  ASSERT_EQ(status.notices.size(), 1u) << "once, and not in the rogue's words";
  EXPECT_EQ(status.notices[0].node, "rogue");
  EXPECT_EQ(status.notices[0].code, absl::StatusCode::kPermissionDenied);
}

TEST_F(ControlTest, WholeLife) {
  Connect("a");
  const std::string id = Submit();
  ASSERT_EQ(All<StartNode>().size(), 1u);
  EXPECT_EQ(All<StartNode>()[0].remaining_ns, 60 * kSecond);
  EXPECT_EQ(State(id), ProfileState::kDiscovering);
  Pass(kSecond / 2);
  Report("a", id, Phase::kDiscovering, 2);
  SessionUpdate first{.profile_id = id,
                      .phase = Phase::kSampling,
                      .ranks = 2,
                      .threads = 4,
                      .notices = {},
                      .last_sequence = 0,
                      .first_sample = true};
  Record(table_.Update("a", first, now()));
  EXPECT_EQ(State(id), ProfileState::kSampling);
  EXPECT_EQ(table_.Status(id, now())->submit_to_first_sample_ns, kSecond / 2);
  for (uint64_t i = 1; i <= 11; ++i) {
    Pass(5 * kSecond);
    Window("a", id, i);
  }
  EXPECT_NEAR(table_.Status(id, now())->course.progress_ratio, 55.0 / 60, 0.01);
  Report("a", id, Phase::kFinished, 2, 12);
  EXPECT_EQ(State(id), ProfileState::kAnalyzing);
  EXPECT_FALSE(Finalising().has_value());  // the last window is not stored yet
  Window("a", id, 12);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_EQ(Finalising()->samples, 120u);
  EXPECT_EQ(State(id), ProfileState::kAnalyzing);  // until the report is stored
  Record(table_.Finalised(id, true, now()));
  EXPECT_FALSE(table_.Active(id));
}

TEST_F(ControlTest, AReportThatCannotBeStoredIsTriedAgain) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Report("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 1u);
  Record(table_.Finalised(id, false, now()));
  Pass(kSecond - 1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 1u);
  Pass(1);
  EXPECT_EQ(All<FinaliseProfile>().size(), 2u);
}

TEST_F(ControlTest, NothingFoundAnywhereFailsAndSaysWhat) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Report("a", id, Phase::kFinished);
  EXPECT_FALSE(Finalising().has_value());
  Report("b", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kNotFound,
                        "command 'lulesh' of user alice on a, b"));
}

TEST_F(ControlTest, NothingFoundOnOneNodeIsNormal) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Report("b", id, Phase::kFinished, 0, 0,
         {{Notice::Severity::kError, absl::StatusCode::kNotFound, "", 0, "no rank"}});
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Report("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, DiscoveryEndsAfterTenSeconds) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Report("a", id, Phase::kDiscovering);
  Pass(10 * kSecond - 1);
  EXPECT_FALSE(Finalising().has_value());
  Pass(1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_TRUE(
      HasNotice(*Finalising(), absl::StatusCode::kDeadlineExceeded, "node b did not answer"));
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
  Report("a", id, Phase::kFinished, 2, 1, {GetParam().notice});
  EXPECT_EQ(Finalising()->state, GetParam().expected);
}

using Severity = Notice::Severity;
using Code = absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    All, NoticeTest,
    testing::Values(
        NoticeCase{"info", {Severity::kInfo, Code::kNotFound, "", 7, "x"}, ProfileState::kDone},
        NoticeCase{"rank_ended",
                   {Severity::kWarning, Code::kNotFound, "", 7, "x"},
                   ProfileState::kPartial},
        NoticeCase{"foreign_rank",
                   {Severity::kWarning, Code::kPermissionDenied, "", 7, "x"},
                   ProfileState::kPartial},
        NoticeCase{"governor",
                   {Severity::kWarning, Code::kResourceExhausted, "", 7, "x"},
                   ProfileState::kDone},
        NoticeCase{
            "error", {Severity::kError, Code::kInternal, "", 0, "x"}, ProfileState::kPartial},
        NoticeCase{
            "loss", {Severity::kWarning, Code::kDataLoss, "", 0, "x"}, ProfileState::kPartial}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ControlTest, MissingWindowsMakeItPartial) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 5, 10, 5 * kSecond, 3);  // gaps of an earlier profile do not count
  Window("a", id, 9, 10, 5 * kSecond, 6);
  Report("a", id, Phase::kFinished, 1, 9);
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kDataLoss, "up to 3 windows of node a"));
}

TEST_F(ControlTest, ARefusedWindowIsNoReasonToWait) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1);
  Report("a", id, Phase::kFinished, 1, 2);
  EXPECT_FALSE(Finalising().has_value());
  const Notice notice{Severity::kWarning, Code::kDataLoss, "a", 0, "perfd refused windows"};
  Record(table_.Refused({id, "a", "stream-a", 2, notice}, now()));
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kPartial);
  EXPECT_TRUE(HasNotice(*Finalising(), Code::kDataLoss, "perfd refused windows"));
}

TEST_F(ControlTest, AStreamThatBeginsAnewKeepsWhatWasLostBefore) {
  Connect("a");
  const std::string id = Submit();
  Window("a", id, 1, 10, 5 * kSecond, 7);
  Window("a", id, 4, 10, 5 * kSecond, 9);
  AgentFacts facts = Agent("a");
  facts.stream_id = "new";
  Record(table_.AgentConnected(facts, now()));
  Record(table_.Stored({id, "a", "new", 1, now().unix_ns, kSecond, 1, 0}, now()));
  Report("a", id, Phase::kFinished, 1, 1);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_TRUE(HasNotice(*Finalising(), Code::kDataLoss, "up to 2 windows of node a"));
}

TEST_F(ControlTest, NewsOfAProfileThatIsOverIsAnsweredWithStop) {
  Connect("a");
  Report("a", "p-000099", Phase::kSampling, 1);
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_EQ(All<StopNode>()[0].profile_id, "p-000099");
  EXPECT_EQ(All<StopNode>()[0].node, "a");
  Report("a", "p-000099", Phase::kFinished, 1);
  Report("a", "p-000099", Phase::kFailed, 1);
  EXPECT_EQ(All<StopNode>().size(), 1u);
}

TEST_F(ControlTest, ASessionThatMissedItsCancelIsStoppedAgain) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  Record(*table_.Cancel(id, "alice", now()));
  EXPECT_EQ(All<StopNode>().size(), 2u);
  Report("a", id, Phase::kSampling, 1);
  EXPECT_EQ(All<StopNode>().size(), 3u);
  Report("a", id, Phase::kAnalyzing, 1);  // it is stopping
  EXPECT_EQ(All<StopNode>().size(), 3u);
  Connect("c");
  Report("c", id, Phase::kDiscovering, 1);  // was never asked
  EXPECT_EQ(All<StopNode>().size(), 4u);
}

TEST_F(ControlTest, ANodeThatRefusedEverythingIsNothingMissing) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  const Notice refusal{Severity::kInfo, Code::kNotFound, "", 0, "2 processes belong to user bob"};
  Report("b", id, Phase::kFinished, 0, 0, {refusal});
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1);
  Report("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
}

TEST_F(ControlTest, WhenNobodyMeasuredTheRefusalIsTheReason) {
  Connect("a");
  Connect("b");
  const std::string id = Submit();
  const Notice refusal{Severity::kInfo, Code::kNotFound, "", 0, "2 processes belong to user bob"};
  Report("b", id, Phase::kFinished, 0, 0, {refusal});
  Report("a", id, Phase::kFinished);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  ASSERT_EQ(Finalising()->notices.back().severity, Severity::kError);
  EXPECT_THAT(Finalising()->notices.back().text,
              testing::AllOf(HasSubstr("no process matches"),
                             HasSubstr("b: 2 processes belong to user bob")));
}

// An agent says so at once when it has found nothing; one that has said nothing is busy.
TEST_F(ControlTest, OfANodeThatHasNotSaidWhatItFoundNothingIsSaid) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kDiscovering);
  Pass(11 * kSecond);
  ASSERT_TRUE(Finalising().has_value());
  EXPECT_EQ(Finalising()->state, ProfileState::kFailed);
  EXPECT_THAT(Finalising()->notices.back().text,
              testing::AllOf(HasSubstr("is not known; submit it again (a: had not said what "
                                       "it found within 10 s"),
                             testing::Not(HasSubstr("no process matches"))));
}

TEST_F(ControlTest, ProfilesNobodyKnowsAreStopped) {
  AgentFacts facts = Agent("a");
  facts.active_profiles = {"p-000099"};
  Record(table_.AgentConnected(facts, now()));
  ASSERT_EQ(All<StopNode>().size(), 1u);
  EXPECT_EQ(All<StopNode>()[0].profile_id, "p-000099");
}

TEST_F(ControlTest, NoticesAreBounded) {
  Connect("a");
  const std::string id = Submit();
  for (int i = 0; i < 1000; ++i) {
    Report("a", id, Phase::kSampling, 1, 0,
           {{Severity::kInfo, Code::kOk, "", 0, absl::StrCat("n", i)}});
    Report("a", id, Phase::kSampling, 1, 0, {{Severity::kInfo, Code::kOk, "", 0, "again"}});
  }
  EXPECT_EQ(table_.Status(id, now())->notices.size(), 256u);
}

TEST_F(ControlTest, IdleRanksAreNoFailure) {
  Connect("a");
  const std::string id = Submit();
  Report("a", id, Phase::kSampling, 1);
  Window("a", id, 1, 0);
  Report("a", id, Phase::kFinished, 1, 1);
  EXPECT_EQ(Finalising()->state, ProfileState::kDone);
  EXPECT_TRUE(HasNotice(*Finalising(), absl::StatusCode::kOk, "long enough on a CPU to be seen"));
}

}  // namespace
}  // namespace perfd::daemon
