// Functions in several parts: as gcc lays them out, with and without symbols, and as LLVM names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/binary/flow/part_jumps.h"
#include "agent/binary/loop_facts.h"
#include "agent/binary/module_reader.h"
#include "agent/binary/symbol_name.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(WholeOfTest, SuffixesOfParts) {
  EXPECT_EQ(WholeOf("_Z5Spliti.cold"), "_Z5Spliti");
  EXPECT_EQ(WholeOf("work.cold.12"), "work");
  EXPECT_EQ(WholeOf("work.__part.3"), "work");
  EXPECT_EQ(WholeOf("work.cold.cold.0"), "work");
  EXPECT_EQ(WholeOf("work.llvm.123.cold"), "work.llvm.123");
  EXPECT_EQ(WholeOf("work.constprop.0.cold"), "work.constprop.0");
  for (const char* name : {"work", "work.part.0", "work.constprop.0", "cold", ".cold", ".cold.0",
                           "work.colder", "work.cold.x", "work.12", ""})
    EXPECT_EQ(WholeOf(name), "") << name;
}

FunctionSymbol Function(uint64_t low, absl::string_view name, uint32_t unit) {
  return {low, low + 16, name, unit == 0, true, unit};
}

TEST(NamedPartsTest, PartsOfFunctionsOfOneNameAreThoseOfTheirFile) {
  const NamedParts parts({Function(0x100, "f", 1), Function(0x10, "f.cold", 1),
                          Function(0x200, "f", 2), Function(0x20, "f.cold", 2),
                          Function(0x300, "g", 0), Function(0x30, "g.cold", 2),
                          Function(0x300, "alias", 0), Function(0x40, "lost.cold", 1)});
  EXPECT_THAT(parts.WholesOf(0x10), ElementsAre(0x100));
  EXPECT_THAT(parts.WholesOf(0x20), ElementsAre(0x200));
  EXPECT_THAT(parts.PartsOf(0x200), ElementsAre(0x20));
  EXPECT_THAT(parts.WholesOf(0x30), ElementsAre(0x300)) << "a global function of a local part";
  EXPECT_THAT(parts.WholesOf(0x40), IsEmpty());
  EXPECT_THAT(parts.PartsOf(0x10), IsEmpty());
}

TEST(NamedPartsTest, WhereFilesDoNotTellAllAreNamed) {
  std::vector<FunctionSymbol> symbols = {Function(0x100, "f", 1), Function(0x200, "f", 1),
                                         Function(0x10, "f.cold", 1)};
  EXPECT_THAT(NamedParts(symbols).WholesOf(0x10), ElementsAre(0x100, 0x200));
  for (uint64_t n = 0; n < 20; ++n) symbols.push_back(Function(0x1000 + 0x100 * n, "f", 1));
  EXPECT_THAT(NamedParts(symbols).WholesOf(0x10), IsEmpty()) << "too many to tell";
}

FunctionFacts FunctionAt(ModuleReader& reader, uint64_t address) {
  const CodeFacts code = reader.FunctionsAt(std::vector<ElfAddress>{address});
  EXPECT_EQ(code.functions.size(), 1U);
  return code.functions.empty() ? FunctionFacts() : code.functions[0];
}

