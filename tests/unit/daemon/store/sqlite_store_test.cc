#include "daemon/store/sqlite_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/base/notification.h"
#include "daemon/store/profile_id.h"
#include "daemon/store/profile_table.h"
#include "daemon/store/schema.h"
#include "daemon/store/window_table.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StoreTest : public StoreFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Open().ok()); }
};

TEST_F(StoreTest, NumbersProfilesAndFindsThemAgain) {
  const auto first = store_->Create(Profile(1000));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, "p-000001");
  EXPECT_EQ(*store_->Create(Profile(1001)), "p-000002");
  EXPECT_EQ(store_->Profile("p-000001")->requester.uid, 1000u);
  EXPECT_EQ(store_->Profile("p-000003").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Profile("p-1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(*store_->Find("p-", std::nullopt), ElementsAre("p-000002", "p-000001"));
  EXPECT_THAT(*store_->Find("p-", 1000), ElementsAre("p-000001"));
  EXPECT_THAT(*store_->Find("p-000002", std::nullopt), ElementsAre("p-000002"));
  EXPECT_THAT(*store_->Find("%", std::nullopt), ElementsAre());
}

TEST_F(StoreTest, ListsByOwnerAndActivity) {
  ProfileStatus done = Profile(1000);
  done.id = *store_->Create(done);
  done.state = ProfileState::kDone;
  Notification saved;
  ASSERT_TRUE(store_
                  ->Update(done,
                           [&](const absl::Status& status) {
                             EXPECT_TRUE(status.ok());
                             saved.Notify();
                           })
                  .ok());
  saved.WaitForNotification();
  ASSERT_TRUE(store_->Create(Profile(1001)).ok());
  EXPECT_EQ(store_->Profiles({.uid = std::nullopt, .active_only = false, .limit = 10})->size(), 2u);
  EXPECT_EQ(store_->Profiles({.uid = std::nullopt, .active_only = false, .limit = 1})->at(0).id,
            "p-000002");
  EXPECT_EQ(store_->Profiles({.uid = 1000, .active_only = false, .limit = 10})->at(0).state,
            ProfileState::kDone);
  EXPECT_TRUE(store_->Profiles({.uid = 1000, .active_only = true, .limit = 10})->empty());
  EXPECT_EQ((*store_->StateCounts())[static_cast<size_t>(ProfileState::kDone)], 1u);
}

TEST_F(StoreTest, StoresAWindowExactlyOnce) {
  const std::string id = *store_->Create(Profile(1));
  const auto first = Append(Record(id, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->duplicate);
  EXPECT_GT(first->row_id, 0);
  EXPECT_TRUE(Append(Record(id, 1))->duplicate);
  EXPECT_EQ(Windows(id).size(), 1u);
}

TEST_F(StoreTest, SequencesMayComeInAnyOrder) {
  const std::string id = *store_->Create(Profile(1));
  const std::vector<uint64_t> order = {5, 1, 3, 2, 9, 4, 8};
  for (const uint64_t sequence : order) EXPECT_FALSE(Append(Record(id, sequence))->duplicate);
  for (const uint64_t sequence : order)
    EXPECT_TRUE(Append(Record(id, sequence))->duplicate) << sequence;
  EXPECT_EQ(store_->Stream("stream")->last, 9u);
  EXPECT_EQ(Append(Record(id, 1))->stream_missing, 2u);  // 6 and 7
  EXPECT_FALSE(Append(Record(id, 7))->duplicate);
  EXPECT_EQ(Append(Record(id, 6))->stream_missing, 0u);
  EXPECT_EQ(store_->Stream("other")->last, 0u);
}

TEST_F(StoreTest, ASkippedSequenceIsNoGapAndIsNeverUsedAgain) {
  const std::string id = *store_->Create(Profile(1));
  ASSERT_TRUE(Append(Record(id, 1)).ok());
  ASSERT_TRUE(Skip("stream", 2).ok());
  EXPECT_EQ(Append(Record(id, 3))->stream_missing, 0u);
  ASSERT_TRUE(Skip("stream", 9).ok());
  ASSERT_TRUE(Skip("stream", 9).ok());  // its acknowledgement was lost
  EXPECT_EQ(store_->Stream("stream")->last, 9u);
  EXPECT_EQ(store_->Stream("stream")->missing, 5u);
  EXPECT_TRUE(Append(Record(id, 9))->duplicate);
  EXPECT_EQ(Windows(id).size(), 2u);
  EXPECT_EQ(Skip("stream", 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Skip("stream", uint64_t{1} << 62).ok());
  EXPECT_EQ(Skip("stream", (uint64_t{1} << 62) + 1).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreTest, AStreamIsOfWhoBringsItsFirstWindow) {
  const std::string id = *store_->Create(Profile(1));
  const auto append = [&](const std::string& owner, uint64_t sequence) {
    WindowRecord record = Record(id, sequence);
    record.stream.owner = owner;
    return Append(std::move(record)).status();
  };
  EXPECT_EQ(store_->Stream("stream")->owner, "");
  ASSERT_TRUE(append("", 1).ok()) << "of an older perfd: nobody's yet";
  EXPECT_EQ(store_->Stream("stream")->owner, "");
  ASSERT_TRUE(append("node a", 2).ok());
  EXPECT_EQ(store_->Stream("stream")->owner, "node a");
  EXPECT_EQ(append("node b", 3).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(append("node b", 2).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Skip("stream", 4, "user 1000").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_->Stream("stream")->last, 2u);
  EXPECT_EQ(Windows(id).size(), 2u);
  ASSERT_TRUE(append("node a", 3).ok());
  ASSERT_TRUE(Skip("another", 1, "user 1000").ok());
  EXPECT_EQ(store_->Stream("another")->owner, "") << "what is refused claims nothing";
  EXPECT_EQ(store_->Stream("another")->last, 1u) << "though it is no gap";
  WindowRecord renamed = Record(id, 5);
  renamed.stream = {"stream", "node new", true};
  ASSERT_TRUE(Append(std::move(renamed)).ok());
  EXPECT_EQ(store_->Stream("stream")->owner, "node new");
  EXPECT_TRUE(store_->healthy()) << "nobody can make the store look sick";
}

TEST_F(StoreTest, ResultsAreOfOneInstant) {
  const std::string id = *store_->Create(Profile(1));
  ASSERT_TRUE(Append(Record(id, 1)).ok());
  const int64_t last = Append(Record(id, 2))->row_id;
  ResultsVisitor visitor;
  int windows = 0;
  visitor.aggregate = [&](const std::string& body, int64_t up_to_row_id) {
    EXPECT_EQ(body, "");
    EXPECT_EQ(up_to_row_id, last);
    // What is folded now is not in the aggregate that was just read: the windows must still be there.
    EXPECT_TRUE(store_->Compact(id, "sums", last).ok());
    EXPECT_TRUE(store_->Profile(id).ok());  // and nobody waits meanwhile
    return absl::OkStatus();
  };
  visitor.window = [&](int64_t, const std::string&) {
    ++windows;
    return absl::OkStatus();
  };
  ASSERT_TRUE(ReadResults(*store_, id, visitor).ok());
  EXPECT_EQ(windows, 2);
  EXPECT_EQ(ReadAll(*store_, id).up_to_row_id, last);  // known though its row is gone
  EXPECT_TRUE(Windows(id).empty());
}

TEST_F(StoreTest, FlushAnswersWhatWasQueued) {
  const std::string id = *store_->Create(Profile(1));
  int answered = 0;
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(
        store_->Append(Record(id, i), [&](const absl::StatusOr<AppendResult>&) { ++answered; })
            .ok());
  }
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_EQ(answered, 1000);
}

TEST_F(StoreTest, AStreamHasSoManyGapsAndNoMore) {
  const std::string id = *store_->Create(Profile(1));
  const auto append = [&](uint64_t sequence) {
    WindowRecord record = Record(id, sequence);
    record.stream.most_gaps = 3;
    return Append(std::move(record)).status();
  };
  for (const uint64_t sequence : {1u, 3u, 5u, 7u}) EXPECT_TRUE(append(sequence).ok()) << sequence;
  EXPECT_TRUE(absl::IsOutOfRange(append(9)));
  EXPECT_TRUE(append(8).ok()) << "it goes on";
  EXPECT_TRUE(append(4).ok()) << "a gap is filled";
  EXPECT_TRUE(append(10).ok());
  EXPECT_TRUE(store_->healthy());
}

TEST_F(StoreTest, SequenceBoundaries) {
  const std::string id = *store_->Create(Profile(1));
  EXPECT_EQ(Append(Record(id, 0)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Append(Record(id, uint64_t{1} << 62)).ok());
  EXPECT_EQ(Append(Record(id, (uint64_t{1} << 62) + 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(store_->healthy());  // a bad request is not a sick store
}

TEST_F(StoreTest, OneBadWindowDoesNotHurtItsNeighbours) {
  const std::string id = *store_->Create(Profile(1));
  Notification last;
  int good = 0;
  int bad = 0;
  for (uint64_t i = 0; i <= 20; ++i) {
    const bool final_one = i == 20;
    ASSERT_TRUE(store_
                    ->Append(Record(id, i),
                             [&, final_one](const absl::StatusOr<AppendResult>& result) {
                               (result.ok() ? good : bad) += 1;
                               if (final_one) last.Notify();
                             })
                    .ok());
  }
  last.WaitForNotification();
  EXPECT_EQ(good, 20);
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(Windows(id).size(), 20u);
}

TEST_F(StoreTest, CompactionKeepsLaterWindowsAndTheMemoryOfOldOnes) {
  const std::string id = *store_->Create(Profile(1));
  const int64_t first = Append(Record(id, 1))->row_id;
  ASSERT_TRUE(Append(Record(id, 2)).ok());
  ASSERT_TRUE(store_->Compact(id, "sums", first).ok());
  EXPECT_EQ(ReadAll(*store_, id).aggregate, "sums");
  EXPECT_EQ(Windows(id).size(), 1u);
  EXPECT_TRUE(Append(Record(id, 1))->duplicate);
}

FinalRecord Final(const ProfileStatus& status, int64_t up_to) {
  FinalRecord record;
  record.status = status;
  record.status.state = ProfileState::kDone;
  record.aggregate = "sums";
  record.up_to_row_id = up_to;
  record.report.status = record.status;
  ReportRow row;
  row.id = "0123456789abcdef";
  row.location.category = Category::kLoop;
  row.location.function = "kernel";
  row.location.loop = LoopFacts{};
  row.location.source = {"a.c", 10, 12};
  row.samples = 60;
  row.share = 0.6;
  row.share_interval = {0.5, 0.7};
  record.report.loops.push_back(row);
  return record;
}

TEST_F(StoreTest, TheEndOfAProfileIsOneStep) {
  ProfileStatus status = Profile(1);
  status.id = *store_->Create(status);
  const int64_t first = Append(Record(status.id, 1))->row_id;
  ASSERT_TRUE(Append(Record(status.id, 2)).ok());
  ASSERT_TRUE(store_->StoreFinal(Final(status, first)).ok());
  EXPECT_EQ(store_->Profile(status.id)->state, ProfileState::kDone);
  const auto report = store_->FinalReport(status.id);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->loops.at(0).location.function, "kernel");
  EXPECT_EQ(Windows(status.id).size(), 1u);  // came after the report
  const auto history = store_->History("0123456789abcdef", 10);
  ASSERT_EQ(history->size(), 1u);
  EXPECT_EQ(history->at(0).first_line, 10);
  EXPECT_DOUBLE_EQ(history->at(0).share_interval.high, 0.7);
  EXPECT_EQ(store_->FinalReport("p-000099").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, RetentionByAge) {
  ProfileStatus status = Profile(1);
  status.finished_unix_ns = 1000;
  status.id = *store_->Create(status);
  ASSERT_TRUE(store_->StoreFinal(Final(status, 0)).ok());
  const std::string active = *store_->Create(Profile(1));
  EXPECT_EQ(*store_->Retain({.keep_ns = 0, .max_bytes = 0}, 9000), 0);
  EXPECT_EQ(*store_->Retain({.keep_ns = 1000, .max_bytes = 0}, 2000), 0);  // exactly that old: kept
  EXPECT_EQ(*store_->Retain({.keep_ns = 1000, .max_bytes = 0}, 2001), 1);
  EXPECT_EQ(store_->Profile(status.id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->History("0123456789abcdef", 10)->empty());
  EXPECT_TRUE(store_->Profile(active).ok());
  EXPECT_EQ(*store_->Create(Profile(1)), "p-000003");  // numbers are never used twice
}

TEST_F(StoreTest, RetentionByAgeIsBoundedAndSparesTheNew) {
  std::vector<std::string> ids;
  for (int i = 0; i < 32; ++i) {
    ProfileStatus status = Profile(1);
    status.finished_unix_ns = 1000 + i;
    status.id = *store_->Create(status);
    ASSERT_TRUE(store_->StoreFinal(Final(status, 0)).ok());
    ids.push_back(status.id);
  }
  const int64_t far_future = int64_t{1} << 60;
  EXPECT_EQ(*store_->Retain({.keep_ns = 1, .max_bytes = 0}, far_future), 3);  // 1 + 32 / 16
  EXPECT_FALSE(store_->Profile(ids[2]).ok());
  EXPECT_TRUE(store_->Profile(ids[3]).ok());
  const std::vector<std::string> spared(ids.begin() + 3, ids.end() - 1);
  EXPECT_EQ(*store_->Retain({.keep_ns = 1, .max_bytes = 0, .spared = spared}, far_future), 1);
  EXPECT_FALSE(store_->Profile(ids[31]).ok());
  EXPECT_TRUE(store_->Profile(ids[3]).ok());
}

TEST_F(StoreTest, RetentionBySizeTakesTheOldestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    ProfileStatus status = Profile(1);
    status.finished_unix_ns = 1000 + i;
    status.id = *store_->Create(status);
    FinalRecord record = Final(status, 0);
    record.aggregate = std::string(1 << 20, 'x');
    ASSERT_TRUE(store_->StoreFinal(std::move(record)).ok());
    ids.push_back(status.id);
  }
  EXPECT_EQ(*store_->Retain({.keep_ns = 0, .max_bytes = 5 << 19}, 2000), 2);  // 2.5 MiB
  EXPECT_FALSE(store_->Profile(ids[1]).ok());
  EXPECT_TRUE(store_->Profile(ids[2]).ok());
}

// One user's many profiles displace themselves, not the others'.
TEST_F(StoreTest, RetentionTakesFromWhoHasMost) {
  const auto store = [&](const Requester& who, int64_t at_ns, size_t mib) {
    ProfileStatus status = Profile(who.uid);
    status.requester = who;
    status.finished_unix_ns = at_ns;
    status.id = *store_->Create(status);
    FinalRecord record = Final(status, 0);
    record.aggregate = std::string(mib << 20, 'x');
    EXPECT_TRUE(store_->StoreFinal(std::move(record)).ok());
    return status.id;
  };
  const Requester alice{1, "alice", false}, bob{2, "bob", false}, root{0, "root", true};
  const std::string alices = store(alice, 1000, 1);
  const std::string bobs_first = store(bob, 1001, 1), bobs = store(bob, 1002, 1);
  const std::string roots = store(root, 1003, 4);
  // Many ids of one user whom nobody knows are one user.
  const std::string nobodys = store({100'001, "uid:100001", false}, 1004, 1);
  store({100'002, "uid:100002", false}, 1005, 1);
  const std::string active = *store_->Create(Profile(3));
  ASSERT_TRUE(Append(Record(active, 1, 3 << 20)).ok());
  const auto bytes = ReadBytes(*store_);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto finished = [&](ProfileHolder holder) { return bytes->at(holder).finished >> 20; };
  EXPECT_EQ(std::vector<int64_t>({finished(0), finished(1), finished(2), finished(kUnknownHolder)}),
            std::vector<int64_t>({4, 1, 2, 2}));
  EXPECT_EQ(bytes->at(3).active >> 20, 3);
  EXPECT_EQ(finished(3), 0);

  EXPECT_EQ(*store_->Retain({.user_bytes = 5 << 20, .bytes = *bytes}, 2000), 0);
  // More than a user's room: of root nothing, of who has none that is over nothing.
  EXPECT_EQ(*store_->Retain({.user_bytes = 3 << 19, .bytes = *bytes}, 2000), 2);
  EXPECT_FALSE(store_->Profile(bobs_first).ok());
  EXPECT_FALSE(store_->Profile(nobodys).ok());
  EXPECT_TRUE(store_->Profile(bobs).ok());
  EXPECT_TRUE(store_->Profile(active).ok());
  // More than everyone's: root has most, though Alice's is the oldest; what is active displaces nothing.
  EXPECT_EQ(*store_->Retain({.max_bytes = 8 << 20, .bytes = *ReadBytes(*store_)}, 2000), 0);
  EXPECT_EQ(*store_->Retain({.max_bytes = 6 << 20, .bytes = *ReadBytes(*store_)}, 2000), 1);
  EXPECT_FALSE(store_->Profile(roots).ok());
  EXPECT_TRUE(store_->Profile(alices).ok());
}

TEST_F(StoreTest, AFullDiskAcknowledgesNothingAndHeals) {
  const std::string id = *store_->Create(Profile(1));
  ASSERT_TRUE(store_->SetHardLimit(1 << 20).ok());
  uint64_t sequence = 0;
  absl::Status status;
  while (status.ok() && sequence < 100) status = Append(Record(id, ++sequence, 100'000)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_FALSE(store_->healthy());
  EXPECT_EQ(Windows(id).size(), sequence - 1);
  EXPECT_EQ(store_->Stream("stream")->last, sequence - 1);
  ASSERT_TRUE(store_->SetHardLimit(0).ok());
  ASSERT_TRUE(store_->Probe().ok());
  EXPECT_TRUE(store_->healthy());
  EXPECT_FALSE(Append(Record(id, sequence, 100'000))->duplicate);
}

TEST_F(StoreTest, TheProbeDoesNotHealAStoreThatIsStillFull) {
  const std::string id = *store_->Create(Profile(1));
  ASSERT_TRUE(store_->SetHardLimit(1 << 20).ok());
  for (uint64_t i = 1; Append(Record(id, i, 20'000)).ok();) ++i;
  EXPECT_EQ(store_->Probe().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(store_->healthy());
}

TEST_F(StoreTest, ASecondDaemonIsRefusedWithThePidOfTheFirst) {
  StoreOptions options;
  options.directory = folder_ + "/store";
  const auto second = SqliteStore::Open(std::move(options));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat("pid ", ::getpid())));
}

TEST_F(StoreTest, TheFolderIsPrivate) {
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + "/store").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  for (const char* file : {"perfd.db", "perfd.db-wal"}) {
    ASSERT_EQ(::stat((folder_ + "/store/" + file).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << file;
  }
}

TEST_F(StoreTest, CommitsAreGrouped) {
  store_.reset();
  StoreOptions options;
  options.directory = folder_ + "/store";
  options.group_delay = absl::Seconds(1);
  int commits = 0;
  options.on_commit = [&](double) { ++commits; };
  store_ = *SqliteStore::Open(std::move(options));
  for (uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(
        store_->Append(Record("p-000001", i), [](const absl::StatusOr<AppendResult>&) {}).ok());
  }
  ASSERT_TRUE(store_->Create(Profile(1)).ok());  // urgent: takes the others with it
  EXPECT_EQ(Windows("p-000001").size(), 100u);
  store_.reset();
  EXPECT_LE(commits, 2);
}

// The fixture's reader without its store.
struct OldWindows : StoreFixture {
  using StoreFixture::ReadAll;
};

TEST(Schema, MigratesAVersionOneDatabase) {
  std::string folder = (std::filesystem::temp_directory_path() / "perfd-schema-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    auto db = Database::Open(folder + "/perfd.db");
    std::ifstream file("tests/unit/daemon/store/version1.sql");
    const std::string sql((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_FALSE(sql.empty());
    ASSERT_TRUE(db->Exec(sql).ok());
    ASSERT_EQ(*db->QueryInt("PRAGMA user_version"), 1);
  }
  StoreOptions options;
  options.directory = folder;
  auto store = SqliteStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Stream("old-stream")->last, 17u);
  EXPECT_THAT(OldWindows::ReadAll(**store, "p-000003").windows, ElementsAre("old window"));
  EXPECT_TRUE((*store)->History("none", 1).ok());
  store->reset();
  auto db = Database::Open(folder + "/perfd.db");
  EXPECT_EQ(*db->QueryInt("PRAGMA user_version"), kSchemaVersion);
  std::filesystem::remove_all(folder);
}

// Each start of an agent without its spool begins a stream: a user could fill the store with their names.
TEST(Schema, AnOwnersFirstStreamsAreForgotten) {
  auto db = Database::Open(":memory:");
  ASSERT_TRUE(db.ok() && Migrate(*db).ok());
  ProfileStatus status;
  status.name = "test";
  status.id = *InsertProfile(*db, status);
  const auto append = [&](const std::string& owner, const std::string& stream) {
    return AppendWindow(*db, {status.id, {.id = stream, .owner = owner}, 1, "node", "w"}, 0).ok();
  };
  const auto count = [&](const std::string& table) {
    return *db->QueryInt(absl::StrCat("SELECT count(*) FROM ", table));
  };
  ASSERT_TRUE(append("node a", "nodes"));
  for (int i = 0; i < kMostStreams + 5; ++i) ASSERT_TRUE(append("user 1001", absl::StrCat(i)));
  // What was refused of a stream counts for its sender, and claims nothing.
  ASSERT_TRUE(SkipWindow(*db, {.id = "refused", .owner = "user 1002"}, 1).ok());
  EXPECT_EQ(*StreamOwner(*db, "refused"), "");
  EXPECT_EQ(*StoredSequence(*db, "refused"), 1u);
  EXPECT_EQ(count("stream_owner"), kMostStreams + 7) << "what has windows one by one is known";
  ASSERT_TRUE(db->Exec("DELETE FROM window").ok());
  ASSERT_TRUE(append("user 1001", "next"));
  EXPECT_EQ(count("stream_owner"), kMostStreams + 2);
  EXPECT_EQ(count("stream_range"), kMostStreams + 2);
  EXPECT_EQ(*StreamOwner(*db, "nodes"), "node a");
  EXPECT_EQ(*StreamOwner(*db, "5"), "") << "the first are forgotten";
  EXPECT_EQ(*StreamOwner(*db, "6"), "user 1001");
  EXPECT_FALSE([&] {
    for (int i = 0; i < 2 * kMostStreams; ++i) {
      if (!append("user 1001", absl::StrCat("more", i))) return false;
    }
    return true;
  }()) << "whose windows are all kept one by one, and who begins more and more";
}

TEST(Schema, RefusesANewerDatabase) {
  auto db = Database::Open(":memory:");
  ASSERT_TRUE(db->Exec(absl::StrCat("PRAGMA user_version=", kSchemaVersion + 1)).ok());
  EXPECT_EQ(Migrate(*db).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(StoreDirectory, KnowsNetworkFileSystems) {
  EXPECT_STREQ(NetworkFileSystemName(0x6969), "NFS");
  EXPECT_STREQ(NetworkFileSystemName(0x0BD00BD0), "Lustre");
  EXPECT_STREQ(NetworkFileSystemName(0x47504653), "GPFS");
  EXPECT_STREQ(NetworkFileSystemName(0xFF534D42), "CIFS");
  EXPECT_EQ(NetworkFileSystemName(0xEF53), nullptr);  // ext4
}

TEST(ProfileId, RoundTripAndStrictness) {
  EXPECT_EQ(FormatProfileId(42), "p-000042");
  EXPECT_EQ(FormatProfileId(1234567), "p-1234567");
  EXPECT_EQ(*ParseProfileId("p-1234567"), 1234567);
  for (const char* bad : {"", "p-", "p-42", "42", "p-0000042", "p-000000", "p--00042", "p-00004x",
                          "p-99999999999999999999"}) {
    EXPECT_FALSE(ParseProfileId(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace perfd::daemon
