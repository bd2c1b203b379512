// User databases that do not answer: whoever needs them waits a moment, and nobody else.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "core/base/notification.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;

constexpr absl::Duration kWithin =
    absl::Seconds(2);  // as in perfd; also for what must be told in time
constexpr absl::Duration kLong = absl::Seconds(4);    // so that it can be told who waits
constexpr absl::Duration kAtOnce = absl::Seconds(3);  // for a busy machine

// Hangs with everyone but root while `hang` is set; else everyone is in every group.
class FakeAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t uid) const override {
    Wait();
    return Account{"somebody", uid, 100};
  }
  absl::StatusOr<Account> ByName(const std::string& name) const override {
    Wait();
    return Account{name, 1000, 100};
  }
  bool InGroup(const Account&, const std::string&) const override { return true; }

  std::atomic<bool> hang{false};
  mutable std::atomic<int> hanging{0};
  mutable Notification go_on;

 private:
  void Wait() const {
    if (!hang) return;
    ++hanging;
    go_on.WaitForNotificationWithTimeout(absl::Seconds(20));
  }
};

class SlowAccountsTest : public ServiceFixture {
 protected:
  explicit SlowAccountsTest(absl::Duration within = kWithin) : within_(within) {}

  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
    accounts_ = std::make_unique<Accounts>(source_, within_);
    identity_.admin_group = "admins";
    ServiceFixture::SetUp();
    agent_ = std::make_unique<FakeAgent>(Connect(), "a");
    ASSERT_TRUE(agent_->Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &of_root_).ok());
  }
  void TearDown() override {
    LetGo();
    agent_.reset();
    StopDaemon();
  }
  void LetGo() {
    if (!source_->go_on.HasBeenNotified()) source_->go_on.Notify();
  }
  // Whether whoever calls may see what is root's.
  StatusCode Ask(v1::Profiler::Stub& stub) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
    v1::GetProfileRequest request;
    request.set_id(of_root_);
    v1::ProfileStatus status;
    return stub.GetProfile(&context, request, &status).error_code();
  }

  const absl::Duration within_;
  std::shared_ptr<FakeAccounts> source_ = std::make_shared<FakeAccounts>();
  std::unique_ptr<FakeAgent> agent_;
  std::string of_root_;
};

TEST_F(SlowAccountsTest, AnAdministratorByGroupIsOneFromTheFirstCallOn) {
  EXPECT_EQ(Ask(*Person(kNobody)), StatusCode::OK);
}

// On a connection that stands, although nobody can be looked up.
TEST_F(SlowAccountsTest, AnotherGroupEndsTheRightsOfTheOld) {
  const auto admin = Person(kNobody);
  EXPECT_EQ(Ask(*admin), StatusCode::OK);
  source_->hang = true;
  identity_.admin_group = "others";
  host_->SetIdentity(identity_);
  EXPECT_EQ(Ask(*admin), StatusCode::PERMISSION_DENIED);
}

class VerySlowAccountsTest : public SlowAccountsTest {
 protected:
  VerySlowAccountsTest() : SlowAccountsTest(kLong) {}
  void AwaitQuestion() const {
    const absl::Time until = absl::Now() + absl::Seconds(10);
    while (source_->hanging == 0 && absl::Now() < until) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_GT(source_->hanging, 0);
  }
};

TEST_F(VerySlowAccountsTest, NobodyElseWaits) {
  source_->hang = true;
  const auto stranger = Person(kNobody);
  StatusCode seen = StatusCode::UNKNOWN;
  std::thread other([&] { seen = Ask(*stranger); });
  const absl::Time start = absl::Now();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(*Person()), StatusCode::OK);
  EXPECT_LT(absl::Now() - start, kAtOnce);
  other.join();
  EXPECT_EQ(seen, StatusCode::PERMISSION_DENIED) << "served in the end, and no administrator";
}

// Before anybody is looked up anew.
TEST_F(VerySlowAccountsTest, TheRightsOfTheOldGroupEndAtOnce) {
  const auto admin = Person(kNobody);
  EXPECT_EQ(Ask(*admin), StatusCode::OK);
  source_->hang = true;
  identity_.admin_group = "others";
  std::thread reload([this] { host_->SetIdentity(identity_); });
  AwaitQuestion();
  EXPECT_EQ(Ask(*admin), StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(source_->go_on.HasBeenNotified());
  LetGo();
  reload.join();
  EXPECT_EQ(Ask(*admin), StatusCode::OK) << "a member of the other group, too";
}

// A question that was asked by the old rules and is answered after they have changed.
TEST_F(VerySlowAccountsTest, AnAnswerByOldRulesGivesNoRights) {
  source_->hang = true;
  const auto stranger = Person(kNobody);
  StatusCode seen = StatusCode::UNKNOWN;
  std::thread other([&] { seen = Ask(*stranger); });
  AwaitQuestion();
  identity_.admin_group = "";
  host_->SetIdentity(identity_);
  LetGo();
  other.join();
  EXPECT_EQ(seen, StatusCode::PERMISSION_DENIED);
}

TEST_F(SlowAccountsTest, TheEndDoesNotWait) {
  source_->hang = true;
  const auto stranger = Person(kNobody);
  std::thread other([&] { (void)Ask(*stranger); });
  EXPECT_EQ(Ask(*Person()), StatusCode::OK);
  agent_.reset();
  const absl::Time start = absl::Now();
  StopDaemon();
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  other.join();
}

}  // namespace
}  // namespace perfd::daemon
