// What one user may hold of the daemon, asked for by real peers.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "core/base/unique_fd.h"
#include "tests/unit/daemon/service/service_fixture.h"
#include "tests/unit/daemon/service/watcher.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

constexpr uint32_t kUnknown = 3'000'000'000;  // no database has them

class LimitsOfPeersTest : public ServiceFixture {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
    ServiceFixture::SetUp();
  }
  // Whether a fresh connection of this user is served.
  bool Served(uint32_t uid) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::GetVersionResponse response;
    return Person(uid)->GetVersion(&context, {}, &response).ok();
  }
};

TEST_F(LimitsOfPeersTest, OneUsersWatchesTakeNobodyElses) {
  SetLimit(Limit::kWatchesPerUser, 2);
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string of_nobody;
  std::string of_root;
  ASSERT_TRUE(Submit(*Person(kNobody), &of_nobody).ok());
  ASSERT_TRUE(Submit(*Person(), &of_root).ok());
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 2; ++i) {
    watchers.push_back(std::make_unique<Watcher>(Person(kNobody), of_nobody));
    EXPECT_TRUE(watchers.back()->Stands());
  }
  {
    Watcher refused(Person(kNobody), of_nobody);
    EXPECT_FALSE(refused.Stands());
    const grpc::Status status = refused.End();
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr("limits.watches_per_user"));
  }
  EXPECT_EQ(Hits(Limit::kWatchesPerUser), 1u);
  for (int i = 0; i < 3; ++i) {
    watchers.push_back(std::make_unique<Watcher>(Person(), of_root));
    EXPECT_TRUE(watchers.back()->Stands()) << "root has no limit of its own";
  }
  watchers.erase(watchers.begin());  // its place is free once its end was seen
  bool again = false;
  for (int i = 0; i < 50 && !again; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    again = Watcher(Person(kNobody), of_nobody).Stands();
  }
  EXPECT_TRUE(again);
}

TEST_F(LimitsOfPeersTest, OneUsersConnectionsAreCountedAndGivenBack) {
  SetLimit(Limit::kConnectionsPerUser, 3);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  const auto connected = [&](uint32_t uid) {
    channels.push_back(Connect(uid));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    v1::GetVersionResponse response;
    return v1::Profiler::NewStub(channels.back())->GetVersion(&context, {}, &response).ok();
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connected(kNobody)) << i;
  EXPECT_FALSE(connected(kNobody));
  EXPECT_GE(Hits(Limit::kConnectionsPerUser), 1u);
  EXPECT_TRUE(connected(0)) << "another's";
  channels.clear();
  bool again = false;
  for (int i = 0; i < 50 && !again; ++i) {
    again = Served(kNobody);
    if (!again) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(again) << "an ended connection gives its place back";
}

TEST_F(LimitsOfPeersTest, UidsThatNobodyKnowsShareAFewPlacesAndNeverCutOffAgents) {
  SetLimit(Limit::kUnknownUsers, 2);
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::vector<std::shared_ptr<grpc::Channel>> held;
  int served = 0;
  for (uint32_t i = 0; i < 6; ++i) {
    held.push_back(Connect(kUnknown + i));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    v1::GetVersionResponse response;
    served += v1::Profiler::NewStub(held.back())->GetVersion(&context, {}, &response).ok() ? 1 : 0;
  }
  EXPECT_EQ(served, 2);
  EXPECT_GE(Hits(Limit::kUnknownUsers), 4u);
  const UniqueFd refused(ConnectSocket(kUnknown + 7));
  pollfd ended{refused.get(), POLLIN | POLLRDHUP, 0};
  EXPECT_EQ(::poll(&ended, 1, 5000), 1) << "who is refused is not left waiting";
  EXPECT_TRUE(Served(kNobody)) << "a user of the system";
  held.clear();
  bool again = false;
  for (int i = 0; i < 50 && !again; ++i) {
    again = Served(kUnknown + 9);
    if (!again) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(again) << "those that have left make room";
  std::string id;
  EXPECT_TRUE(Submit(*Person(), &id).ok()) << "the agent is still there";
}

// A place more than there is, of both kinds of question: a node that does not answer holds two of them for some seconds.
TEST_F(LimitsOfPeersTest, OneUserAsksSoManyQuestionsAtOnce) {
  SetLimit(Limit::kQuestionsPerUser, 2);
  FakeAgent silent(Connect(), "a");
  ASSERT_TRUE(silent.Join().has_value());
  const auto ask_doctor = [this] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::DoctorResponse response;
    return Person(kNobody)->Doctor(&context, {}, &response);
  };
  const auto list = [this](uint32_t uid) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListNodesResponse response;
    return Person(uid)->ListNodes(&context, {}, &response);
  };
  ASSERT_TRUE(list(kNobody).ok());
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i)
    waiting.emplace_back([&] { EXPECT_TRUE(ask_doctor().ok()) << "within the limit"; });
  const auto used = [this] {
    const Requester nobody{kNobody, "nobody", false};
    return limits_.UsesOf(nobody, 0)[static_cast<size_t>(Limit::kQuestionsPerUser)].used;
  };
  for (int i = 0; i < 300 && used() != 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(used(), 2);
  for (const grpc::Status& refused : {ask_doctor(), list(kNobody)}) {
    EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(refused.error_message(), HasSubstr("limits.questions_per_user"));
  }
  EXPECT_EQ(Hits(Limit::kQuestionsPerUser), 2u);
  EXPECT_TRUE(list(0).ok()) << "root has no limit of its own";
  for (std::thread& thread : waiting) thread.join();
  EXPECT_TRUE(list(kNobody).ok()) << "an answer gives its place back";
}

