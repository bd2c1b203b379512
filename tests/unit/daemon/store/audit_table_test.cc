// The audit log through the store.
#include "daemon/store/audit_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/base/notification.h"
#include "daemon/store/profile_table.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {
namespace {

class AuditTest : public StoreFixture {
 protected:
  void SetUp() override { OpenWith(0); }

  void OpenWith(int64_t audit_user_bytes) {
    store_.reset();
    StoreOptions options;
    options.directory = folder_ + "/store";
    options.audit_user_bytes = audit_user_bytes;
    options.on_audit = [this](const AuditChange& change) {
      for (const AuditTrim& trim : change.trimmed)
        trimmed_[{trim.uid, trim.brought_by, trim.aged}] += trim.entries;
      if (change.bytes.has_value()) bytes_ = *change.bytes;
    };
    auto store = SqliteStore::Open(std::move(options));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // `count` entries, brought by that sender, with texts of so many bytes.
  static WindowRecord Many(const std::string& profile, uint64_t sequence, const std::string& sender,
                           size_t count, size_t bytes = 8) {
    WindowRecord record = Record(profile, sequence);
    record.stream.id = "stream of " + sender;
    AuditEntry entry;
    entry.profile_id = profile;
    entry.action = "shadow";
    entry.origin.brought_by = sender;
    entry.outcome.assign(bytes, 'x');
    record.audit.assign(count, entry);
    for (AuditEntry& each : record.audit) each.unix_ns = ++last_ns_;
    record.received_unix_ns = last_ns_;
    return record;
  }

  size_t CountOf(uint32_t uid, const std::string& sender = "") {
    const auto entries =
        store_->Audit({.profile_id = "", .uid = uid, .limit = std::numeric_limits<int32_t>::max()});
    EXPECT_TRUE(entries.ok()) << entries.status();
    return static_cast<size_t>(
        std::count_if(entries->begin(), entries->end(), [&](const AuditEntry& entry) {
          return sender.empty() || entry.origin.brought_by == sender;
        }));
  }

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

  static inline int64_t last_ns_ = 1000;
  std::map<std::tuple<int64_t, std::string, bool>, uint64_t> trimmed_;
  int64_t bytes_ = -1;  // as the last retention said
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
  EXPECT_FALSE(Append(WithAudit("p-000003", 3, {3})).ok()) << "nobody knows whom it was sent to";
  EXPECT_EQ(Times({.profile_id = "", .uid = 1000, .limit = 9}), (std::vector<int64_t>{1}));
  EXPECT_EQ(Times({.profile_id = other, .uid = 1000, .limit = 9}), (std::vector<int64_t>{}));
  EXPECT_EQ(Times({.profile_id = other, .uid = std::nullopt, .limit = 9}),
            (std::vector<int64_t>{2}));
  EXPECT_EQ(Times({.profile_id = "", .uid = std::nullopt, .limit = 9}),
            (std::vector<int64_t>{2, 1}));
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

TEST_F(AuditTest, OfAProfileThatIsGoneOnlyThoseWhoBroughtEntriesBefore) {
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Append(Many(id, 1, "certificate agent/node1", 2)).ok());
  ProfileStatus ended = Ended(id);
  ended.requester.uid = 1000;
  ASSERT_TRUE(store_->StoreStatus(ended).ok());
  ASSERT_EQ(*store_->Retain({.keep_ns = 1}, 1'000'000'000), 1);
  EXPECT_TRUE(Store(Many(id, 2, "certificate agent/node1", 1)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Store(Many(id, 2, "certificate agent/rogue", 1))));
  EXPECT_EQ(CountOf(1000), 3u) << "still their owner's";
}

// What one user's agents bring may be as much as they like.
TEST_F(AuditTest, OneUsersEntriesNeverDisplaceAnothers) {
  OpenWith(64 << 10);
  const std::string victim = *store_->Create(Profile(1000));
  const std::string flood = *store_->Create(Profile(1001));
  ASSERT_TRUE(Append(Many(victim, 1, "uid 0", 3)).ok());
  for (uint64_t sequence = 1; sequence <= 10; ++sequence)
    ASSERT_TRUE(Store(Many(flood, sequence, "uid 1001", 500)).ok());
  EXPECT_EQ(CountOf(1000), 3u);
  const size_t left = CountOf(1001);
  EXPECT_GT(left, 50u) << "not more than is needed goes";
  EXPECT_LT(left, 400u);
  EXPECT_EQ(trimmed_.size(), 1u) << "nobody else's";
  EXPECT_EQ((trimmed_[{1001, "uid 1001", false}]), 5000 - left) << "every one is counted";
  ASSERT_TRUE(store_->Retain({.audit = {.user_bytes = 64 << 10}}, 1).ok());
  EXPECT_EQ(CountOf(1000), 3u);
  EXPECT_EQ(CountOf(1001), left);
  EXPECT_LE(bytes_, 2 * (64 << 10));
}

// A node that was asked for the profile floods it.
TEST_F(AuditTest, AFloodDisplacesItsOwnSendersEntries) {
  OpenWith(64 << 10);
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Append(Many(id, 1, "certificate agent/honest", 40)).ok());
  for (uint64_t sequence = 1; sequence <= 10; ++sequence)
    ASSERT_TRUE(Append(Many(id, sequence, "certificate agent/rogue", 500)).ok());
  EXPECT_EQ(CountOf(1000, "certificate agent/honest"), 40u);
  EXPECT_LT(CountOf(1000, "certificate agent/rogue"), 400u);
  // The newest are those that stay.
  const auto entries = store_->Audit({.profile_id = "", .uid = 1000, .limit = 1});
  EXPECT_EQ(entries->front().unix_ns, last_ns_);
}

TEST_F(AuditTest, AnotherLimitIsTakenAtTheNextRetention) {
  const std::string id = *store_->Create(Profile(1000));
  ASSERT_TRUE(Append(Many(id, 1, "uid 0", 1000)).ok());
  EXPECT_EQ(CountOf(1000), 1000u) << "there is no limit";
  ASSERT_TRUE(store_->Retain({.audit = {.user_bytes = 32 << 10}}, 1).ok());
  const size_t left = CountOf(1000);
  EXPECT_LT(left, 200u);
  EXPECT_EQ((trimmed_[{1000, "uid 0", false}]), 1000 - left);
  EXPECT_LE(bytes_, 32 << 10);
  ASSERT_TRUE(Append(Many(id, 2, "uid 0", 1000)).ok());
  EXPECT_LE(CountOf(1000), left) << "and holds for what comes";
}

TEST_F(AuditTest, OldEntriesGoByTheTimeTheyCame) {
  const std::string id = *store_->Create(Profile(1000));
  WindowRecord old = Many(id, 1, "uid 0", 2);
  old.audit[0].unix_ns = int64_t{1} << 60;  // an agent's clock decides nothing
  old.received_unix_ns = 100;
  WindowRecord fresh = Many(id, 2, "uid 0", 1);
  fresh.audit[0].unix_ns = 1;
  fresh.received_unix_ns = 200;
  ASSERT_TRUE(Append(std::move(old)).ok());
  ASSERT_TRUE(Append(std::move(fresh)).ok());
  ASSERT_TRUE(store_->Retain({.audit = {.keep_ns = 50}}, 240).ok());
  EXPECT_EQ(Times({}), (std::vector<int64_t>{1}));
  EXPECT_EQ((trimmed_[{1000, "uid 0", true}]), 2u);
}

// Whatever the size of the entries: they have pages, indexes, and half-empty pages.
TEST_F(AuditTest, NoProfileGoesBecauseOfTheAuditLog) {
  ProfileStatus status = Ended("");
  status.id = *store_->Create(status);
  ASSERT_TRUE(store_->StoreStatus(status).ok());
  const std::string active = *store_->Create(Profile(1000));
  store_.reset();
  auto db = Database::Open(folder_ + "/store/perfd.db");
  ASSERT_TRUE(db.ok()) << db.status();
  const int64_t before = *UsedBytes(*db);
  uint64_t sequence = 0;
  for (const size_t bytes :
       {size_t{1}, size_t{300}, size_t{900}, size_t{1100}, size_t{2100}, size_t{4096}}) {
    ASSERT_TRUE(db->Exec("BEGIN").ok());
    for (int window = 0; window < 200; ++window) {
      const std::string sender = absl::StrCat("certificate agent/node", window % 7);
      ASSERT_TRUE(InsertAudit(*db, Many(active, ++sequence, sender, 5, bytes), 0).ok());
    }
    ASSERT_TRUE(db->Exec("COMMIT").ok());
    EXPECT_LE(*UsedBytes(*db), before) << "with entries of " << bytes << " bytes";
  }
  const int64_t pages = (*db->QueryInt("PRAGMA page_count")) * 4096;
  EXPECT_GT(pages, 8 << 20) << "there is something to leave out";
  EXPECT_LT(*AuditBytes(*db), 3 * pages) << "and not much more is";
  EXPECT_EQ(*ApplyRetention(*db, {.max_bytes = before + 4096}, 1'000'000'000), 0);
}

TEST_F(AuditTest, EntriesOfVersionFiveAreKept) {
  store_.reset();
  const std::string folder = folder_ + "/old";
  std::filesystem::create_directory(folder);
  {
    auto db = Database::Open(folder + "/perfd.db");
    std::ifstream file("tests/unit/daemon/store/version5.sql");
    const std::string sql((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_TRUE(db->Exec(sql).ok());
    ASSERT_EQ(*db->QueryInt("PRAGMA user_version"), 5);
  }
  StoreOptions options;
  options.directory = folder;
  auto store = SqliteStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  EXPECT_EQ(Times({}), (std::vector<int64_t>{20, 10}));
  EXPECT_EQ(Times({.profile_id = "", .uid = 1001, .limit = 9}), (std::vector<int64_t>{20}));
  EXPECT_EQ(store_->Audit({})->front().origin, (AuditOrigin{"bob (uid 1001)", ""}));
  ASSERT_TRUE(Append(Many("p-000003", 9, "uid 0", 1)).ok());
  EXPECT_EQ(CountOf(1000), 2u);
  ASSERT_TRUE(store_->Retain({.audit = {.keep_ns = 1}}, 21).ok());
  EXPECT_EQ(CountOf(1001), 1u) << "its age is not over";
  ASSERT_TRUE(store_->Retain({.audit = {.keep_ns = 1}}, 22).ok());
  EXPECT_EQ(CountOf(1001), 0u);
}

}  // namespace
}  // namespace perfd::daemon
