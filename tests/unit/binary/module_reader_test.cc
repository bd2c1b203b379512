#include "agent/binary/module_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<ModuleReader> OpenModule(const std::string& name, const std::string& debug = "",
                                         ModuleDetail detail = ModuleDetail::kLines) {
  auto reader = ModuleReader::Open(OpenFile(Fixture(name)),
                                   debug.empty() ? UniqueFd() : OpenFile(Fixture(debug)), detail);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

FunctionFacts FunctionAt(ModuleReader& reader, uint64_t address) {
  const CodeFacts code = reader.FunctionsAt(std::vector<ElfAddress>{address});
  EXPECT_EQ(code.functions.size(), 1U);
  return code.functions.empty() ? FunctionFacts() : code.functions[0];
}

FunctionFacts FunctionNamed(ModuleReader& reader, const std::string& fixture,
                            const std::string& name) {
  const uint64_t address = SymbolAddress(Fixture(fixture), name);
  EXPECT_NE(address, 0U) << name;
  FunctionFacts facts = FunctionAt(reader, address);
  EXPECT_EQ(facts.name, name);
  EXPECT_THAT(facts.note, IsEmpty()) << fixture << " " << name;
  return facts;
}

class KernelsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    reader_ = OpenModule(GetParam());
    ASSERT_NE(reader_, nullptr);
  }
  FunctionFacts Named(const std::string& name) { return FunctionNamed(*reader_, GetParam(), name); }

  std::unique_ptr<ModuleReader> reader_;
  std::map<std::string, Marked> marks_ = Marks("kernels.cc");
};

// The lines begin at the loop statement and stay inside the loop.
void ExpectLines(const LoopFacts& loop, const Marked& mark) {
  EXPECT_THAT(loop.source.file, HasSubstr("kernels.cc"));
  EXPECT_EQ(loop.source.first_line, mark.first);
  EXPECT_GT(loop.source.last_line, mark.first);
  EXPECT_LE(loop.source.last_line, mark.last);
}

TEST_P(KernelsTest, SimpleLoopsHaveTheirLines) {
  for (const char* name : {"single", "switched", "inlined", "calls", "chase"}) {
    SCOPED_TRACE(name);
    const FunctionFacts function = Named(name);
    ASSERT_FALSE(function.loops.empty());
    for (const LoopFacts& loop : function.loops) {
      EXPECT_EQ(loop.depth, 1);
      EXPECT_TRUE(loop.innermost);
      EXPECT_FALSE(loop.irreducible);
      EXPECT_GE(loop.low, function.low);
      EXPECT_LE(loop.high, function.high);
      ExpectLines(loop, marks_.at(name));
      EXPECT_EQ(loop.inlined_from.find("Dot") != std::string::npos, std::string(name) == "inlined");
    }
  }
}

TEST_P(KernelsTest, NestOfThree) {
  const FunctionFacts function = Named("triple");
  int deepest = 0;
  for (const LoopFacts& loop : function.loops) {
    deepest = std::max(deepest, loop.depth);
    EXPECT_EQ(loop.innermost, loop.depth == 3);
    EXPECT_EQ(loop.parent_header == 0, loop.depth == 1);
    if (loop.depth == 1) ExpectLines(loop, marks_.at("triple"));
    if (loop.depth == 3) ExpectLines(loop, marks_.at("triple-inner"));
  }
  EXPECT_EQ(deepest, 3);
}

// Spans cover exactly the loops' own code: each address of a span lies in its loop, and the sizes add up.
TEST_P(KernelsTest, SpansBelongToTheirLoops) {
  for (const char* name : {"single", "triple", "switched", "inlined", "calls", "chase"}) {
    SCOPED_TRACE(name);
    const FunctionFacts function = Named(name);
    uint64_t end = 0;
    std::vector<bool> seen(function.loops.size(), false);
    for (const LoopSpan& span : function.spans) {
      EXPECT_GE(span.low, end);
      EXPECT_LT(span.low, span.high);
      end = span.high;
      ASSERT_LT(span.loop, function.loops.size());
      const LoopFacts& loop = function.loops[span.loop];
      seen[span.loop] = true;
      EXPECT_GE(span.low, loop.low);
      EXPECT_LE(span.high, loop.high);
      EXPECT_EQ(InnermostLoop(function, span.low), &loop);
      EXPECT_EQ(InnermostLoop(function, span.high - 1), &loop);
    }
    EXPECT_THAT(seen, ::testing::Each(true));
    EXPECT_EQ(InnermostLoop(function, function.low), nullptr);
  }
}

TEST_P(KernelsTest, NoLoopWhereThereIsNone) {
  EXPECT_THAT(Named("straight").loops, IsEmpty());
}

TEST_P(KernelsTest, DeclarationLine) {
  const FunctionFacts function = Named("single");
  EXPECT_EQ(function.declaration.first_line, marks_.at("single").first - 2);
}

