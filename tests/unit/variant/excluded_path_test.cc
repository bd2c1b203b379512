// Loops with paths that no copy can hold: what is kept, what is left out, what comes back under the jump.
#include "agent/variant/flow/excluded_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/far_branches.h"
#include "agent/variant/patch_plan.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Made once with GNU as:
//   0: f2 0f 10 04 c7        movsd (%rdi,%rax,8), %xmm0
//   5: f2 0f 58 c8           addsd %xmm0, %xmm1
//   9: 66 0f 2f ca           comisd %xmm2, %xmm1
//   d: 77 08                 ja 17 (the detour)
//   f: 48 ff c0              inc %rax
//  12: 48 39 d0              cmp %rdx, %rax
//  15: eb 0c                 jmp 23
//  17: 48 83 ec 08           sub $8, %rsp        detour: a stack argument and a call
//  1b: e8 00 10 00 00        call +0x1000
//  20: 58                    pop %rax
//  21: eb ec                 jmp f
//  23: 72 db                 jb 0
//  25: c3                    ret
constexpr char kWithExcludedPath[] =
    "f20f1004c7f20f58c8660f2fca770848ffc04839d0eb0c4883ec08e80010000058ebec72dbc3";

LoopBytes WithExcludedPath(absl::string_view hex = kWithExcludedPath) {
  LoopBytes loop = FixtureBytes(hex);
  loop.body = {{loop.header, loop.header + 0x25}};
  return loop;
}

TEST(CutTest, TheDetourBecomesAnExitToTheOriginalText) {
  const absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath());
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_EQ(loop->instructions.size(), 8u);
  EXPECT_THAT(loop->excluded.ranges,
              ElementsAre(CodeRange{kFixtureAddress + 0x17, kFixtureAddress + 0x23}));
  EXPECT_THAT(loop->body, ElementsAre(CodeRange{kFixtureAddress, kFixtureAddress + 0x17},
                                      CodeRange{kFixtureAddress + 0x23, kFixtureAddress + 0x25}));
  EXPECT_THAT(loop->excluded.texts, ElementsAre(HasSubstr("0x401027 `sub"),
                                                HasSubstr("call 0x402030"), HasSubstr("pop")));
  EXPECT_THAT(loop->exits[3], ElementsAre(kFixtureAddress + 0x17));
  EXPECT_TRUE(loop->calls.empty());
}

TEST(CutTest, CopiesOfTheRestCanBeMade) {
  absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath());
  ASSERT_TRUE(loop.ok());
  for (const char* name : {"REF", "COUNT", "TRACE", "LS", "FP", "DL1"}) {
    const absl::StatusOr<CodeCopy> copy = MakeCopy(*loop, *ParseVariantName(name), FixturePlace());
    EXPECT_TRUE(copy.ok()) << name << ": " << copy.status();
  }
  const absl::StatusOr<CodeCopy> live =
      MakeCopy(*loop, *ParseVariantName("REF"), {0x500000, Exits::kOriginalText, 0});
  ASSERT_TRUE(live.ok());
  bool leads_there = false;
  for (const AddressPair& pair : live->address_map)
    leads_there = leads_there || pair.original == kFixtureAddress + 0x17;
  EXPECT_TRUE(leads_there) << "a thread that takes the detour finds the original text";
}

TEST(CutTest, ALoopThatCannotGoRoundWithoutItIsRefusedForIt) {
  // The same with `jmp 17` in place of `ja 17; ...`: every pass calls.
  std::string hex = kWithExcludedPath;
  hex.replace(2 * 0xd, 4, "eb08");
  const absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath(hex));
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(loop.status().message(), HasSubstr("moves the stack pointer"));
}

TEST(CutTest, ADetourMayNotComeBackUnderTheJump) {
  // The first instruction is replaced by a shorter one and NOPs; the detour returns to the second: header + 3.
  std::string hex = kWithExcludedPath;
  hex.replace(0, 10, "4831db6690");  // xor %rbx, %rbx; xchg %ax, %ax
  hex.replace(2 * 0x21, 4, "ebe0");  // jmp header + 3
  const absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath(hex));
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(loop.status().message(), HasSubstr("second entry"));
}

TEST(CutTest, NobodyElseMayEnterTheBody) {
  // A jump after the loop into its middle is no detour of its own.
  std::string hex = kWithExcludedPath;
  hex += "ebe2";  // 26: jmp a
  const absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath(hex));
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(loop.status().message(), HasSubstr("second entry"));
}

TEST(CutTest, AnIndirectJumpIsNoDetour) {
  std::string hex = kWithExcludedPath;
  hex.replace(2 * 0x1b, 10, "ffe0909090");  // jmp *%rax
  EXPECT_FALSE(DecodeLoop(WithExcludedPath(hex)).ok());
}

