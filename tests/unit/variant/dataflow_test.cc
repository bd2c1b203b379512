// Liveness, reaching definitions, and the check that a change adds no recurrence.
#include "agent/variant/flow/dataflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/algorithm/container.h"
#include "agent/variant/decode.h"
#include "agent/variant/roles.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LoopInstruction Decode(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  const std::vector<uint8_t> code(bytes.begin(), bytes.end());
  return *DecodeLoopInstruction(code, 0x1000);
}

TEST(DataflowTest, CarriedUsesAreTheAccumulatorsAndTheCounter) {
  const LoopCode loop = *DecodeLoop(FixtureBytes(kSvdcmp));
  std::vector<CarriedUse> vectors;
  for (const CarriedUse& use : CarriedUses(loop, Effects(loop)))
    if (use.number >= kVectorRegisters) vectors.push_back(use);
  EXPECT_THAT(vectors, ElementsAre(CarriedUse{12, kVectorRegisters + 3},
                                   CarriedUse{13, kVectorRegisters + 2}));
}

TEST(DataflowTest, TheNaiveFormOfAMergingLoadAddsARecurrence) {
  // Table 6.1: the load of instruction 1 as vxorps %xmm2,%xmm6,%xmm2 (V1) and as vxorps %xmm6,%xmm6,%xmm2 (V2).
  const LoopCode loop = *DecodeLoop(FixtureBytes(kMerge));
  std::vector<Effect> effects = Effects(loop);
  effects[1] = EffectOf(Decode("c5c857d2"));
  EXPECT_THAT(AddedRecurrences(loop, effects), ElementsAre(CarriedUse{1, kVectorRegisters + 2}));
  effects[1] = EffectOf(Decode("c5c857d6"));
  EXPECT_THAT(AddedRecurrences(loop, effects), IsEmpty());
}

TEST(DataflowTest, LivenessStopsAtWholeWritesOnly) {
  const LoopCode loop = *DecodeLoop(FixtureBytes(kTriad));
  const std::vector<RegisterSet> inside = LiveBefore(loop, Effects(loop), 0);
  EXPECT_EQ(inside[0] & Bit(kVectorRegisters + 4), 0u);
  EXPECT_NE(inside[1] & Bit(kVectorRegisters + 4), 0u);
  EXPECT_NE(inside[4] & Bit(12), 0u) << "R12 is compared";
  EXPECT_EQ(inside[5] & kStatusFlags, Bit(kCarryFlag)) << "jb reads CF only";
  const std::vector<RegisterSet> all = LiveBefore(loop, Effects(loop), ~RegisterSet{0});
  EXPECT_NE(all[0] & Bit(11), 0u) << "R11 may be needed behind the exit";
}

TEST(DataflowTest, DefinitionsReachRoundTheBackEdge) {
  const LoopCode loop = *DecodeLoop(FixtureBytes(kSvdcmp));
  const std::vector<Effect> effects = Effects(loop);
  const Definitions definitions(loop, effects);
  const auto sum = definitions.Of(12, kVectorRegisters + 3);
  EXPECT_THAT(sum.from, ElementsAre(19));
  EXPECT_TRUE(sum.from_outside);
  const auto divided = definitions.Of(8, kVectorRegisters + 4);
  EXPECT_THAT(divided.from, ElementsAre(2));
  EXPECT_FALSE(divided.from_outside);
}

// By walking back from each use, one register at a time.
Definitions::Reach WalkedBack(const LoopCode& loop, const std::vector<Effect>& effects, uint32_t at,
                              int number) {
  Definitions::Reach reach;
  std::vector<bool> seen(effects.size());
  std::vector<uint32_t> work = {at};
  while (!work.empty()) {
    const uint32_t here = work.back();
    work.pop_back();
    reach.from_outside = reach.from_outside || here == loop.entry;
    for (uint32_t before = 0; before < effects.size(); ++before) {
      const bool leads_here = absl::c_linear_search(loop.next[before], here);
      if (!leads_here || seen[before]) continue;
      seen[before] = true;
      if ((effects[before].writes & Bit(number)) != 0) reach.from.push_back(before);
      if ((effects[before].kills & Bit(number)) == 0) work.push_back(before);
    }
  }
  absl::c_sort(reach.from);
  return reach;
}

