#include "client/render/diff/report_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

Report With(std::vector<ReportRow> loops) {
  Report report = SampleReport();
  report.loops = std::move(loops);
  return report;
}

TEST(ReportDiffTest, SameIdsMatchAndOverlapIsNotSignificant) {
  const Report a = With({SampleLoop("1111", "f", 10, 0.50)});
  const Report b = With({SampleLoop("1111", "f", 10, 0.53)});
  const auto diffs = DiffReports(a, b);
  ASSERT_EQ(diffs.size(), 1u);
  EXPECT_EQ(diffs[0].match, LoopMatch::kSameId);
  EXPECT_NEAR(diffs[0].change, 0.03, 1e-12);
  EXPECT_FALSE(diffs[0].significant);  // [48, 52] and [51, 55]
}

TEST(ReportDiffTest, DisjointIntervalsAreSignificant) {
  const Report a = With({SampleLoop("1111", "f", 10, 0.50)});
  const Report b = With({SampleLoop("1111", "f", 10, 0.55)});
  EXPECT_TRUE(DiffReports(a, b)[0].significant);
}

TEST(ReportDiffTest, AnotherBuildMatchesByLinesThenByFunction) {
  const Report a = With({SampleLoop("1111", "f", 10, 0.5), SampleLoop("2222", "g", 20, 0.3)});
  const Report b = With({SampleLoop("3333", "f", 10, 0.5), SampleLoop("4444", "g", 27, 0.1)});
  const auto diffs = DiffReports(a, b);
  ASSERT_EQ(diffs.size(), 2u);
  EXPECT_EQ(diffs[0].match, LoopMatch::kSameFunction);
  EXPECT_EQ(diffs[0].b->id, "4444");
  EXPECT_EQ(diffs[1].match, LoopMatch::kSameLines);
}

// Two programs may have one build-id, given by hand.
TEST(ReportDiffTest, AnIdWhoseFunctionIsAnotherIsNoMatch) {
  const Report a =
      With({SampleLoop("1111", "Assemble", 5, 0.9), SampleLoop("2222", "Solve", 11, 0.1)});
  const Report b =
      With({SampleLoop("1111", "Solve", 6, 0.9), SampleLoop("2222", "Assemble", 11, 0.1)});
  for (const LoopDiff& diff : DiffReports(a, b)) {
    ASSERT_TRUE(diff.a != nullptr && diff.b != nullptr);
    EXPECT_EQ(diff.match, LoopMatch::kSameFunction);
    EXPECT_EQ(diff.a->location.function, diff.b->location.function);
    EXPECT_NEAR(std::abs(diff.change), 0.8, 1e-12);
  }
  const Report stripped = With({SampleLoop("1111", "sub_12f0", 0, 0.9)});
  EXPECT_EQ(DiffReports(stripped, With({SampleLoop("1111", "Solve", 6, 0.9)})).size(), 1u)
      << "a made name is no other one";
}

TEST(ReportDiffTest, AmbiguousLoopsAreNotPaired) {
  const Report a = With({SampleLoop("1111", "f", 10, 0.5), SampleLoop("2222", "f", 20, 0.3)});
  const Report b = With({SampleLoop("3333", "f", 15, 0.5)});
  int lonely = 0;
  for (const LoopDiff& diff : DiffReports(a, b)) {
    if (diff.a == nullptr || diff.b == nullptr) ++lonely;
  }
  EXPECT_EQ(lonely, 3);
}

TEST(ReportDiffTest, TextAndJson) {
  const Report a = With({SampleLoop("1111", "f", 10, 0.50)});
  const Report b = With({SampleLoop("1111", "f", 10, 0.40), SampleLoop("9999", "new", 5, 0.05)});
  const std::string text = RenderDiff(a, b, {});
  EXPECT_THAT(text, HasSubstr("  !   -10.0  50.0% [48.0, 52.0]  40.0% [38.0, 42.0]  f"));
  EXPECT_THAT(text, HasSubstr("only_in_b"));
  const auto json = DiffToJson(a, b);
  EXPECT_EQ(json["loops"][0]["significant"], true);
  EXPECT_TRUE(json["loops"][1]["a_share"].is_null());
}

Report Walled(std::vector<ReportRow> loops, double wall_share) {
  for (ReportRow& row : loops)
    row.wall = {wall_share, {wall_share - 0.01, wall_share + 0.01}, wall_share};
  Report report = With(std::move(loops));
  report.time.wall.emplace();
  return report;
}

TEST(ReportDiffTest, ElapsedTimeIsComparedOnlyWhereBothHaveIt) {
  const Report a = Walled({SampleLoop("1111", "f", 10, 0.50)}, 0.8);
  const Report b = Walled({SampleLoop("1111", "f", 10, 0.50)}, 0.6);
  const auto diffs = DiffReports(a, b);
  EXPECT_NEAR(diffs[0].change, -0.2, 1e-12);
  EXPECT_TRUE(diffs[0].significant);
  EXPECT_EQ(DiffToJson(a, b)["share_basis"], "wall");
  const Report old = With({SampleLoop("1111", "f", 10, 0.50)});
  EXPECT_NEAR(DiffReports(a, old)[0].change, 0, 1e-12);
  EXPECT_EQ(DiffToJson(a, old)["share_basis"], "cpu");
  EXPECT_THAT(RenderDiff(a, old, {}), HasSubstr("CPU time"));
}

}  // namespace
}  // namespace perfd::client
