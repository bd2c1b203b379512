// Who may do what after a reload when the agents' user cannot be looked up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "daemon/live_settings.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t) const override { return absl::NotFoundError("nobody"); }
  absl::StatusOr<Account> ByName(const std::string& name) const override {
    if (!status.ok()) return status;
    return Account{name, name == "perf-agent" ? 901u : 902u, 100};
  }
  bool InGroup(const Account&, const std::string&) const override { return false; }

  absl::Status status;  // of every question
};

class AccessRulesTest : public testing::Test {
 protected:
  AccessRulesTest() {
    flags_.agent_user = "perf-agent";
    flags_.tls_admins = {"alice", "mallory"};
    flags_.admin_group = "operators";
  }
  absl::Status Apply() {
    return access_.Apply(flags_,
                         [this](IdentityOptions identity) { taken_ = std::move(identity); });
  }

  std::shared_ptr<FakeAccounts> source_ = std::make_shared<FakeAccounts>();
  Accounts accounts_{source_, absl::Seconds(10)};
  AccessRules access_{accounts_};
  PerfdFlags flags_;
  std::optional<IdentityOptions> taken_;
};

TEST_F(AccessRulesTest, AtTheStartItIsAllOrNothing) {
  const auto good = access_.AtStart(flags_);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->agent_uid, 901u);
  EXPECT_EQ(good->admin_group, "operators");
  source_->status = absl::NotFoundError("this host knows no user 'perf-agent'");
  EXPECT_THAT(std::string(access_.AtStart(flags_).status().message()),
              HasSubstr("access.agent_user: this host knows no user 'perf-agent'"));
}

// The one that counts: mallory was taken off the list in the same edit.
TEST_F(AccessRulesTest, ARemovedAdministratorIsGoneAlthoughTheAgentsUserIsUnknown) {
  ASSERT_TRUE(Apply().ok());
  EXPECT_THAT(taken_->tls_admins, ElementsAre("alice", "mallory"));
  flags_.tls_admins = {"alice"};
  flags_.admin_group = "";
  flags_.agent_user = "perf-agnet";
  source_->status = absl::NotFoundError("this host knows no user 'perf-agnet'");
  taken_.reset();
  const absl::Status status = Apply();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no agent serves nodes as that user"));
  ASSERT_TRUE(taken_.has_value());
  EXPECT_THAT(taken_->tls_admins, ElementsAre("alice"));
  EXPECT_EQ(taken_->admin_group, "");
  EXPECT_FALSE(taken_->agent_uid.has_value());
}

TEST_F(AccessRulesTest, AUserWhoIsGoneIsNobodyAlthoughTheNameStands) {
  ASSERT_TRUE(Apply().ok());
  source_->status = absl::NotFoundError("this host knows no user 'perf-agent'");
  EXPECT_FALSE(Apply().ok());
  EXPECT_FALSE(taken_->agent_uid.has_value());
}

TEST_F(AccessRulesTest, DatabasesThatDoNotAnswerChangeNoUserWhoseNameStands) {
  ASSERT_TRUE(Apply().ok());
  source_->status = absl::UnavailableError("no answer");
  flags_.tls_admins = {};
  EXPECT_THAT(std::string(Apply().message()), HasSubstr("the uid that was found before"));
  EXPECT_EQ(taken_->agent_uid, 901u);
  EXPECT_TRUE(taken_->tls_admins.empty());
  EXPECT_FALSE(Apply().ok());
  EXPECT_EQ(taken_->agent_uid, 901u) << "and again";
  flags_.agent_user = "another";
  EXPECT_THAT(std::string(Apply().message()), HasSubstr("no agent serves nodes as that user"));
  EXPECT_FALSE(taken_->agent_uid.has_value());
  flags_.agent_user = "perf-agent";
  EXPECT_FALSE(Apply().ok());
  EXPECT_FALSE(taken_->agent_uid.has_value()) << "it was given up meanwhile";
  source_->status = absl::OkStatus();
  EXPECT_TRUE(Apply().ok());
  EXPECT_EQ(taken_->agent_uid, 901u);
}

TEST_F(AccessRulesTest, ANumberNeedsNobody) {
  source_->status = absl::UnavailableError("no answer");
  flags_.agent_user = "903";
  EXPECT_TRUE(Apply().ok());
  EXPECT_EQ(taken_->agent_uid, 903u);
  flags_.agent_user = "";
  EXPECT_TRUE(Apply().ok());
  EXPECT_FALSE(taken_->agent_uid.has_value());
}

}  // namespace
}  // namespace perfd::daemon
