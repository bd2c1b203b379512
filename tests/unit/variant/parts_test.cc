// Loops in two parts of a function: what lies between the parts belongs to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"
#include "agent/variant/patch_plan.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint8_t> Code(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

constexpr uint64_t kHot = 0x401000;
constexpr uint64_t kCold = 0x400800;

// 401000: jne 400800; 401006: dec %rcx; jnz 401000; 40100b: ret
// 400800: add (%rdi), %rax; add $8, %rdi; jmp 401006
LoopBytes TwoParts() {
  LoopBytes loop;
  loop.header = kHot;
  loop.function = {{kCold, Code("4803074883c708e9fa070000")},
                   {kHot, Code("0f85faf7ffff48ffc975f5c3")}};
  loop.body = {{kCold, kCold + 12}, {kHot, kHot + 11}};
  return loop;
}

TEST(PartsTest, BothPartsAreTheLoop) {
  const auto loop = DecodeLoop(TwoParts());
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_EQ(loop->instructions.size(), 6U);
  EXPECT_EQ(loop->entry, 3U);
  EXPECT_THAT(loop->next[3], ElementsAre(0, 4)) << "to the cold part and on";
  EXPECT_THAT(loop->next[2], ElementsAre(4)) << "and back";
  EXPECT_THAT(loop->exits[5], ElementsAre(kHot + 11));
  EXPECT_THAT(loop->function,
              ElementsAre(CodeRange{kCold, kCold + 12}, CodeRange{kHot, kHot + 12}));
  EXPECT_FALSE(NeedsFarBranches(*loop)) << "it does not leave its function";
  const auto copy = MakeCopy(*loop, SingleVariant(Change::kRef), FixturePlace());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_GE(copy->address_map.size(), loop->instructions.size());
}

TEST(PartsTest, WithoutThePartTheLoopLeavesItsFunction) {
  LoopBytes bytes = TwoParts();
  bytes.function.erase(bytes.function.begin());
  bytes.body.erase(bytes.body.begin());
  // jz 400800 in the place of the header's first bytes, and a short header: what comes back may come under the jump.
  bytes.function[0].bytes = Code("48ffc90f85f7f7ffff75f5c3");
  const auto loop = DecodeLoop(bytes);
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_TRUE(NeedsFarBranches(*loop));
}

TEST(PartsTest, ASecondEntryFromAFurtherPart) {
  LoopBytes bytes = TwoParts();
  // 400800 + 12: jmp 401006
  const std::vector<uint8_t> jump = Code("e9f5070000");
  bytes.function[0].bytes.insert(bytes.function[0].bytes.end(), jump.begin(), jump.end());
  const auto loop = DecodeLoop(bytes);
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(std::string(loop.status().message()),
              HasSubstr("second entry: 0x40080c leads to 0x401006"));
}

TEST(PartsTest, PartsThatTouch) {
  // 401000: dec %rcx; 401003: jnz 401000 | 401005: ret, as if it were another part; the body runs into it.
  LoopBytes bytes;
  bytes.header = kHot;
  bytes.function = {{kHot, Code("48ffc9")}, {kHot + 3, Code("75fbc3")}};
  bytes.body = {{kHot, kHot + 3}, {kHot + 3, kHot + 5}};
  const auto loop = DecodeLoop(bytes);
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_EQ(loop->instructions.size(), 2U);
}

TEST(PartsTest, OverlappingPartsAreRefused) {
  LoopBytes bytes = TwoParts();
  bytes.function[1].address = kCold + 11;
  EXPECT_EQ(DecodeLoop(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  bytes = TwoParts();
  bytes.body[0].high += 1;
  EXPECT_EQ(DecodeLoop(bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd::agent
