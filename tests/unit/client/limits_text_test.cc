#include "client/render/site/limits_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LimitUse Profiles(int64_t used) {
  return {.key = "limits.profiles_per_user",
          .what = "active profiles",
          .per = LimitPer::kUser,
          .unit = "",
          .period_ns = 0,
          .value = 8,
          .kept = 0,
          .bound = true,
          .used = used,
          .refusals = 2,
          .instead = "wait for one to end",
          .most = {}};
}

LimitUse Watches() {
  return {.key = "limits.watches",
          .what = "calls of watch that stand",
          .per = LimitPer::kEveryone,
          .unit = "",
          .period_ns = 0,
          .value = 256,
          .kept = 32,
          .bound = true,
          .used = 3,
          .refusals = 0,
          .instead = "try again later",
          .most = {}};
}

TEST(LimitsTextTest, WhatIsOnesOwnThenWhatIsEveryones) {
  EXPECT_EQ(RenderLimits({Watches(), Profiles(3)}),
            "Yours\n"
            "  WHAT             USED  LIMIT  REFUSED  KEY\n"
            "  active profiles     3      8        2  limits.profiles_per_user\n"
            "Everyone's\n"
            "  WHAT                       USED               LIMIT  REFUSED  KEY\n"
            "  calls of watch that stand     3  256 (32 kept back)        0  limits.watches\n");
}

TEST(LimitsTextTest, SaysWhatToDoNearALimit) {
  EXPECT_THAT(RenderLimits({Profiles(7)}), Not(HasSubstr("wait")));
  EXPECT_THAT(RenderLimits({Profiles(8)}),
              HasSubstr("active profiles: 8 of 8: wait for one to end\n"));
  LimitUse watches = Watches();
  watches.used = 224;
  EXPECT_THAT(RenderLimits({watches}), HasSubstr("try again later")) << "the rest is kept back";
  LimitUse unbound = Profiles(20);
  unbound.bound = false;
  EXPECT_THAT(RenderLimits({unbound}), Not(HasSubstr("wait"))) << "who has no limit nears none";
  EXPECT_THAT(RenderLimits({unbound}), HasSubstr("none for you"));
}

TEST(LimitsTextTest, AdministratorsSeeWhoHasMost) {
  LimitUse limit = Profiles(0);
  limit.bound = false;
  limit.unit = "MiB";
  limit.period_ns = 60'000'000'000;
  limit.most = {{.uid = 1001, .used = 8}, {.uid = 1002, .used = 1}};
  EXPECT_THAT(RenderLimits({limit}), HasSubstr("uid 1001: 8 MiB, uid 1002: 1 MiB"));
}

TEST(LimitsTextTest, WhatIsNotCountedByUserIsNoZero) {
  LimitUse limit = Profiles(0);
  limit.used.reset();
  EXPECT_THAT(RenderLimits({limit}), HasSubstr("active profiles     -      8"));
  const auto json = nlohmann::json::parse(LimitsToJsonLine({limit, Watches()}));
  EXPECT_TRUE(json["limits"][0]["used"].is_null());
  EXPECT_EQ(json["limits"][1]["used"], 3);
  EXPECT_EQ(json["limits"][1]["per"], "everyone");
  EXPECT_EQ(json["limits"][1]["kept"], 32);
}

}  // namespace
}  // namespace perfd::client
