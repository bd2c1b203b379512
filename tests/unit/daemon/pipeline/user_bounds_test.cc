// What a user's own agents may bring, and what a user's profiles may take of the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

constexpr uint32_t kAlice = 1001, kBob = 1002;
constexpr size_t kMib = 1 << 20;

class UserBoundsTest : public PipelineFixture {
 protected:
  void SetLimit(Limit limit, int64_t value) {
    LimitValues values = StandardLimits();
    values[static_cast<size_t>(limit)] = value;
    limits_->Set(values);
  }
  // Of `bytes` in the store, whatever it holds.
  absl::Status Bring(uint64_t connection, const std::string& id, const std::string& node,
                     size_t bytes) {
    IncomingWindow window = Window(id, node, ++sequence_);
    window.body.resize(bytes, '\0');
    return Accept(connection, std::move(window));
  }
  void Maintain() {
    pipeline_->Tick();  // the first
    // The work of a tick is done by others.
    for (int i = 0; i < 500 && limits_->UsesOf(User(kAlice), 0)[kActive].used == 0; ++i)
      absl::SleepFor(absl::Milliseconds(10));
  }
  static Requester User(uint32_t uid) { return {uid, "user", false}; }

  static constexpr auto kActive = static_cast<size_t>(Limit::kActiveBytesPerUser);
  uint64_t sequence_ = 0;
};

TEST_F(UserBoundsTest, AUsersAgentsHaveTheirMinute) {
  SetLimit(Limit::kWindowBytesPerUser, 2);
  const uint64_t alices = Connect("a", kAlice, true), bobs = Connect("b", kBob, true);
  const uint64_t nodes = Connect("n", 0, false);
  const std::string id = Submit(kAlice), other = Submit(kBob);
  EXPECT_TRUE(Bring(alices, id, "a", kMib).ok());
  EXPECT_TRUE(Bring(alices, id, "a", kMib).ok());
  const absl::Status full = Bring(alices, id, "a", kMib);
  EXPECT_TRUE(absl::IsUnavailable(full)) << full << ": the agent keeps it";
  EXPECT_THAT(std::string(full.message()), HasSubstr("limits.window_mib_per_user"));
  EXPECT_EQ(limits_->Hits()[static_cast<size_t>(Limit::kWindowBytesPerUser)], 1u);
  EXPECT_TRUE(Bring(bobs, other, "b", kMib).ok()) << "another user's";
  EXPECT_TRUE(Bring(nodes, id, "n", 3 * kMib).ok()) << "the node's agent has no such bound";
  clock_.Pass(60 * kNsPerSecond);
  EXPECT_TRUE(Bring(alices, id, "a", kMib).ok());
  // What never fits is not kept for ever: refused, and its owner is told.
  EXPECT_TRUE(Bring(alices, id, "a", 3 * kMib).ok());
  std::vector<Notice> notices;
  for (int i = 0; i < 500 && notices.empty(); ++i) {
    absl::SleepFor(absl::Milliseconds(10));  // it comes by way of the merge queue
    notices = pipeline_->Get(User(kAlice), id)->notices;
  }
  ASSERT_FALSE(notices.empty());
  EXPECT_THAT(notices.back().text, HasSubstr("limits.window_mib_per_user"));
}

