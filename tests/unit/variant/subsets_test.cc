// The subsets of an instruction, as the fixtures of the thesis give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/variant/flow/dataflow.h"
#include "agent/variant/symbolic.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename Predicate>
std::vector<int> Where(const LoopCode& loop, Predicate predicate) {
  std::vector<int> found;
  for (size_t i = 0; i < loop.instructions.size(); ++i)
    if (predicate(loop.instructions[i], loop.roles[i])) found.push_back(static_cast<int>(i));
  return found;
}

std::vector<int> With(const LoopCode& loop, uint32_t traits) {
  return Where(loop, [traits](const LoopInstruction& i, const Role&) { return i.Is(traits); });
}

LoopCode Decode(absl::string_view hex) {
  absl::StatusOr<LoopCode> loop = DecodeLoop(FixtureBytes(hex));
  EXPECT_TRUE(loop.ok()) << loop.status();
  return *std::move(loop);
}

TEST(SubsetsTest, SvdcmpYieldsExactlyTheSetsOfTheThesis) {
  const LoopCode loop = Decode(kSvdcmp);
  ASSERT_EQ(loop.instructions.size(), 23u);
  EXPECT_THAT(With(loop, kLoads), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(With(loop, kStores), ElementsAre(8, 10, 14, 16));
  EXPECT_THAT(With(loop, kArithmetic), ElementsAre(2, 3, 6, 7, 9, 11, 12, 13, 15, 18, 19, 20));
  EXPECT_THAT(With(loop, kDivides), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(With(loop, kSquareRoots), IsEmpty());
  EXPECT_THAT(Where(loop, [](const LoopInstruction&, const Role& r) { return r.reduction; }),
              ElementsAre(12, 13, 19, 20));
  EXPECT_THAT(Where(loop, [](const LoopInstruction&, const Role& r) { return r.control; }),
              ElementsAre(17, 21, 22));
  EXPECT_THAT(Where(loop, [](const LoopInstruction&, const Role& r) { return r.address; }),
              ElementsAre(17));
}

TEST(SubsetsTest, AccessesWithTheSameBaseAndIndexValuesAreOneGroup) {
  const LoopCode loop = Decode(kGroups);
  EXPECT_EQ(loop.groups, 2);
  std::vector<int> groups;
  for (const Role& r : loop.roles) groups.push_back(r.group);
  EXPECT_THAT(groups, ElementsAre(0, 0, 0, 1, -1, -1, -1));
  EXPECT_EQ(Decode(kSvdcmp).groups, 1) << "an increment between accesses is followed";
}

TEST(SubsetsTest, ALoadThatDecidesTheBranchIsOnTheBlackListWithWhatFeedsIt) {
  const LoopCode loop = Decode(kWhile);
  EXPECT_THAT(Where(loop, [](const LoopInstruction&, const Role& r) { return r.control; }),
              ElementsAre(1, 2, 3));
  EXPECT_FALSE(loop.roles[0].fixed()) << "the sum decides nothing";
}

TEST(SubsetsTest, AStoreThatMayChangeTheBoundIsOnTheBlackList) {
  // cmp 8(%rbx), %rcx reads the bound; the store to (%rdi,%rcx,8) copies doubles, which might be it.
  const LoopCode loop = Decode(kBound);
  EXPECT_TRUE(loop.roles[1].control);
  EXPECT_TRUE(loop.roles[0].control) << "and what is stored";
}

TEST(SubsetsTest, FloatingPointResultsDoNotReachIntegerIndices) {
  const LoopCode loop = Decode(kIndexed);
  EXPECT_TRUE(loop.roles[0].address) << "the index load";
  EXPECT_FALSE(loop.roles[3].fixed()) << "the store of a floating-point sum";
}

TEST(SubsetsTest, RegistersLiveAtTheHeader) {
  const LoopCode loop = Decode(kTriad);
  const RegisterSet used = LiveBefore(loop, Effects(loop), 0)[loop.entry];
  for (int r : {0, 1, 2, 12, 15, kVectorRegisters}) EXPECT_NE(used & Bit(r), 0u) << r;
  EXPECT_EQ(used & Bit(kVectorRegisters + 4), 0u) << "YMM4 is loaded before it is used";
  EXPECT_EQ(used & kStatusFlags, 0u);
  EXPECT_EQ(loop.live.at_entry & kStatusFlags, 0u) << "cmp writes all flags before any exit";
}

TEST(RefusalTest, NamesTheInstructionAndTheReason) {
  struct Row {
    const char* hex;
    const char* text;
  };
  const Row rows[] = {
      {"ffe0ebfc", "indirect jump"},
      {"65488b0000000048ffc975f4", "GS"},
      {"e2fe", "short form"},
      {"c375fd", "returns inside"},
      {"0f0548ffc975f9", "kernel"},
      {"5048ffc975fa", "stack pointer"},
      {"4883c40848ffc975f7", "stack pointer"},
      {"ebfe", "no exit"},
      {"9090", "leads back"},
      {"0675fd", "no known instruction"},
      {"48ffc975fc", "middle of an instruction"},
      {"4885c0740348ffc048ffc975f848ffca75ee", "entered elsewhere"},
  };
  for (const Row& row : rows) {
    const auto loop = DecodeLoop(FixtureBytes(row.hex));
    ASSERT_FALSE(loop.ok()) << row.hex;
    EXPECT_THAT(std::string(loop.status().message()), HasSubstr(row.text)) << row.hex;
  }
}

TEST(RefusalTest, ASecondEntryFromTheRestOfTheFunction) {
  // jmp to the middle of the loop; loop: inc %rax; dec %rcx; jnz loop; ret
  LoopBytes bytes = FixtureBytes("eb0348ffc048ffc975f8c3");
  bytes.header = kFixtureAddress + 2;
  bytes.body = {{kFixtureAddress + 2, kFixtureAddress + 10}};
  const auto loop = DecodeLoop(bytes);
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(std::string(loop.status().message()), HasSubstr("second entry"));
  bytes.header = kFixtureAddress + 5;
  bytes.function[0].bytes[1] = 0x00;  // falls into the first instruction, which is not the header
  EXPECT_FALSE(DecodeLoop(bytes).ok());
}

TEST(RefusalTest, RangesOutsideTheFunctionOrOverlapping) {
  LoopBytes bytes = FixtureBytes(kTriad);
  bytes.body[0].high += 1;
  EXPECT_EQ(DecodeLoop(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  bytes = FixtureBytes(kTriad);
  bytes.body.push_back(bytes.body[0]);
  EXPECT_EQ(DecodeLoop(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  bytes.body.clear();
  EXPECT_EQ(DecodeLoop(bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd::agent
