#include "daemon/limits/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

const Requester kAlice{.uid = 1001, .name = "alice", .privileged = false};
const Requester kBob{.uid = 1002, .name = "bob", .privileged = false};
const Requester kRoot{.uid = 0, .name = "root", .privileged = true};

LimitValues Only(int64_t value) {
  LimitValues values{};
  values.fill(value);
  return values;
}

// As many as there are, and the refusal of the next.
std::vector<Share> AcquireAll(Limits& limits, Limit limit, const Requester& who,
                              absl::Status* last) {
  std::vector<Share> shares;
  while (true) {
    auto share = limits.Acquire(limit, who);
    *last = share.status();
    if (!share.ok() || shares.size() > 1000) return shares;
    shares.push_back(*std::move(share));
  }
}

std::vector<Share> AcquireSome(Limits& limits, Limit limit, const std::vector<Requester>& by) {
  std::vector<Share> shares;
  for (const Requester& who : by) {
    auto share = limits.Acquire(limit, who);
    EXPECT_TRUE(share.ok()) << share.status();
    if (share.ok()) shares.push_back(*std::move(share));
  }
  return shares;
}

TEST(LimitTableTest, ARowForEachLimitInTheirOrder) {
  ASSERT_EQ(LimitTable().size(), kLimits);
  for (size_t i = 0; i < kLimits; ++i) {
    const LimitRow& row = LimitTable()[i];
    EXPECT_EQ(static_cast<size_t>(row.limit), i) << row.key;
    EXPECT_LE(row.range.low, row.range.standard) << row.key;
    EXPECT_LE(row.range.standard, row.range.high) << row.key;
    EXPECT_TRUE(row.kept == 0 || row.per == LimitPer::kEveryone) << row.key;
    EXPECT_LT(row.kept, row.range.standard) << row.key;
    EXPECT_THAT(std::string(row.key), testing::StartsWith("limits."));
  }
}

TEST(LimitTableTest, TheDocumentationHasThisTable) {
  std::stringstream text;
  text << std::ifstream(PERFD_DOCS "/limits.md").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(LimitsAsMarkdown())) << LimitsAsMarkdown();
}

// Goes to the end of a limit of 10 as whoever it names counts, and beyond: whether all of it was had, and the refusal of the next.
struct Tried {
  bool had_all = false;
  absl::Status refused;
  bool again = false;  // what was given back, or belongs to the next period, can be had
};

Tried TryMinutes(Limits& limits, const LimitRow& row) {
  const int64_t all = 10 * row.scale;
  Tried tried;
  auto first = limits.Spend(row.limit, kAlice.uid, all, 0);
  if (first.ok()) first->Use(all);
  tried.had_all = first.ok();
  tried.refused = limits.Spend(row.limit, kAlice.uid, 1, row.period_ns - 1).status();
  tried.again = limits.Spend(row.limit, kBob.uid, all, row.period_ns - 1).ok() &&
                limits.Spend(row.limit, kAlice.uid, all, row.period_ns).ok();
  return tried;
}

Tried TryAddress(Limits& limits, const LimitRow& row) {
  std::vector<Share> shares;
  for (int i = 0; i < 10; ++i) {
    auto share = limits.Acquire(row.limit, std::string("192.0.2.7"));
    if (share.ok()) shares.push_back(*std::move(share));
  }
  Tried tried{shares.size() == 10, limits.Acquire(row.limit, std::string("192.0.2.7")).status(),
              limits.Acquire(row.limit, std::string("192.0.2.8")).ok()};
  shares.pop_back();
  tried.again &= limits.Acquire(row.limit, std::string("192.0.2.7")).ok();
  return tried;
}

Tried TryAmounts(Limits& limits, const LimitRow& row) {
  const int64_t all = 10 * row.scale;
  auto held = limits.Acquire(row.limit, kAlice, all);
  Tried tried{held.ok(), limits.Acquire(row.limit, kAlice).status(),
              limits.Acquire(row.limit, kBob, all).ok()};
  held = Share();
  tried.again &= limits.Acquire(row.limit, kAlice, all).ok();
  return tried;
}

