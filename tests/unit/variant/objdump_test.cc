// Every variant of compiled, generated and hand-made loops, read by objdump.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/variant/compiled_library.h"
#include "tests/unit/variant/copy_sheet.h"
#include "tests/unit/variant/fixtures.h"
#include "tests/unit/variant/generated_run.h"

namespace perfd::agent {
namespace {

class ObjdumpTest : public testing::TestWithParam<const char*> {};

TEST_P(ObjdumpTest, EveryCopyIsWhatWasMeant) {
  Library library(PathOf(GetParam()));
  CopySheet sheet(library.cache());
  for (const char* kernel : kKernels) {
    for (const LoopBytes& bytes : library.Loops(library.Find(kernel))) {
      const auto code = DecodeLoop(bytes);
      if (code.ok()) sheet.AddLoop(*code, kernel);
    }
  }
  sheet.Check();
  const bool fortran = absl::StrContains(GetParam(), "fortran");
  EXPECT_GE(sheet.loops(), fortran ? 4u : 22u);
  for (const char* name :
       {"REF",      "COUNT",        "TRACE",        "LS",        "FP",        "DL1",
        "NO_DIV",   "NO_SQRT",      "NO_RED",       "NO_CALL",   "S2L",       "NO_STORE",
        "GROUP(0)", "PREFETCH(50)", "CTRL",         "REF_FTZ",   "REF_CTL",   "COUNT+LS",
        "COUNT+FP", "COUNT+DL1",    "COUNT+NO_DIV", "COUNT+S2L", "COUNT+CTRL"}) {
    const auto made = sheet.made_by_name().find(name);
    const auto refused = sheet.refused_by_name().find(name);
    const int count = made == sheet.made_by_name().end() ? 0 : made->second;
    const int against = refused == sheet.refused_by_name().end() ? 0 : refused->second;
    EXPECT_GT(count, 9 * against) << name;
  }
}

TEST_P(ObjdumpTest, EveryCopyOfALoopThatHoldsOthersIsWhatWasMeant) {
  Library library(PathOf(GetParam()));
  CopySheet sheet(library.cache());
  for (const char* kernel : kKernels) {
    for (const LoopBytes& bytes : library.Outers(library.Find(kernel))) {
      const auto code = DecodeLoop(bytes);
      if (code.ok()) sheet.AddLoop(*code, kernel);
    }
  }
  sheet.Check();
  if (absl::StrContains(GetParam(), "fortran")) return;
  EXPECT_GE(sheet.loops(), 5u);
  for (const char* name : {"REF", "COUNT", "TRACE", "LS", "FP", "DL1", "S2L", "COUNT+LS"})
    EXPECT_GE(sheet.made_by_name().at(name), 5) << name;
}

TEST_P(ObjdumpTest, EveryChainIsWhatWasMeant) {
  Library library(PathOf(GetParam()));
  CopySheet sheet(library.cache());
  for (const char* kernel : {"rows", "pairs", "walk", "matrix", "last"}) {
    for (const Library::Nest& nest : library.Nests(library.Find(kernel))) {
      const auto code = DecodeLoop(nest.inner);
      if (!code.ok() || nest.around.function.empty()) continue;
      const auto batch = DecodeBatch(*code, nest.around);
      if (batch.ok()) sheet.AddBatch(*batch, kernel);
    }
  }
  sheet.Check();
  if (absl::StrContains(GetParam(), "fortran")) return;
  EXPECT_GE(sheet.batches(), 2u);
  for (const char* name : {"REF", "COUNT", "TRACE", "LS", "FP", "S2L", "NO_STORE", "COUNT+LS"})
    EXPECT_GE(sheet.made_by_name().at(name), 2) << name;
}

INSTANTIATE_TEST_SUITE_P(Compilers, ObjdumpTest, testing::Values(PERFD_VARIANT_LIBRARIES),
                         LibraryTestName);

// The loops of the thesis, and one with a call: NO_CALL makes it NOPs, every other variant is refused for it.
TEST(ObjdumpFixtureTest, EveryCopyIsWhatWasMeant) {
  CopySheet sheet(0x500000);
  for (const char* hex : {kSvdcmp, kGroups, kDivide, kMerge, kChase, kHops, kWhile, kIndexed,
                          kTriad, kBound, kReuse}) {
    const auto code = DecodeLoop(FixtureBytes(hex));
    ASSERT_TRUE(code.ok()) << code.status();
    sheet.AddLoop(*code, hex);
  }
  // call far; addsd %xmm1, %xmm0; dec %rbx; jnz loop
  const auto calls = DecodeLoop(FixtureBytes("e8fb0f0000f20f58c148ffcb75f2"));
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_EQ(calls->calls.size(), 1u);
  EXPECT_EQ(sheet.refused_by_name().count("REF"), 0u);
  sheet.AddLoop(*calls, "call");
  EXPECT_EQ(sheet.refused_by_name().at("REF"), 1) << "a call cannot be copied";
  EXPECT_EQ(sheet.refused_by_name().count("NO_CALL"), 0u);
  for (const char* text : {"NO_CALL+LS", "NO_CALL+FP", "NO_CALL+NO_RED"})
    sheet.Add(*calls, *ParseVariantName(text), Exits::kStub, text);
  sheet.Check();
}

// The loops that other tests run, with operands that compilers seldom write: masks, broadcasts, rounding, relative ones.
class ObjdumpGeneratedTest : public GeneratedRun, public testing::WithParamInterface<Floats> {};

TEST_P(ObjdumpGeneratedTest, EveryCopyIsWhatWasMeant) {
  CopySheet sheet(arena_.copy());
  for (int n = 0; n < 30; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next(GetParam()));
    sheet.AddLoop(code_, absl::StrCat("loop ", n));
  }
  sheet.Check();
}

INSTANTIATE_TEST_SUITE_P(Encodings, ObjdumpGeneratedTest,
                         testing::Values(Floats::kNone, Floats::kSse, Floats::kVex, Floats::kEvex),
                         EncodingName);

}  // namespace
}  // namespace perfd::agent
