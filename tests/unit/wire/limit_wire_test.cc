#include "core/wire/site/limit_wire.h"

#include <gtest/gtest.h>

#include <functional>

namespace perfd {
namespace {

std::vector<LimitUse> Sample() {
  return {{.key = "limits.watches",
           .what = "calls of watch that stand",
           .per = LimitPer::kEveryone,
           .unit = "",
           .period_ns = 0,
           .value = 256,
           .kept = 32,
           .bound = true,
           .used = 7,
           .refusals = 3,
           .instead = "try again later",
           .most = {}},
          {.key = "limits.audit_entries_per_user",
           .what = "entries",
           .per = LimitPer::kUser,
           .unit = "MiB",
           .period_ns = 60'000'000'000,
           .value = 6000,
           .kept = 0,
           .bound = false,
           .used = std::nullopt,
           .refusals = 0,
           .instead = "wait",
           .most = {{.uid = 1001, .used = 12}, {.uid = 65534, .used = 1}}}};
}

TEST(LimitWireTest, RoundTrip) {
  const auto back = wire::FromProto(wire::ToProto(Sample()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Sample());
}

TEST(LimitWireTest, NothingOutOfRange) {
  const auto refused = [](const std::function<void(v1::LimitUse&)>& spoil) {
    v1::ListLimitsResponse response = wire::ToProto(Sample());
    spoil(*response.mutable_limits(1));
    return absl::IsInvalidArgument(wire::FromProto(response).status());
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& l) { l.clear_per(); }));
  EXPECT_TRUE(refused([](auto& l) { l.set_value(-1); }));
  EXPECT_TRUE(refused([](auto& l) { l.set_kept(6001); }));
  EXPECT_TRUE(refused([](auto& l) { l.set_used(-1); }));
  EXPECT_TRUE(refused([](auto& l) { l.set_period_ns(-1); }));
  EXPECT_TRUE(refused([](auto& l) { l.set_what(std::string(5000, 'x')); }));
  EXPECT_TRUE(refused([](auto& l) { l.mutable_most(0)->set_used(-1); }));
  EXPECT_TRUE(refused([](auto& l) {
    while (l.most_size() < 65) l.add_most();
  }));
}

}  // namespace
}  // namespace perfd
