#include "core/analysis/jobs/job_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd {
namespace {

TEST(JobLineTest, AMeasuredJob) {
  EXPECT_EQ(JobLine(MeasuredReport()),
            "perfd p-000042: 50% in 1 loop; lulesh.cc:812 memory bound 0.97 (gain 36%); cost 1.8%; "
            "missing 1.2%");
}

TEST(JobLineTest, ASampledJobHasItsHeaviestLoop) {
  Report report = SampleReport();
  report.loops[1].hot = true;
  report.missing_ratio = 0.0099;
  EXPECT_EQ(JobLine(report), "perfd p-000042: 75% in 2 loops; lulesh.cc:812 50%; cost 1.5%");
  report.missing_ratio = 0.01;
  EXPECT_EQ(JobLine(report),
            "perfd p-000042: 75% in 2 loops; lulesh.cc:812 50%; cost 1.5%; missing 1.0%");
}

TEST(JobLineTest, TheSaturationIsTheOneBehindTheVerdict) {
  Report report = MeasuredReport();
  report.findings.verdicts[0].bound = Bound::kArithmetic;
  EXPECT_NE(JobLine(report).find("arithmetic bound 0.20 (gain"), std::string::npos);
  report.findings.verdicts[0].bound = Bound::kBalanced;
  EXPECT_NE(JobLine(report).find("balanced (gain"), std::string::npos);
  report.findings.verdicts[0].bound = Bound::kUnknown;  // the refused loop tells nothing either
  EXPECT_NE(JobLine(report).find("; lulesh.cc:812 50%;"), std::string::npos);
}

TEST(JobLineTest, StatesAreSaid) {
  Report report = SampleReport();
  report.status.state = ProfileState::kPartial;
  EXPECT_EQ(JobLine(report).substr(0, 32), "perfd p-000042: partial: 50% in ");
  report.status.state = ProfileState::kSampling;
  EXPECT_EQ(JobLine(report).substr(0, 31), "perfd p-000042: so far: 50% in ");
  report.status.state = ProfileState::kFailed;
  EXPECT_EQ(JobLine(report), "perfd p-000042: failed");
  report.status.notices.push_back(
      {Notice::Severity::kError, absl::StatusCode::kNotFound, "", 0, "no rank of 'app' | found"});
  EXPECT_EQ(JobLine(report), "perfd p-000042: failed: no rank of _app_ _ found");
}

TEST(JobLineTest, NothingMeasured) {
  Report report;
  report.status.id = "p-000001";
  report.status.state = ProfileState::kCancelled;
  EXPECT_EQ(JobLine(report), "perfd p-000001: cancelled: no samples");
  report.status.samples = 10;
  EXPECT_EQ(JobLine(report), "perfd p-000001: cancelled: no hot loops; cost 0%");
}

TEST(JobLineTest, ForeignNamesAreHarmlessAndBounded) {
  Report report = MeasuredReport();
  CodeLocation& at = report.loops[0].location;
  at.source.file = "/src/$(reboot)`\"'\\|;\n\x1b[31m\xc3\xa9.c";
  std::string line = JobLine(report);
  EXPECT_NE(line.find("_(reboot)_"), std::string::npos) << line;
  for (const char c : line)
    EXPECT_TRUE(c >= ' ' && c <= '~' &&
                std::string("$`\"'\\|<>&*?![]{}~#=^@").find(c) == std::string::npos)
        << line;
  at.source.file = std::string(5000, 'x');
  line = JobLine(report);
  EXPECT_LE(line.size(), kMaxJobLine);
  EXPECT_NE(line.find("memory bound 0.97 (gain 36%)"), std::string::npos) << line;
  report.status.state = ProfileState::kFailed;
  report.status.notices = {
      {Notice::Severity::kError, absl::StatusCode::kInternal, "", 0, std::string(1000, 'y')}};
  EXPECT_EQ(JobLine(report).size(), kMaxJobLine);
}

}  // namespace
}  // namespace perfd
