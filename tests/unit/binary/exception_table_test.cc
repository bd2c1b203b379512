#include "agent/binary/frames/exception_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/binary/module_reader.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(ExceptionTableTest, ReadsCallSites) {
  // Pads counted from the function; no types; ULEB: 16 bytes at +4 to +0x90 (two bytes), 2 bytes at 0 without one.
  const auto table =
      Bytes({0xff, 0xff, 0x01, 9, 0x04, 0x10, 0x90, 0x01, 0x01, 0x00, 0x02, 0x00, 0x00});
  const std::vector<LandingPad> pads = ReadLandingPads(table, 0x5000, 0x1000);
  ASSERT_THAT(pads, SizeIs(1));
  EXPECT_EQ(pads[0].calls, (CodeRange{0x1004, 0x1014}));
  EXPECT_EQ(pads[0].address, 0x1090U);
  EXPECT_EQ(LandingPadOf(pads, 0x1003), nullptr);
  EXPECT_EQ(LandingPadOf(pads, 0x1004), &pads[0]);
  EXPECT_EQ(LandingPadOf(pads, 0x1014), nullptr);
  EXPECT_EQ(LandingPadOf({}, 0x1004), nullptr);
}

TEST(ExceptionTableTest, PadsMayLieElsewhere) {
  // Counted from 0x40000000 (absolute, 4 bytes), as of a function whose handlers lie in another section.
  const auto table =
      Bytes({0x03, 0, 0, 0, 0x40, 0x9b, 0x20, 0x03, 13, 0, 0, 0, 0, 8, 0, 0, 0, 0x30, 0, 0, 0, 0});
  const std::vector<LandingPad> pads = ReadLandingPads(table, 0x5000, 0x1000);
  ASSERT_THAT(pads, SizeIs(1));
  EXPECT_EQ(pads[0].address, 0x40000030U);
}

TEST(ExceptionTableTest, StopsWhereTheBytesDo) {
  EXPECT_THAT(ReadLandingPads({}, 0, 0), IsEmpty());
  EXPECT_THAT(ReadLandingPads(Bytes({0xff, 0xff, 0x01, 9, 4, 0x10, 8, 0}), 0, 0), IsEmpty());
  EXPECT_THAT(ReadLandingPads(Bytes({0xff, 0xff, 0x05, 4, 4, 0x10, 8, 0}), 0, 0), IsEmpty());
}

// By objdump: where a handler of the function begins.
uint64_t HandlerIn(const std::string& path, const std::string& function) {
  bool within = false;
  for (const std::string& line : OutputOf("objdump -d --no-show-raw-insn " + path)) {
    if (line.ends_with(">:")) within = line.find('<' + function) != std::string::npos;
    if (within && line.find("__cxa_begin_catch") != std::string::npos)
      return std::stoull(line, nullptr, 16);
  }
  return 0;
}

// By objdump: where a function is called. A compiler may have put that into a part of its caller.
uint64_t CallOf(const std::string& path, const std::string& function) {
  for (const std::string& line : OutputOf("objdump -d --no-show-raw-insn " + path)) {
    if (line.find("call") != std::string::npos && line.ends_with('<' + function + '>'))
      return std::stoull(line, nullptr, 16);
  }
  return 0;
}

class CatchesTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Where the names are, and the file that is read.
  std::string named_ =
      Fixture(std::string(GetParam()).substr(0, std::string(GetParam()).find("-stripped")));
  std::unique_ptr<ModuleReader> reader_ = *ModuleReader::Open(OpenFile(Fixture(GetParam())));

  FunctionFacts Function(const std::string& name) {
    return FunctionAt(SymbolAddress(named_, name));
  }

  FunctionFacts FunctionAt(uint64_t address) {
    const std::vector<ElfAddress> at = {ElfAddress(address)};
    const CodeFacts facts = reader_->FunctionsAt(at);
    return facts.functions.empty() ? FunctionFacts{} : facts.functions[0];
  }
};

TEST_P(CatchesTest, AHandlerThatGoesOnIsInTheLoop) {
  const FunctionFacts function = Function("GoesOn");
  ASSERT_THAT(function.loops, SizeIs(1));
  EXPECT_FALSE(function.loops[0].irreducible);
  const uint64_t handler = HandlerIn(named_, "GoesOn");
  ASSERT_NE(handler, 0U);
  EXPECT_EQ(InnermostLoop(function, ElfAddress(handler)), &function.loops[0]);
}

TEST_P(CatchesTest, AHandlerBehindTheLoopIsNot) {
  const FunctionFacts function = Function("Leaves");
  ASSERT_THAT(function.loops, SizeIs(1));
  const uint64_t handler = HandlerIn(named_, "Leaves");
  ASSERT_NE(handler, 0U);
  EXPECT_EQ(InnermostLoop(function, ElfAddress(handler)), nullptr);
}

TEST_P(CatchesTest, AFunctionThatComesBackThroughItsHandlerOnlyReturns) {
  const uint64_t call = CallOf(named_, "Attempt");
  ASSERT_NE(call, 0U);
  EXPECT_THAT(FunctionAt(call).loops, SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(Compilers, CatchesTest,
                         ::testing::Values("catches-gcc", "catches-clang", "catches-gcc-stripped"));

}  // namespace
}  // namespace perfd::agent
