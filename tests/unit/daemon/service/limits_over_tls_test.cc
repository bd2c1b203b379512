// Who comes over TCP has the bounds that they have on the Unix socket, and no second ones.
#include <gmock/gmock.h>

#include <vector>

#include "tests/unit/daemon/service/tls_fixture.h"
#include "tests/unit/daemon/service/watcher.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class LimitsOverTlsTest : public TlsTest {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
    TlsTest::SetUp();
    if (IsSkipped()) return;
    MakeCertificates("certs", "user nobody");
    const auto address = host_->ListenTls(Options());
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
    agent_ = std::make_unique<FakeAgent>(Connect(), "a");
    ASSERT_TRUE(agent_->Join().has_value());
  }
  // A fresh connection of the user's, by one of the doors.
  std::shared_ptr<grpc::Channel> Nobody(bool tls) {
    return tls ? Dial(address_, "user-nobody") : Connect(kNobody);
  }
  grpc::Status SubmitBy(bool tls, std::string* id) {
    return Submit(*v1::Profiler::NewStub(Nobody(tls)), id);
  }
  static void ExpectRefused(const grpc::Status& status, Limit limit) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(std::string(RowOf(limit).key)));
  }

  std::string address_;
  std::unique_ptr<FakeAgent> agent_;
};

TEST_F(LimitsOverTlsTest, ProfilesAndWatchesAreOfOneUser) {
  SetLimit(Limit::kProfilesPerUser, 2);
  SetLimit(Limit::kWatchesPerUser, 2);
  std::string id;
  EXPECT_TRUE(SubmitBy(false, &id).ok());
  EXPECT_TRUE(SubmitBy(true, &id).ok());
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (const bool tls : {false, true}) {
    watchers.push_back(std::make_unique<Watcher>(v1::Profiler::NewStub(Nobody(tls)), id));
    EXPECT_TRUE(watchers.back()->Stands());
  }
  for (const bool tls : {false, true}) {
    std::string none;
    ExpectRefused(SubmitBy(tls, &none), Limit::kProfilesPerUser);
    Watcher refused(v1::Profiler::NewStub(Nobody(tls)), id);
    EXPECT_FALSE(refused.Stands());
    ExpectRefused(refused.End(), Limit::kWatchesPerUser);
  }
  EXPECT_EQ(Hits(Limit::kProfilesPerUser), 2u);
  EXPECT_EQ(Hits(Limit::kWatchesPerUser), 2u);
  EXPECT_TRUE(Submit(*v1::Profiler::NewStub(Dial(address_, "user-root")), &id).ok())
      << "an administrator has no such bound";
}

TEST_F(LimitsOverTlsTest, NodesInUserModeAreOfOneUser) {
  SetLimit(Limit::kNodeNamesPerUser, 2);
  const auto joins = [](FakeAgent& agent) {
    v1::Register hello = agent.Hello();
    hello.set_user_mode(true);
    agent.SendRegister(hello);
    return agent.Read().has_value();
  };
  FakeAgent first(Nobody(false), "u1"), second(Nobody(true), "u2");
  EXPECT_TRUE(joins(first));
  EXPECT_TRUE(joins(second));
  for (const bool tls : {false, true}) {
    FakeAgent third(Nobody(tls), "u3");
    EXPECT_FALSE(joins(third));
    ExpectRefused(third.End(), Limit::kNodeNamesPerUser);
  }
  EXPECT_EQ(Hits(Limit::kNodeNamesPerUser), 2u);
  FakeAgent node(Dial(address_, "agent-node1"), "node1");
  EXPECT_TRUE(node.Join().has_value()) << "a node's agent takes none of them";
}

}  // namespace
}  // namespace perfd::daemon
