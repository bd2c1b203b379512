// Functions that keep something else than their stack in RSP: our code would write below it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/flow/body.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {
namespace {

using testing::HasSubstr;

// A function of `before`, the loop, `after` and a return.
absl::Status Decoded(const std::string& before, const std::string& after) {
  const std::string head = absl::HexStringToBytes(before);
  const std::string hex = absl::StrCat(before, "48ffc90f1f0075f8", after, "c3");
  const std::string code = absl::HexStringToBytes(hex);
  LoopBytes bytes;
  bytes.function = {{0x1000, {code.begin(), code.end()}}};
  bytes.header = 0x1000 + head.size();
  bytes.body = {{bytes.header, bytes.header + 8}};
  return DecodeLoop(bytes).status();
}

TEST(StackPointerTest, DataWalkedByItIsRefused) {
  // mov %rsp, %r11; mov %rdi, %rsp ... mov %r11, %rsp
  const absl::Status walked = Decoded("4989e34889fc", "4c89dc");
  EXPECT_TRUE(absl::IsFailedPrecondition(walked)) << walked;
  EXPECT_THAT(std::string(walked.message()), HasSubstr("mov %rdi, %rsp"));
  EXPECT_THAT(std::string(walked.message()), HasSubstr("uses the stack pointer"));
  EXPECT_FALSE(Decoded("4887fc", "4887fc").ok()) << "xchg %rdi, %rsp";
  EXPECT_FALSE(Decoded("488d6708", "").ok()) << "lea 0x8(%rdi), %rsp";
  EXPECT_FALSE(Decoded("488ba7a0000000", "").ok()) << "mov 0xa0(%rdi), %rsp, as swapcontext has it";
  EXPECT_FALSE(Decoded("488b2578563412", "").ok()) << "mov 0x12345678(%rip), %rsp";
  EXPECT_FALSE(Decoded("488b242540404000", "").ok()) << "mov 0x404040, %rsp";
  EXPECT_FALSE(Decoded("488b64fd08", "").ok()) << "mov 0x8(%rbp,%rdi,8), %rsp";
  EXPECT_FALSE(Decoded("488d24f9", "").ok()) << "lea (%rcx,%rdi,8), %rsp";
  EXPECT_FALSE(Decoded("4894", "4894").ok()) << "xchg %rax, %rsp";
}

TEST(StackPointerTest, WhatCompilersDoWithItIsNot) {
  EXPECT_TRUE(Decoded("4989e44829c4", "4c89e4").ok()) << "an array of variable length, by gcc";
  EXPECT_TRUE(Decoded("4889e04829cc", "4889c4").ok()) << "the same, by clang";
  EXPECT_TRUE(Decoded("554889e54883e4e0", "488d65d8").ok()) << "lea -0x28(%rbp), %rsp";
  EXPECT_TRUE(Decoded("554889e5", "4889ec5d").ok()) << "mov %rbp, %rsp";
  EXPECT_TRUE(Decoded("554889e5", "488b65c8").ok()) << "mov -0x38(%rbp), %rsp";
  EXPECT_TRUE(Decoded("4c8d5424084883e4e0", "498d62f8").ok()) << "lea 0x8(%rsp), %r10";
  EXPECT_TRUE(Decoded("4889e348896378", "488b6378").ok())
      << "mov %rsp, %rbx; mov %rsp, 0x78(%rbx); mov 0x78(%rbx), %rsp: clang, with its base pointer";
  EXPECT_TRUE(Decoded("488b642410", "").ok()) << "mov 0x10(%rsp), %rsp";
  EXPECT_TRUE(Decoded("4881ec00100000", "4881c400100000").ok()) << "sub, add";
  EXPECT_TRUE(Decoded("48b84889fc9090909090", "").ok()) << "in another instruction";
}

// Bytes of a stranger's: each is looked at a bounded number of times.
TEST(StackPointerTest, LongFunctionsTakeNoTimeThatGrowsFasterThanThey) {
  std::string saved = "4889e0";  // mov %rsp, %rax
  for (int i = 0; i < 200'000; ++i) saved += "4889c4";
  EXPECT_TRUE(Decoded(saved, "").ok());
  std::string hidden;
  for (int i = 0; i < 60'000; ++i) hidden += "48b84889fc9090909090";
  EXPECT_TRUE(Decoded(hidden, "").ok());
}

}  // namespace
}  // namespace perfd::agent
