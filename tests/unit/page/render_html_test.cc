#include "core/page/render_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/json/report_json.h"
#include "core/model/loop_verdict.h"
#include "core/model/provenance.h"
#include "core/page/page_cut.h"
#include "core/page/page_template.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/core/analysis/silent_loops.h"

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile[] = {
    "</script><script>harm()</script>",
    "</SCRIPT >",
    "<!--<script>",
    "]]>",
    "&lt;/script&gt;",
    "\xe2\x80\xa8\xe2\x80\xa9",  // U+2028, U+2029: ended lines of JavaScript once
    "\xe2\x80\xae.exe",          // U+202E turns what follows
    "\xff\xfe not UTF-8",
    "\\u003c/script\\u003e",
    "$& $1 {{report}} %s \\ \" ' `${harm()}`",
    "\x01\x1b[31m",
};

// The element's content.
std::string DataOf(const std::string& page) {
  const PageTemplate around = EmbeddedPage();
  EXPECT_TRUE(absl::StartsWith(page, around.before));
  EXPECT_TRUE(absl::EndsWith(page, around.after));
  return page.substr(around.before.size(),
                     page.size() - around.before.size() - around.after.size());
}

Report WithNames(const char* name) {
  Report report = SampleReport();
  report.loops[0].location.function = name;
  report.loops[0].location.source.file = name;
  report.loops[0].location.module_path = name;
  report.ranks[0].info.command = name;
  report.status.name = name;
  report.status.notices.push_back(
      {Notice::Severity::kError, absl::StatusCode::kInternal, name, 1, name});
  report.stacks.push_back({0, {name}, 1});
  report.nodes[0].node = name;
  LoopVerdict loop;
  loop.remarks = {name};
  loop.listings = {{name, {{1, name, name}}}};
  report.findings.verdicts.push_back(loop);
  return report;
}

TEST(RenderHtmlTest, HostileNamesStayInTheirData) {
  for (const char* name : kHostile) {
    const Report report = WithNames(name);
    const std::string data = DataOf(RenderHtml(report));
    EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '<' && c != '>' && c != '&';
    })) << name;
    // What the page reads is what JSON of the report says.
    const Json read = Json::parse(data);
    const std::string plain = ReportToJson(CutForPage(report).report)
                                  .dump(-1, ' ', false, Json::error_handler_t::replace);
    EXPECT_EQ(read, Json::parse(plain)) << name;
  }
}

TEST(RenderHtmlTest, DataEndWhereTheyShould) {
  const std::string page = RenderHtml(WithNames(kHostile[0]));
  const size_t begin = page.find(R"(<script type="application/json" id="report">)");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("</script", begin);
  EXPECT_EQ(page.substr(end, EmbeddedPage().after.size()), EmbeddedPage().after);
}

TEST(RenderHtmlTest, NumbersThatAreNoneBecomeNull) {
  Report report = SampleReport();
  report.imbalance = std::numeric_limits<double>::quiet_NaN();
  report.overhead_ratio = std::numeric_limits<double>::infinity();
  const Json data = Json::parse(DataOf(RenderHtml(report)));
  EXPECT_TRUE(data["imbalance"].is_null());
  EXPECT_TRUE(data["overhead_ratio"].is_null());
}

TEST(RenderHtmlTest, CallPathsKeepTheirTimeWhenOthersAreLeftOut) {
  Report report = SampleReport();
  report.stacks.assign(2001, {0, {"main"}, 1});
  const Json data = Json::parse(DataOf(RenderHtml(report)));
  ASSERT_EQ(data["stacks"].size(), 2000u);
  EXPECT_DOUBLE_EQ(data["stacks"][1999]["seconds"].get<double>(), 2.5 / 2001);
}

TEST(RenderHtmlTest, TellsWhatItLeavesOut) {
  Report report = SampleReport();
  EXPECT_FALSE(Json::parse(DataOf(RenderHtml(report))).contains("left_out"));
  report.ranks.resize(5000);
  const Json data = Json::parse(DataOf(RenderHtml(report)));
  EXPECT_EQ(data["ranks"].size(), 4096u);
  EXPECT_EQ(data["left_out"]["ranks"], 904);
}

TEST(RenderHtmlTest, SilentLoopsHaveNoNameAndNoGain) {
  Report report = SampleReport();
  report.findings.verdicts = {JudgedAs({MeasuredLoop()}, report.loops[0].id)};
  EXPECT_THAT(DataOf(RenderHtml(report)), HasSubstr("memory_bound"));
  for (const SilentLoop& loop : SilentLoops(report.loops[0].id)) {
    report.findings.verdicts = {loop.verdict};
    const std::string data = DataOf(RenderHtml(report));
    EXPECT_EQ(Json::parse(data)["verdicts"][0]["gains"].empty(), !loop.priced) << loop.what;
    EXPECT_EQ(Json::parse(data)["verdicts"][0]["bound"], "unknown") << loop.what;
    if (loop.why == Silence::kRanksDiffer) continue;
    EXPECT_THAT(data, Not(HasSubstr("_bound\""))) << loop.what;
  }
}

// "memory bound" is the key memory_bound in JSON, and so in the page's table of words.
TEST(RenderHtmlTest, ThePageKnowsEveryWord) {
  const std::string page(EmbeddedPage().after);
  const auto row = [](std::string word) {
    std::replace(word.begin(), word.end(), ' ', '_');
    return absl::StrCat("\n  ", word, ": ");
  };
  for (int bound = 0; bound < kBoundCount; ++bound) {
    if (static_cast<Bound>(bound) == Bound::kUnknown) continue;
    EXPECT_THAT(page, HasSubstr(row(BoundName(static_cast<Bound>(bound)))));
  }
  for (int source = 0; source <= static_cast<int>(Provenance::kEstimated); ++source)
    EXPECT_THAT(page, HasSubstr(row(ProvenanceName(static_cast<Provenance>(source)))));
  for (const char* variant : {"LS", "FP", "DL1", "NO_DIV", "NO_SQRT", "NO_RED", "NO_CALL", "S2L",
                              "NO_STORE", "GROUP", "PREFETCH", "CTRL"})
    EXPECT_THAT(page, HasSubstr(row(variant)));
}

TEST(RenderHtmlTest, SameReportSamePage) {
  EXPECT_EQ(RenderHtml(SampleReport()), RenderHtml(SampleReport()));
}

TEST(RenderHtmlTest, ThePageIsWholeAndNeedsNothingElse) {
  const std::string page = RenderHtml(Report{});
  EXPECT_TRUE(absl::StartsWith(page, "<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, HasSubstr("Permission to use, copy, modify"));
  for (const char* foreign : {" src=\"", "@import", "<link", "{{report", "{{hashes"})
    EXPECT_THAT(page, Not(HasSubstr(foreign))) << foreign;
  EXPECT_LT(page.size(), 500'000u);
}

}  // namespace
}  // namespace perfd
