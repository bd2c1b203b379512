#include "agent/binary/flow/jump_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kTable = 0x2000;
constexpr uint64_t kLow = 0x1000;
constexpr uint64_t kCold = 0x8000;  // a second part of the function

class JumpTableTest : public ::testing::Test {
 protected:
  template <typename T>
  void Append(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    memory_.insert(memory_.end(), bytes, bytes + sizeof value);
  }
  void AppendOffset(uint64_t target) { Append(static_cast<int32_t>(target - kTable)); }

  std::vector<uint64_t> Find(std::vector<Instruction> path) {
    ReadMemory read = [this](uint64_t address, size_t size) -> std::span<const std::byte> {
      if (address < kTable || address - kTable + size > memory_.size()) return {};
      return std::span(memory_).subspan(address - kTable, size);
    };
    const std::vector<std::byte> code(0x100);
    const PartMap function({{kLow, code}, {kCold, code}}, SIZE_MAX);
    return FindJumpTable(path, {&function, &read});
  }

  static Instruction Jump() { return {.flow = Flow::kIndirectJump}; }
  static Instruction Lea() { return {.reference = kTable, .clue = Clue::kTableAddress}; }
  static Instruction Above() { return {.flow = Flow::kConditional, .clue = Clue::kAbove}; }
  static Instruction Compare(uint64_t limit) {
    return {.immediate = limit, .clue = Clue::kCompare};
  }

  std::vector<std::byte> memory_;
};

TEST_F(JumpTableTest, ReadsExactlyAsManyEntriesAsTheBoundAllows) {
  for (const uint64_t target : {0x1030ul, 0x1010ul, 0x1030ul, 0x1020ul}) AppendOffset(target);
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(2)}), ElementsAre(0x1010, 0x1030));
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(3)}), ElementsAre(0x1010, 0x1020, 0x1030));
  const Instruction not_below{.flow = Flow::kConditional, .clue = Clue::kAboveOrEqual};
  EXPECT_THAT(Find({Jump(), Lea(), not_below, Compare(3)}), ElementsAre(0x1010, 0x1030));
  EXPECT_THAT(Find({Jump(), Lea(), {.immediate = 1, .clue = Clue::kMask}}),
              ElementsAre(0x1010, 0x1030));
}

TEST_F(JumpTableTest, RefusesTableThatEndsBeforeItsBound) {
  AppendOffset(0x1010);
  AppendOffset(0x1020);
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(2)}), IsEmpty());
}

TEST_F(JumpTableTest, EntriesOutsideTheFunctionAreExits) {
  AppendOffset(0x1010);
  AppendOffset(0x1100);  // one past the end
  AppendOffset(0x10FF);
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(2)}), ElementsAre(0x1010, 0x10FF));
}

TEST_F(JumpTableTest, WithoutBoundStopsAtTheFirstEntryThatLeaves) {
  AppendOffset(0x1010);
  AppendOffset(0x1020);
  AppendOffset(0x9000);
  AppendOffset(0x1030);
  EXPECT_THAT(Find({Jump(), Lea()}), ElementsAre(0x1010, 0x1020));
}

TEST_F(JumpTableTest, AbsoluteEntries) {
  Append(uint64_t{0x1010});
  Append(uint64_t{0x1044});
  const Instruction jump{
      .reference = kTable, .flow = Flow::kIndirectJump, .clue = Clue::kAbsoluteTable};
  EXPECT_THAT(Find({jump, Above(), Compare(1)}), ElementsAre(0x1010, 0x1044));
}

TEST_F(JumpTableTest, HugeBoundIsRefused) {
  AppendOffset(0x1010);
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(kMaxTableEntries)}), IsEmpty());
  EXPECT_THAT(Find({Jump(), Lea(), Above(), Compare(UINT64_MAX)}), IsEmpty());
}

TEST_F(JumpTableTest, NothingWithoutClues) {
  EXPECT_THAT(Find({}), IsEmpty());
  EXPECT_THAT(Find({Jump()}), IsEmpty());
  EXPECT_THAT(Find({Lea(), Above(), Compare(1)}), IsEmpty());
}

}  // namespace
}  // namespace perfd::agent
