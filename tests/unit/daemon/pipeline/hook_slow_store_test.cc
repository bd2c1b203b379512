// What the store commits only after the hook has given up waiting.
#include "core/base/mutex.h"
#include "tests/unit/daemon/pipeline/job_admission_fixture.h"

namespace perfd::daemon {
namespace {

using D = HookDecision;

// A store whose commits take longer than anybody waits for them, while the test wants that.
class SlowStoreTest : public JobAdmissionTest {
 protected:
  void SetUp() override {
    JobAdmissionTest::SetUp();
    pipeline_.reset();
    store_.reset();
    StoreOptions options;
    options.directory = folder_ + "/store";
    options.most_wait = absl::Milliseconds(20);
    options.on_commit = [this](double) {
      MutexLock lock(&mutex_);
      stuck_ = !fast_;
      mutex_.Await(absl::Condition(&fast_));
    };
    store_ = *SqliteStore::Open(std::move(options));
    UsePolicy("{every: 2, quota: {active: 1, per_day: 100}}");
  }
  void TearDown() override {
    Slow(false);
    JobAdmissionTest::TearDown();
    store_.reset();  // before what its commits wait for
  }
  void Slow(bool slow) {
    MutexLock lock(&mutex_);
    fast_ = !slow;
  }
  // Until something is committed and its commit does not end.
  void AwaitStuck() {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&stuck_), absl::Seconds(20)));
  }
  // By its user, whatever its number.
  static HookJob Asked(HookJob job) {
    job.preference = HookPreference::kOptIn;
    return job;
  }
  // A call that gives up.
  void BeginBackoff(const HookJob& job) {
    EXPECT_EQ(pipeline_->hooks().Begin(kRootCaller, job).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  void Catch() {
    Slow(false);
    // Everything before this is committed; told in the same order.
    for (int i = 0; i < 1000 && !store_->Flush().ok(); ++i) {
    }
  }

  Mutex mutex_;
  bool fast_ ABSL_GUARDED_BY(mutex_) = true;
  bool stuck_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(SlowStoreTest, AProfileThatIsStoredTooLateIsTakenUp) {
  Connect("a");
  Slow(true);
  BeginBackoff(Job("1"));
  AwaitStuck();
  BeginBackoff(Job("2"));  // every 2nd, and not stored yet
  HookJob asked = Asked(Job("3"));
  BeginBackoff(asked);
  pipeline_->Tick();
  EXPECT_TRUE(store_->Profiles({})->empty());
  Catch();
  pipeline_->Tick();
  const auto record = *store_->HookJobOf(Job("2"));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->number, 2);
  const std::string id = record->answer.profile_id;
  EXPECT_EQ(Status(id).state, ProfileState::kDiscovering);
  // What was on its way counted for the quota.
  EXPECT_EQ((*store_->HookJobOf(asked))->answer.decision, D::kQuota);
  const HookFigures figures = pipeline_->hooks().figures();
  EXPECT_EQ(figures.jobs[static_cast<size_t>(D::kProfile)], 1u);
  EXPECT_EQ(figures.jobs[static_cast<size_t>(D::kNotChosen)], 1u);
  EXPECT_EQ(figures.jobs[static_cast<size_t>(D::kQuota)], 1u);
  // The same answer for whoever calls now; and the end of the job ends the profile.
  EXPECT_EQ(Begin(Job("2")).profile_id, id);
  End(Job("2"));
  EXPECT_EQ(link_->stops.size(), 1u);
}

TEST_F(SlowStoreTest, TheQuotaOfTheDayCountsWhatIsOnItsWayToo) {
  UsePolicy("{every: 1000, quota: {active: 100, per_day: 1}}");
  Connect("a");
  Slow(true);
  BeginBackoff(Job("1"));
  AwaitStuck();
  HookJob asked = Asked(Job("2"));
  BeginBackoff(asked);
  HookJob later = Asked(Job("3"));
  BeginBackoff(later);
  Catch();
  EXPECT_EQ((*store_->HookJobOf(asked))->answer.decision, D::kProfile);
  EXPECT_EQ((*store_->HookJobOf(later))->answer.decision, D::kQuota);
}

// Before anything of it could be read.
TEST_F(SlowStoreTest, ItsJobMayEndMeanwhile) {
  Connect("b");
  Connect("a");
  Slow(true);
  BeginBackoff(Job("9"));  // is being committed: what comes now waits behind it
  AwaitStuck();
  HookJob asked = Asked(JobOn("a", "1", "a,b"));
  BeginBackoff(asked);
  End(JobOn("a", "1", "a,b"));
  EXPECT_EQ(Calls(HookResult::kEnded), 1u);
  Catch();
  EXPECT_TRUE(link_->stops.empty());
  pipeline_->Tick();
  EXPECT_EQ(link_->stops.size(), 1u);
  Catch();
  const auto record = *store_->HookJobOf(asked);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->ended_unix_ns, clock_.UnixNs());  // nobody else had begun it
}

