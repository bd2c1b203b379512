#include "agent/experiment/lease_gate.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kJob = 1'700'000'000 * kNsPerSecond;

MeasureOrder Leased(int32_t nodes = 4) {
  MeasureOrder order;
  order.profile_id = "p1";
  order.lease = PauseLease{.period_ns = 250 * kNsPerMs,
                           .window_ns = 200 * kNsPerMs,
                           .nodes = nodes,
                           .clock = {1000 * kNsPerSecond, kJob, 0}};
  return order;
}

std::optional<int64_t> EveryMs(size_t) {
  return kNsPerMs;
}

TEST(LeaseGate, WithoutALeaseNothingIsGated) {
  const LeaseGate gate({}, nullptr);
  EXPECT_FALSE(gate.active());
  EXPECT_EQ(gate.Charge(), 1);
  EXPECT_EQ(gate.OutsideCharge(), 1);
  EXPECT_FALSE(gate.NextTurn(0, 3, EveryMs).has_value());
}

TEST(LeaseGate, TheNextWindowBeginsWhenThereIsTimeToGetReady) {
  const LeaseGate gate(Leased(), nullptr);
  for (int64_t after = 0; after < 500 * kNsPerMs; after += 7'777'777) {
    const int64_t now = 1000 * kNsPerSecond + after;
    const LeaseTurn turn = *gate.NextTurn(now, 3, EveryMs);
    EXPECT_GE(turn.slot.begin_ns, now + LeaseGate::kReadyNs);
    EXPECT_LE(turn.slot.begin_ns, now + LeaseGate::kReadyNs + 250 * kNsPerMs);
    const int64_t job = kJob + turn.slot.begin_ns - 1000 * kNsPerSecond;
    EXPECT_EQ(job % (250 * kNsPerMs), 0);
    EXPECT_EQ(turn.slot.generation, static_cast<uint64_t>(job / (250 * kNsPerMs)));
    EXPECT_EQ(turn.slot.end_ns, turn.slot.begin_ns + 200 * kNsPerMs - LeaseGate::kDisarmNs);
  }
}

TEST(LeaseGate, RareLoopsGetLongWindows) {
  const LeaseGate gate(Leased(), nullptr);
  const auto rare = [](size_t loop) -> std::optional<int64_t> {
    if (loop == 0) return std::nullopt;
    return 100 * kNsPerMs;  // 16 entries take 1.6 s: eight periods
  };
  const LeaseTurn turn = *gate.NextTurn(1000 * kNsPerSecond, 2, rare);
  EXPECT_EQ(turn.loop, 1u);
  EXPECT_EQ(turn.slot.generation % 8, 0u);
  EXPECT_EQ(turn.slot.end_ns - turn.slot.begin_ns, 1950 * kNsPerMs - LeaseGate::kDisarmNs);
}

TEST(LeaseGate, NothingIsArmedByAClockThatIsNotTrusted) {
  LeaseTable lease_table;
  MeasureOrder order = Leased();
  order.lease->clock.error_ns = kMostClockErrorNs + 1;
  const LeaseGate gate(order, &lease_table);
  EXPECT_FALSE(gate.NextTurn(1000 * kNsPerSecond, 3, EveryMs).has_value());
  // Until it has been read again.
  lease_table.SetClock({1001 * kNsPerSecond, kJob + kNsPerSecond, 1000});
  EXPECT_TRUE(gate.NextTurn(1001 * kNsPerSecond, 3, EveryMs).has_value());
  // It goes off by 100 us a second.
  EXPECT_FALSE(gate.NextTurn(1022 * kNsPerSecond, 3, EveryMs).has_value());
}

TEST(LeaseGate, AnOlderReadingDoesNotReplaceThatOfTheOrder) {
  LeaseTable lease_table;
  lease_table.SetClock({900 * kNsPerSecond, 1, 0});  // of a daemon before this one
  const LeaseGate gate(Leased(), &lease_table);
  EXPECT_EQ(gate.NextTurn(1000 * kNsPerSecond, 1, EveryMs)->slot.clock, Leased().lease->clock);
}

TEST(LeaseGate, ChargesAreWhatIsToldWithinReason) {
  LeaseTable lease_table;
  const LeaseGate gate(Leased(4), &lease_table);
  EXPECT_EQ(gate.Charge(), 2) << "nobody knows yet";
  EXPECT_EQ(gate.OutsideCharge(), 4);
  lease_table.SetCharge("another", 3);
  EXPECT_EQ(gate.Charge(), 2);
  lease_table.SetCharge("p1", 1.25);
  EXPECT_EQ(gate.Charge(), 1.25);
  lease_table.SetCharge("p1", 99);
  EXPECT_EQ(gate.Charge(), 4);
  lease_table.SetCharge("p1", 0.1);
  EXPECT_EQ(gate.Charge(), 1);
}

TEST(LeaseTable, IsBounded) {
  LeaseTable lease_table;
  for (size_t i = 0; i <= LeaseTable::kMostProfiles; ++i)
    lease_table.SetCharge(std::to_string(i), 2);
  EXPECT_EQ(lease_table.charge("0"), 0);
  EXPECT_EQ(lease_table.charge("1"), 2);
}

TEST(LeaseGate, RecordsWhatBeganInItsWindow) {
  const LeaseGate gate(Leased(), nullptr);
  const LeaseSlot slot = gate.NextTurn(1000 * kNsPerSecond, 1, EveryMs)->slot;
  const int64_t begin = slot.begin_ns;
  const auto pause = LeaseGate::Record(slot, begin + 5 * kNsPerMs, begin + 25 * kNsPerMs);
  ASSERT_TRUE(pause.has_value());
  EXPECT_EQ(pause->generation, slot.generation);
  EXPECT_EQ(pause->begin_ns, 5 * kNsPerMs);
  EXPECT_EQ(pause->pause_ns, 20 * kNsPerMs);
  EXPECT_GT(pause->error_ns, 0);
  const int64_t last = begin + 200 * kNsPerMs;
  EXPECT_TRUE(LeaseGate::Record(slot, last, last + 700 * kNsPerMs).has_value());
  EXPECT_FALSE(LeaseGate::Record(slot, last + 1, last + 700 * kNsPerMs).has_value());
  EXPECT_FALSE(LeaseGate::Record(slot, begin - 1, begin + 1).has_value());
}

TEST(KeepWithin, LetsAsManyEntriesPassAsFitIntoHalfAWindow) {
  LeaseSlot slot;
  slot.generation = 9;
  slot.begin_ns = 100;
  slot.end_ns = 300;
  StepRoom room;
  room.timeout_ns = 1000;
  KeepWithin(slot, 10, room);
  EXPECT_EQ(room.arm_from_ns, 100);
  EXPECT_EQ(room.arm_until_ns, 300);
  EXPECT_EQ(room.timeout_ns, 200);
  EXPECT_EQ(room.generation, 9u);
  EXPECT_EQ(room.most_countdown, 10);
  StepRoom often, rarely;
  KeepWithin(slot, 0, often);
  EXPECT_EQ(often.most_countdown, 29);
  KeepWithin(slot, 1000, rarely);
  EXPECT_EQ(rarely.most_countdown, 1);
}

}  // namespace
}  // namespace perfd::agent
