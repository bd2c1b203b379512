// What each variant makes of the fixtures, instruction by instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "agent/variant/decode.h"
#include "agent/variant/patch_plan.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Made {
  LoopCode loop;
  CodeCopy copy;
  std::vector<std::string> texts;
};

Made Make(absl::string_view hex, absl::string_view name) {
  Made made;
  made.loop = *DecodeLoop(FixtureBytes(hex));
  const auto copy = MakeCopy(made.loop, *ParseVariantName(name), FixturePlace());
  EXPECT_TRUE(copy.ok()) << name << ": " << copy.status();
  if (copy.ok()) made.copy = *copy;
  made.texts = Texts(made.loop, made.copy);
  return made;
}

std::vector<int> ChangedIndices(const Made& made) {
  std::vector<int> indices;
  for (size_t i = 0; i < made.texts.size(); ++i)
    if (!made.texts[i].empty()) indices.push_back(static_cast<int>(i));
  return indices;
}

std::vector<LoopInstruction> Decoded(const CodeCopy& copy) {
  std::vector<LoopInstruction> all;
  for (size_t at = 0; at < copy.bytes.size();) {
    const auto i = DecodeLoopInstruction(std::span(copy.bytes).subspan(at), copy.address + at);
    EXPECT_TRUE(i.has_value()) << at;
    if (!i) break;
    all.push_back(*i);
    at += i->length;
  }
  return all;
}

int CountOf(const CodeCopy& copy, uint32_t trait) {
  int count = 0;
  for (const LoopInstruction& i : Decoded(copy)) count += i.Is(trait) && !i.Is(kNopTrait) ? 1 : 0;
  return count;
}

TEST(VariantsTest, LsDeletesExactlyTheArithmetic) {
  const Made made = Make(kSvdcmp, "LS");
  EXPECT_THAT(ChangedIndices(made), ElementsAre(2, 3, 6, 7, 9, 11, 12, 13, 15, 18, 19, 20));
  for (int i : ChangedIndices(made)) EXPECT_EQ(made.texts[static_cast<size_t>(i)], "deleted");
  EXPECT_TRUE(made.copy.same_layout);
  EXPECT_EQ(made.copy.entry % 64, kFixtureAddress % 64);
  EXPECT_EQ(CountOf(made.copy, kLoads), 4);
  EXPECT_EQ(CountOf(made.copy, kStores), 4);
  EXPECT_EQ(CountOf(made.copy, kArithmetic), 0);
  EXPECT_EQ(made.copy.base.Text(), "REF");
}

TEST(VariantsTest, FpZeroesLoadsDeletesStoresAndControlsDivisions) {
  const Made made = Make(kSvdcmp, "FP");
  EXPECT_THAT(ChangedIndices(made), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 16));
  EXPECT_EQ(made.texts[0], "xorps %xmm4, %xmm4");
  EXPECT_EQ(made.texts[8], "deleted");
  EXPECT_EQ(made.texts[2], "movups %gs:0x3e00, %xmm4; divpd %gs:0x3e40, %xmm4");
  EXPECT_EQ(made.copy.base.Text(), "REF_CTL");
  EXPECT_TRUE(made.copy.flush_denormals);
  EXPECT_EQ(CountOf(made.copy, kStores), 0);
}

// A NOP takes a place in the pipeline: with one behind each zeroed register FP of loops in L1 was slower than the loop.
TEST(VariantsTest, WhatStandsForALoadIsAsLongAndOneInstruction) {
  const Made made = Make(kTriad, "FP");
  EXPECT_THAT(ChangedIndices(made), ElementsAre(0, 1, 2));
  EXPECT_EQ(made.texts[2], "deleted");
  EXPECT_TRUE(made.copy.same_layout);
  const std::vector<LoopInstruction> copied = Decoded(made.copy);
  ASSERT_GE(copied.size(), made.loop.instructions.size());
  for (size_t i = 0; i < made.loop.instructions.size(); ++i) {
    EXPECT_EQ(copied[i].length, made.loop.instructions[i].length) << i;
    EXPECT_EQ(copied[i].Is(kNopTrait), i == 2) << i;
  }
}

