// ToProto -> bytes -> FromProto gives back the value, for every type and many random values.
#include <gtest/gtest.h>

#include "core/wire/parts.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"
#include "tests/unit/wire/random_model.h"

namespace perfd {
namespace {

constexpr int kRounds = 300;

template <typename Message>
Message ThroughBytes(const Message& message) {
  Message parsed;
  EXPECT_TRUE(parsed.ParseFromString(message.SerializeAsString()));
  return parsed;
}

template <typename Model, typename Make>
void ExpectRoundTrips(Make make) {
  for (int round = 0; round < kRounds; ++round) {
    RandomModel random(static_cast<uint64_t>(round));
    const Model value = make(random);
    const absl::StatusOr<Model> back = wire::FromProto(ThroughBytes(wire::ToProto(value)));
    ASSERT_TRUE(back.ok()) << "seed " << round << ": " << back.status();
    ASSERT_EQ(*back, value) << "seed " << round;
  }
}

// Of an agent that does not tell, all of its time counts; nobody can have lost more to it than it used.
TEST(Overhead, LostToTheAgentIsAllOfItUnlessTold) {
  v1::Overhead overhead;
  overhead.set_agent_cpu_ns(100);
  EXPECT_EQ(wire::FromProto(overhead)->lost_to_agent_ns, 100u);
  overhead.set_lost_to_agent_ns(0);
  EXPECT_EQ(wire::FromProto(overhead)->lost_to_agent_ns, 0u);
  overhead.set_lost_to_agent_ns(101);
  EXPECT_EQ(wire::FromProto(overhead)->lost_to_agent_ns, 100u);
}

TEST(RoundTrip, ProfileSpec) {
  ExpectRoundTrips<ProfileSpec>([](RandomModel& r) { return r.Spec(); });
}
TEST(RoundTrip, Notice) {
  ExpectRoundTrips<Notice>([](RandomModel& r) { return r.News(); });
}
TEST(RoundTrip, ProfileStatus) {
  ExpectRoundTrips<ProfileStatus>([](RandomModel& r) { return r.Status(); });
}
TEST(RoundTrip, RankInfo) {
  ExpectRoundTrips<RankInfo>([](RandomModel& r) { return r.Rank(); });
}
TEST(RoundTrip, CodeLocation) {
  ExpectRoundTrips<CodeLocation>([](RandomModel& r) { return r.Location(); });
}
TEST(RoundTrip, Window) {
  ExpectRoundTrips<Window>([](RandomModel& r) { return r.OneWindow(); });
}
TEST(RoundTrip, ReportRow) {
  ExpectRoundTrips<ReportRow>([](RandomModel& r) { return r.Row(); });
}
TEST(RoundTrip, Report) {
  ExpectRoundTrips<Report>([](RandomModel& r) { return r.OneReport(); });
}

TEST(RoundTrip, LoopMeasurement) {
  ExpectRoundTrips<LoopMeasurement>([](RandomModel& r) { return r.Measurement(); });
}
TEST(RoundTrip, AuditEntry) {
  ExpectRoundTrips<AuditEntry>([](RandomModel& r) { return r.Audit(); });
}
TEST(RoundTrip, LoopVerdict) {
  ExpectRoundTrips<LoopVerdict>([](RandomModel& r) { return r.Verdict(); });
}
TEST(RoundTrip, MeasureOrder) {
  ExpectRoundTrips<MeasureOrder>([](RandomModel& r) { return r.Order(); });
}

TEST(RoundTrip, Requester) {
  RandomModel random(1);
  const Requester who = random.Who();
  EXPECT_EQ(wire::FromProto(ThroughBytes(wire::ToProto(who))), who);
}

TEST(RoundTrip, EveryNodePhase) {
  using Phase = NodeProgress::Phase;
  for (int i = 0; i <= static_cast<int>(Phase::kDisconnected); ++i) {
    const Phase phase = static_cast<Phase>(i);
    EXPECT_EQ(wire::FromProto(wire::ToProto(phase)).value(), phase);
  }
}

TEST(RoundTrip, ReaderReplies) {
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    RandomModel random(seed);
    const ModuleFacts module = random.Module();
    const CodeFacts code = random.Code();
    const auto module_back = wire::ModuleFactsFromProto(ThroughBytes(wire::ToProto(module)));
    const auto code_back = wire::CodeFactsFromProto(ThroughBytes(wire::ToProto(code)));
    ASSERT_TRUE(module_back.ok()) << module_back.status();
    ASSERT_TRUE(code_back.ok()) << code_back.status();
    EXPECT_EQ(*module_back, module);
    EXPECT_EQ(*code_back, code);
  }
}

TEST(RoundTrip, Unwinding) {
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    RandomModel random(seed);
    const auto mappings = random.Mappings();
    const StackCopy copy = random.Stack();
    const CallPath path = random.Path();
    EXPECT_EQ(wire::FromProto(ThroughBytes(wire::ToProto(mappings))).value(), mappings);
    EXPECT_EQ(wire::FromProto(ThroughBytes(wire::ToProto(copy))).value(), copy);
    EXPECT_EQ(wire::FromProto(ThroughBytes(wire::ToProto(path))).value(), path);
  }
}

TEST(RoundTrip, DefaultValuesOfWhatTheDaemonMakes) {
  EXPECT_EQ(wire::FromProto(wire::ToProto(ProfileStatus{})).value(), ProfileStatus{});
  EXPECT_EQ(wire::FromProto(wire::ToProto(Report{})).value(), Report{});
}

TEST(RoundTrip, BytesThatAreNoUtf8StillArrive) {
  RandomModel random(3);
  Window window = random.OneWindow();
  window.locations[0].function = "f\xFF\xC0\xAFg";
  const auto back = wire::FromProto(ThroughBytes(wire::ToProto(window)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->locations[0].function, "f???g");
}

}  // namespace
}  // namespace perfd
