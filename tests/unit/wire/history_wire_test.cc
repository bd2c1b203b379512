#include "core/wire/history_wire.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace perfd {
namespace {

ProgramHistory Sample() {
  HistoryLoop loop{.id = "3fa9c2d100000001",
                   .function = "f",
                   .file = "/src/a.c",
                   .first_line = 10,
                   .last_line = 20,
                   .module = "app",
                   .depth = 2,
                   .cpu = {0.5, {0.4, 0.6}},
                   .wall = HistoryShare{0.7, {0.6, 0.8}},
                   .cycles = 1000,
                   .cycles_min = 990,
                   .iterations = 128,
                   .bound = Bound::kWithinL1,
                   .sure = true,
                   .gain = {0.25, {1, 2}}};
  HistoryProfile profile{.id = "p-000042",
                         .command = "app",
                         .user = "alice",
                         .job = "4711",
                         .state = ProfileState::kPartial,
                         .started_unix_ns = 1'700'000'001'000'000'001,
                         .ranks = 8,
                         .nodes = 2,
                         .build = "abc",
                         .loops = {loop}};
  return {.command = "app", .profiles = {profile, profile}, .incomplete = "more"};
}

TEST(HistoryWireTest, RoundTrip) {
  const auto back = wire::FromProto(wire::ToProto(Sample()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Sample());
}

TEST(HistoryWireTest, NothingOutOfRange) {
  const auto refused = [](const std::function<void(v1::HistoryProfile&)>& spoil) {
    v1::HistoryResponse response = wire::ToProto(Sample());
    spoil(*response.mutable_profiles(1));
    return absl::IsInvalidArgument(wire::FromProto(response).status());
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& p) { p.set_ranks(-1); }));
  EXPECT_TRUE(refused([](auto& p) { p.set_started_unix_ns(-1); }));
  EXPECT_TRUE(refused([](auto& p) { p.clear_state(); }));
  EXPECT_TRUE(refused([](auto& p) { p.mutable_loops(0)->set_share(1.5); }));
  EXPECT_TRUE(refused([](auto& p) { p.mutable_loops(0)->set_depth(-1); }));
  EXPECT_TRUE(refused([](auto& p) { p.mutable_loops(0)->clear_bound(); }));
  EXPECT_TRUE(refused(
      [](auto& p) { p.mutable_loops(0)->set_cycles(std::numeric_limits<double>::quiet_NaN()); }));
  EXPECT_FALSE(refused([](auto& p) {
    while (p.loops_size() < static_cast<int>(kMaxHistoryLoops)) *p.add_loops() = p.loops(0);
  }));
  EXPECT_TRUE(refused([](auto& p) {
    while (p.loops_size() <= static_cast<int>(kMaxHistoryLoops)) *p.add_loops() = p.loops(0);
  }));
}

}  // namespace
}  // namespace perfd