TEST(VariantsTest, RefCtlHoldsTheSameControlAndAllAccesses) {
  const Made made = Make(kSvdcmp, "REF_CTL");
  EXPECT_THAT(ChangedIndices(made), ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(made.texts[2], "movups %gs:0x3e00, %xmm4; divpd %gs:0x3e40, %xmm4");
  const Made vex = Make(kDivide, "REF_CTL");
  EXPECT_EQ(vex.texts[1], "vmovups %gs:0x3e00, %ymm7; vdivpd %gs:0x3e40, %ymm7, %ymm7");
  const Made fp = Make(kDivide, "FP");
  EXPECT_EQ(fp.texts[1], vex.texts[1]) << "both timed versions hold identical loads";
  EXPECT_EQ(fp.texts[0], "vxorps %xmm3, %xmm3, %xmm3");
}

TEST(VariantsTest, IdleIsWhatPricesSomethingThatTheLoopDoesNotDo) {
  const auto idle = [](const char* name) {
    return IsIdle(*ParseVariantName(name), Make(kTriad, name).copy);
  };
  EXPECT_TRUE(idle("NO_DIV"));
  EXPECT_TRUE(idle("NO_DIV+NO_RED"));
  EXPECT_FALSE(idle("NO_STORE"));
  EXPECT_FALSE(idle("LS"));
  EXPECT_FALSE(idle("REF")) << "it is meant to be the loop";
}

TEST(VariantsTest, ClassesAreDeletedAlone) {
  EXPECT_THAT(ChangedIndices(Make(kSvdcmp, "NO_DIV")), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(ChangedIndices(Make(kSvdcmp, "NO_RED")), ElementsAre(12, 13, 19, 20));
  EXPECT_THAT(ChangedIndices(Make(kSvdcmp, "NO_RED+NO_DIV")),
              ElementsAre(2, 3, 6, 7, 12, 13, 19, 20));
  EXPECT_TRUE(Make(kSvdcmp, "NO_RED+NO_DIV").copy.same_layout);
  EXPECT_THAT(ChangedIndices(Make(kSvdcmp, "NO_SQRT")), ElementsAre());
}

TEST(VariantsTest, StoresBecomeLoadsIntoADeadRegisterOrVanish) {
  const Made s2l = Make(kSvdcmp, "S2L");
  EXPECT_THAT(ChangedIndices(s2l), ElementsAre(8, 10, 14, 16));
  EXPECT_EQ(s2l.texts[8], "movups (%rax,%rcx,8), %xmm0") << "XMM0 is not used by the loop";
  EXPECT_EQ(CountOf(s2l.copy, kStores), 0);
  EXPECT_EQ(CountOf(s2l.copy, kLoads), 8);
  const Made none = Make(kSvdcmp, "NO_STORE");
  EXPECT_THAT(ChangedIndices(none), ElementsAre(8, 10, 14, 16));
  EXPECT_EQ(CountOf(none.copy, kStores), 0);
  EXPECT_EQ(CountOf(none.copy, kLoads), 4);
  EXPECT_TRUE(none.copy.same_layout);
}

TEST(VariantsTest, Dl1PinsEveryOperandToASlotOfItsOwn) {
  const Made made = Make(kSvdcmp, "DL1");
  EXPECT_EQ(made.copy.edits.pinned, 8);
  EXPECT_EQ(made.copy.edits.accesses, 8);
  std::set<uint32_t> slots, places;
  for (int i : {0, 1, 4, 5, 8, 10, 14, 16}) {
    const std::string& text = made.texts[static_cast<size_t>(i)];
    const size_t at = text.find("%gs:0x");
    ASSERT_NE(at, std::string::npos) << text;
    const auto address = static_cast<uint32_t>(std::stoul(text.substr(at + 6), nullptr, 16));
    slots.insert((address - kBlockSlots) / kSlotBytes);
    places.insert(address % 64);
  }
  EXPECT_EQ(slots.size(), 8u) << "slots are not shared";
  EXPECT_THAT(places, ElementsAre(0, 16, 32, 48)) << "three loads a cycle need different places";
  EXPECT_EQ(made.copy.base.Text(), "REF_CTL");
}

TEST(VariantsTest, Dl1SlotsOfWideOperandsStayWithinALine) {
  // vpxor (%rax), %ymm0, %ymm0; vpxor 32(%rax), %ymm1, %ymm1; vpxorq (%rbx), %zmm2, %zmm2 (twice); dec %rcx; jnz
  const Made made = Make(
      "c5fdef00c5f5ef4820"
      "62f1ed48ef13"
      "62f1ed48ef13"
      "48ffc975e6",
      "DL1");
  EXPECT_EQ(made.copy.edits.pinned, 4);
  std::vector<uint32_t> places;
  for (size_t i = 0; i < 4; ++i) {
    const size_t at = made.texts[i].find("%gs:0x");
    ASSERT_NE(at, std::string::npos) << made.texts[i];
    places.push_back(static_cast<uint32_t>(std::stoul(made.texts[i].substr(at + 6), nullptr, 16)) %
                     64);
  }
  EXPECT_THAT(places, ElementsAre(0, 32, 0, 0));
}

TEST(VariantsTest, Dl1OfAPointerChaseReadsItsOwnAddressWhenTheTripCountIsIndependent) {
  const Made made = Make(kChase, "DL1");
  EXPECT_EQ(made.copy.edits.pinned, 2);
  EXPECT_EQ(made.texts[2], "") << "the chase itself stays";
  ASSERT_EQ(made.copy.self_pointers.size(), 1u);
  EXPECT_EQ(made.copy.self_pointers[0].value, made.copy.self_pointers[0].word);
  EXPECT_NE(made.copy.entry % 64, kFixtureAddress % 64) << "the register is prepared first";
  const Made bound = Make(kWhile, "DL1");
  EXPECT_EQ(bound.copy.edits.pinned, 1) << "the chase decides the branch";
  EXPECT_EQ(bound.copy.edits.accesses, 2);
}

TEST(VariantsTest, Dl1OfAChaseByIndexReadsAZeroThatLeadsToItself) {
  const Made made = Make(kHops, "DL1");
  EXPECT_EQ(made.copy.edits.pinned, 1);
  EXPECT_EQ(made.copy.edits.accesses, 1);
  EXPECT_THAT(made.texts[1], HasSubstr("(,%rdx,8), %rdx")) << "without the base";
  EXPECT_THAT(made.texts[1], HasSubstr("%gs:"));
  EXPECT_TRUE(made.copy.self_pointers.empty()) << "slots are zero";
  EXPECT_NE(made.copy.entry % 64, kFixtureAddress % 64) << "the register is prepared first";
  // mov (%rsi,%rdx,8), %rdx; mov (%rsi,%rdx,8), %rsi; dec %rcx; jnz: both registers come from the chase.
  const Made both = Make("488b14d6488b34d648ffc975f3", "DL1");
  EXPECT_EQ(both.copy.edits.pinned, 0);
  EXPECT_EQ(both.copy.edits.accesses, 2);
  // mov (%rax), %rax; mov (%rsi,%rdx,8), %rdx; dec %rcx; jnz: one slot cannot serve both kinds.
  EXPECT_EQ(Make("488b00488b14d648ffc975f4", "DL1").copy.edits.pinned, 0);
}

TEST(VariantsTest, Dl1PinsIndexLoadsThatDecideNoBranch) {
  const Made made = Make(kIndexed, "DL1");
  EXPECT_EQ(made.copy.edits.pinned, 3);
  EXPECT_THAT(made.texts[0], HasSubstr("%gs:"));
}

TEST(VariantsTest, MixedInstructionsBecomeTheLoadOrTheOperation) {
  const Made ls = Make(kGroups, "LS");
  EXPECT_EQ(ls.texts[1], "movss 0xc(%rdi,%r8,4), %xmm0");
  const Made fp = Make(kGroups, "FP");
  EXPECT_EQ(fp.texts[1], "addss %xmm0, %xmm0") << "two operands: the destination";
  const Made fma = Make(kTriad, "FP");
  EXPECT_EQ(fma.texts[1], "vfmadd213pd %ymm0, %ymm0, %ymm4") << "three: the other source";
  const Made load = Make(kTriad, "LS");
  EXPECT_EQ(load.texts[1], "vmovupd (%rcx,%r15,8), %ymm4");
  EXPECT_EQ(CountOf(load.copy, kLoads), 2);
}

TEST(VariantsTest, MergingLoadsAddNoDependenceOnTheirDestination) {
  const Made made = Make(kMerge, "FP");
  EXPECT_EQ(made.texts[1], "vxorps %xmm2, %xmm2, %xmm2");
  EXPECT_EQ(made.texts[4], "vmulsd %xmm3, %xmm3, %xmm2") << "never the destination";
}

TEST(VariantsTest, ADeletedWriterClearsItsRegisterWhereAReaderWouldWaitForTheIterationBefore) {
  // Without the product the first store would wait for the load of the iteration before.
  const Made made = Make(kReuse, "LS");
  EXPECT_EQ(made.texts[0], "vxorps %xmm2, %xmm2, %xmm2");
  EXPECT_TRUE(made.copy.same_layout);
}

TEST(VariantsTest, GroupDeletesOneArray) {
  const Made first = Make(kGroups, "GROUP(0)");
  EXPECT_THAT(ChangedIndices(first), ElementsAre(0, 1, 2));
  const Made second = Make(kGroups, "GROUP(1)");
  EXPECT_THAT(ChangedIndices(second), ElementsAre(3));
  const auto loop = DecodeLoop(FixtureBytes(kGroups));
  const auto third = MakeCopy(*loop, *ParseVariantName("GROUP(2)"), FixturePlace());
  EXPECT_EQ(third.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VariantsTest, PrefetchDosesByShare) {
  EXPECT_EQ(CountOf(Make(kSvdcmp, "PREFETCH(50)").copy, kPrefetches), 4);
  EXPECT_EQ(CountOf(Make(kSvdcmp, "PREFETCH(25)").copy, kPrefetches), 2);
  EXPECT_EQ(CountOf(Make(kSvdcmp, "PREFETCH(100)").copy, kPrefetches), 8);
  EXPECT_EQ(CountOf(Make(kSvdcmp, "PREFETCH(1)").copy, kPrefetches), 0);
}

TEST(VariantsTest, ControlKeepsTheCounterOnly) {
  const Made made = Make(kSvdcmp, "CTRL");
  EXPECT_EQ(ChangedIndices(made).size(), 20u);
  EXPECT_EQ(CountOf(made.copy, kLoads | kStores | kArithmetic), 0);
  EXPECT_TRUE(made.copy.same_layout);
}

TEST(VariantsTest, CallsAreDeletedOrRefused) {
  // movsd (%rbx,%rbp,8), %xmm0; call; inc %rbp; cmp %r12, %rbp; jb loop
  const LoopCode loop = *DecodeLoop(FixtureBytes("f20f1004ebe80010000048ffc54c39e572ee"));
  ASSERT_EQ(loop.calls.size(), 1u);
  const auto ref = MakeCopy(loop, SingleVariant(Change::kRef), FixturePlace());
  EXPECT_THAT(std::string(ref.status().message()), HasSubstr("calls 0x40201a"));
  const auto without = MakeCopy(loop, SingleVariant(Change::kNoCall), FixturePlace());
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(Texts(loop, *without)[1], "deleted");
  // call; dec %rcx; jnz loop: the callee may change RCX, so it decides the branch.
  const LoopCode bound = *DecodeLoop(FixtureBytes("e80010000048ffc975f6"));
  const auto refused = MakeCopy(bound, SingleVariant(Change::kNoCall), FixturePlace());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("decides"));
}

TEST(VariantsTest, LockedInstructionsAreRefusedByVariantsThatTouchThem) {
  const LoopCode loop = *DecodeLoop(FixtureBytes("f048010348ffc975f7"));  // lock add %rax, (%rbx)
  for (const char* name : {"FP", "DL1", "S2L", "NO_STORE", "GROUP(0)", "CTRL"}) {
    const auto copy = MakeCopy(loop, *ParseVariantName(name), FixturePlace());
    EXPECT_THAT(std::string(copy.status().message()), HasSubstr("locked")) << name;
  }
  for (const char* name : {"REF", "LS", "NO_DIV", "COUNT", "TRACE"})
    EXPECT_TRUE(MakeCopy(loop, *ParseVariantName(name), FixturePlace()).ok()) << name;
}

TEST(VariantsTest, ATracedVariantTracesWhatItStillAccesses) {
  const auto loop = DecodeLoop(FixtureBytes(kTriad));
  const auto traced = [&](Change change) {
    const auto copy = MakeCopy(*loop, {{{Change::kTrace}, {change}}}, FixturePlace());
    EXPECT_TRUE(copy.ok()) << copy.status();
    std::vector<bool> each;
    for (const Reference& reference : copy->references) each.push_back(reference.traced);
    return each;
  };
  const std::vector<bool> all = traced(Change::kRef);
  EXPECT_EQ(std::count(all.begin(), all.end(), true), static_cast<std::ptrdiff_t>(all.size()));
  EXPECT_EQ(traced(Change::kLs), all);
  EXPECT_EQ(traced(Change::kS2l), all);
  const std::vector<bool> none(all.size(), false);
  EXPECT_EQ(traced(Change::kFp), none);
  EXPECT_EQ(traced(Change::kDl1), none) << "pinned ones have no address of the program";
}

TEST(VariantsTest, ExitsFartherThanTwoGibibytesAreRefused) {
  const auto loop = DecodeLoop(FixtureBytes(kTriad));
  CopyTarget target = FixturePlace();
  target.exit_stub = target.address + (uint64_t{1} << 31) - 4096;
  EXPECT_TRUE(MakeCopy(*loop, SingleVariant(Change::kRef), target).ok());
  target.exit_stub = target.address + (uint64_t{1} << 31) + 4096;
  EXPECT_EQ(MakeCopy(*loop, SingleVariant(Change::kRef), target).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(VariantsTest, CopiesFitTheirBound) {
  for (const char* hex : {kSvdcmp, kGroups, kDivide, kMerge, kChase, kIndexed, kTriad}) {
    for (const char* name : {"REF", "TRACE", "FP", "DL1", "S2L", "PREFETCH(100)", "REF_CTL"}) {
      const Made made = Make(hex, name);
      EXPECT_LE(made.copy.address - FixturePlace().address + made.copy.bytes.size(),
                CopyBound(made.loop, *ParseVariantName(name)));
    }
  }
}

TEST(PatchPlanTest, CoversFiveBytesAndKeepsThem) {
  const auto loop = DecodeLoop(FixtureBytes(kSvdcmp));
  const auto plan = PlanPatch(*loop);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->covered.size(), 2u);
  EXPECT_EQ(plan->covered_end, kFixtureAddress + 9);
  EXPECT_THAT(plan->original, ElementsAre(0x0f, 0x28, 0x24, 0xc8, 0x0f));
  const auto jump = plan->Jump(kFixtureAddress + 5 + 0x1234);
  ASSERT_TRUE(jump.ok());
  EXPECT_THAT(*jump, ElementsAre(0xe9, 0x34, 0x12, 0, 0));
  EXPECT_TRUE(plan->Jump(kFixtureAddress + 5 + 0x7fffffff).ok());
  EXPECT_FALSE(plan->Jump(kFixtureAddress + 5 + 0x80000000).ok());
}

TEST(PatchPlanTest, RefusesShortLoopsAndTargetsUnderTheJump) {
  const auto brief = DecodeLoop(FixtureBytes("ffc975fc"));  // dec %ecx; jnz
  ASSERT_TRUE(brief.ok()) << brief.status();
  EXPECT_THAT(std::string(PlanPatch(*brief).status().message()), HasSubstr("five"));
  // inc %eax; jz +0 to the next instruction, which lies under the jump.
  const auto inside = DecodeLoop(FixtureBytes("ffc07400ffc1ffca75f6"));
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_THAT(std::string(PlanPatch(*inside).status().message()), HasSubstr("leads into"));
}

TEST(PatchPlanTest, RefusesLoopsThatLeaveForTheColdPartOfTheirFunction) {
  // inc %rax; jz far away; dec %rcx; jnz loop
  const auto loop = DecodeLoop(FixtureBytes("48ffc00f840010000048ffc975f2"));
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_THAT(std::string(PlanPatch(*loop).status().message()), HasSubstr("come back"));
  // lea 0x10000(%rax), %rax covers the jump alone: nothing can come back under it.
  const auto covered = DecodeLoop(FixtureBytes("488d80000001000f840010000048ffc975ee"));
  ASSERT_TRUE(covered.ok()) << covered.status();
  EXPECT_TRUE(PlanPatch(*covered).ok());
}

}  // namespace
}  // namespace perfd::agent