INSTANTIATE_TEST_SUITE_P(Builds, KernelsTest,
                         ::testing::Values("kernels-gcc-O0", "kernels-gcc-O2", "kernels-gcc-O3",
                                           "kernels-clang-O0", "kernels-clang-O2",
                                           "kernels-clang-O3", "kernels-gcc-O2-nopie",
                                           "kernels-clang-O2-nopie", "kernels-gcc-O2-cet",
                                           "kernels-gcc-O2-dwarf4"));

TEST(ModuleReaderTest, StrippedBinaryHasTheSameLoopsWithoutNames) {
  auto full = OpenModule("kernels-gcc-O2");
  auto stripped = OpenModule("kernels-gcc-O2-stripped");
  EXPECT_TRUE(full->facts().has_lines);
  EXPECT_FALSE(stripped->facts().has_lines);
  EXPECT_FALSE(stripped->facts().has_symbols);
  EXPECT_EQ(full->facts().build_id, stripped->facts().build_id);
  for (const char* name : {"single", "triple", "switched"}) {
    const FunctionFacts known = FunctionNamed(*full, "kernels-gcc-O2", name);
    const FunctionFacts bare = FunctionAt(*stripped, known.low + 4);
    EXPECT_THAT(bare.name, ::testing::StartsWith("sub_"));
    EXPECT_EQ(bare.source, FunctionSource::kEhFrame);
    ASSERT_EQ(bare.loops.size(), known.loops.size()) << name;
    for (size_t i = 0; i < known.loops.size(); ++i) {
      EXPECT_EQ(bare.loops[i].header, known.loops[i].header);
      EXPECT_EQ(bare.loops[i].high, known.loops[i].high);
      EXPECT_EQ(bare.loops[i].source, SourceRange());
    }
  }
}

TEST(ModuleReaderTest, SeparateDebugFileGivesEverythingBack) {
  auto full = OpenModule("kernels-gcc-O2");
  auto pair = OpenModule("kernels-gcc-O2-stripped", "kernels-gcc-O2.debug");
  ModuleFacts facts = pair->facts();
  EXPECT_NE(facts.file, full->facts().file);
  facts.file = full->facts().file;
  EXPECT_EQ(facts, full->facts());
  const uint64_t address = SymbolAddress(Fixture("kernels-gcc-O2"), "triple");
  EXPECT_EQ(FunctionAt(*pair, address), FunctionAt(*full, address));
}

TEST(ModuleReaderTest, OfADebugFileTheNamesCanBeReadAlone) {
  auto names = OpenModule("kernels-gcc-O2-stripped", "kernels-gcc-O2.debug", ModuleDetail::kNames);
  EXPECT_TRUE(names->facts().has_symbols);
  EXPECT_FALSE(names->facts().has_lines);
  EXPECT_TRUE(names->facts().lines_unread);
  const uint64_t address = SymbolAddress(Fixture("kernels-gcc-O2"), "triple");
  const auto function = FunctionAt(*names, address);
  EXPECT_EQ(function.name, "triple");
  EXPECT_EQ(function.loops.size(), FunctionAt(*OpenModule("kernels-gcc-O2"), address).loops.size());
  EXPECT_TRUE(function.declaration.file.empty());
  // Lines in the file itself are always read.
  auto full = OpenModule("kernels-gcc-O2", "", ModuleDetail::kNames);
  EXPECT_TRUE(full->facts().has_lines);
  EXPECT_FALSE(full->facts().lines_unread);
}

TEST(ModuleReaderTest, DebugFileOfAnotherModuleIsIgnored) {
  auto pair = OpenModule("kernels-clang-O2-stripped", "kernels-gcc-O2.debug");
  EXPECT_FALSE(pair->facts().has_lines);
  EXPECT_FALSE(pair->facts().has_symbols);
}

TEST(ModuleReaderTest, EachFunctionOnceAndTheRestUnresolved) {
  auto reader = OpenModule("kernels-gcc-O2-nodebug");
  const uint64_t single = SymbolAddress(Fixture("kernels-gcc-O2-nodebug"), "single");
  const uint64_t chase = SymbolAddress(Fixture("kernels-gcc-O2-nodebug"), "chase");
  const CodeFacts code =
      reader->FunctionsAt(std::vector<ElfAddress>{chase, single + 1, single, 1, UINT64_MAX, 1});
  ASSERT_EQ(code.functions.size(), 2U);
  EXPECT_EQ(code.functions[0].name, "single");
  EXPECT_EQ(code.functions[1].name, "chase");
  EXPECT_THAT(code.unresolved, ::testing::ElementsAre(1, UINT64_MAX));
}