TEST_F(UserBoundsTest, WhoHasTooMuchInTheStoreBringsNoMore) {
  const uint64_t alices = Connect("a", kAlice, true), bobs = Connect("b", kBob, true);
  const std::string id = Submit(kAlice), other = Submit(kBob);
  EXPECT_TRUE(Bring(alices, id, "a", 3 * kMib).ok());
  EXPECT_TRUE(Bring(bobs, other, "b", kMib).ok());
  SetLimit(Limit::kActiveBytesPerUser, 2);
  Maintain();
  EXPECT_GE(limits_->UsesOf(User(kAlice), 0)[kActive].used, 3);
  EXPECT_EQ(limits_->UsesOf(User(kBob), 0)[kActive].used, 2) << "of what is begun, too";
  ASSERT_TRUE(Bring(alices, id, "a", kMib).ok()) << "acknowledged, as it will never be taken";
  EXPECT_EQ(pipeline_->Figures().windows_stored, 2u);
  EXPECT_EQ(limits_->Hits()[kActive], 1u);
  SubmitRequest more{{}, User(kAlice), ""};
  more.spec.target.command = "app";
  const absl::Status full = pipeline_->Submit(more).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("limits.active_mib_per_user"));
  more.requester.privileged = true;
  EXPECT_TRUE(pipeline_->Submit(more).ok()) << "administrators have no such bound";
  SetLimit(Limit::kActiveBytesPerUser, 4);
  EXPECT_TRUE(Bring(alices, id, "a", kMib).ok());
  EXPECT_EQ(pipeline_->Figures().windows_stored, 3u);
}

TEST_F(UserBoundsTest, AMinuteHasSoManyAuditEntries) {
  const uint64_t alices = Connect("a", kAlice, true), bobs = Connect("b", kBob, true);
  const uint64_t nodes = Connect("n", 0, false);
  const std::string id = Submit(kAlice), other = Submit(kBob);
  SetLimit(Limit::kAuditPerUser, 2);
  uint64_t sequence = 0;
  const auto bring = [&](uint64_t connection, const std::string& profile, const std::string& node) {
    IncomingWindow window = Window(profile, node, ++sequence);
    AuditEntry& entry = window.window.audit.emplace_back();
    entry.profile_id = profile;
    entry.node = node;
    return Accept(connection, std::move(window));
  };
  EXPECT_TRUE(bring(alices, id, "a").ok());
  EXPECT_TRUE(bring(alices, id, "a").ok());
  const absl::Status full = bring(alices, id, "a");
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("limits.audit_entries_per_user"));
  EXPECT_EQ(limits_->Hits()[static_cast<size_t>(Limit::kAuditPerUser)], 1u);
  EXPECT_TRUE(bring(bobs, other, "b").ok()) << "another user's";
  EXPECT_TRUE(bring(nodes, id, "n").ok()) << "the node's agent has no such bound";
  clock_.Pass(60 * kNsPerSecond);
  EXPECT_TRUE(bring(alices, id, "a").ok());
}

// What fits into no minute must not use up the next ones, and what the store does not take is not paid for.
TEST_F(UserBoundsTest, WhatIsNotTakenIsNotPaidFor) {
  const uint64_t alices = Connect("a", kAlice, true);
  const std::string id = Submit(kAlice);
  SetLimit(Limit::kAuditPerUser, 1);
  IncomingWindow window = Window(id, "a", 1);
  window.window.audit.resize(2);
  for (AuditEntry& entry : window.window.audit) {
    entry.profile_id = id;
    entry.node = "a";
  }
  window.body.resize(kMib, '\0');
  ASSERT_TRUE(Accept(alices, std::move(window)).ok()) << "refused for ever: acknowledged";
  const auto used = [&](Limit limit) {
    return limits_->UsesOf(User(kAlice), clock_.UnixNs())[static_cast<size_t>(limit)].used;
  };
  EXPECT_EQ(used(Limit::kWindowBytesPerUser), 0);
  EXPECT_EQ(used(Limit::kAuditPerUser), 0);
}

TEST_F(UserBoundsTest, WhatTheStoreDoesNotTakeIsNotPaidFor) {
  const uint64_t alices = Connect("a", kAlice, true);
  const std::string id = Submit(kAlice);
  ASSERT_TRUE(store_->SetHardLimit(1 << 20).ok());
  absl::Status full;
  for (int i = 0; full.ok() && i < 10; ++i) full = Bring(alices, id, "a", kMib / 2);
  ASSERT_FALSE(full.ok());
  const auto used = limits_->UsesOf(User(kAlice), clock_.UnixNs());
  EXPECT_LE(used[static_cast<size_t>(Limit::kWindowBytesPerUser)].used, 1);
}

