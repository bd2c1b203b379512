#include "core/perfdata/records/event_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/perfdata/record_builder.h"

namespace perfd {
namespace {

constexpr uint64_t kBase = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;

IdentifiedEvent Event(uint64_t sample_type, std::vector<uint64_t> ids) {
  return {{.sample_type = sample_type}, std::move(ids)};
}

TEST(EventSet, SamplesAreOfTheEventThatTheyName) {
  absl::StatusOr<EventSet> set = EventSet::Create(
      {Event(kBase | PERF_SAMPLE_IDENTIFIER, {7, 8}),
       Event(kBase | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC, {9})});
  ASSERT_TRUE(set.ok()) << set.status();
  const auto plain =
      RecordBuilder(PERF_RECORD_SAMPLE, 0).U64(8).U64(0x401000).U32(1).U32(2).U64(55).Build();
  const auto access = RecordBuilder(PERF_RECORD_SAMPLE, 0)
                          .U64(9)
                          .U64(0x401000)
                          .U32(1)
                          .U32(2)
                          .U64(56)
                          .U64(0xbeef)
                          .U64(0x68100142)
                          .Build();
  const EventSet::Decoded first = set->Decode(plain);
  EXPECT_EQ(first.event, 0u);
  ASSERT_TRUE(std::holds_alternative<Sample>(first.record));
  EXPECT_FALSE(std::get<Sample>(first.record).access.has_value());
  const EventSet::Decoded second = set->Decode(access);
  EXPECT_EQ(second.event, 1u);
  ASSERT_TRUE(std::holds_alternative<Sample>(second.record));
  EXPECT_EQ(std::get<Sample>(second.record).access->address, RuntimeAddress(0xbeef));
  EXPECT_EQ(set->TimeOf(access), 56u);
  const auto stranger =
      RecordBuilder(PERF_RECORD_SAMPLE, 0).U64(10).U64(0x401000).U32(1).U32(2).U64(55).Build();
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(set->Decode(stranger).record));
}

TEST(EventSet, OthersAreOfTheEventInTheirTrailer) {
  absl::StatusOr<EventSet> set =
      EventSet::Create({Event(kBase | PERF_SAMPLE_ID | PERF_SAMPLE_CPU, {7}),
                        Event(kBase | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD, {9})});
  ASSERT_TRUE(set.ok()) << set.status();
  const auto exited = [](uint64_t id) {
    return RecordBuilder(PERF_RECORD_EXIT, 0)
        .U32(1)
        .U32(1)
        .U32(2)
        .U32(1)
        .U64(9)
        .U32(1)
        .U32(2)
        .U64(77)
        .U64(id)
        .U32(3)
        .U32(0)
        .Build();
  };
  EXPECT_EQ(set->Decode(exited(9)).event, 1u);
  EXPECT_EQ(set->Decode(exited(0)).event, 0u) << "perf makes some of its own, with no identifier";
  EXPECT_EQ(std::get<TaskEvent>(set->Decode(exited(9)).record).time_ns, 77u);
}

TEST(EventSet, OneEventNeedsNoIdentifier) {
  absl::StatusOr<EventSet> set = EventSet::Create({Event(kBase, {})});
  ASSERT_TRUE(set.ok());
  const auto bytes =
      RecordBuilder(PERF_RECORD_SAMPLE, 0).U64(0x401000).U32(1).U32(2).U64(55).Build();
  EXPECT_TRUE(std::holds_alternative<Sample>(set->Decode(bytes).record));
}

TEST(EventSet, WhatCannotBeToldApartIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(EventSet::Create({}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(EventSet::Create({Event(kBase, {1}), Event(kBase, {2})}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      EventSet::Create({Event(kBase | PERF_SAMPLE_ID, {1}),
                        Event(kBase | PERF_SAMPLE_ID | PERF_SAMPLE_ADDR, {2})})
          .status()))
      << "the identifiers stand at different places";
  EXPECT_TRUE(absl::IsInvalidArgument(EventSet::Create({Event(kBase | PERF_SAMPLE_IDENTIFIER, {1}),
                                                        Event(kBase | PERF_SAMPLE_IDENTIFIER, {1})})
                                          .status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(EventSet::Create({Event(kBase | uint64_t{1} << 40, {})}).status()));
}

}  // namespace
}  // namespace perfd
