// Jobs of schedulers through the store.
#include <fstream>
#include <iterator>

#include "core/base/notification.h"
#include "daemon/store/schema.h"
#include "tests/unit/daemon/store/hook_table_fixture.h"

namespace perfd::daemon {
namespace {

TEST_F(HookTableTest, ARecordComesBackAsItWas) {
  HookAdmission admission = Admission("4711");
  admission.record.job.restart = 2;
  admission.record.number = 1;
  const HookRecord record = Admit(admission);
  EXPECT_GT(record.id, 0);
  HookRecord expected = admission.record;
  expected.id = record.id;
  EXPECT_EQ(record, expected);
  const auto found = store_->HookJobOf(admission.record.job);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_EQ(**found, expected);
}

TEST_F(HookTableTest, ARunIsAdmittedOnce) {
  Admit(Admission("1"));
  EXPECT_EQ(store_->AdmitHookJob(Admission("1")).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(store_->healthy());
  HookAdmission restarted = Admission("1");
  restarted.record.job.restart = 1;
  Admit(restarted);
  HookAdmission elsewhere = Admission("1");
  elsewhere.record.job.cluster = "d";
  Admit(elsewhere);
  EXPECT_EQ(store_->HookJobs(std::nullopt, 10)->size(), 3u);
}

TEST_F(HookTableTest, TheProfileIsMadeInTheSameTransaction) {
  const HookRecord record = Admit(Admission("1", 100, true));
  EXPECT_EQ(record.answer.profile_id, "p-000001");
  EXPECT_TRUE(store_->Profile("p-000001").ok());
  // What is refused leaves nothing behind.
  EXPECT_FALSE(store_->AdmitHookJob(Admission("1", 100, true)).ok());
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
}

TEST_F(HookTableTest, AnEarlierRunIsReplaced) {
  const HookRecord first = Admit(Admission("1", 100, true));
  HookAdmission second = Admission("1", 200);
  second.replaces = first.id;
  EXPECT_NE(Admit(second).id, first.id);
  EXPECT_EQ((*store_->HookJobOf(second.record.job))->seen_unix_ns, 200);
  // It is not forgotten, also for the quota.
  const auto jobs = *store_->HookJobs(std::nullopt, 10);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1].job, second.record.job);
  EXPECT_EQ(jobs[1].ended_unix_ns, 200);
  EXPECT_EQ(store_->HookUseSince(0)->today, 1);
  second.replaces = (*store_->HookJobOf(second.record.job))->id;
  Admit(second);  // and once more
  EXPECT_EQ(store_->HookJobs(std::nullopt, 10)->size(), 3u);
}

TEST_F(HookTableTest, CountersAreKeptByName) {
  EXPECT_EQ(*store_->HookCounter(""), 0);
  HookAdmission admission = Admission("1");
  admission.record.number = 1;
  Admit(admission);
  for (int i = 1; i <= 5; ++i) {
    admission = Admission(std::to_string(10 + i));
    admission.record.number = i;
    admission.counter = "partition=debug";
    Admit(admission);
  }
  Admit(Admission("3"));  // not counted
  EXPECT_EQ(*store_->HookCounter(""), 1);
  EXPECT_EQ(*store_->HookCounter("partition=debug"), 5);
  ASSERT_TRUE(Open().ok());  // and survive
  EXPECT_EQ(*store_->HookCounter("partition=debug"), 5);
}

TEST_F(HookTableTest, ANumberIsGivenOnce) {
  HookAdmission first = Admission("1");
  first.record.number = 1;
  HookAdmission second = Admission("2", 100, true);  // numbered before the first was stored
  second.record.number = 1;
  Admit(first);
  EXPECT_EQ(store_->AdmitHookJob(second).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(store_->Profiles({})->empty());
  EXPECT_TRUE(store_->healthy());
  second.record.number = 2;
  Admit(second);
  EXPECT_EQ(*store_->HookCounter(""), 2);
}

TEST_F(HookTableTest, UseIsOfTheDayAndOfWhatMeasuredSomething) {
  const std::string a = Admit(Admission("1", 100, true)).answer.profile_id;
  const std::string b = Admit(Admission("2", 200, true)).answer.profile_id;
  Admit(Admission("3", 200));                                        // not profiled
  ASSERT_FALSE(store_->Create(Profile(1000)).value_or("").empty());  // asked for by a person
  EXPECT_EQ(store_->HookUseSince(0)->active, 2);
  EXPECT_EQ(store_->HookUseSince(0)->today, 2);
  EXPECT_EQ(store_->HookUseSince(200)->today, 1);
  EXPECT_EQ(store_->HookUseSince(201)->today, 0);
  Finish(a, ProfileState::kDone);
  EXPECT_EQ(store_->HookUseSince(0)->active, 1);
  EXPECT_EQ(store_->HookUseSince(0)->today, 2);
  Finish(b, ProfileState::kFailed);  // it saw no process
  EXPECT_EQ(store_->HookUseSince(0)->active, 0);
  EXPECT_EQ(store_->HookUseSince(0)->today, 1);
}

TEST_F(HookTableTest, WaitsAreThoseOfActiveProfiles) {
  const HookRecord a = Admit(Admission("1", 100, true));
  const HookRecord b = Admit(Admission("2", 200, true));
  Finish(a.answer.profile_id, ProfileState::kCancelled);
  auto waits = *store_->HookWaits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].profile_id, b.answer.profile_id);
  EXPECT_EQ(waits[0].until_unix_ns, 207);
  EXPECT_FALSE(waits[0].ended);
  ASSERT_TRUE(store_->EndHookJob(b.id, "", 300).ok());
  ASSERT_TRUE(store_->Flush().ok());
  waits = *store_->HookWaits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_TRUE(waits[0].ended);
  EXPECT_EQ((*store_->HookJobOf(b.job))->ended_unix_ns, 300);
}