Tried TryPlaces(Limits& limits, const LimitRow& row) {
  Tried tried;
  std::vector<Share> shares = AcquireAll(limits, row.limit, kAlice, &tried.refused);
  tried.had_all = static_cast<int64_t>(shares.size()) == 10 - std::min<int64_t>(row.kept, 5);
  shares.pop_back();
  tried.again = limits.Acquire(row.limit, kAlice).ok();
  return tried;
}

// Of every limit: all of it can be had, the next is refused in words and counted, and what is given back can be had again.
TEST(LimitsTest, EachLimitToItsEndAndBeyond) {
  std::vector<Limit> elsewhere;
  for (const LimitRow& row : LimitTable()) {
    if (!row.is_counted) {
      elsewhere.push_back(row.limit);
      continue;
    }
    Limits limits(Only(10));
    const Tried tried = row.period_ns > 0               ? TryMinutes(limits, row)
                        : row.per == LimitPer::kAddress ? TryAddress(limits, row)
                        : row.scale > 1                 ? TryAmounts(limits, row)
                                                        : TryPlaces(limits, row);
    EXPECT_TRUE(tried.had_all) << row.key;
    EXPECT_TRUE(absl::IsResourceExhausted(tried.refused)) << row.key;
    EXPECT_THAT(std::string(tried.refused.message()), HasSubstr(std::string(row.key)));
    EXPECT_THAT(std::string(tried.refused.message()), HasSubstr(std::string(row.instead)));
    EXPECT_EQ(limits.Hits()[static_cast<size_t>(row.limit)], 1u) << row.key;
    EXPECT_TRUE(tried.again) << row.key;
  }
  // By the relay, by gRPC and by the store: relay_test, tls_test and agent_stream_test go to their ends. Of one profile: the next test.
  EXPECT_THAT(elsewhere, testing::ElementsAre(Limit::kCallsPerUser, Limit::kTlsMemory,
                                              Limit::kGapsPerStream, Limit::kProfileMinutes,
                                              Limit::kFrequency, Limit::kCallPathFrequency));
}

TEST(LimitsTest, OneProfileMayAskForSoMuch) {
  const Requester admin{.uid = 1003, .name = "admin", .privileged = true};
  for (const Limit limit : {Limit::kProfileMinutes, Limit::kFrequency, Limit::kCallPathFrequency}) {
    Limits limits(Only(10));
    EXPECT_TRUE(limits.CheckAsked(limit, kAlice, 10).ok());
    const absl::Status refused = limits.CheckAsked(limit, kAlice, 10.01);
    EXPECT_TRUE(absl::IsResourceExhausted(refused));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(std::string(RowOf(limit).key)));
    EXPECT_EQ(limits.Hits()[static_cast<size_t>(limit)], 1u);
    for (const Requester& who : {kRoot, admin})
      EXPECT_TRUE(limits.CheckAsked(limit, who, 1000).ok()) << who.name;
    const auto at = static_cast<size_t>(limit);
    EXPECT_TRUE(limits.UsesOf(kAlice, 0)[at].bound);
    EXPECT_FALSE(limits.UsesOf(admin, 0)[at].bound);
  }
}

// Those that bind administrators, too, are looked at by uid alone, or before anybody knows who it is.
TEST(LimitsTest, RootHasNoLimitOfItsOwn) {
  const Requester admin{.uid = 1003, .name = "admin", .privileged = true};
  std::vector<Limit> bind_admins;
  for (const LimitRow& row : LimitTable()) {
    if (row.per != LimitPer::kUser || !row.is_counted) continue;
    Limits limits(Only(1));
    const auto at = static_cast<size_t>(row.limit);
    EXPECT_FALSE(limits.UsesOf(kRoot, 0)[at].bound) << row.key;
    if (limits.UsesOf(admin, 0)[at].bound) bind_admins.push_back(row.limit);
    if (row.period_ns > 0) {
      EXPECT_TRUE(limits.Spend(row.limit, 0, 5 * row.scale, 0).ok()) << row.key;
      continue;
    }
    const auto first = limits.Acquire(row.limit, uint32_t{0}, row.scale);
    EXPECT_TRUE(limits.Acquire(row.limit, uint32_t{0}, row.scale).ok()) << row.key;
  }
  EXPECT_THAT(
      bind_admins,
      testing::ElementsAre(Limit::kConnectionsPerUser, Limit::kNewConnectionsPerUser,
                           Limit::kOpenCallsPerUser, Limit::kDoorMemory, Limit::kNodeNamesPerUser,
                           Limit::kAuditPerUser, Limit::kWindowBytesPerUser, Limit::kMemoryPerUser,
                           Limit::kFinishedBytesPerUser));
}

