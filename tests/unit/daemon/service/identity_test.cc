#include "daemon/service/identity.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

constexpr uint32_t kStranger = 61'471;  // no account of any machine

TEST(IdentityTest, RootAndOurOwnUserServeNodesAndProfileAnyone) {
  const Identities identities({.admin_group = "", .tls_admins = {}, .own_uid = kStranger});
  for (const uint32_t uid : {0u, kStranger}) {
    EXPECT_TRUE(identities.FromUid(uid).full_agent);
    EXPECT_TRUE(identities.FromUid(uid).requester.privileged);
  }
  EXPECT_FALSE(identities.FromUid(kStranger + 1).full_agent);
}

TEST(IdentityTest, TheAgentsUserServesNodesButIsNoAdministrator) {
  const Identities identities({.admin_group = "", .tls_admins = {}, .own_uid = 0, .agent_uid = kStranger});
  EXPECT_TRUE(identities.FromUid(kStranger).full_agent);
  EXPECT_FALSE(identities.FromUid(kStranger).requester.privileged);
  EXPECT_FALSE(identities.FromUid(kStranger + 1).full_agent);
}

TEST(IdentityTest, ChangesHoldFromTheNextPeerOn) {
  Identities identities({.admin_group = "", .tls_admins = {}, .own_uid = 0, .agent_uid = kStranger});
  identities.Set({.admin_group = "", .tls_admins = {"root"}, .own_uid = 0});
  EXPECT_FALSE(identities.FromUid(kStranger).full_agent);
  const auto root = identities.FromCertificate({"perfd://user/root"});
  ASSERT_TRUE(root.ok());
  EXPECT_TRUE(root->requester.privileged);
  identities.Set({});
  EXPECT_FALSE(identities.FromCertificate({"perfd://user/root"})->requester.privileged);
}

}  // namespace
}  // namespace perfd
