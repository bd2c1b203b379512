#include "agent/experiment/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/experiment/own_loop.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

// A function in two parts, in the memory of this process; what lies between them jumps into the loop, but is another function's.
//   0: jne 40; 6: dec %rcx; 9: jnz 0; b: ret | c: jmp 6 | 40: add (%rdi), %rax; 43: add $8, %rdi; 47: jmp 6
constexpr uint8_t kHot[] = {0x0f, 0x85, 0x3a, 0, 0, 0, 0x48, 0xff, 0xc9, 0x75, 0xf5, 0xc3};
constexpr uint8_t kBetween[] = {0xeb, 0xf8};
constexpr uint8_t kCold[] = {0x48, 0x03, 0x07, 0x48, 0x83, 0xc7, 0x08, 0xeb, 0xbd};

class PreparationTest : public ::testing::Test {
 protected:
  PreparationTest() {
    std::memcpy(text_, kHot, sizeof(kHot));
    std::memcpy(text_ + sizeof(kHot), kBetween, sizeof(kBetween));
    std::memcpy(text_ + 0x40, kCold, sizeof(kCold));
    const uint64_t low = reinterpret_cast<uint64_t>(text_);
    site_.target.header = low;
    site_.function.low = low;
    site_.function.high = low + sizeof(kHot);
    site_.function.further_parts = {{low + 0x40, low + 0x40 + sizeof(kCold)}};
    LoopFacts loop;
    loop.header = low;
    site_.function.loops = {loop};
    site_.function.spans = {{low, low + 11, 0}, {low + 0x40, low + 0x40 + sizeof(kCold), 0}};
    const auto ticks = ProcFs().StartTicks(getpid());
    memory_.emplace(*Memory::Open(getpid(), *ticks));
  }

  uint8_t text_[0x80] = {};
  LoopSite site_;
  std::optional<Memory> memory_;
};

TEST_F(PreparationTest, ALoopInTwoPartsIsReadWhole) {
  const auto loop = PrepareLoop(site_, {"LS"}, *memory_);
  ASSERT_TRUE(loop.ok()) << loop.status();
  const uint64_t low = site_.function.low;
  EXPECT_THAT(loop->code.function,
              ElementsAre(CodeRange{low, low + 12}, CodeRange{low + 0x40, low + 0x49}));
  EXPECT_EQ(loop->code.instructions.size(), 6U);
}

TEST_F(PreparationTest, ALongFunctionIsRefusedByTheSumOfItsParts) {
  site_.function.further_parts[0].high += kMaxFunctionBytes;
  EXPECT_THAT(PrepareLoop(site_, {"LS"}, *memory_).status().message(),
              ::testing::HasSubstr("longer than 4 MB"));
}

}  // namespace
}  // namespace perfd::agent
