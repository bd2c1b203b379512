// Generated loops with loops inside, run natively: copies that change nothing return the same bits, and every variant makes the
// passes of the loop and of the loops inside.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/variant/generated_run.h"

namespace perfd::agent {
namespace {

class NestRunTest : public GeneratedRun, public testing::WithParamInterface<Floats> {
 protected:
  void SetUp() override {
    GeneratedRun::SetUp();
    if (!CanRun(GetParam())) GTEST_SKIP() << "this CPU lacks the instructions";
  }
  void NextNest() { Next(GetParam(), Nest::kLoops); }
};

// What the loops are, lest the tests below prove nothing.
TEST_P(NestRunTest, LoopsHoldOthers) {
  int nests = 0, deep = 0, repeated = 0;
  for (int n = 0; n < 300; ++n) {
    ASSERT_NO_FATAL_FAILURE(NextNest());
    nests += code_.inner.empty() ? 0 : 1;
    deep += std::any_of(code_.inner.begin(), code_.inner.end(), [this](const InnerLoop& inner) {
      return std::any_of(code_.inner.begin(), code_.inner.end(), [&](const InnerLoop& other) {
        return other.header != inner.header && inner.in[other.header];
      });
    });
    const auto count = Copy(SingleVariant(Change::kCount));
    ASSERT_TRUE(count.ok()) << count.status();
    const Outcome outcome = RunCopy(*count);
    repeated += outcome.inner_passes > 2 * outcome.passes ? 1 : 0;
  }
  EXPECT_GT(nests, 200);
  EXPECT_GT(deep, 50);
  EXPECT_GT(repeated, 50);
}

TEST_P(NestRunTest, CopiesThatChangeNothingReturnTheSameBits) {
  const VariantName names[] = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                               SingleVariant(Change::kTrace), SingleVariant(Change::kPrefetch, 50)};
  for (int n = 0; n < 500; ++n) {
    ASSERT_NO_FATAL_FAILURE(NextNest());
    const Outcome original = Run(loop_.bytes.header);
    ASSERT_NE(original.exit, 0u);
    for (const VariantName& name : names) {
      const auto copy = Copy(name);
      ASSERT_TRUE(copy.ok()) << name.Text() << " of loop " << n << ": " << copy.status();
      ASSERT_LE(copy->bytes.size(), CopyBound(code_, name));
      const Outcome outcome = RunCopy(*copy);
      ASSERT_EQ(outcome.exit, original.exit) << name.Text() << " of loop " << n;
      ASSERT_TRUE(outcome.SameResults(original)) << name.Text() << " of loop " << n;
    }
  }
}

TEST_P(NestRunTest, EveryVariantMakesThePassesOfAllLoops) {
  std::map<std::string, int> made, refused, changed;
  for (int n = 0; n < 250; ++n) {
    ASSERT_NO_FATAL_FAILURE(NextNest());
    const auto count = Copy(SingleVariant(Change::kCount));
    ASSERT_TRUE(count.ok()) << count.status();
    const Outcome original = RunCopy(*count);
    for (const VariantName& name : GeneratedVariants()) {
      if (name.Has(Change::kGroup) && code_.groups == 0) continue;
      const auto copy = Copy(Counted(name));
      ++(copy.ok() ? made : refused)[name.Text()];
      if (!copy.ok()) {
        const bool known =
            absl::IsFailedPrecondition(copy.status()) || absl::IsUnimplemented(copy.status());
        ASSERT_TRUE(known) << copy.status();
        continue;
      }
      changed[name.Text()] += static_cast<int>(copy->changed.size());
      const Outcome outcome = RunCopy(*copy);
      ASSERT_EQ(outcome.passes, original.passes) << name.Text() << " of loop " << n;
      ASSERT_EQ(outcome.inner_passes, original.inner_passes) << name.Text() << " of loop " << n;
      ASSERT_TRUE(outcome.SamePath(original)) << name.Text() << " of loop " << n;
      // What is timed does not count, and takes the same way.
      const auto timed = Copy(name);
      ASSERT_TRUE(timed.ok()) << timed.status();
      ASSERT_TRUE(RunCopy(*timed).SamePath(original)) << name.Text() << " of loop " << n;
    }
  }
  for (const auto& [name, count] : made)
    EXPECT_GT(count, 150) << name << ", refused " << refused[name];
  for (const char* name : {"LS", "FP", "DL1", "CTRL", "S2L", "NO_STORE"})
    EXPECT_GT(changed[name], 40) << name;
}

// As shadows run them. The limit is that of the loop's own passes, whatever the loops inside make.
TEST_P(NestRunTest, ALimitIsMetAtTheHeaderOfTheLoopItself) {
  int limited = 0;
  for (int n = 0; n < 200; ++n) {
    ASSERT_NO_FATAL_FAILURE(NextNest());
    for (const Change change : {Change::kCount, Change::kTrace}) {
      const auto copy = StubCopy(SingleVariant(change));
      ASSERT_TRUE(copy.ok()) << copy.status();
      const Outcome whole = RunCopy(*copy);
      const Outcome capped = RunCopy(*copy, 2);
      ASSERT_EQ(capped.passes, std::min<uint64_t>(2, whole.passes)) << "loop " << n;
      ASSERT_LE(capped.inner_passes, whole.inner_passes) << "loop " << n;
      ASSERT_EQ(capped.exit, 0u) << "a shadow copy notes no exit";
      limited += whole.passes > 2 ? 1 : 0;
    }
  }
  EXPECT_GT(limited, 50);
}

INSTANTIATE_TEST_SUITE_P(Encodings, NestRunTest,
                         testing::Values(Floats::kNone, Floats::kSse, Floats::kVex, Floats::kEvex),
                         EncodingName);

}  // namespace
}  // namespace perfd::agent