TEST(LimitsTest, OneUserTakesNothingFromAnother) {
  Limits limits(Only(4));
  absl::Status refused;
  const auto shares = AcquireAll(limits, Limit::kWatchesPerUser, kAlice, &refused);
  EXPECT_EQ(shares.size(), 4u);
  EXPECT_TRUE(limits.Acquire(Limit::kWatchesPerUser, kBob).ok());
  EXPECT_TRUE(limits.Acquire(Limit::kConnectionsPerUser, kAlice).ok()) << "another limit";
}

TEST(LimitsTest, PlacesAreKeptBackForAdministrators) {
  Limits limits(Only(10));
  absl::Status refused;
  const auto of_alice = AcquireAll(limits, Limit::kWatches, kAlice, &refused);
  EXPECT_FALSE(limits.Acquire(Limit::kWatches, kBob).ok());
  const auto of_root = AcquireAll(limits, Limit::kWatches, kRoot, &refused);
  EXPECT_EQ(of_alice.size() + of_root.size(), 10u) << "and no more than all of them";
  absl::Status none;
  EXPECT_GT(AcquireAll(limits, Limit::kWatchesPerUser, kRoot, &none).size(), 10u)
      << "they have no limit of their own";
}

TEST(LimitsTest, ANewValueCutsNobodyWhoHoldsMore) {
  Limits limits(Only(4));
  absl::Status refused;
  auto shares = AcquireAll(limits, Limit::kWatchesPerUser, kAlice, &refused);
  limits.Set(Only(2));
  EXPECT_FALSE(limits.Acquire(Limit::kWatchesPerUser, kAlice).ok());
  shares.pop_back();
  EXPECT_FALSE(limits.Acquire(Limit::kWatchesPerUser, kAlice).ok()) << "she still has three";
  shares.resize(1);
  EXPECT_TRUE(limits.Acquire(Limit::kWatchesPerUser, kAlice).ok());
}

TEST(LimitsTest, WhatWasThereBeforeIsCountedAndNeverRefused) {
  Limits limits(Only(1));
  std::vector<Share> shares;
  shares.reserve(3);
  for (int i = 0; i < 3; ++i) shares.push_back(limits.Hold(Limit::kProfilesPerUser, kAlice.uid));
  EXPECT_EQ(limits.Hits()[static_cast<size_t>(Limit::kProfilesPerUser)], 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(limits.Acquire(Limit::kProfilesPerUser, kAlice).status()));
  shares.clear();
  EXPECT_TRUE(limits.Acquire(Limit::kProfilesPerUser, kAlice).ok());
}

