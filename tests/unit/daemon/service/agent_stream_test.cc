#include <gmock/gmock.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/version.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class AgentStreamTest : public ServiceFixture {};

TEST_F(AgentStreamTest, AProfileFromSubmitToReport) {
  FakeAgent agent(Connect(), "a");
  const auto welcome = agent.Join();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stored_sequence(), 0u);
  EXPECT_EQ(welcome->version(), kVersion);
  const auto person = Person();
  std::string id;
  ASSERT_TRUE(Submit(*person, &id).ok());
  const auto start = agent.Read();
  ASSERT_TRUE(start.has_value() && start->has_start());
  EXPECT_EQ(start->start().profile_id(), id);
  EXPECT_EQ(start->start().requester().uid(), ::getuid());
  EXPECT_EQ(start->start().remaining_ns(), 60'000'000'000);
  agent.SendUpdate(id, v1::NODE_PHASE_SAMPLING, 1);
  for (uint64_t i = 1; i <= 3; ++i) {
    agent.SendWindow(agent.MakeWindow(id, i));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(i));
    EXPECT_EQ(store_->Stream("stream-a")->last, i);  // acknowledged means stored
  }
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 3);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  grpc::ClientContext context;
  v1::GetReportRequest request;
  request.set_id("last");
  v1::Report report;
  ASSERT_TRUE(person->GetReport(&context, request, &report).ok());
  EXPECT_EQ(report.status().samples(), 30u);
  ASSERT_EQ(report.loops_size(), 1);
  EXPECT_EQ(report.loops(0).samples(), 30u);
  EXPECT_EQ(report.loops(0).location().function(), "kernel");
}

TEST_F(AgentStreamTest, DuplicatesAreAcknowledgedAndCountedOnce) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  for (int i = 0; i < 3; ++i) {
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
  }
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 1);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Get(id).samples(), 10u);
  EXPECT_EQ(pipeline_->Figures().windows_duplicate, 2u);
}

TEST_F(AgentStreamTest, AFullStoreAcknowledgesNothing) {
  std::string id;
  {
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &id).ok());
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
    ASSERT_TRUE(store_->SetHardLimit(1).ok());
    v1::Window big = agent.MakeWindow(id, 2);
    for (int i = 0; i < 20'000; ++i) big.add_frame_names(std::string(50, 'f'));
    agent.SendWindow(big);
    EXPECT_TRUE(agent.ReadAcknowledged().empty());
    EXPECT_EQ(agent.End().error_code(), StatusCode::UNAVAILABLE);  // not the window's fault
  }
  FakeAgent refused(Connect(), "a");
  EXPECT_FALSE(refused.Join().has_value());
  EXPECT_EQ(refused.End().error_code(), StatusCode::UNAVAILABLE);
  ASSERT_TRUE(store_->SetHardLimit(0).ok());
  ASSERT_TRUE(store_->Probe().ok());
  FakeAgent again(Connect(), "a");
  const auto welcome = again.Join();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stored_sequence(), 1u);
  again.SendWindow(again.MakeWindow(id, 2));
  EXPECT_THAT(again.ReadAcknowledged(), ElementsAre(2));
}

TEST_F(AgentStreamTest, ARestartInTheMiddleLosesNothing) {
  std::string id;
  {
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &id).ok());
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
    StopDaemon();
  }
  StartDaemon();
  EXPECT_EQ(Get(id).samples(), 10u);
  FakeAgent agent(Connect(), "a");
  EXPECT_EQ(agent.Join()->stored_sequence(), 1u);
  const auto start = agent.Read();
  ASSERT_TRUE(start.has_value() && start->has_start());
  EXPECT_EQ(start->start().remaining_ns(), 55'000'000'000);
  agent.SendWindow(agent.MakeWindow(id, 1));  // its acknowledgement might have been lost
  agent.SendWindow(agent.MakeWindow(id, 2));
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 2);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Get(id).samples(), 20u);
}

