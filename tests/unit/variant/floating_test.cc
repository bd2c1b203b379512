// Generated loops that compute on floating point, in SSE, AVX and AVX-512: copies that change nothing return the same bits, and
// every variant goes the way of the loop, also where a comparison of values decides it.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "absl/strings/match.h"
#include "tests/unit/variant/generated_run.h"

namespace perfd::agent {
namespace {

class FloatingTest : public GeneratedRun, public testing::WithParamInterface<Floats> {
 protected:
  void SetUp() override {
    GeneratedRun::SetUp();
    if (!CanRun(GetParam())) GTEST_SKIP() << "this CPU lacks the instructions";
  }
};

// What the loops are made of, lest the tests below prove nothing.
TEST_P(FloatingTest, LoopsHoldEveryKindOfInstruction) {
  std::map<std::string, int> seen;
  for (int n = 0; n < 200; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next(GetParam()));
    for (const LoopInstruction& i : code_.instructions) {
      const absl::string_view name = i.mnemonic;
      if (!i.Is(kFloating)) continue;
      const bool scalar = absl::EndsWith(name, "sd") || absl::EndsWith(name, "ss");
      ++seen[scalar ? "scalar" : "packed"];
      ++seen[absl::EndsWith(name, "d") ? "double" : "single"];
      if (i.Accesses()) ++seen["with memory"];
      if (i.Is(kDivides)) ++seen["division"];
      if (i.Is(kSquareRoots)) ++seen["square root"];
      if (absl::StrContains(name, "comis")) ++seen["comparison"];
      if (absl::StrContains(name, "fmadd")) ++seen["fused"];
      if (i.destination_bytes == 32) ++seen["256 bits"];
      if (i.destination_bytes == 64) ++seen["512 bits"];
      if (i.Is(kMergeMasked)) ++seen["merging mask"];
      if (i.mask > 0 && !i.Is(kMergeMasked)) ++seen["zeroing mask"];
      if (i.Is(kBroadcasts)) ++seen["broadcast"];
      if (i.Is(kRounds)) ++seen["rounding"];
    }
  }
  std::vector<std::string> kinds = {"scalar",      "packed",   "double",      "single",
                                    "with memory", "division", "square root", "comparison"};
  if (GetParam() != Floats::kSse) kinds.insert(kinds.end(), {"fused", "256 bits"});
  if (GetParam() == Floats::kEvex)
    kinds.insert(kinds.end(),
                 {"512 bits", "merging mask", "zeroing mask", "broadcast", "rounding"});
  for (const std::string& kind : kinds) EXPECT_GT(seen[kind], 50) << kind;
}

TEST_P(FloatingTest, CopiesThatChangeNothingReturnTheSameBits) {
  const VariantName names[] = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                               SingleVariant(Change::kTrace), SingleVariant(Change::kPrefetch, 50),
                               SingleVariant(Change::kRefFtz)};
  int moved = 0;
  for (int n = 0; n < 1000; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next(GetParam()));
    const Outcome original = Run(loop_.bytes.header);
    ASSERT_NE(original.exit, 0u);
    ASSERT_TRUE(AllFinite(GetParam(), original.state, original.memory)) << "loop " << n;
    moved += original.state == start_ ? 0 : 1;
    for (const VariantName& name : names) {
      const auto copy = Copy(name);
      ASSERT_TRUE(copy.ok()) << name.Text() << " of loop " << n << ": " << copy.status();
      const Outcome outcome = RunCopy(*copy);
      ASSERT_EQ(outcome.exit, original.exit) << name.Text() << " of loop " << n;
      ASSERT_TRUE(outcome.SameResults(original)) << name.Text() << " of loop " << n;
    }
  }
  EXPECT_GT(moved, 990);
}

// Of one variant, over all loops.
struct Tally {
  int made = 0;
  int refused = 0;
  int changed = 0;    // loops in which something was changed
  int different = 0;  // loops that then computed something else
};

TEST_P(FloatingTest, EveryVariantKeepsTripsAndExits) {
  std::map<std::string, Tally> tallies;
  for (int n = 0; n < 200; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next(GetParam()));
    const Outcome original = Run(loop_.bytes.header);
    const auto count = StubCopy(SingleVariant(Change::kCount));
    ASSERT_TRUE(count.ok()) << count.status();
    const uint64_t passes = RunCopy(*count).passes;
    for (const VariantName& name : GeneratedVariants()) {
      if (name.Has(Change::kGroup) && code_.groups == 0) continue;
      Tally& tally = tallies[name.Text()];
      const auto copy = Copy(name);
      if (!copy.ok()) {
        ++tally.refused;
        const absl::StatusCode code = copy.status().code();
        ASSERT_TRUE(code == absl::StatusCode::kFailedPrecondition ||
                    code == absl::StatusCode::kUnimplemented)
            << copy.status();
        continue;
      }
      const Outcome outcome = RunCopy(*copy);
      ASSERT_TRUE(outcome.SamePath(original)) << name.Text() << " of loop " << n;
      ++tally.made;
      tally.changed += copy->changed.empty() ? 0 : 1;
      tally.different += outcome.SameResults(original) ? 0 : 1;
      const auto counted = StubCopy(Counted(name));
      ASSERT_TRUE(counted.ok()) << name.Text() << " of loop " << n << ": " << counted.status();
      ASSERT_EQ(RunCopy(*counted).passes, passes) << name.Text() << " of loop " << n;
    }
  }
  for (const auto& [name, tally] : tallies) {
    std::printf("  %-16s made %d, refused %d; changed %d, other results %d\n", name.c_str(),
                tally.made, tally.refused, tally.changed, tally.different);
    EXPECT_GT(tally.made, 100) << name;
    const bool same = name == "REF_FTZ" || absl::StartsWith(name, "PREFETCH");
    if (same) {
      EXPECT_EQ(tally.different, 0) << name;
    } else {
      EXPECT_GT(tally.changed, 50) << name;
      EXPECT_GT(tally.different, 50) << name;
    }
  }
  EXPECT_EQ(tallies.size(), GeneratedVariants().size());
}

INSTANTIATE_TEST_SUITE_P(Encodings, FloatingTest,
                         testing::Values(Floats::kSse, Floats::kVex, Floats::kEvex), EncodingName);

}  // namespace
}  // namespace perfd::agent