TEST(CutTest, WhoeverMayComeBackUnderTheJumpMustHaveBeenLookedFor) {
  // A header of three bytes: the jump covers two instructions, and what the call throws may be caught elsewhere.
  std::string hex = kWithExcludedPath;
  hex.replace(0, 10, "4831db6690");
  absl::StatusOr<LoopCode> loop = DecodeLoop(WithExcludedPath(hex));
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_TRUE(NeedsFarBranches(*loop));
  EXPECT_FALSE(PlanPatch(*loop).ok());
  loop->far_branches = std::vector<uint64_t>{};
  EXPECT_TRUE(PlanPatch(*loop).ok());
  loop->far_branches = std::vector<uint64_t>{0x400100};
  EXPECT_THAT(PlanPatch(*loop).status().message(), HasSubstr("0x400100 leads under the jump"));
  EXPECT_FALSE(NeedsFarBranches(*DecodeLoop(WithExcludedPath())))
      << "its header is as long as the jump";
}

TEST(CutTest, PeopleAreToldElfAddresses) {
  LoopBytes bytes = WithExcludedPath();
  bytes.bias = {0x400000, 0};
  const absl::StatusOr<LoopCode> loop = DecodeLoop(bytes);
  ASSERT_TRUE(loop.ok());
  EXPECT_THAT(loop->excluded.texts[1], HasSubstr("0x102b `call 0x2030`"));
}

std::vector<uint64_t> Into(absl::string_view hex, uint64_t address, CodeRange skip = {}) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return BranchesInto({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, address,
                      {0x1001, 0x1005}, std::span(&skip, 1));
}

// By the words of the header: every byte may begin a branch.
std::vector<uint64_t> ByDefinition(const std::vector<uint8_t>& text, uint64_t address,
                                   CodeRange target) {
  std::vector<uint64_t> found;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t first = text[i];
    const bool two = first == 0x0f && i + 1 < text.size() && (text[i + 1] & 0xf0) == 0x80;
    const bool near = first == 0xe8 || first == 0xe9 || two;
    const bool brief =
        first == 0xeb || (first >= 0x70 && first < 0x80) || (first >= 0xe0 && first < 0xe4);
    const size_t length = near ? (two ? 6 : 5) : 2;
    if ((!near && !brief) || i + length > text.size()) continue;
    int32_t displacement = static_cast<int8_t>(text[i + 1]);
    if (near) std::memcpy(&displacement, &text[i + length - 4], 4);
    const uint64_t to = address + i + length + static_cast<uint64_t>(int64_t{displacement});
    if (to >= target.low && to < target.high) found.push_back(address + i);
  }
  return found;
}

TEST(FarBranchesTest, AsByDefinition) {
  constexpr uint8_t kOften[] = {0xe8, 0xe9, 0x0f, 0x84, 0xeb, 0x75, 0xe2, 0x00, 0xff, 0x10};
  std::mt19937_64 random(7);
  size_t all = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> text(random() % 400);
    for (uint8_t& byte : text)
      byte = random() % 3 == 0 ? static_cast<uint8_t>(random()) : kOften[random() % 10];
    const uint64_t address = round % 3 == 0 ? random() % 300 : 0xfffff000 + random() % 0x2000;
    const uint64_t low = address + random() % 600 - std::min<uint64_t>(address, 200);
    const CodeRange target = {low, low + random() % 300};
    const std::vector<uint64_t> found = BranchesInto(text, address, target, {});
    EXPECT_EQ(found, ByDefinition(text, address, target)) << round;
    all += found.size();
  }
  EXPECT_GT(all, 10'000u);
}

TEST(FarBranchesTest, EveryFormIsFoundAtItsEdges) {
  EXPECT_THAT(Into("e9fc0f0000", 0), ElementsAre(0));    // jmp 0x1001
  EXPECT_THAT(Into("e9ff0f0000", 0), ElementsAre(0));    // jmp 0x1004
  EXPECT_THAT(Into("e9fb0f0000", 0), IsEmpty());         // jmp 0x1000: the header itself
  EXPECT_THAT(Into("e900100000", 0), IsEmpty());         // jmp 0x1005
  EXPECT_THAT(Into("0f84fc0f0000", 0), ElementsAre(0));  // je 0x1002
  EXPECT_THAT(Into("e8fd0f0000", 0), ElementsAre(0));    // call
  EXPECT_THAT(Into("eb01", 0xffe), ElementsAre(0xffe));  // short forms
  EXPECT_THAT(Into("7401", 0xffe), ElementsAre(0xffe));
  EXPECT_THAT(Into("e301", 0xffe), ElementsAre(0xffe));
  EXPECT_THAT(Into("ebf1", 0x1010), ElementsAre(0x1010));  // backwards
  EXPECT_THAT(Into("90e9fb0f0000", 0), ElementsAre(1));    // at any offset
  EXPECT_THAT(Into("e9fc0f00", 0), IsEmpty());             // cut short
  EXPECT_THAT(Into("e9fc0f0000", 0, {0, 1}), IsEmpty());   // of the function itself
}

}  // namespace
}  // namespace perfd::agent