TEST_F(AgentStreamTest, LateWindowsOfAPartialProfileEnterItsReport) {
  FakeAgent a(Connect(), "a");
  ASSERT_TRUE(a.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  a.SendWindow(a.MakeWindow(id, 1));
  a.SendWindow(a.MakeWindow(id, 3));  // 2 is missing
  a.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 3);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
  EXPECT_EQ(Get(id).samples(), 20u);
  a.SendWindow(a.MakeWindow(id, 2));
  for (int i = 0; i < 500 && Get(id).samples() != 30; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(Get(id).samples(), 30u);
}

v1::Window Spoilt(v1::Window window) {
  window.mutable_rows()->set_location(0, 7);  // outside its dictionary
  return window;
}

TEST_F(AgentStreamTest, AWindowThatIsRefusedDoesNotBlockTheNode) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  v1::Window stranger = agent.MakeWindow(id, 3);
  stranger.set_stream_id("stream-of-another");
  const std::vector<v1::Window> windows = {agent.MakeWindow(id, 1),
                                           Spoilt(agent.MakeWindow(id, 2)),
                                           stranger,
                                           agent.MakeWindow("p-000099", 4),
                                           agent.MakeWindow(id, (uint64_t{1} << 62) + 1),
                                           agent.MakeWindow(id, 5)};
  for (const v1::Window& window : windows) {
    agent.SendWindow(window);
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(window.sequence()));
  }
  EXPECT_EQ(store_->Stream("stream-a")->last, 5u);
  EXPECT_EQ(store_->Stream("stream-a")->missing, 0u);
  EXPECT_EQ(store_->Stream("stream-of-another")->last, 0u);
  EXPECT_EQ(Dropped(*pipeline_, "invalid"), 2u);
  EXPECT_EQ(Dropped(*pipeline_, "foreign"), 1u);
  EXPECT_EQ(Dropped(*pipeline_, "unknown_profile"), 1u);
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 5);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
  const v1::ProfileStatus status = Get(id);
  EXPECT_EQ(status.samples(), 20u);
  EXPECT_THAT(status.ShortDebugString(), HasSubstr("perfd refused windows of node a"));
  EXPECT_THAT(status.ShortDebugString(), testing::Not(HasSubstr("never arrived")));
}

// The store takes the windows before, and one that fills a gap, also afterwards; the next gap is refused in words that say what to do.
TEST_F(AgentStreamTest, AStreamHasSoManyGaps) {
  SetLimit(Limit::kGapsPerStream, 3);
  std::string id;
  {
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &id).ok());
    ASSERT_TRUE(agent.Read().has_value());
    for (const uint64_t sequence : {1u, 3u, 5u, 7u}) {
      ASSERT_TRUE(agent.SendWindow(agent.MakeWindow(id, sequence)));
      EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(sequence));
    }
    ASSERT_TRUE(agent.SendWindow(agent.MakeWindow(id, 9)));
    EXPECT_THAT(agent.ReadAcknowledged(), testing::IsEmpty());
    const grpc::Status end = agent.End();
    EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE) << "the agent keeps it";
    EXPECT_THAT(end.error_message(), HasSubstr("limits.gaps_per_stream"));
    EXPECT_EQ(Hits(Limit::kGapsPerStream), 1u);
  }
  FakeAgent again(Connect(), "a");
  ASSERT_TRUE(again.Join().has_value());
  ASSERT_TRUE(again.SendWindow(again.MakeWindow(id, 4)));
  EXPECT_THAT(again.ReadAcknowledged(), ElementsAre(4u));
}

TEST_F(AgentStreamTest, ARefusedLastWindowEndsTheProfile) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  agent.SendWindow(agent.MakeWindow(id, 1));
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 2);
  agent.SendWindow(Spoilt(agent.MakeWindow(id, 2)));
  EXPECT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
}

TEST_F(AgentStreamTest, WindowsOfARenamedNodeAreStored) {
  FakeAgent other(Connect(), "b");
  ASSERT_TRUE(other.Join().has_value());
  std::string id;
  FakeAgent old(Connect(), "old");  // makes the windows that it would have sent
  ASSERT_TRUE(old.Join().has_value());
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  FakeAgent agent(Connect(), "new");
  v1::Register hello = agent.Hello();
  hello.set_stream_id(old.Hello().stream_id());
  agent.SendRegister(hello);
  v1::Window window = old.MakeWindow(id, 1);
  agent.SendWindow(window);
  EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
  EXPECT_EQ(pipeline_->Figures().windows_stored, 1u);
  window = old.MakeWindow(id, 2);
  window.set_node("b");  // that one is alive and has a stream of its own
  agent.SendWindow(window);
  EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(2));
  EXPECT_EQ(pipeline_->Figures().windows_stored, 1u);
  EXPECT_EQ(Dropped(*pipeline_, "foreign"), 1u);
}

