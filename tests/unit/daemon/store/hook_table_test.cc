// Jobs of schedulers through the store.
#include "daemon/store/hook_table.h"

#include <gtest/gtest.h>

#include "daemon/store/schema.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd {
namespace {

class HookTableTest : public StoreFixture {
 protected:
  void SetUp() override { ASSERT_TRUE(Open().ok()); }

  static HookAdmission Admission(const std::string& job, int64_t seen_ns = 100,
                                 bool profile = false) {
    HookAdmission admission;
    admission.record.job.cluster = "c";
    admission.record.job.job = job;
    admission.record.job.uid = 1000;
    admission.record.job.user = "alice";
    admission.record.job.account = "physics";
    admission.record.job.partition = "batch";
    admission.record.answer = {HookDecision::kNotChosen, "why", ""};
    admission.record.seen_unix_ns = seen_ns;
    admission.record.wait_ns = 7;
    if (!profile) return admission;
    admission.record.answer.decision = HookDecision::kProfile;
    admission.profile = Profile(1000);
    return admission;
  }

  HookRecord Admit(const HookAdmission& admission) {
    const auto record = store_->AdmitHookJob(admission);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(HookRecord());
  }

  void Finish(const std::string& id, ProfileState state) {
    ProfileStatus status = *store_->Profile(id);
    status.state = state;
    ASSERT_TRUE(store_->PutStatus(status).ok());
  }
};

TEST_F(HookTableTest, ARecordComesBackAsItWas) {
  HookAdmission admission = Admission("4711");
  admission.record.job.restart = 2;
  admission.record.number = 3;
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
  const HookRecord first = Admit(Admission("1"));
  HookAdmission second = Admission("1", 200);
  second.replaces = first.id;
  EXPECT_NE(Admit(second).id, first.id);
  ASSERT_EQ(store_->HookJobs(std::nullopt, 10)->size(), 1u);
  EXPECT_EQ(store_->HookJobs(std::nullopt, 10)->front().seen_unix_ns, 200);
}

TEST_F(HookTableTest, CountersAreKeptByName) {
  EXPECT_EQ(*store_->HookCounter(""), 0);
  HookAdmission admission = Admission("1");
  admission.record.number = 1;
  Admit(admission);
  admission = Admission("2");
  admission.record.number = 5;
  admission.counter = "partition=debug";
  Admit(admission);
  Admit(Admission("3"));  // not counted
  EXPECT_EQ(*store_->HookCounter(""), 1);
  EXPECT_EQ(*store_->HookCounter("partition=debug"), 5);
  ASSERT_TRUE(Open().ok());  // and survive
  EXPECT_EQ(*store_->HookCounter("partition=debug"), 5);
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
  ASSERT_TRUE(store_->EndHookJob(b.id, 300).ok());
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

}  // namespace
}  // namespace perfd
