#include "agent/binary/flow/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "agent/binary/elf_file.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

std::optional<Instruction> DecodeBytes(std::initializer_list<int> bytes, uint64_t address) {
  std::vector<std::byte> copy;
  for (const int b : bytes) copy.push_back(static_cast<std::byte>(b));
  return Decode(copy, address);
}

TEST(DecoderTest, DirectBranchesHaveTargets) {
  const auto forward = DecodeBytes({0x74, 0x10}, 0x1000);  // je
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->flow, Flow::kConditional);
  EXPECT_EQ(forward->target, 0x1012U);
  const auto back = DecodeBytes({0xE9, 0xFB, 0xFF, 0xFF, 0xFF}, 0x1000);  // jmp .
  ASSERT_TRUE(back);
  EXPECT_EQ(back->flow, Flow::kJump);
  EXPECT_EQ(back->target, 0x1000U);
  const auto call = DecodeBytes({0xE8, 0, 0, 0, 0}, 0x1000);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->flow, Flow::kCall);
  EXPECT_EQ(call->target, 0x1005U);
  EXPECT_EQ(DecodeBytes({0xE2, 0xFE}, 0x1000)->flow, Flow::kConditional);              // loop .
  EXPECT_EQ(DecodeBytes({0xE3, 0xFE}, 0x1000)->flow, Flow::kConditional);              // jrcxz .
  EXPECT_EQ(DecodeBytes({0xC7, 0xF8, 1, 0, 0, 0}, 0x1000)->flow, Flow::kConditional);  // xbegin
}

TEST(DecoderTest, EndsOfFlow) {
  EXPECT_EQ(DecodeBytes({0xC3}, 0)->flow, Flow::kReturn);
  EXPECT_EQ(DecodeBytes({0x0F, 0x0B}, 0)->flow, Flow::kTrap);                // ud2
  EXPECT_EQ(DecodeBytes({0xF4}, 0)->flow, Flow::kTrap);                      // hlt
  EXPECT_EQ(DecodeBytes({0x0F, 0x05}, 0)->flow, Flow::kPlain);               // syscall returns
  EXPECT_EQ(DecodeBytes({0xFF, 0xE0}, 0)->flow, Flow::kIndirectJump);        // jmp *%rax
  EXPECT_EQ(DecodeBytes({0x3E, 0xFF, 0xE0}, 0)->flow, Flow::kIndirectJump);  // notrack
  EXPECT_EQ(DecodeBytes({0xFF, 0xD0}, 0)->flow, Flow::kIndirectCall);
  EXPECT_EQ(DecodeBytes({0xFF, 0x25, 0, 0, 0, 0}, 0)->flow, Flow::kSlotJump);  // jmp *(%rip)
  EXPECT_EQ(DecodeBytes({0xFF, 0x60, 0x18}, 0)->flow, Flow::kSlotJump);        // jmp *0x18(%rax)
  EXPECT_EQ(DecodeBytes({0xFF, 0x24, 0x24}, 0)->flow, Flow::kSlotJump);        // jmp *(%rsp)
  EXPECT_EQ(DecodeBytes({0xFF, 0x24, 0xC2}, 0)->flow, Flow::kIndirectJump);    // jmp *(%rdx,%rax,8)
  EXPECT_EQ(DecodeBytes({0x42, 0xFF, 0x24, 0x22}, 0)->flow,
            Flow::kIndirectJump);  // jmp *(%rdx,%r12)
}

TEST(DecoderTest, CluesOfJumpTables) {
  const auto lea = DecodeBytes({0x48, 0x8D, 0x05, 0x10, 0, 0, 0}, 0x1000);
  EXPECT_EQ(lea->clue, Clue::kTableAddress);
  EXPECT_EQ(lea->reference, 0x1017U);
  const auto jump =
      DecodeBytes({0xFF, 0x24, 0xC5, 0x08, 0x20, 0x40, 0}, 0);  // jmp *0x402008(,%rax,8)
  EXPECT_EQ(jump->clue, Clue::kAbsoluteTable);
  EXPECT_EQ(jump->reference, 0x402008U);
  const auto compare = DecodeBytes({0x83, 0xF8, 0x07}, 0);
  EXPECT_EQ(compare->clue, Clue::kCompare);
  EXPECT_EQ(compare->immediate, 7U);
  EXPECT_EQ(DecodeBytes({0x77, 0}, 0)->clue, Clue::kAbove);
  EXPECT_EQ(DecodeBytes({0x73, 0}, 0)->clue, Clue::kAboveOrEqual);
}

TEST(DecoderTest, RefusesWhatIsNoInstruction) {
  EXPECT_FALSE(Decode({}, 0));
  EXPECT_FALSE(DecodeBytes({0x06}, 0));        // push es: not in 64-bit mode
  EXPECT_FALSE(DecodeBytes({0xE8, 0, 0}, 0));  // cut off
}

// The starts of all instructions of .text, linearly, against objdump.
TEST(DecoderTest, BoundariesEqualObjdump) {
  for (const std::string& path : {Fixture("kernels-clang-O3"), std::string("/bin/ls")}) {
    auto file = ElfFile::Open(OpenFile(path));
    ASSERT_TRUE(file.ok()) << file.status();
    const ElfSection* text = (*file)->FindSection(".text");
    ASSERT_NE(text, nullptr);
    std::vector<uint64_t> ours;
    for (size_t at = 0; at < text->bytes.size();) {
      const auto instruction = Decode(text->bytes.subspan(at), (text->address + at).value());
      ASSERT_TRUE(instruction) << path << " at " << std::hex << text->address + at;
      ours.push_back(instruction->address);
      at += instruction->length;
    }
    std::vector<uint64_t> theirs;
    for (const std::string& line : OutputOf("objdump -d -w -j .text --no-show-raw-insn " + path)) {
      const size_t colon = line.find(":\t");
      if (colon != std::string::npos && line[0] == ' ')
        theirs.push_back(std::stoull(line, nullptr, 16));
    }
    ASSERT_GT(theirs.size(), 100U) << path;
    EXPECT_EQ(ours, theirs) << path;
  }
}

}  // namespace
}  // namespace perfd::agent