TEST(LimitsTest, EverybodySeesTheirOwnUseAndAdministratorsWhoHasMost) {
  Limits limits(Only(4));
  const auto held = AcquireSome(limits, Limit::kProfilesPerUser, {kAlice, kAlice, kBob});
  const auto paid = limits.Spend(Limit::kAuditPerUser, kAlice.uid, 3, 0);
  ASSERT_TRUE(paid.ok());
  const auto use = [&](const Requester& who, Limit limit, int64_t at_ns = 0) {
    return limits.UsesOf(who, at_ns)[static_cast<size_t>(limit)];
  };
  EXPECT_EQ(use(kAlice, Limit::kProfilesPerUser).used, 2);
  EXPECT_EQ(use(kBob, Limit::kProfilesPerUser).used, 1);
  EXPECT_TRUE(use(kBob, Limit::kProfilesPerUser).bound);
  EXPECT_TRUE(use(kBob, Limit::kProfilesPerUser).most.empty());
  EXPECT_EQ(use(kAlice, Limit::kAuditPerUser).used, 3);
  EXPECT_EQ(use(kAlice, Limit::kAuditPerUser, 60 * kNsPerSecond).used, 0) << "a new minute";
  EXPECT_EQ(use(kAlice, Limit::kTlsMemory).used, std::nullopt);
  EXPECT_EQ(use(kAlice, Limit::kConnectionsPerAddress).used, std::nullopt);
  const LimitUse of_root = use(kRoot, Limit::kProfilesPerUser);
  EXPECT_FALSE(of_root.bound);
  EXPECT_EQ(of_root.used, 0);
  EXPECT_EQ(of_root.most, (std::vector<LimitHolding>{{kAlice.uid, 2}, {kBob.uid, 1}}));
}

TEST(LimitsTest, WhatWasNotNeededComesBackInItsOwnPeriodOnly) {
  Limits limits(Only(10));
  constexpr int64_t kMinute = 60 * kNsPerSecond;
  const auto used = [&](const Requester& who, int64_t at_ns) {
    return *limits.UsesOf(who, at_ns)[static_cast<size_t>(Limit::kAuditPerUser)].used;
  };
  {
    auto payment = *limits.Spend(Limit::kAuditPerUser, kAlice.uid, 8, 0);
    EXPECT_FALSE(limits.Spend(Limit::kAuditPerUser, kAlice.uid, 3, 0).ok());
    payment.Use(2);
    Payment moved = std::move(payment);
    EXPECT_EQ(used(kAlice, 0), 8);
  }
  EXPECT_EQ(used(kAlice, 0), 2);
  auto old = *limits.Spend(Limit::kAuditPerUser, kAlice.uid, 5, 0);
  auto next = *limits.Spend(Limit::kAuditPerUser, kBob.uid, 4, kMinute);
  auto own = *limits.Spend(Limit::kAuditPerUser, kAlice.uid, 6, kMinute);
  old = Payment();
  EXPECT_EQ(used(kAlice, kMinute), 6) << "of this minute nothing comes back";
  EXPECT_EQ(used(kBob, kMinute), 4) << "nor is anybody's minute forgotten";
}

TEST(LimitsTest, AMinuteHasSoManyAndNoMore) {
  Limits limits(Only(10));
  constexpr int64_t kMinute = 60 * kNsPerSecond;
  const auto spend = [&](uint32_t uid, int64_t amount, int64_t at_ns) {
    auto payment = limits.Spend(Limit::kAuditPerUser, uid, amount, at_ns);
    if (payment.ok()) payment->Use(amount);
    return payment.ok();
  };
  EXPECT_TRUE(spend(1001, 10, 0));
  EXPECT_FALSE(spend(1001, 1, kMinute - 1));
  EXPECT_TRUE(spend(1001, 0, kMinute - 1)) << "nothing is always there";
  EXPECT_TRUE(spend(1002, 10, kMinute - 1));
  EXPECT_TRUE(spend(1001, 10, kMinute));
  EXPECT_FALSE(spend(1003, 11, 2 * kMinute)) << "more than a minute has";
  EXPECT_FALSE(spend(1003, INT64_MAX, 2 * kMinute));
}

TEST(LimitsTest, AShareThatWasMovedIsGivenBackOnce) {
  Limits limits(Only(1));
  Share share = *limits.Acquire(Limit::kWatchesPerUser, kAlice);
  Share other = std::move(share);
  share = {};
  EXPECT_FALSE(limits.Acquire(Limit::kWatchesPerUser, kAlice).ok());
  other = {};
  EXPECT_TRUE(limits.Acquire(Limit::kWatchesPerUser, kAlice).ok());
}

}  // namespace
}  // namespace perfd::daemon
