// Databases that answer late or never.
#include "core/service/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/notification.h"

namespace perfd {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kWithin = absl::Milliseconds(100);  // of those that hang
constexpr absl::Duration kLongest = absl::Seconds(20);       // of a test that fails

constexpr absl::Duration kInTime = absl::Seconds(10);  // of those that must be told

// Knows alice; hangs with everyone whose uid is 666 and whose name is "slow", until it is let go.
class FakeAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t uid) const override {
    if (uid == 666) Hang();
    if (uid != 1000) return absl::NotFoundError("nobody");
    return Account{"alice", 1000, 100};
  }
  absl::StatusOr<Account> ByName(const std::string& name) const override {
    if (name == "slow") Hang();
    if (name != "alice") return absl::NotFoundError("nobody");
    return Account{"alice", 1000, 100};
  }
  bool InGroup(const Account& account, const std::string& group) const override {
    return account.name == "alice" && group == "admins";
  }

  mutable Notification go_on;
  mutable std::atomic<size_t> hanging{0};

 private:
  void Hang() const {
    ++hanging;
    go_on.WaitForNotificationWithTimeout(kLongest);
    --hanging;
  }
};

class AccountsTest : public testing::Test {
 protected:
  ~AccountsTest() override {
    if (!source_->go_on.HasBeenNotified()) source_->go_on.Notify();
  }

  bool IsKnownInTheEnd() {
    for (const absl::Time until = absl::Now() + kInTime; absl::Now() < until;) {
      if (accounts_.ByName("alice").ok()) return true;
    }
    return false;
  }

  std::shared_ptr<FakeAccounts> source_ = std::make_shared<FakeAccounts>();
  Accounts accounts_{source_, kWithin};
};

TEST(AccountsInTimeTest, WhatTheSourceSays) {
  Accounts accounts(std::make_shared<FakeAccounts>(), kInTime);
  const auto alice = accounts.ByUid(1000, "admins");
  ASSERT_TRUE(alice.ok()) << alice.status();
  EXPECT_EQ(alice->account.name, "alice");
  EXPECT_TRUE(alice->member);
  EXPECT_FALSE(accounts.ByUid(1000, "")->member);
  EXPECT_TRUE(absl::IsNotFound(accounts.ByUid(1001, "admins").status()));
  EXPECT_EQ(accounts.ByName("alice")->uid, 1000u);
  EXPECT_EQ(*accounts.Uid("alice"), 1000u);
  EXPECT_EQ(*accounts.Uid("4711"), 4711u);
  EXPECT_TRUE(absl::IsNotFound(accounts.Uid("bob").status()));
}

TEST_F(AccountsTest, AQuestionThatHangsIsNotWaitedFor) {
  const auto slow = accounts_.ByUid(666, "admins");
  EXPECT_TRUE(absl::IsUnavailable(slow.status()));
  EXPECT_THAT(std::string(slow.status().message()), HasSubstr("within 100ms"));
  EXPECT_TRUE(IsKnownInTheEnd()) << "others are answered meanwhile";
  EXPECT_FALSE(source_->go_on.HasBeenNotified());
}

TEST_F(AccountsTest, WhenAllHangNobodyWaitsAndItRecovers) {
  std::vector<std::thread> askers;
  for (size_t i = 0; i < Accounts::kThreads; ++i)
    askers.emplace_back([this] {
      const absl::Time until = absl::Now() + kInTime;
      while (source_->hanging < Accounts::kThreads && absl::Now() < until)
        EXPECT_FALSE(accounts_.ByName("slow").ok());
    });
  for (std::thread& asker : askers) asker.join();
  ASSERT_EQ(source_->hanging, Accounts::kThreads);
  const absl::Time start = absl::Now();
  for (int i = 0; i < 1000; ++i)
    EXPECT_TRUE(absl::IsUnavailable(accounts_.ByName("alice").status()));
  EXPECT_LT(absl::Now() - start, 20 * kWithin) << "a thousand waits were not spared";
  source_->go_on.Notify();
  EXPECT_TRUE(IsKnownInTheEnd());
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
