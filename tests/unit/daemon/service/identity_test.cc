#include "daemon/service/identity.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/base/notification.h"

namespace perfd::daemon {
namespace {

constexpr uint32_t kStranger = 61'471;  // no account of any machine

class IdentityTest : public testing::Test {
 protected:
  Accounts accounts_;
};

TEST_F(IdentityTest, RootAndOurOwnUserServeNodesAndProfileAnyone) {
  const Identities identities({.admin_group = "", .tls_admins = {}, .own_uid = kStranger},
                              accounts_);
  for (const uint32_t uid : {0u, kStranger}) {
    EXPECT_TRUE(identities.FromUid(uid).full_agent);
    EXPECT_TRUE(identities.FromUid(uid).requester.privileged);
  }
  EXPECT_FALSE(identities.FromUid(kStranger + 1).full_agent);
}

TEST_F(IdentityTest, TheAgentsUserServesNodesButIsNoAdministrator) {
  const Identities identities(
      {.admin_group = "", .tls_admins = {}, .own_uid = 0, .agent_uid = kStranger}, accounts_);
  EXPECT_TRUE(identities.FromUid(kStranger).full_agent);
  EXPECT_FALSE(identities.FromUid(kStranger).requester.privileged);
  EXPECT_FALSE(identities.FromUid(kStranger + 1).full_agent);
}

TEST_F(IdentityTest, ChangesHoldFromTheNextPeerOn) {
  Identities identities({.admin_group = "", .tls_admins = {}, .own_uid = 0, .agent_uid = kStranger},
                        accounts_);
  identities.Set({.admin_group = "", .tls_admins = {"root"}, .own_uid = 0});
  EXPECT_FALSE(identities.FromUid(kStranger).full_agent);
  const auto root = identities.FromCertificate({"perfd://user/root"});
  ASSERT_TRUE(root.ok());
  EXPECT_TRUE(root->requester.privileged);
  // By name over the network root is an administrator or nobody: an ordinary user of uid 0 would have root's processes everywhere.
  identities.Set({});
  EXPECT_EQ(identities.FromCertificate({"perfd://user/root"}).status().code(),
            absl::StatusCode::kPermissionDenied);
}

// Hangs with everybody until it is let go; then everybody is "alice", and in every group.
class HangingAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t uid) const override {
    go_on.WaitForNotificationWithTimeout(absl::Seconds(20));
    return Account{"alice", uid, 100};
  }
  absl::StatusOr<Account> ByName(const std::string& name) const override {
    go_on.WaitForNotificationWithTimeout(absl::Seconds(20));
    return Account{name, 1000, 100};
  }
  bool InGroup(const Account&, const std::string&) const override { return true; }

  mutable Notification go_on;
};

TEST(HangingDatabasesTest, WhoCannotBeLookedUpHasTheRightsOfTheUid) {
  const auto source = std::make_shared<HangingAccounts>();
  Accounts accounts(source, absl::Milliseconds(50));
  const Identities identities(
      {.admin_group = "admins", .tls_admins = {"alice"}, .own_uid = 0, .agent_uid = kStranger + 1},
      accounts);
  const Identities::Known stranger = identities.LookUp(kStranger);
  EXPECT_FALSE(stranger.sure);
  EXPECT_FALSE(stranger.peer.requester.privileged);
  EXPECT_EQ(stranger.peer.requester.uid, kStranger);
  EXPECT_TRUE(identities.FromUid(kStranger + 1).full_agent);
  EXPECT_TRUE(identities.LookUp(0).sure) << "nobody need be asked who root is";
  EXPECT_EQ(identities.FromCertificate({"perfd://user/alice"}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(identities.FromCertificate({"perfd://agent/n1"}).ok());
  source->go_on.Notify();
}

TEST(HangingDatabasesTest, AGroupHasAdministratorsWhenItCanBeTold) {
  const auto source = std::make_shared<HangingAccounts>();
  source->go_on.Notify();
  Accounts accounts(source, absl::Seconds(10));
  Identities identities({.admin_group = "admins", .tls_admins = {}, .own_uid = 0}, accounts);
  const Identities::Known alice = identities.LookUp(kStranger);
  EXPECT_TRUE(alice.sure);
  EXPECT_TRUE(alice.peer.requester.privileged);
  EXPECT_EQ(alice.peer.requester.name, "alice");
  EXPECT_FALSE(identities.FromUidAlone(kStranger).requester.privileged);
  EXPECT_EQ(alice.generation, identities.generation());
  EXPECT_TRUE(identities.Set({.admin_group = "", .tls_admins = {}, .own_uid = 0}));
  EXPECT_NE(alice.generation, identities.generation());
  EXPECT_FALSE(identities.FromUid(kStranger).requester.privileged);
  EXPECT_FALSE(identities.Set({.admin_group = "", .tls_admins = {"x"}, .own_uid = 0}));
}

}  // namespace
}  // namespace perfd::daemon
