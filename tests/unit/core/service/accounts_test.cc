// Databases that answer late or never.
#include "core/service/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace perfd {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kWithin = absl::Milliseconds(100);
constexpr absl::Duration kLongest = absl::Seconds(20);  // of a test that fails

// Knows alice; hangs with everyone whose uid is 666 and whose name is "slow", until it is let go.
class FakeAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t uid) const override {
    if (uid == 666) go_on.WaitForNotificationWithTimeout(kLongest);
    if (uid != 1000) return absl::NotFoundError("nobody");
    return Account{"alice", 1000, 100};
  }
  absl::StatusOr<Account> ByName(const std::string& name) const override {
    if (name == "slow") go_on.WaitForNotificationWithTimeout(kLongest);
    if (name != "alice") return absl::NotFoundError("nobody");
    return Account{"alice", 1000, 100};
  }
  bool InGroup(const Account& account, const std::string& group) const override {
    return account.name == "alice" && group == "admins";
  }

  mutable absl::Notification go_on;
};

class AccountsTest : public testing::Test {
 protected:
  ~AccountsTest() override {
    if (!source_->go_on.HasBeenNotified()) source_->go_on.Notify();
  }

  std::shared_ptr<FakeAccounts> source_ = std::make_shared<FakeAccounts>();
  Accounts accounts_{source_, kWithin};
};

TEST_F(AccountsTest, WhatTheSourceSays) {
  const auto alice = accounts_.ByUid(1000, "admins");
  ASSERT_TRUE(alice.ok()) << alice.status();
  EXPECT_EQ(alice->account.name, "alice");
  EXPECT_TRUE(alice->member);
  EXPECT_FALSE(accounts_.ByUid(1000, "")->member);
  EXPECT_TRUE(absl::IsNotFound(accounts_.ByUid(1001, "admins").status()));
  EXPECT_EQ(accounts_.ByName("alice")->uid, 1000u);
  EXPECT_EQ(*accounts_.Uid("alice"), 1000u);
  EXPECT_EQ(*accounts_.Uid("4711"), 4711u);
  EXPECT_TRUE(absl::IsNotFound(accounts_.Uid("bob").status()));
}

TEST_F(AccountsTest, AQuestionThatHangsIsNotWaitedFor) {
  const auto slow = accounts_.ByUid(666, "admins");
  EXPECT_TRUE(absl::IsUnavailable(slow.status()));
  EXPECT_THAT(std::string(slow.status().message()), HasSubstr("within 100ms"));
  EXPECT_TRUE(accounts_.ByUid(1000, "").ok()) << "others are answered meanwhile";
}

TEST_F(AccountsTest, WhenAllHangNobodyWaitsAndItRecovers) {
  std::vector<std::thread> askers;
  for (size_t i = 0; i < Accounts::kThreads; ++i)
    askers.emplace_back([this] { EXPECT_FALSE(accounts_.ByName("slow").ok()); });
  for (std::thread& asker : askers) asker.join();
  const absl::Time start = absl::Now();
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(absl::IsUnavailable(accounts_.ByName("alice").status()));
  EXPECT_LT(absl::Now() - start, 20 * kWithin) << "a thousand waits were not spared";
  source_->go_on.Notify();
  const absl::Time until = absl::Now() + kLongest;
  while (!accounts_.ByName("alice").ok() && absl::Now() < until) std::this_thread::yield();
  EXPECT_TRUE(accounts_.ByName("alice").ok());
}

TEST(AccountsEndTest, AQuestionThatHangsDoesNotHoldUpTheEnd) {
  const auto source = std::make_shared<FakeAccounts>();
  const absl::Time start = absl::Now();
  {
    Accounts accounts(source, absl::Milliseconds(1));
    EXPECT_FALSE(accounts.ByName("slow").ok());
  }
  EXPECT_LT(absl::Now() - start, kLongest / 2);
  source->go_on.Notify();
}

}  // namespace
}  // namespace perfd