TEST_F(AgentStreamTest, WindowsOfAnEndedProfileAreNoLossOfTheNext) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string first;
  std::string second;
  ASSERT_TRUE(Submit(*Person(), &first).ok());
  agent.SendWindow(agent.MakeWindow(first, 1));
  agent.SendUpdate(first, v1::NODE_PHASE_FINISHED, 1, 1);
  ASSERT_TRUE(Await(first, v1::PROFILE_STATE_DONE));
  ASSERT_TRUE(Submit(*Person(), &second).ok());
  agent.SendWindow(agent.MakeWindow(second, 2));
  for (uint64_t i = 3; i <= 5; ++i) agent.SendWindow(agent.MakeWindow(first, i));
  agent.SendWindow(agent.MakeWindow(second, 6));
  agent.SendUpdate(second, v1::NODE_PHASE_FINISHED, 1, 6);
  EXPECT_TRUE(Await(second, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Dropped(*pipeline_, "profile_over"), 3u);
}

TEST_F(AgentStreamTest, NewsOfAProfileThatIsOverIsAnsweredWithStop) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  agent.SendUpdate("p-000099", v1::NODE_PHASE_SAMPLING, 1);
  const auto stop = agent.Read();
  ASSERT_TRUE(stop.has_value() && stop->has_stop());
  EXPECT_EQ(stop->stop().profile_id(), "p-000099");
}

class BusyDaemonTest : public ServiceFixture {
 protected:
  BusyDaemonTest() { ingest_limits_ = {.windows = 1, .bytes = 1, .most_windows = 21}; }
};

TEST_F(BusyDaemonTest, AgentsWaitInsteadOfBeingThrownOut) {
  constexpr int kAgents = 20;
  constexpr uint64_t kWindows = 5;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int i = 0; i < kAgents; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(Connect(), "n" + std::to_string(i)));
    ASSERT_TRUE(agents.back()->Join().has_value());
  }
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  for (uint64_t sequence = 1; sequence <= kWindows; ++sequence) {
    for (const auto& agent : agents) agent->SendWindow(agent->MakeWindow(id, sequence));
  }
  for (const auto& agent : agents) {
    uint64_t acknowledged = 0;
    while (acknowledged < kWindows) {
      const size_t more = agent->ReadAcknowledged().size();
      ASSERT_GT(more, 0u) << agent->End().error_message();
      acknowledged += more;
    }
  }
  EXPECT_EQ(pipeline_->Figures().windows_stored, kAgents * kWindows);
  EXPECT_EQ(Dropped(*pipeline_, "queue_full"), 0u);
}

TEST_F(AgentStreamTest, TheSameAgentReplacesItselfAnotherDoesNot) {
  FakeAgent first(Connect(), "a");
  ASSERT_TRUE(first.Join().has_value());
  FakeAgent second(Connect(), "a");
  ASSERT_TRUE(second.Join().has_value());
  EXPECT_EQ(first.End().error_code(), StatusCode::ABORTED);
  if (::getuid() != 0) GTEST_SKIP() << "the rest needs root";
  FakeAgent stranger(Connect(kNobody), "a");
  v1::Register hello = stranger.Hello();
  hello.set_user_mode(true);
  stranger.SendRegister(hello);
  EXPECT_EQ(stranger.End().error_code(), StatusCode::ALREADY_EXISTS);
}

TEST_F(AgentStreamTest, AnOrdinaryUsersAgentServesItsUserOnly) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  FakeAgent pretender(Connect(kNobody), "b");
  pretender.SendRegister(pretender.Hello());
  EXPECT_EQ(pretender.End().error_code(), StatusCode::PERMISSION_DENIED);
  FakeAgent agent(Connect(kNobody), "a");
  v1::Register hello = agent.Hello();
  hello.set_user_mode(true);
  hello.set_uid(0);  // a lie: the kernel knows better
  agent.SendRegister(hello);
  ASSERT_TRUE(agent.Read().has_value());
  std::string id;
  EXPECT_EQ(Submit(*Person(), &id).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Submit(*Person(kNobody), &id).ok());
}

}  // namespace
}  // namespace perfd::daemon
