#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using testing::HasSubstr;

TEST(LimitsCommandTest, TextAndJson) {
  CommandRunner perfctl;
  LimitUse limit;
  limit.key = "limits.watches_per_user";
  limit.what = "calls of watch that stand";
  limit.per = LimitPer::kUser;
  limit.value = 16;
  limit.used = 2;
  perfctl.daemon.limits = {limit};
  EXPECT_EQ(perfctl.Run({"limits"}), 0) << perfctl.err;
  EXPECT_THAT(perfctl.out, HasSubstr("calls of watch that stand     2     16"));
  EXPECT_EQ(perfctl.Run({"limits", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(perfctl.out)["limits"][0]["used"], 2);
}

TEST(LimitsCommandTest, AnOlderPerfdIsToBeUpdated) {
  CommandRunner perfctl;
  perfctl.daemon.error = absl::UnimplementedError("");
  EXPECT_NE(perfctl.Run({"limits"}), 0);
  EXPECT_THAT(perfctl.err, HasSubstr("does not tell its limits yet: update it"));
}

}  // namespace
}  // namespace perfd::client
