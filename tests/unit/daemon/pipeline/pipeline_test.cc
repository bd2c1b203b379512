#include "daemon/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/barrier.h"
#include "absl/time/clock.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

class PipelineTest : public PipelineFixture {};

std::string Notices(const ProfileStatus& status) {
  std::string text;
  for (const Notice& notice : status.notices) text += notice.text + "\n";
  return text;
}

TEST_F(PipelineTest, StopWaitsForWhatIsInTheCommitQueue) {
  Begin(absl::Milliseconds(300));
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  std::atomic<int> answered{0};
  for (uint64_t i = 1; i <= 50; ++i) {
    pipeline_->AcceptWindow(agent, Window(id, "a", i), [&](const absl::Status& status) {
      if (status.ok()) ++answered;
    });
  }
  pipeline_->Stop();
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(pipeline_->Figures().ingest_queue_windows, 0u);
  EXPECT_EQ(pipeline_->Get({1000, "user", false}, id)->samples, 500u);  // merged as well
}

// It was acknowledged; and the daemon was stopped before the report was made anew.
TEST_F(PipelineTest, ALateWindowIsInTheReportAlsoAfterARestart) {
  const auto await = [this](const std::string& id, ProfileState state, uint64_t samples) {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (absl::Now() < until) {
      pipeline_->Tick();
      const auto status = store_->Profile(id);
      if (status.ok() && status->state == state && status->samples == samples) return true;
      std::this_thread::yield();
    }
    return false;
  };
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  EXPECT_TRUE(Accept(agent, Window(id, "a", 1)).ok());
  EXPECT_TRUE(Accept(agent, Window(id, "a", 3)).ok());  // 2 is missing
  End(agent, id, 3);
  ASSERT_TRUE(await(id, ProfileState::kPartial, 20));
  EXPECT_TRUE(Accept(agent, Window(id, "a", 2)).ok());
  Begin();
  EXPECT_TRUE(await(id, ProfileState::kPartial, 30));
  EXPECT_EQ(store_->WindowCounts()->size(), 0u) << "it is in the aggregate now";
}

TEST_F(PipelineTest, AStrangersWindowSpoilsNothing) {
  const uint64_t own = Connect("a");
  const uint64_t stranger = Connect("b", 1001, true);
  const std::string id = Submit();
  EXPECT_TRUE(Accept(stranger, Window(id, "b", 1)).ok());
  pipeline_->RefuseWindow(stranger, kSite, id, 2, absl::InvalidArgumentError("rows"),
                          [](const absl::Status&) {});
  EXPECT_TRUE(Accept(own, Window(id, "a", 1)).ok());
  End(own, id, 1);
  pipeline_->Stop();
  const auto status = store_->Profile(id);
  EXPECT_EQ(status->state, ProfileState::kDone) << Notices(*status);
  EXPECT_THAT(Notices(*status), HasSubstr("user-mode agent of uid 1001"));
  EXPECT_EQ(status->samples, 10u);
}

// One stolen key must not decide what everybody reads.
TEST_F(PipelineTest, WindowsOfANodeThatWasNotAskedAreRefused) {
  const uint64_t own = Connect("a");
  ProfileSpec spec;
  spec.target.command = "app";
  spec.target.node = "a";
  const auto submitted = pipeline_->Submit({spec, {1000, "user", false}, ""});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const std::string id = submitted->id;
  const uint64_t rogue = Connect("rogue");
  IncomingWindow forged = Window(id, "rogue", 1);
  AuditEntry entry;
  entry.unix_ns = 5;
  entry.profile_id = id;
  entry.node = "rogue";
  entry.origin.requester = "root (uid 0)";
  forged.window.audit = {entry};
  EXPECT_TRUE(Accept(rogue, std::move(forged)).ok()) << "it need not come again";
  EXPECT_TRUE(Accept(own, Window(id, "a", 1)).ok());
  End(own, id, 1);
  pipeline_->Stop();
  const auto status = store_->Profile(id);
  EXPECT_EQ(status->samples, 10u);
  EXPECT_THAT(Notices(*status), HasSubstr("node 'rogue' was not asked for this profile"));
  EXPECT_TRUE(store_->Audit({.profile_id = "", .uid = std::nullopt, .limit = 9})->empty());
}

