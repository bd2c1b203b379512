#include "client/render/csv.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd::client {
namespace {

TEST(CsvTest, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("f(int, int)"), "\"f(int, int)\"");
  EXPECT_EQ(CsvField("operator\"\"_x"), "\"operator\"\"\"\"_x\"");
}

TEST(CsvTest, NoFormulasAndNoEscapeSequences) {
  EXPECT_EQ(CsvField("=HYPERLINK(\"http://x/\",\"y\")"),
            "\"'=HYPERLINK(\"\"http://x/\"\",\"\"y\"\")\"");
  EXPECT_EQ(CsvField("-1+1"), "'-1+1");
  EXPECT_EQ(CsvField("+1"), "'+1");
  EXPECT_EQ(CsvField("@SUM(1)"), "'@SUM(1)");
  EXPECT_EQ(CsvField("  =1+1"), "'  =1+1");
  EXPECT_EQ(CsvField(" "), " ");
  EXPECT_EQ(CsvField("\t=1"), "?=1");
  EXPECT_EQ(CsvField("\x1b]0;title\a"), "?]0;title?");
  EXPECT_EQ(CsvField("a\nb"), "a?b");
}

TEST(CsvTest, OneLinePerRowWithAllColumns) {
  const std::string csv = RenderCsv(SampleReport());
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);  // header, two loops, one waiting loop, one function
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 38) << line;
  EXPECT_EQ(lines[1],
            "loop,3fa9c2d100000001,0.5,0.48,0.52,0.5,1,500,compute_forces,/src/lulesh.cc,812,821,"
            "/opt/lulesh2.0,abc123,2,1,1,1,1.25,1.5,rank 1 on node2,1.2,2,,,,,,,,,,,,,,,0,");
  EXPECT_EQ(lines[4].substr(0, 26), "function,cafe000000000004,");
  Report walled = SampleReport();
  walled.loops[0].called.share = 0.125;
  walled.loops[0].wall = {0.8, {0.7, 0.9}, 0.85, {0.25, {0.2, 0.3}}};
  const std::vector<std::string> with_wall = absl::StrSplit(RenderCsv(walled), '\n');
  EXPECT_TRUE(absl::EndsWith(with_wall[1], ",2,0.8,0.7,0.9,0.85,,,,,,,,,,,0.125,0.25"))
      << with_wall[1];
}

TEST(CsvTest, VerdictsStandBehind) {
  const std::vector<std::string> lines = absl::StrSplit(RenderCsv(MeasuredReport()), '\n');
  EXPECT_TRUE(absl::EndsWith(lines[1], ",memory bound,0,0.36,0.3,0.42,DL1,2,2,0,")) << lines[1];
  EXPECT_TRUE(absl::EndsWith(lines[2], ",,,,,,,,,0,")) << "refused: " << lines[2];
  Report report = MeasuredReport();
  report.findings.verdicts[0].gains[0].ranks = {};
  EXPECT_TRUE(absl::StrContains(RenderCsv(report), ",DL1,,,0,\n"))
      << "of a perfd that does not tell";
}

}  // namespace
}  // namespace perfd::client
