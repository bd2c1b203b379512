// Which instruction an address in a cache stands for, and what a rank paid.
#include "agent/shadow/rank/injected_code.h"

#include "agent/shadow/rank/copied_addresses.h"
#include "agent/shadow/rank/shadow_charges.h"
#include "core/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An accepted loop and a refused one, in one cache.
class InjectedCodeTest : public ::testing::Test {
 protected:
  InjectedCodeTest() {
    code_.injection.caches = {{0x1000, 0x2000}};
    code_.sites.resize(2);
    PatchSite& site = code_.sites[0];
    site.index = 0;
    site.loop_id = "inner";
    site.built.patch.address = 0x400000;
    site.built.trampoline = 0x1010;
    site.built.live.address_map = {{0x400000, 0x1100}, {0x400005, 0x1108}};
    site.built.installed.copies.resize(1);
    site.built.installed.copies[0].address_map = {{0x400000, 0x1200}};
    PatchSite& refused = code_.sites[1];
    refused.index = 1;
    refused.built.installed.status = absl::FailedPreconditionError("a call");
    refused.built.live.address_map = {{0x500000, 0x1800}};
  }
  InjectedCode code_;
};

TEST_F(InjectedCodeTest, AnAddressStandsForTheInstructionThatItsCopyBeganWith) {
  CopiedAddresses addresses;
  addresses.Publish(code_);
  EXPECT_EQ(addresses.Original(0x1100), 0x400000);
  EXPECT_EQ(addresses.Original(0x1107), 0x400000);
  EXPECT_EQ(addresses.Original(0x1108), 0x400005);
  EXPECT_EQ(addresses.Original(0x1204), 0x400000);
  EXPECT_EQ(addresses.Original(0x1010), 0x400000);      // the trampoline
  EXPECT_EQ(addresses.Original(0x100f), std::nullopt);  // the payload before it
}

TEST_F(InjectedCodeTest, AnAddressOutsideTheCachesIsTheRanksOwn) {
  CopiedAddresses addresses;
  EXPECT_EQ(addresses.Original(0x1100), std::nullopt);
  addresses.Publish(code_);
  EXPECT_EQ(addresses.Original(0xfff), std::nullopt);
  EXPECT_NE(addresses.Original(0x1fff), std::nullopt);
  EXPECT_EQ(addresses.Original(0x2000), std::nullopt);
  addresses.Clear();
  EXPECT_EQ(addresses.Original(0x1100), std::nullopt);
}

TEST(ShadowChargesTest, StopsAddUpAndTheLongestIsKept) {
  InjectionCost cost;
  ChargeStops({30, 70}, &cost);
  ChargeStops({50}, &cost);
  EXPECT_EQ(cost.stops, 3u);
  EXPECT_EQ(cost.stop_ns, 150);
  EXPECT_EQ(cost.longest_stop_ns, 70);
}

// A record that another thread has by now counts from zero.
TEST(ShadowChargesTest, EntriesAreThoseOfTheThreadThatHasTheRecord) {
  std::vector<ThreadRecord> before(3), after(3);
  before[0].tid = after[0].tid = 7;
  before[0].entries[1] = 10;
  after[0].entries[1] = 15;
  before[1].tid = 8;
  before[1].entries[1] = 100;
  after[1].tid = 9;
  after[1].entries[1] = 4;
  EXPECT_THAT(NewEntries(before, after, 1), ElementsAre(5, 4));
  EXPECT_THAT(NewEntries(before, after, 0), IsEmpty());
  EXPECT_EQ(MostEntries({5, 4}), 5u);
  EXPECT_EQ(MostEntries({}), 0u);
}

TEST(ShadowChargesTest, WhatASiteCountsIsChargedOnceAndWithinReason) {
  PatchSite site;
  InjectionCost cost;
  ShadowPlan plan{};
  plan.team = 1;
  plan.shadow_ns = kNsPerSecond;
  plan.gather_ns = 1000;
  Site now{};
  now.shadow_cpu_us = 500;
  now.timeouts = 2;
  ChargeSite(now, plan, &site, &cost);
  ChargeSite(now, plan, &site, &cost);
  EXPECT_EQ(cost.shadow_cpu_ns, 500'000);
  EXPECT_EQ(cost.pass_through_ns, 2000);
  now.shadow_cpu_us = ~uint64_t{0};  // foreign
  ChargeSite(now, plan, &site, &cost);
  EXPECT_EQ(cost.shadow_cpu_ns, 500'000 + 2 * kNsPerSecond);
}

}  // namespace
}  // namespace perfd::agent