TEST(ModuleReaderTest, OpenMpBodiesAreFoundWithTheirLines) {
  const Marked mark = Marks("team.c").at("team");
  for (const char* fixture : {"team-gcc", "team-clang"}) {
    SCOPED_TRACE(fixture);
    auto reader = OpenModule(fixture);
    const bool gcc = std::string(fixture) == "team-gcc";
    const std::string name = gcc ? "main._omp_fn.0" : ".omp_outlined.";
    const FunctionFacts function = FunctionNamed(*reader, fixture, name);
    EXPECT_EQ(function.openmp, OpenMpKind::kOutlined);
    ASSERT_FALSE(function.loops.empty());
    for (const LoopFacts& loop : function.loops) {
      EXPECT_THAT(loop.source.file, HasSubstr("team.c"));
      EXPECT_GE(loop.source.first_line, mark.first - 1);  // the pragma's line at the earliest
      EXPECT_LE(loop.source.last_line, mark.last);
    }
    EXPECT_EQ(FunctionNamed(*reader, fixture, "main").openmp, OpenMpKind::kNone);
  }
}

class ShapesTest : public ::testing::Test {
 protected:
  std::vector<LoopFacts> Loops(const std::string& name) {
    return FunctionNamed(*reader_, "shapes", name).loops;
  }
  uint64_t Label(const std::string& name) { return SymbolAddress(Fixture("shapes"), name); }

  std::unique_ptr<ModuleReader> reader_ = OpenModule("shapes");
};

TEST_F(ShapesTest, ThreeDeep) {
  const auto loops = Loops("nest3");
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_EQ(loops[0].header, Label("nest3_outer"));
  EXPECT_EQ(loops[1].header, Label("nest3_middle"));
  EXPECT_EQ(loops[2].header, Label("nest3_inner"));
  EXPECT_EQ(loops[2].parent_header, loops[1].header);
  EXPECT_EQ(loops[1].parent_header, loops[0].header);
  EXPECT_EQ(loops[2].depth, 3);
  EXPECT_EQ(loops[2].instruction_count, 3);
  EXPECT_EQ(loops[2].block_count, 1);
  EXPECT_EQ(loops[0].instruction_count, 11);
  EXPECT_FALSE(loops[0].innermost);
  EXPECT_TRUE(loops[2].innermost);
}

TEST_F(ShapesTest, EachAddressIsInItsInnermostLoop) {
  const FunctionFacts nest = FunctionNamed(*reader_, "shapes", "nest3");
  const auto header_at = [&nest](uint64_t address) {
    const LoopFacts* loop = InnermostLoop(nest, address);
    return loop == nullptr ? 0 : loop->header;
  };
  EXPECT_EQ(header_at(nest.low), 0U);
  EXPECT_EQ(header_at(Label("nest3_outer")), Label("nest3_outer"));
  EXPECT_EQ(header_at(Label("nest3_middle")), Label("nest3_middle"));
  EXPECT_EQ(header_at(Label("nest3_inner")), Label("nest3_inner"));
  EXPECT_EQ(header_at(nest.loops[2].high - 1), Label("nest3_inner"));
  EXPECT_EQ(header_at(nest.loops[2].high), Label("nest3_middle"));
  EXPECT_EQ(header_at(nest.loops[1].high), Label("nest3_outer"));
  EXPECT_EQ(header_at(nest.loops[0].high), 0U);  // ret
}

TEST_F(ShapesTest, SiblingsShareAParent) {
  const auto loops = Loops("siblings");
  ASSERT_EQ(loops.size(), 3U);
  EXPECT_EQ(loops[1].parent_header, loops[0].header);
  EXPECT_EQ(loops[2].parent_header, loops[0].header);
  EXPECT_EQ(loops[2].header, Label("siblings_second"));
  EXPECT_EQ(loops[2].instruction_count, 3);
}

TEST_F(ShapesTest, TwoBackEdgesToOneHeaderAreOneLoop) {
  const auto loops = Loops("shared_header");
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_EQ(loops[0].header, Label("shared_header_top"));
  EXPECT_EQ(loops[0].block_count, 3);
  EXPECT_EQ(loops[0].high, Label("shared_header_done"));
}

TEST_F(ShapesTest, CycleWithTwoEntriesIsIrreducible) {
  const auto loops = Loops("two_entries");
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_TRUE(loops[0].irreducible);
  EXPECT_EQ(loops[0].low, Label("two_entries_a"));
  EXPECT_EQ(loops[0].high, Label("two_entries_done"));
}

TEST_F(ShapesTest, CodeAfterACallThatNeverReturnsIsNoSecondEntry) {
  const auto loops = Loops("never");
  ASSERT_EQ(loops.size(), 1U);
  EXPECT_FALSE(loops[0].irreducible);
  EXPECT_EQ(loops[0].header, Label("never_top"));
}

TEST_F(ShapesTest, WhetherACalleeReturnsIsSeenInItsCode) {
  const auto fails = Loops("fails");
  ASSERT_EQ(fails.size(), 1U);
  EXPECT_FALSE(fails[0].irreducible);
  const auto goes_on = Loops("goes_on");
  ASSERT_EQ(goes_on.size(), 1U);
  EXPECT_TRUE(goes_on[0].irreducible);
}

TEST_F(ShapesTest, FunctionsWithoutSize) {
  EXPECT_EQ(Loops("no_size").size(), 1U);
  EXPECT_EQ(Loops("bare").size(), 1U);
}

}  // namespace
}  // namespace perfd::agent