TEST_F(UserBoundsTest, OfFinishedProfilesTheOldestMakeRoom) {
  int64_t at_ns = clock_.UnixNs();
  const auto store = [&](const Requester& who) {
    ProfileStatus status = Profile(who.uid);
    status.requester = who;
    status.finished_unix_ns = ++at_ns;
    status.id = *store_->Create(status);
    status.state = ProfileState::kDone;
    FinalRecord record{.status = status, .report = {}, .aggregate = std::string(kMib, 'x')};
    record.report.status = status;
    EXPECT_TRUE(store_->StoreFinal(std::move(record)).ok());
    return status.id;
  };
  const Requester admin{kBob, "admin", true}, root{0, "root", true};
  std::map<uint32_t, std::vector<std::string>> ids;
  for (const Requester& who : {User(kAlice), admin, root})
    for (int i = 0; i < 3; ++i) ids[who.uid].push_back(store(who));
  SetLimit(Limit::kFinishedBytesPerUser, 2);
  pipeline_->Tick();
  for (int i = 0; i < 500 && store_->Profile(ids[kBob][1]).ok(); ++i)
    absl::SleepFor(absl::Milliseconds(10));
  for (const uint32_t uid : {kAlice, kBob}) {
    EXPECT_FALSE(store_->Profile(ids[uid][0]).ok()) << uid;
    EXPECT_TRUE(store_->Profile(ids[uid][2]).ok()) << uid;
  }
  for (const std::string& id : ids[0]) EXPECT_TRUE(store_->Profile(id).ok()) << "root's";
}

// Users whom the system does not know have one bound together.
TEST_F(UserBoundsTest, ManyIdsOfOneUserAreOneUser) {
  Connect("n");
  SubmitRequest request{{}, {100'001, "uid:100001", false}, ""};
  request.spec.target.command = "app";
  limits_->Report(Limit::kActiveBytesPerUser, {{kNobodyKnown, int64_t{8} << 30}});
  EXPECT_EQ(pipeline_->Submit(request).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(Submit(kAlice), "");
}

TEST_F(UserBoundsTest, ADayHasSoManySecondsOfAlteredLoops) {
  SetLimit(Limit::kAlteringSecondsPerUser, 60);
  Connect("n");
  SubmitRequest request{{}, User(kAlice), ""};
  request.spec.target.command = "app";
  request.spec.variants.set = {"LS"};
  request.spec.duration_ns = 1000 * kNsPerSecond;
  request.spec.budget.overhead_ratio = 0.05;  // 50 s
  const auto code = [&](const SubmitRequest& wanted) {
    return pipeline_->Submit(wanted).status().code();
  };
  EXPECT_EQ(code(request), absl::StatusCode::kOk);
  const absl::Status refused = pipeline_->Submit(request).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("limits.altering_seconds_per_user"));
  EXPECT_EQ(limits_->Hits()[static_cast<size_t>(Limit::kAlteringSecondsPerUser)], 1u);
  SubmitRequest other = request;
  for (const uint32_t uid : {0u, kAlice}) {
    other.requester = {uid, "admin", true};
    EXPECT_EQ(code(other), absl::StatusCode::kOk) << "root and administrators have no such bound";
  }
  other.requester = User(kBob);
  EXPECT_EQ(code(other), absl::StatusCode::kOk);
  other = request;
  other.spec.budget.overhead_ratio = 0.01;
  EXPECT_EQ(code(other), absl::StatusCode::kOk) << "these 10 s are left";
  other = request;
  other.spec.variants.set.clear();
  EXPECT_EQ(code(other), absl::StatusCode::kOk) << "samples have no such bound";
  other = request;
  other.spec.dry_run = true;
  EXPECT_EQ(code(other), absl::StatusCode::kOk) << "nothing is altered";
  clock_.Pass(int64_t{24} * 3600 * kNsPerSecond);
  EXPECT_EQ(code(request), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace perfd::daemon