TEST_F(HookTableTest, ListsAreNewestFirstAndOfOneUser) {
  Admit(Admission("1"));
  HookAdmission other = Admission("2");
  other.record.job.uid = 2000;
  other.record.answer.decision = HookDecision::kNever;
  Admit(other);
  Admit(Admission("3"));
  const auto all = *store_->HookJobs(std::nullopt, 10);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].job.job, "3");
  EXPECT_EQ(store_->HookJobs(std::nullopt, 2)->size(), 2u);
  EXPECT_EQ(store_->HookJobs(1000, 10)->size(), 2u);
  const auto counts = *store_->HookCounts();
  EXPECT_EQ(counts[static_cast<size_t>(HookDecision::kNotChosen)], 2u);
  EXPECT_EQ(counts[static_cast<size_t>(HookDecision::kNever)], 1u);
  EXPECT_EQ(counts[static_cast<size_t>(HookDecision::kProfile)], 0u);
}

TEST_F(HookTableTest, TheOldestGo) {
  auto db = Database::Open(folder_ + "/plain.db");
  ASSERT_TRUE(db.ok());
  ASSERT_TRUE(Migrate(*db).ok());
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(AdmitJob(*db, Admission(std::to_string(i))).ok());
  ASSERT_TRUE(ApplyHookRetention(*db, 3).ok());
  const auto left = *ReadJobs(*db, std::nullopt, 10);
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left.back().job.job, "3");
}

// A commit that takes longer than anybody waits for it.
TEST_F(HookTableTest, WhatIsCommittedTooLateIsToldAfterwards) {
  store_.reset();
  Notification go_on;
  StoreOptions options;
  options.directory = folder_ + "/store";
  options.most_wait = absl::Milliseconds(20);
  options.on_commit = [&](double) { go_on.WaitForNotification(); };
  store_ = *SqliteStore::Open(std::move(options));
  int told = 0;
  Notification answered;
  absl::StatusOr<HookRecord> late;
  const auto tell = [&](const absl::StatusOr<HookRecord>& record) {
    ++told;
    late = record;
    answered.Notify();
  };
  EXPECT_EQ(store_->AdmitHookJob(Admission("1", 100, true), tell).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  go_on.Notify();
  answered.WaitForNotification();
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->answer.profile_id, "p-000001");
  EXPECT_EQ((*store_->HookJobOf(late->job))->id, late->id);
  store_.reset();  // before what it calls
  EXPECT_EQ(told, 1);
}

// As version 4 left it: runs without marks of nodes.
TEST(HookSchemaTest, RunsOfVersionFourAreKept) {
  std::string folder = (std::filesystem::temp_directory_path() / "perfd-schema-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    auto db = Database::Open(folder + "/perfd.db");
    std::ifstream file("tests/unit/daemon/store/version4.sql");
    const std::string sql((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_TRUE(db->Exec(sql).ok());
    ASSERT_EQ(*db->QueryInt("PRAGMA user_version"), 4);
  }
  StoreOptions options;
  options.directory = folder;
  auto store = SqliteStore::Open(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto jobs = *(*store)->HookJobs(std::nullopt, 10);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job.job, "runs");
  EXPECT_EQ(jobs[0].job.scheduler, "");
  EXPECT_EQ(jobs[0].answer.profile_id, "p-000003");
  EXPECT_EQ(jobs[0].ended_unix_ns, 0);
  EXPECT_EQ(jobs[1].job.restart, 2);
  EXPECT_EQ(jobs[1].number, 41);
  EXPECT_EQ(jobs[1].ended_unix_ns, 300);
  EXPECT_EQ(*(*store)->HookCounter("partition=debug"), 41);
  ASSERT_EQ((*store)->HookWaits()->size(), 1u);
  EXPECT_FALSE((*store)->HookWaits()->front().ended);
  // One that runs while perfd is renewed: of its nodes, only those that call from now on are known.
  ASSERT_TRUE((*store)->BeginHookJob(jobs[0].id, "n2").ok());
  ASSERT_TRUE((*store)->EndHookJob(jobs[0].id, "n1", 400).ok());
  ASSERT_TRUE((*store)->Flush().ok());
  EXPECT_EQ((*(*store)->HookJobOf(jobs[0].job))->ended_unix_ns, 0);
  ASSERT_TRUE((*store)->EndHookJob(jobs[0].id, "n2", 410).ok());
  ASSERT_TRUE((*store)->Flush().ok());
  EXPECT_EQ((*(*store)->HookJobOf(jobs[0].job))->ended_unix_ns, 410);
  store->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace perfd::daemon
