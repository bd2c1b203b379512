// The audit log through the store.
#include "daemon/store/audit_table.h"

#include <gtest/gtest.h>

#include "core/base/notification.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {
namespace {

class AuditTest : public StoreFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Open().ok()); }

  static WindowRecord WithAudit(const std::string& profile, uint64_t sequence,
                                std::vector<int64_t> times) {
    WindowRecord record = Record(profile, sequence);
    for (int64_t time : times) {
      AuditEntry entry;
      entry.unix_ns = time;
      entry.profile_id = profile;
      entry.action = "install";
      entry.original_bytes = "f30f1efa";
      record.audit.push_back(entry);
    }
    return record;
  }

  std::vector<int64_t> Times(const AuditQuery& query) {
    std::vector<int64_t> times;
    const auto entries = store_->Audit(query);
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (const AuditEntry& entry : *entries) times.push_back(entry.unix_ns);
    return times;
  }

  static ProfileStatus Ended(const std::string& id) {
    ProfileStatus status = Profile(1002, ProfileState::kDone);
    status.finished_unix_ns = 1;
    status.id = id;
    return status;
  }

  absl::Status Store(WindowRecord record) {
    Notification ready;
    absl::Status result;
    const absl::Status queued = store_->StoreAudit(std::move(record), [&](const absl::Status& s) {
      result = s;
      ready.Notify();
    });
    if (!queued.ok()) return queued;
    ready.WaitForNotification();
    return result;
  }
};

TEST_F(AuditTest, EntriesComeWithTheirWindowExactlyOnce) {
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Append(WithAudit(id, 1, {10, 30})).ok());
  ASSERT_TRUE(Append(WithAudit(id, 1, {10, 30})).ok());  // sent again
  ASSERT_TRUE(Append(WithAudit(id, 2, {20})).ok());
  EXPECT_EQ(Times({}), (std::vector<int64_t>{30, 20, 10}));
  const auto entries = store_->Audit({});
  EXPECT_EQ(entries->at(0).original_bytes, "f30f1efa");
  EXPECT_EQ(Times({.profile_id = "", .uid = std::nullopt, .limit = 2}),
            (std::vector<int64_t>{30, 20}));
}

TEST_F(AuditTest, EveryoneSeesTheirOwn) {
  const std::string mine = *store_->Create(Profile(1000));
  const std::string other = *store_->Create(Profile(1001));
  ASSERT_TRUE(Append(WithAudit(mine, 1, {1})).ok());
  ASSERT_TRUE(Append(WithAudit(other, 2, {2})).ok());
  ASSERT_TRUE(store_->StoreStatus(Ended(*store_->Create(Profile(1002)))).ok());
  ASSERT_EQ(*store_->Retain({.keep_ns = 1}, 1'000'000'000), 1);
  ASSERT_TRUE(Append(WithAudit("p-000003", 3, {3})).ok());  // of nobody any more
  EXPECT_EQ(Times({.profile_id = "", .uid = 1000, .limit = 9}), (std::vector<int64_t>{1}));
  EXPECT_EQ(Times({.profile_id = other, .uid = 1000, .limit = 9}), (std::vector<int64_t>{}));
  EXPECT_EQ(Times({.profile_id = other, .uid = std::nullopt, .limit = 9}),
            (std::vector<int64_t>{2}));
  EXPECT_EQ(Times({.profile_id = "", .uid = std::nullopt, .limit = 9}),
            (std::vector<int64_t>{3, 2, 1}));
  EXPECT_FALSE(store_->Audit({.profile_id = "x", .uid = std::nullopt, .limit = 9}).ok());
}

TEST_F(AuditTest, NothingIsKeptOfProfilesThatThereNeverWere) {
  EXPECT_TRUE(absl::IsInvalidArgument(Store(WithAudit("p-000001", 1, {1}))));
  const std::string id = *store_->Create(Profile(1000));
  EXPECT_EQ(id, "p-000001");
  EXPECT_TRUE(absl::IsInvalidArgument(Store(WithAudit("p-000002", 2, {2}))));
  EXPECT_EQ(Times({}), (std::vector<int64_t>{}));
}

TEST_F(AuditTest, OutlivesItsProfile) {
  ProfileStatus status = Profile(1000, ProfileState::kDone);
  status.finished_unix_ns = 1;
  status.id = *store_->Create(status);
  ASSERT_TRUE(Append(WithAudit(status.id, 1, {7})).ok());
  ASSERT_TRUE(store_->StoreStatus(status).ok());
  ASSERT_EQ(*store_->Retain({.keep_ns = 1}, 1'000'000'000), 1);
  EXPECT_FALSE(store_->Profile(status.id).ok());
  EXPECT_EQ(Times({.profile_id = "", .uid = 1000, .limit = 9}), (std::vector<int64_t>{7}));
}

TEST_F(AuditTest, IsKeptOfAWindowThatIsNotWanted) {
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Store(WithAudit(id, 5, {50})).ok());
  ASSERT_TRUE(Store(WithAudit(id, 5, {50})).ok());  // again, after a lost acknowledgement
  EXPECT_EQ(Times({}), (std::vector<int64_t>{50}));
  EXPECT_FALSE(Append(WithAudit(id, 5, {50}))->duplicate) << "the window itself was not stored";
  EXPECT_EQ(Times({}), (std::vector<int64_t>{50}));
}

TEST_F(AuditTest, TheOldestGoWhenThereAreTooMany) {
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Append(WithAudit(id, 1, {1, 2, 3, 4, 5})).ok());
  store_.reset();
  auto db = Database::Open(folder_ + "/store/perfd.db");
  ASSERT_TRUE(db.ok()) << db.status();
  ASSERT_TRUE(ApplyAuditRetention(*db, 2).ok());
  const auto left = ReadAudit(*db, {});
  ASSERT_EQ(left->size(), 2u);
  EXPECT_EQ(left->at(1).unix_ns, 4);
}

}  // namespace
}  // namespace perfd::daemon