TEST(DataflowTest, DefinitionsAreThoseThatAWalkBackFinds) {
  constexpr int kRegisters = 5;
  std::mt19937 random(20251126);
  const auto below = [&random](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  const auto half = [&random] { return RegisterSet{random()} << 32 | random(); };
  int from_two = 0, from_outside = 0;
  for (int graph = 0; graph < 2000; ++graph) {
    const uint32_t count = 1 + below(24);
    LoopCode loop;
    loop.entry = below(count);
    loop.next.resize(count);
    loop.exits.resize(count);
    std::vector<Effect> effects(count);
    const int low = static_cast<int>(below(60));
    for (uint32_t at = 0; at < count; ++at) {
      loop.next[at] = {(at + 1) % count};
      if (below(4) == 0) loop.next[at].push_back(below(count));
      const RegisterSet writes = RegisterSet{below(32) & below(32)} << low;
      effects[at] = {RegisterSet{below(32)} << low, writes, writes & half()};
    }
    const Definitions definitions(loop, effects);
    for (uint32_t at = 0; at < count; ++at) {
      for (int number = low; number < low + kRegisters; ++number) {
        const Definitions::Reach& found = definitions.Of(at, number);
        if ((effects[at].reads & Bit(number)) == 0) {
          EXPECT_TRUE(found.from.empty() && !found.from_outside);
          continue;
        }
        const Definitions::Reach expected = WalkedBack(loop, effects, at, number);
        ASSERT_EQ(found.from, expected.from) << "graph " << graph << ", use at " << at;
        ASSERT_EQ(found.from_outside, expected.from_outside) << "graph " << graph;
        from_two += found.from.size() > 1 ? 1 : 0;
        from_outside += found.from_outside ? 1 : 0;
      }
    }
  }
  EXPECT_GT(from_two, 1000);
  EXPECT_GT(from_outside, 1000);
}

// Uses are looked up by what an instruction reads; what addresses are made of is asked for too.
TEST(DataflowTest, AddressesAreMadeOfWhatIsRead) {
  for (const char* hex : {kSvdcmp, kGroups, kDivide, kMerge, kChase, kHops, kWhile, kIndexed}) {
    const LoopCode loop = *DecodeLoop(FixtureBytes(hex));
    for (const LoopInstruction& i : loop.instructions)
      EXPECT_EQ(i.address_reads & ~i.reads, 0u) << hex << ": " << i.mnemonic;
  }
}

TEST(DecodeTest, RegistersReadAndWritten) {
  struct Row {
    const char* hex;
    RegisterSet reads;
    RegisterSet writes;
    RegisterSet kills;
  };
  const RegisterSet v = Bit(kVectorRegisters);
  const RegisterSet kCarry = Bit(kCarryFlag), kAdjust = Bit(kCarryFlag + 2);
  const RegisterSet kZero = Bit(kCarryFlag + 3), kOverflow = Bit(kCarryFlag + 5);
  const Row rows[] = {
      {"31c0", 0, 1 | kStatusFlags, 1 | kStatusFlags},  // xor %eax,%eax
      {"88d8", 1 | 8, 1, 0},                            // mov %bl,%al keeps the rest
      {"480f44c3", 1 | 8 | Bit(kCarryFlag + 3), 1, 0},  // cmove %rbx,%rax
      {"c5f857c0", 0, v, v},                            // vxorps, zero idiom
      {"f20f2ac0", 1 | v, v, 0},                        // cvtsi2sd merges
      {"f20f100b", 8, v << 1, v << 1},                  // movsd load clears the rest
      {"f20f10ca", (v << 2) | (v << 1), v << 1, 0},     // movsd register merges
      {"62f1f54958c2", (v << 1) | (v << 2) | v | Bit(kMaskRegisters + 1), v, 0},  // merge mask
      {"62f1f54858c2", (v << 1) | (v << 2), v, v},                                // no mask
      {"48d3e0", 1 | 2, 1 | kStatusFlags, 1},  // shl %cl: flags perhaps
      // What is undefined may stay as it was: ZF, SF and PF of imul %ebx,%eax do on AMD.
      {"0fafc3", 1 | 8, 1 | kStatusFlags, 1 | kCarry | kAdjust | kOverflow},
      {"0fbcc3", 1 | 8, 1 | kStatusFlags, kZero | kAdjust},  // bsf %ebx,%eax keeps EAX for zero
  };
  for (const Row& row : rows) {
    const LoopInstruction i = Decode(row.hex);
    EXPECT_EQ(i.reads, row.reads) << i.text;
    EXPECT_EQ(i.writes, row.writes) << i.text;
    EXPECT_EQ(i.kills, row.kills) << i.text;
  }
}

TEST(DecodeTest, AMaskOfAMemoryOperandIsPartOfItsAddress) {
  EXPECT_EQ(Decode("62f1fd49110b").address_reads,
            8 | Bit(kMaskRegisters + 1));  // zmm1 -> (rbx){k1}
  EXPECT_EQ(Decode("c4e2752d13").address_reads, 8 | Bit(kVectorRegisters + 1));  // vmaskmovpd
}

// movslq (%rsi,%rcx,4), %rdx; addsd (%rdi,%rdx,8), %xmm0; inc %rcx; cmp %r14, %rcx; jb
constexpr char kGather[] = "4863148ef20f5804d748ffc14c39f172ef";

bool Cuts(absl::string_view hex, const std::vector<size_t>& changed) {
  const LoopCode loop = *DecodeLoop(FixtureBytes(hex));
  std::vector<bool> flags(loop.instructions.size());
  for (const size_t at : changed) flags[at] = true;
  return CutsChain(loop, flags);
}

TEST(CutsChainTest, OnlyWhereAValueComesBackToAnAddressOrToAnAccess) {
  EXPECT_FALSE(Cuts(kGather, {0, 1, 2})) << "an index is loaded; what it leads to is only added up";
  EXPECT_TRUE(Cuts(kChase, {2}));
  EXPECT_FALSE(Cuts(kChase, {0, 1})) << "what is added up beside the chase";
  EXPECT_TRUE(Cuts(kHops, {1}));
  EXPECT_FALSE(Cuts(kHops, {0}));
  EXPECT_TRUE(Cuts(kIndexed, {2})) << "what is stored may be loaded later";
  // movsd (%rdi), %xmm0; addsd (%rsi,%rcx,8), %xmm0; movsd %xmm0, (%rdi); inc %rcx; cmp %r14, %rcx; jb
  EXPECT_TRUE(Cuts("f20f1007f20f5804cef20f110748ffc14c39f172eb", {1})) << "a sum in memory";
}

TEST(CutsChainTest, CopiesSayIt) {
  const auto unchained = [](absl::string_view hex, Change change) {
    const auto copy =
        MakeCopy(*DecodeLoop(FixtureBytes(hex)), SingleVariant(change), FixturePlace());
    return copy.ok() && copy->edits.unchained;
  };
  EXPECT_TRUE(unchained(kGather, Change::kFp));
  EXPECT_TRUE(unchained(kGather, Change::kLs));
  EXPECT_FALSE(unchained(kIndexed, Change::kLs));
  EXPECT_FALSE(unchained(kGather, Change::kDl1)) << "nobody asks";
}

}  // namespace
}  // namespace perfd::agent