// Its words are printed on the terminal of whoever asks.
TEST_F(PipelineTest, DoctorAsksTheSitesAgentsAndThoseOfWhoAsks) {
  const uint64_t site = Connect("site");
  const uint64_t mine = Connect("mine", 1001, true);
  const uint64_t other = Connect("other", 1002, true);
  const auto ask = [&](uint32_t uid, const std::string& node, uint64_t id) {
    std::vector<std::pair<std::string, DoctorSource>> places;
    const auto note = [&places](const std::vector<DoctorReport>& reports) {
      for (const DoctorReport& report : reports) places.emplace_back(report.place, report.source);
    };
    const absl::Status begun = pipeline_->Doctor({uid, "user", uid == 0}, node, note);
    for (const uint64_t connection : {site, mine, other})
      pipeline_->DoctorAnswer(connection, id, {{"a check", true, false, "", ""}});
    pipeline_->EndDoctor();
    if (!begun.ok()) places.emplace_back(begun.message(), DoctorSource::kDaemon);
    return places;
  };
  using Places = std::vector<std::pair<std::string, DoctorSource>>;
  EXPECT_EQ(ask(0, "", 1),
            (Places{{"perfd", DoctorSource::kDaemon}, {"site", DoctorSource::kNodeAgent}}));
  EXPECT_EQ(ask(1001, "", 2), (Places{{"perfd", DoctorSource::kDaemon},
                                      {"mine", DoctorSource::kUserAgent},
                                      {"site", DoctorSource::kNodeAgent}}));
  EXPECT_EQ(ask(1001, "mine", 3), (Places{{"mine", DoctorSource::kUserAgent}}));
  EXPECT_THAT(ask(1001, "other", 4).front().first, HasSubstr("is of user 1002"));
  EXPECT_THAT(ask(0, "other", 4).front().first, HasSubstr("is of user 1002"));
}

// The store takes its time over an id, and meanwhile others submit.
TEST_F(PipelineTest, ParallelSubmitsKeepTheLimit) {
  constexpr int kThreads = 100;
  const auto limit = static_cast<size_t>(Limits().Value(Limit::kProfilesPerUser));
  Begin(absl::Milliseconds(20));
  Connect("a");
  absl::Barrier* barrier = new absl::Barrier(kThreads);  // deletes itself by way of Block
  std::atomic<size_t> accepted{0};
  std::atomic<size_t> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (barrier->Block()) delete barrier;
      ProfileSpec spec;
      spec.target.command = "app";
      const auto status = pipeline_->Submit({spec, {1000, "user", false}, ""});
      if (status.ok()) ++accepted;
      if (absl::IsResourceExhausted(status.status())) ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, limit);
  EXPECT_EQ(refused, kThreads - limit);
  EXPECT_EQ(store_->Profiles({.uid = std::nullopt, .active_only = true, .limit = 1000})->size(),
            limit);
}

TEST_F(PipelineTest, APlaceIsFreeAgainWhenTheStoreFails) {
  Connect("a");
  ProfileSpec spec;
  spec.target.command = "app";
  const std::string name(2'000'000, 'u');  // for which a full store has no room left
  for (size_t i = 0; i <= 64; ++i) {
    ASSERT_TRUE(store_->SetHardLimit(1).ok());
    const auto refused = pipeline_->Submit({spec, {1000, name, false}, ""}).status();
    ASSERT_THAT(std::string(refused.message()), HasSubstr("full"));
    ASSERT_TRUE(store_->SetHardLimit(0).ok());
    ASSERT_TRUE(store_->Probe().ok());
  }
  EXPECT_NE(Submit(), "");
}

