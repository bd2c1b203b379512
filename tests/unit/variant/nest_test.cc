// What is known of a loop with loops inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/variant/flow/dataflow.h"
#include "agent/variant/recovery/trip_count.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// 0 xorps %xmm0, %xmm0; 1 addsd (%rdi,%rcx,8), %xmm0; 2 dec %rcx; 3 jnz 1; 4 movsd %xmm0, (%rsi,%rdx,8); 5 mov $4, %ecx;
// 6 dec %rdx; 7 jnz 0
constexpr char kSums[] = "0f57c0f20f5804cf48ffc975f6f20f1104d6b90400000048ffca75e4";
// 0 mov (%rdi), %rax; 1 mov (%rdi), %rbx; 2 add $8, %rdi; 3 dec %rcx; 4 jnz 1; 5 dec %rdx; 6 jnz 0
constexpr char kMoving[] = "488b07488b1f4883c70848ffc975f448ffca75ec";
// 0 mov %rbx, %rax; 1 addsd 8(%rax), %xmm1; 2 mov (%rax), %rax; 3 dec %rcx; 4 jnz 1; 5 mov $7, %ecx; 6 dec %rdx; 7 jnz 0
constexpr char kLists[] = "4889d8f20f584808488b0048ffc975f3b90700000048ffca75e6";

LoopCode Decode(absl::string_view hex) {
  absl::StatusOr<LoopCode> loop = DecodeLoop(FixtureBytes(hex));
  EXPECT_TRUE(loop.ok()) << loop.status();
  return loop.ok() ? *std::move(loop) : LoopCode();
}

template <typename Predicate>
std::vector<int> Where(const LoopCode& loop, Predicate predicate) {
  std::vector<int> found;
  for (size_t i = 0; i < loop.roles.size(); ++i)
    if (predicate(loop.roles[i])) found.push_back(static_cast<int>(i));
  return found;
}

TEST(NestTest, TheLoopInsideIsFoundWithItsBody) {
  const LoopCode loop = Decode(kSums);
  ASSERT_EQ(loop.inner.size(), 1u);
  EXPECT_EQ(loop.inner[0].header, 1u);
  EXPECT_THAT(loop.inner[0].in, ElementsAre(false, true, true, true, false, false, false, false));
  EXPECT_THAT(Decode(kSvdcmp).inner, IsEmpty());
}

TEST(NestTest, OneHeaderIsOneLoopAndOuterLoopsComeFirst) {
  // 0 inc %rax; 1 jo 1; 2 nop; 3 dec %rcx; 4 jnz 1; 5 dec %rdx; 6 jnz 0
  EXPECT_EQ(Decode("48ffc070fe9048ffc975f848ffca75f0").inner.size(), 1u);
  // 0 inc %rax; 1 nop; 2 jo 2; 3 dec %rcx; 4 jnz 1; 5 dec %rdx; 6 jnz 0
  const LoopCode three = Decode("48ffc09070fe48ffc975f848ffca75f0");
  ASSERT_EQ(three.inner.size(), 2u);
  EXPECT_EQ(three.inner[0].header, 1u);
  EXPECT_EQ(three.inner[1].header, 2u);
  EXPECT_TRUE(three.inner[0].in[2]);
  EXPECT_FALSE(three.inner[1].in[1]);
}

TEST(NestTest, WhatDecidesAnyOfTheLoopsIsControl) {
  const LoopCode loop = Decode(kSums);
  EXPECT_THAT(Where(loop, [](const Role& r) { return r.control; }), ElementsAre(2, 3, 5, 6, 7));
  EXPECT_THAT(Where(loop, [](const Role& r) { return r.reduction; }), ElementsAre(1))
      << "round the loop inside";
}

TEST(NestTest, AValueIsCarriedByTheLoopRoundWhichItGoes) {
  const LoopCode loop = Decode(kSums);
  std::vector<Effect> effects = Effects(loop);
  const CarriedUse inner{1, kVectorRegisters, 1}, outer{1, kVectorRegisters, 0};
  EXPECT_THAT(CarriedUses(loop, effects), Contains(inner));
  EXPECT_THAT(CarriedUses(loop, effects), Not(Contains(outer))) << "each sum begins with zero";
  EXPECT_THAT(AddedRecurrences(loop, effects), IsEmpty());
  effects[0] = {};
  EXPECT_THAT(AddedRecurrences(loop, effects), Contains(outer));
}

TEST(NestTest, GroupsDoNotReachAcrossAHeaderThatChangesTheAddress) {
  const LoopCode loop = Decode(kMoving);
  EXPECT_NE(loop.roles[0].group, loop.roles[1].group);
  EXPECT_EQ(loop.groups, 2);
}

TEST(NestTest, AChaseInsideStaysSinceItBeginsAnewInEachPass) {
  const LoopCode loop = Decode(kLists);
  const auto copy = MakeCopy(loop, SingleVariant(Change::kDl1), FixturePlace());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->edits.pinned, 1) << "what the chase leads to";
  EXPECT_THAT(copy->self_pointers, IsEmpty());
  EXPECT_EQ(Texts(loop, *copy)[2], "");
  EXPECT_NE(Texts(loop, *copy)[1], "");
}

TEST(NestTest, VariantsChangeTheWholeBody) {
  const auto changed = [](const char* name) {
    const LoopCode loop = Decode(kSums);
    const auto copy = MakeCopy(loop, *ParseVariantName(name), FixturePlace());
    EXPECT_TRUE(copy.ok()) << copy.status();
    std::vector<int> indices;
    const std::vector<std::string> texts = Texts(loop, *copy);
    for (size_t i = 0; i < texts.size(); ++i)
      if (!texts[i].empty()) indices.push_back(static_cast<int>(i));
    return indices;
  };
  EXPECT_THAT(changed("LS"), Contains(1));
  EXPECT_THAT(changed("DL1"), ElementsAre(1, 4));
  EXPECT_THAT(changed("NO_RED"), ElementsAre(1));
  EXPECT_THAT(changed("NO_STORE"), ElementsAre(4));
}

TEST(NestTest, NothingIsRunInPlace) {
  const auto trips = ProveEnds(Decode("48ffc048ffc975fb48ffca75f3"));
  ASSERT_FALSE(trips.ok());
  EXPECT_THAT(std::string(trips.status().message()), HasSubstr("loop inside"));
}

}  // namespace
}  // namespace perfd::agent