std::unique_ptr<ModuleReader> OpenModule(const std::string& name) {
  auto reader = ModuleReader::Open(OpenFile(Fixture(name)));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

// The same program with all symbols; without local ones, so that DWARF tells; without DWARF and local or all symbols, so that the
// jumps tell.
class PartitionsTest : public ::testing::TestWithParam<const char*> {
 protected:
  static uint64_t Address(const std::string& symbol) {
    return SymbolAddress(Fixture("partitions"), symbol);
  }
  bool has_names() const { return std::string(GetParam()) != "partitions-stripped"; }

  std::unique_ptr<ModuleReader> reader_ = OpenModule(GetParam());
  std::map<std::string, Marked> marks_ = Marks("partitions.c");
};

TEST_P(PartitionsTest, ALoopThroughBothPartsIsOneLoop) {
  for (const char* name : {"through", "nested"}) {
    SCOPED_TRACE(name);
    const uint64_t cold = Address(std::string(name) + ".cold");
    const FunctionFacts function = FunctionAt(*reader_, Address(name) + 4);
    ASSERT_EQ(function.further_parts.size(), 1U);
    EXPECT_EQ(function.further_parts[0].low, cold);
    ASSERT_FALSE(function.loops.empty());
    const LoopFacts& loop = function.loops[0];
    EXPECT_FALSE(loop.irreducible);
    EXPECT_EQ(loop.parent_header, 0U);
    EXPECT_GT(loop.header, function.low);
    EXPECT_EQ(InnermostLoop(function, cold), &loop);
    EXPECT_THAT(loop.further_parts, ElementsAre(function.further_parts[0]));
    EXPECT_LE(loop.high, function.high);
    if (!reader_->facts().has_lines) continue;
    EXPECT_EQ(loop.source.first_line, marks_.at(name).first);
    EXPECT_LE(loop.source.last_line, marks_.at(name).last);
  }
}

TEST_P(PartitionsTest, ThePartIsAskedForByAnyAddress) {
  for (const char* name : {"through", "nested", "within"}) {
    SCOPED_TRACE(name);
    const uint64_t low = Address(name);
    const uint64_t cold = Address(std::string(name) + ".cold");
    auto fresh = OpenModule(GetParam());
    const FunctionFacts from_cold = FunctionAt(*fresh, cold + 5);
    EXPECT_EQ(from_cold, FunctionAt(*reader_, low));
    EXPECT_EQ(from_cold.low, low);
    EXPECT_THAT(from_cold.name, StartsWith(has_names() ? name : "sub_"));
    const CodeFacts both = fresh->FunctionsAt(std::vector<ElfAddress>{low, cold, cold + 5});
    EXPECT_EQ(both.functions.size(), 1U);
  }
}

TEST_P(PartitionsTest, ALoopWithinTheColdPart) {
  const FunctionFacts function = FunctionAt(*reader_, Address("within.cold"));
  ASSERT_EQ(function.loops.size(), 1U);
  const LoopFacts& loop = function.loops[0];
  EXPECT_GT(loop.header, Address("within.cold"));
  EXPECT_LT(loop.high, Address("within"));
  EXPECT_GE(loop.low, Address("within.cold"));
  EXPECT_THAT(loop.further_parts, IsEmpty());
  const int line = reader_->facts().has_lines ? marks_.at("within").first : 0;
  EXPECT_EQ(loop.source.first_line, line);
}

TEST_P(PartitionsTest, ATailCallJoinsNothing) {
  for (const char* name : {"last", "tail", "main"}) {
    SCOPED_TRACE(name);
    const FunctionFacts function = FunctionAt(*reader_, Address(name));
    EXPECT_EQ(function.low, Address(name));
    EXPECT_THAT(function.further_parts, IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Symbols, PartitionsTest,
                         ::testing::Values("partitions", "partitions-nolocals",
                                           "partitions-globals", "partitions-stripped"));

// LLVM's partitions have a symbol without type.
TEST(PartitionNamesTest, AsLlvmNamesThem) {
  auto reader = OpenModule("shapes");
  const FunctionFacts function =
      FunctionAt(*reader, SymbolAddress(Fixture("shapes"), "parted.cold"));
  EXPECT_EQ(function.name, "parted");
  EXPECT_EQ(function.low, SymbolAddress(Fixture("shapes"), "parted"));
  ASSERT_EQ(function.loops.size(), 1U);
  EXPECT_EQ(function.loops[0].header, SymbolAddress(Fixture("shapes"), "parted_top"));
  EXPECT_EQ(function.loops[0].instruction_count, 5);
  EXPECT_EQ(function.loops[0].further_parts, function.further_parts);
}

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// A jump that nobody understands leads to the loop behind it, but not to the cold part: that is a handler of exceptions.
TEST(PartedFlowTest, AnUnresolvedJumpLeadsToNoOtherPart) {
  // 1000: jmp *%rax; 1002: dec %rcx; 1005: test %esi, %esi; 1007: jnz 1002; 1009: ret | 2000: jmp 1005
  const auto hot = Bytes({0xff, 0xe0, 0x48, 0xff, 0xc9, 0x85, 0xf6, 0x75, 0xf9, 0xc3});
  const auto cold = Bytes({0xe9, 0x00, 0xf0, 0xff, 0xff});
  FunctionCode code;
  code.entry = 0x1000;
  code.parts = {{0x1000, hot}, {0x2000, cold}};
  const LoopAnalysis analysis = AnalyseLoops(code, {});
  ASSERT_EQ(analysis.loops.size(), 1U);
  EXPECT_EQ(analysis.loops[0].header, 0x1002U);
  EXPECT_FALSE(analysis.loops[0].irreducible);
}

// Pieces of code whose jumps are given: each is 16 bytes, a jump of five bytes to each target, the rest returns.
class PartJumpsTest : public ::testing::Test {
 protected:
  using Piece = PartJumps::Piece;

  void Add(uint64_t low, const std::vector<uint64_t>& targets, bool named = false) {
    std::vector<std::byte>& code = code_[low];
    for (const uint64_t target : targets) {
      const auto distance = static_cast<uint32_t>(target - (low + code.size() + 5));
      code.push_back(std::byte{0xe9});
      for (int shift = 0; shift < 32; shift += 8)
        code.push_back(std::byte(distance >> shift & 0xff));
    }
    code.resize(std::max<size_t>(code.size(), 16), std::byte{0xc3});
    named_[low] = named;
  }
  Piece At(uint64_t low) const { return {{low, low + code_.at(low).size()}, named_.at(low)}; }

  std::map<uint64_t, std::vector<std::byte>> code_;
  std::map<uint64_t, bool> named_;
  PartJumps jumps_{
      [this](uint64_t address) -> std::optional<Piece> {
        const auto at = code_.find(address & ~uint64_t{15});
        return at == code_.end() ? std::nullopt : std::optional(At(at->first));
      },
      [this](const CodeRange& range) { return std::span<const std::byte>(code_.at(range.low)); }};
};

TEST_F(PartJumpsTest, BackPastTheFirstByte) {
  Add(0x100, {0x200});
  Add(0x200, {0x105});
  EXPECT_EQ(jumps_.EntryOf(At(0x200)), 0x100U);
  EXPECT_EQ(jumps_.EntryOf(At(0x100)), 0x100U);
  EXPECT_THAT(jumps_.PartsOf(At(0x100)), ElementsAre(CodeRange{0x200, 0x210}));
}

TEST_F(PartJumpsTest, ToTheFirstByteIsATailCall) {
  Add(0x100, {0x200});
  Add(0x200, {0x100});
  EXPECT_EQ(jumps_.EntryOf(At(0x200)), 0x200U);
  EXPECT_THAT(jumps_.PartsOf(At(0x100)), IsEmpty());
}

TEST_F(PartJumpsTest, WhatNobodyLeadsToIsNoPart) {
  Add(0x100, {});
  Add(0x200, {0x105});
  EXPECT_EQ(jumps_.EntryOf(At(0x200)), 0x200U);
}

TEST_F(PartJumpsTest, NamesStand) {
  Add(0x100, {0x200}, true);
  Add(0x200, {0x105}, true);
  EXPECT_EQ(jumps_.EntryOf(At(0x200)), 0x200U);
  EXPECT_THAT(jumps_.PartsOf(At(0x100)), IsEmpty());
  EXPECT_TRUE(jumps_.Linked({0x200, 0x210}, {0x100, 0x110}));
}

TEST_F(PartJumpsTest, OfTwoThatLeadIntoEachOtherTheOneThatIsNotLedToAtItsStartIsTheFunction) {
  Add(0x100, {0x205, 0x200});
  Add(0x200, {0x105});
  EXPECT_EQ(jumps_.EntryOf(At(0x100)), 0x100U);
  EXPECT_EQ(jumps_.EntryOf(At(0x200)), 0x100U);
  Add(0x300, {0x405});
  Add(0x400, {0x305});
  EXPECT_EQ(jumps_.EntryOf(At(0x300)), 0x400U) << "the linker puts cold parts first";
  EXPECT_EQ(jumps_.EntryOf(At(0x400)), 0x400U);
}

// A hostile file does not make it compare everything with everything.
TEST_F(PartJumpsTest, WhatLeadsEverywhereLeadsNowhere) {
  std::vector<uint64_t> targets(PartJumps::kMaxTargets);
  for (size_t n = 0; n < targets.size(); ++n) targets[n] = 0x100000 + 16 * n;
  Add(0x8000, targets);
  Add(0x100000, {0x8005});
  EXPECT_EQ(jumps_.EntryOf(At(0x100000)), 0x8000U);
  targets.push_back(0x200000);
  Add(0x10000, targets);
  Add(0x100010, {0x10005});
  EXPECT_EQ(jumps_.EntryOf(At(0x100010)), 0x100010U);
}

TEST_F(PartJumpsTest, PartsOfParts) {
  Add(0x100, {0x200}, true);
  Add(0x200, {0x105, 0x300});
  Add(0x300, {0x205});
  EXPECT_EQ(jumps_.EntryOf(At(0x300)), 0x100U);
  EXPECT_THAT(jumps_.PartsOf(At(0x100)),
              ElementsAre(CodeRange{0x200, 0x210}, CodeRange{0x300, 0x310}));
}

}  // namespace
}  // namespace perfd::agent