TEST_F(PipelineTest, ADamagedAggregateEndsAsFailed) {
  const std::string id = [&] {
    const uint64_t agent = Connect("a");
    const std::string submitted = Submit();
    EXPECT_TRUE(Accept(agent, Window(submitted, "a", 1)).ok());
    return submitted;
  }();
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->Compact(id, "no aggregate", 0).ok());
  Begin();  // the daemon restarts and reads it
  const uint64_t agent = Connect("a");
  EXPECT_TRUE(Accept(agent, Window(id, "a", 2)).ok());
  End(agent, id, 2);
  pipeline_->Stop();
  const auto status = store_->Profile(id);
  EXPECT_EQ(status->state, ProfileState::kFailed);
  EXPECT_THAT(Notices(*status), HasSubstr("the stored data could not be read"));
}

TEST_F(PipelineTest, NoAggregateOutlivesItsProfile) {
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  EXPECT_TRUE(Accept(agent, Window(id, "a", 1)).ok());
  EXPECT_EQ(pipeline_->aggregates(), 1u);
  End(agent, id, 1);
  pipeline_->Stop();
  EXPECT_EQ(pipeline_->aggregates(), 0u);
}

TEST_F(PipelineTest, NewsOfAnUnknownProfileIsAnsweredWithStop) {
  const uint64_t agent = Connect("a");
  SessionUpdate update;
  update.profile_id = "p-000077";
  update.phase = NodeProgress::Phase::kSampling;
  pipeline_->OnSessionUpdate(agent, update);
  ASSERT_EQ(link_->stops.size(), 1u);
  EXPECT_EQ(link_->stops[0].profile_id, "p-000077");
}

class RetentionTest : public PipelineFixture {
 protected:
  std::string Finished() {
    const uint64_t agent = Connect("a");
    const std::string id = Submit();
    EXPECT_TRUE(Accept(agent, Window(id, "a", ++sequence_)).ok());
    End(agent, id, sequence_);
    // Its aggregate goes last of all.
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (pipeline_->aggregates() > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(pipeline_->aggregates(), 0u);
    return id;
  }
  // One run of the chores.
  bool KeptAfterMaintenance(const std::string& id) {
    pipeline_->Tick();
    pipeline_->Stop();  // waits for the chores
    return store_->Profile(id).ok();
  }
  uint64_t sequence_ = 0;
};

constexpr int64_t kHour = 3600 * kNsPerSecond;

TEST_F(RetentionTest, AStepOfTheClockDeletesNothing) {
  const std::string id = Finished();
  clock_.Pass(2 * kHour);
  clock_.unix_ns += 100'000 * kHour;
  EXPECT_TRUE(KeptAfterMaintenance(id));
}

TEST_F(RetentionTest, NothingIsDeletedSoonAfterTheStart) {
  const std::string id = Finished();
  pipeline_->Stop();
  clock_.unix_ns += 100'000 * kHour;  // wrong at the start
  Begin();
  clock_.Pass(kHour - 1);
  EXPECT_TRUE(KeptAfterMaintenance(id));
}

TEST_F(RetentionTest, WhatIsOldGoes) {
  const std::string id = Finished();
  pipeline_->Stop();
  clock_.unix_ns += 100'000 * kHour;
  Begin();
  clock_.Pass(kHour);
  EXPECT_FALSE(KeptAfterMaintenance(id));
}

TEST_F(RetentionTest, ALongerRetentionHoldsFromTheNextChoresOn) {
  const std::string id = Finished();
  pipeline_->Stop();
  clock_.unix_ns += 100'000 * kHour;
  Begin();
  clock_.Pass(kHour);
  pipeline_->SetRetention({.keep_ns = 0, .max_bytes = 0});
  EXPECT_TRUE(KeptAfterMaintenance(id));
}

TEST_F(RetentionTest, TurnsOfTheClockworkAreCounted) {
  EXPECT_EQ(pipeline_->turns(), 0u);
  pipeline_->Tick();
  pipeline_->Tick();
  EXPECT_EQ(pipeline_->turns(), 2u);
}

TEST_F(RetentionTest, WhatHasJustEndedIsNewWhateverTheClockSaid) {
  clock_.Pass(2 * kHour);
  const int64_t right = clock_.unix_ns;
  clock_.unix_ns = kHour;  // 1970
  const std::string id = Finished();
  clock_.unix_ns = right;
  EXPECT_TRUE(KeptAfterMaintenance(id));
}

}  // namespace
}  // namespace perfd::daemon
