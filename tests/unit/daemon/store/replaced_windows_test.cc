// Windows that are in an aggregate, or whose profile is gone: nobody reads them any more, and their rows go a few at a time.
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "daemon/store/profile_table.h"
#include "daemon/store/schema.h"
#include "daemon/store/window_table.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {
namespace {

int64_t Count(Database& db, const std::string& table) {
  return *db.QueryInt(absl::StrCat("SELECT count(*) FROM ", table));
}

// A database in memory with a profile and `windows` of `bytes` each.
struct Filled {
  explicit Filled(int windows, size_t bytes) : db(*Database::Open(":memory:")) {
    EXPECT_TRUE(Migrate(db).ok());
    ProfileStatus status;
    status.name = "test";
    status.id = *InsertProfile(db, status);
    for (int i = 1; i <= windows; ++i)
      last = AppendWindow(
                 db, {status.id, {"stream"}, static_cast<uint64_t>(i), "node", std::string(bytes, 'w')},
                 0)
                 ->row_id;
  }
  std::vector<int64_t> Left() {
    std::vector<int64_t> left;
    EXPECT_TRUE(ForEachWindow(db, 1, [&](int64_t row, const std::string&) {
                  left.push_back(row);
                  return absl::OkStatus();
                }).ok());
    return left;
  }

  Database db;
  int64_t last = 0;
};

TEST(ReplacedWindows, AreGoneAtOnceAndTheirRowsInPieces) {
  Filled filled(11, 1 << 20);
  Database& db = filled.db;
  ASSERT_TRUE(ReplaceWindows(db, 1, filled.last - 1).ok());
  EXPECT_EQ(filled.Left(), std::vector<int64_t>{filled.last});
  EXPECT_EQ(CountWindows(db)->at("p-000001"), 1u);
  EXPECT_EQ(*ReplacedBytes(db), 10 << 20);
  EXPECT_EQ(SumBytes(db)->at(0).active >> 20, 1);
  EXPECT_EQ(Count(db, "window"), 11) << "their rows are still there";

  EXPECT_TRUE(*SweepWindows(db));
  EXPECT_EQ(Count(db, "window"), 7) << "a sweep is bounded";
  EXPECT_EQ(*ReplacedBytes(db), 6 << 20);
  // More is replaced meanwhile; an older mark does not bring anything back.
  ASSERT_TRUE(ReplaceWindows(db, 1, filled.last).ok());
  ASSERT_TRUE(ReplaceWindows(db, 1, 1).ok());
  EXPECT_TRUE(filled.Left().empty());
  EXPECT_EQ(*ReplacedBytes(db), 7 << 20);
  EXPECT_TRUE(*SweepWindows(db));
  EXPECT_FALSE(*SweepWindows(db));
  EXPECT_EQ(Count(db, "window"), 0);
  EXPECT_EQ(Count(db, "replaced_window"), 0);
  EXPECT_FALSE(*SweepWindows(db));
}

TEST(ReplacedWindows, ARowThatIsLargerThanASweepGoesAlone) {
  Filled filled(2, 3 * kSweepBytes);
  ASSERT_TRUE(ReplaceWindows(filled.db, 1, filled.last).ok());
  EXPECT_TRUE(*SweepWindows(filled.db));
  EXPECT_EQ(Count(filled.db, "window"), 1);
  EXPECT_TRUE(*SweepWindows(filled.db));
  EXPECT_EQ(Count(filled.db, "window"), 0);
}

TEST(ReplacedWindows, SmallRowsAreBoundedByTheirNumber) {
  Filled filled(2000, 10);
  ASSERT_TRUE(ReplaceWindows(filled.db, 1, filled.last).ok());
  EXPECT_TRUE(*SweepWindows(filled.db));
  EXPECT_EQ(Count(filled.db, "window"), 2000 - 512);
}

using ReplacedWindowsStore = StoreFixture;

TEST_F(ReplacedWindowsStore, GoByThemselvesAndAfterARestart) {
  ASSERT_TRUE(Open().ok());
  ProfileStatus status = Profile(1);
  status.id = *store_->Create(status);
  int64_t last = 0;
  for (uint64_t i = 1; i <= 40; ++i) last = Append(Record(status.id, i, 1 << 20))->row_id;
  const auto rows = [&] {
    int64_t count = 0;
    EXPECT_TRUE(store_
                    ->ReadApart([&](Database& db) {
                      count = Count(db, "window") + Count(db, "replaced_window");
                      return absl::OkStatus();
                    })
                    .ok());
    return count;
  };
  const auto none_within_ten_seconds = [&] {
    for (int i = 0; i < 1000 && rows() > 0; ++i) ::usleep(10'000);
    return rows() == 0;
  };
  ASSERT_TRUE(store_->Compact(status.id, "sums", last).ok());
  EXPECT_TRUE(Windows(status.id).empty());
  EXPECT_TRUE(none_within_ten_seconds());

  last = Append(Record(status.id, 41, 1 << 20))->row_id;
  store_.reset();
  {
    // As if perfd had ended between the commit and the first sweep.
    auto db = Database::Open(folder_ + "/store/perfd.db");
    ASSERT_TRUE(db.ok() && ReplaceWindows(*db, 1, last).ok());
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(Windows(status.id).empty());
  EXPECT_TRUE(none_within_ten_seconds());
  EXPECT_TRUE(Append(Record(status.id, 41))->duplicate);
}

TEST_F(ReplacedWindowsStore, RetentionIsBoundedByBytesAndCountsWhatGoesOnce) {
  ASSERT_TRUE(Open().ok());
  for (uint64_t i = 1; i <= 8; ++i) {
    ProfileStatus status = Profile(1, ProfileState::kDone);
    status.finished_unix_ns = static_cast<int64_t>(1000 + i);
    status.id = *store_->Create(status);
    FinalRecord record;
    record.status = status;
    record.aggregate = std::string(size_t{3} << 20, 'x');
    ASSERT_TRUE(store_->StoreFinal(std::move(record)).ok());
    // It came after the report, and is the profile's until that goes.
    ASSERT_TRUE(Append(Record(status.id, i, 1 << 20)).ok());
  }
  // 32 MiB; 16 may stay. Three profiles are more than one call takes; the rest goes with the next, and no more than that, whether the
  // rows of the first three's windows are gone by then or not.
  const RetentionPolicy policy{.max_bytes = 17 << 20};
  EXPECT_EQ(*store_->Retain(policy, 2000), 3);
  EXPECT_EQ(*store_->Retain(policy, 2000), 1);
  EXPECT_EQ(*store_->Retain(policy, 2000), 0);
  EXPECT_EQ(store_->Profiles({})->size(), 4u);
}

}  // namespace
}  // namespace perfd::daemon