// What is stored is taken up by the next call, which need not wait for the clockwork.
TEST_F(SlowStoreTest, AnEndThatComesBeforeTheClockworkEndsTheProfile) {
  Connect("a");
  Slow(true);
  HookJob asked = Asked(Job("1"));
  BeginBackoff(asked);
  Catch();
  EXPECT_EQ(End(asked).decision, D::kProfile);
  EXPECT_EQ(link_->stops.size(), 1u);
  pipeline_->Tick();
  EXPECT_EQ(link_->stops.size(), 1u);
}

TEST_F(SlowStoreTest, NodesThatCallMeanwhileJoin) {
  Connect("a");
  Connect("b");
  Slow(true);
  BeginBackoff(Job("9"));
  AwaitStuck();
  HookJob asked = Asked(Job("1", "a,b,c"));
  const auto call = [&](const std::string& node, uint32_t uid) {
    HookJob job = asked;
    job.uid = uid;
    return pipeline_->hooks().Begin({node}, job).status().code();
  };
  EXPECT_EQ(call("a", 1000), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(call("b", 1000), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(call("c", 2000), absl::StatusCode::kDeadlineExceeded);  // another's job
  Catch();
  pipeline_->Tick();
  const auto record = *store_->HookJobOf(asked);
  ASSERT_TRUE(record.has_value());
  const ProfileStatus status = Status(record->answer.profile_id);
  ASSERT_EQ(status.nodes.size(), 2u);
  EXPECT_EQ(status.nodes[1].node, "b");
  Catch();
  EXPECT_EQ((*store_->HookRunOf(asked, "b"))->part, HookRun::Part::kBegun);
  EXPECT_EQ((*store_->HookRunOf(asked, "c"))->part, HookRun::Part::kNone);
}

// What is committed is in the store's figures, also before it is taken up.
TEST_F(SlowStoreTest, AProfileTakesOnePlace) {
  UsePolicy("{every: 1000, quota: {active: 2, per_day: 100}}");
  Connect("a");
  Slow(true);
  HookJob asked = Asked(Job("1"));
  BeginBackoff(asked);
  Catch();
  Slow(true);
  for (const char* job : {"2", "3"}) {
    asked.job = job;
    BeginBackoff(asked);
  }
  Catch();
  EXPECT_EQ((*store_->HookJobOf(asked))->answer.decision, D::kQuota);
  asked.job = "2";
  EXPECT_EQ((*store_->HookJobOf(asked))->answer.decision, D::kProfile);
}

// The second call of a job whose first one is still under way, and a job that was numbered from the same count.
TEST_F(SlowStoreTest, WhatWasOvertakenLeavesNothingBehind) {
  Connect("a");
  Slow(true);
  BeginBackoff(Job("1"));
  AwaitStuck();
  BeginBackoff(Job("2"));
  BeginBackoff(Job("2"));
  BeginBackoff(Job("4"));
  Catch();
  pipeline_->Tick();
  EXPECT_EQ(store_->HookJobs(std::nullopt, 10)->size(), 2u);
  EXPECT_EQ(store_->Profiles({})->size(), 1u);
  EXPECT_EQ(*store_->HookCounter(""), 2);
  EXPECT_TRUE(store_->healthy());
}

}  // namespace
}  // namespace perfd::daemon