TEST_F(LimitsOfPeersTest, OfWhatEveryoneSharesSomeIsKeptBack) {
  SetLimit(Limit::kWatches, 4);  // two of them
  SetLimit(Limit::kProfiles, 4);
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string of_nobody;
  std::string of_root;
  ASSERT_TRUE(Submit(*Person(kNobody), &of_nobody).ok());
  ASSERT_TRUE(Submit(*Person(), &of_root).ok());
  std::vector<std::unique_ptr<Watcher>> watchers;
  const auto watch = [&](std::unique_ptr<v1::Profiler::Stub> person, const std::string& id) {
    watchers.push_back(std::make_unique<Watcher>(std::move(person), id));
    return watchers.back()->Stands();
  };
  EXPECT_TRUE(watch(Person(kNobody), of_nobody));
  EXPECT_TRUE(watch(Person(kNobody), of_nobody));
  EXPECT_FALSE(watch(Person(kNobody), of_nobody));
  EXPECT_THAT(watchers.back()->End().error_message(), HasSubstr("limits.watches)"));
  EXPECT_EQ(Hits(Limit::kWatches), 1u);
  EXPECT_TRUE(watch(Person(), of_root));
  EXPECT_TRUE(watch(Person(), of_root));
  EXPECT_FALSE(watch(Person(), of_root)) << "root has no more than there is";
  std::string id;
  const grpc::Status refused = Submit(*Person(kNobody), &id);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("limits.profiles)"));
  EXPECT_TRUE(Submit(*Person(), &id).ok());
  EXPECT_TRUE(Submit(*Person(), &id).ok());
  EXPECT_FALSE(Submit(*Person(), &id).ok());
}

// Root's, perfd's own and those of the agents' user are never in anybody's way; administrators are users here.
TEST_F(LimitsOfPeersTest, WhoseConnectionsHaveNoBound) {
  constexpr uint32_t kOwn = 3, kAgents = 9, kAdmin = 5;  // sys, news, games
  identity_.own_uid = kOwn;
  identity_.agent_uid = kAgents;
  identity_.admin_group = "games";
  host_->SetIdentity(identity_);
  SetLimit(Limit::kConnectionsPerUser, 2);
  const auto served_at_once = [this](uint32_t uid) {
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    int served = 0;
    for (int i = 0; i < 4; ++i) {
      channels.push_back(Connect(uid));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
      v1::GetVersionResponse response;
      served += v1::Profiler::NewStub(channels.back())->GetVersion(&context, {}, &response).ok();
    }
    return served;
  };
  for (const uint32_t uid : {0u, kOwn, kAgents}) EXPECT_EQ(served_at_once(uid), 4) << uid;
  EXPECT_EQ(Hits(Limit::kConnectionsPerUser), 0u);
  for (const uint32_t uid : {kAdmin, kNobody}) EXPECT_EQ(served_at_once(uid), 2) << uid;
  EXPECT_GE(Hits(Limit::kConnectionsPerUser), 4u);
  const auto told_to_be_bound = [this](uint32_t uid, Limit limit) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListLimitsResponse response;
    EXPECT_TRUE(Person(uid)->ListLimits(&context, {}, &response).ok()) << uid;
    return response.limits(static_cast<int>(limit)).bound();
  };
  SetLimit(Limit::kConnectionsPerUser, 64);
  for (const Limit limit : {Limit::kConnectionsPerUser, Limit::kNewConnectionsPerUser}) {
    for (const uint32_t uid : {0u, kOwn, kAgents})
      EXPECT_FALSE(told_to_be_bound(uid, limit)) << uid;
    for (const uint32_t uid : {kAdmin, kNobody}) EXPECT_TRUE(told_to_be_bound(uid, limit)) << uid;
  }
  EXPECT_TRUE(told_to_be_bound(kAgents, Limit::kProfilesPerUser)) << "as a person";
}

TEST_F(LimitsOfPeersTest, AUserComesSoOftenInAMinute) {
  SetLimit(Limit::kNewConnectionsPerUser, 3);
  const auto open = [this](uint32_t uid) {
    const UniqueFd socket(ConnectSocket(uid));
    pollfd ended{socket.get(), POLLIN | POLLRDHUP, 0};
    // gRPC greets whom it serves; who is refused hears nothing.
    char first = 0;
    return ::poll(&ended, 1, 5000) == 1 && ::recv(socket.get(), &first, 1, 0) == 1;
  };
  // The minute may end in between: then once more, by somebody else.
  int served = 0;
  for (const uint32_t uid : {kNobody, 3u}) {
    served = 0;
    for (int i = 0; i < 5; ++i) served += open(uid) ? 1 : 0;
    if (served == 3) break;
  }
  EXPECT_EQ(served, 3);
  EXPECT_GE(Hits(Limit::kNewConnectionsPerUser), 2u);
  EXPECT_TRUE(open(2)) << "another user";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(open(0)) << "root has no limit of its own";
}

}  // namespace
}  // namespace perfd::daemon
