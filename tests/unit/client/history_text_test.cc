#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/render/history/csv.h"
#include "client/render/history/text.h"
#include "core/json/history_json.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"
#include "tests/unit/client/sample_history.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd::client {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Rendered(const ProgramHistory& history, TextStyle style = {}) {
  return RenderHistory(history, LoopsOverTime(history.profiles), {style, 12});
}

TEST(HistoryTextTest, SaysWhatGotSlowerAndSinceWhen) {
  const std::string text = Rendered(SampleHistory());
  EXPECT_THAT(text, HasSubstr("app: 8 profiles, 2023-11-14 to 2023-11-21, 4 ranks each\n"));
  EXPECT_THAT(text,
              HasSubstr("slower since p-000005 (2023-11-18): 10.0 -> 15.0 cycles an iteration "
                        "(+50 %)"));
  EXPECT_THAT(text, HasSubstr("steady"));
  EXPECT_THAT(text, HasSubstr("lighter since p-000005 (2023-11-18): 30.0% -> 20.0% (-33 %)"));
  EXPECT_THAT(text, HasSubstr("heavier, lighter: of the job's time"));
  // What changed comes first.
  EXPECT_LT(text.find("slower since"), text.find("steady"));
  EXPECT_LT(text.find("lighter since"), text.find("steady"));
}

TEST(HistoryTextTest, TooFewProfilesSaySo) {
  ProgramHistory history = SampleHistory();
  history.profiles.resize(5);
  const std::string text = Rendered(history);
  EXPECT_THAT(text, HasSubstr("too few profiles"));
  EXPECT_THAT(text, Not(HasSubstr("since")));
  EXPECT_THAT(text, HasSubstr("from 3 profiles on each side"));
  history.profiles.resize(1);
  history.profiles[0].loops.clear();
  history.incomplete = "more";
  EXPECT_THAT(Rendered(history), HasSubstr("app: 1 profile, 2023-11-14 to 2023-11-14"));
  EXPECT_THAT(Rendered(history), HasSubstr("\nmore\n"));
  EXPECT_THAT(Rendered(history), HasSubstr("None of them has loops."));
}

TEST(HistoryTextTest, JobsOfDifferentSizesAreToldApart) {
  ProgramHistory history = SampleHistory();
  history.profiles[2].ranks = 64;
  EXPECT_THAT(Rendered(history), HasSubstr("of 4 to 64 ranks: jobs of different sizes"));
}

TEST(HistoryTextTest, SparkIsFromZeroToTheLargest) {
  const ProgramHistory history = SampleHistory();
  const std::vector<LoopSeries> series = LoopsOverTime(history.profiles);
  EXPECT_EQ(Spark(series[0], {}), "++++####");  // 10 and 15 cycles: 5/7 and 7/7
  TextStyle utf8;
  utf8.utf8 = true;
  EXPECT_EQ(Spark(series[0], utf8), "▆▆▆▆████");
  LoopSeries gaps = series[0];
  gaps.at = {0, 7};
  gaps.points = {{0, 0, 0}, {15, 15, 15}};
  EXPECT_EQ(Spark(gaps, {}), "_      #");
  LoopSeries longer = gaps;
  longer.loops.resize(kMaxSpark + 3);
  longer.at = {kMaxSpark + 2};
  longer.points = {{1, 1, 1}};
  EXPECT_EQ(Spark(longer, {}), std::string(kMaxSpark - 1, ' ') + "#");
}

TEST(HistoryTextTest, OneLoopProfileByProfile) {
  ProgramHistory history = SampleHistory();
  history.profiles[1].loops.erase(history.profiles[1].loops.begin());
  const std::vector<LoopSeries> series = LoopsOverTime(history.profiles);
  const auto found = FindSeries(series, "kernel");
  ASSERT_TRUE(found.ok()) << found.status();
  const std::string text = RenderLoopHistory(history, **found, {});
  EXPECT_THAT(text, HasSubstr("kernel  app.c:10-14\n"));
  EXPECT_THAT(text, HasSubstr("p-000008"));
  EXPECT_THAT(text, HasSubstr("50.0% [49.0, 51.0]"));
  EXPECT_THAT(text, HasSubstr("memory bound?"));
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, "p-00000")).size(), 10u);  // 8, and since
  EXPECT_EQ(*FindSeries(series, "aa0000"), *found);
  EXPECT_EQ(FindSeries(series, "nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindSeries(series, "").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HistoryTextTest, ForeignNamesAreCleaned) {
  ProgramHistory history = SampleHistory();
  history.command = "a\x1b[31m";
  for (HistoryProfile& profile : history.profiles) profile.loops[0].function = "\x1b]0;x\x07";
  const std::string text = Rendered(history);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(HistoryCsvTest, ALineForEachLoopInEachProfile) {
  const ProgramHistory history = SampleHistory();
  const std::string csv = RenderHistoryCsv(history, LoopsOverTime(history.profiles));
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  EXPECT_EQ(lines.size(), 1 + 8 * 3 + 1u);
  EXPECT_EQ(lines[0].rfind("loop,profile,started_unix_ns,job,", 0), 0u);
  EXPECT_EQ(lines[1],
            "aa00000000000008,p-000001,1700000000000000000,,alice,4,1,build1,aa00000000000001,"
            "kernel,/src/app.c,10,0.5,0.49,0.51,1000,100,memory bound,0,0.1,,,,1,2");
}

TEST(HistoryJsonTest, HasEveryFigure) {
  const ProgramHistory history = SampleHistory();
  const Json json = HistoryToJson(history, LoopsOverTime(history.profiles));
  EXPECT_EQ(json["command"], "app");
  EXPECT_EQ(json["profiles"].size(), 8u);
  EXPECT_EQ(json["profiles"][0]["build"], "build1");
  const Json& loop = json["loops"][0];
  EXPECT_EQ(loop["quantity"], "cycles_per_iteration");
  EXPECT_EQ(loop["verdict"], "up");
  EXPECT_EQ(loop["since"], "p-000005");
  EXPECT_EQ(loop["before"], 10);
  EXPECT_EQ(loop["points"].size(), 8u);
  EXPECT_EQ(loop["points"][7]["bound"], "memory_bound");
  EXPECT_EQ(json["loops"][2]["since"], nullptr);
}

TEST(HistoryFromJsonTest, AReportAsJson) {
  const auto profile = HistoryFromReportJson(JsonLine(ReportToJson(SampleReport())));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(*profile, ToHistory(SampleReport()));
  Report report = MeasuredReport();
  VariantFigures ref = report.findings.verdicts[0].ranks[0].measurement.figures[0];
  ref.variant = "REF";
  for (RankVerdict& rank : report.findings.verdicts[0].ranks) {
    rank.measurement.trips.decile[5] = 64 + rank.measurement.rank;
    rank.measurement.figures.push_back(ref);
    ref.cycles += 10;
  }
  const auto measured = HistoryFromReportJson(JsonLine(ReportToJson(report)));
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(*measured, ToHistory(report));
  EXPECT_EQ(measured->loops[0].iterations, 65);  // the second is nearer to the summary's
}

TEST(HistoryFromJsonTest, WhateverTheFileHolds) {
  for (const char* text : {"", "x", "[]", "{}", "null", "{\"status\": 1}",
                           "{\"status\": {\"id\": 7}}", "[[[[[[", "{\"status\": {\"id\": \"\"}}"})
    EXPECT_EQ(HistoryFromReportJson(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  const auto odd = HistoryFromReportJson(
      R"({"status": {"id": "p-1", "state": "NEW", "started_unix_ns": 1e30, "requester": []},
          "ranks": {"command": 1}, "nodes": 3, "job": {"slurm_job": -1, "command": "c"},
          "verdicts": [null, {"loop_id": "a", "gains": [1], "variants": [{"variant": "REF", "cycles": "x"}],
          "ranks": [{"figures": 1}], "sure": "yes", "bound": "of another version"}],
          "loops": [null, 5, {"id": "a", "first_line": -3, "last_line": 1e99, "share": 7, "loop": 5, "module": 1}]})");
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->command, "c");
  EXPECT_EQ(odd->ranks, 0);
  ASSERT_EQ(odd->loops.size(), 3u);
  EXPECT_EQ(odd->loops[2].first_line, 0);
  EXPECT_EQ(odd->loops[2].last_line, INT32_MAX);
  EXPECT_EQ(odd->loops[2].cpu.share, 1);
  EXPECT_EQ(odd->loops[2].bound, Bound::kUnknown);
  // Deep enough to end a parser that calls itself.
  EXPECT_FALSE(HistoryFromReportJson(std::string(1'000'000, '[')).ok());
}

}  // namespace
}  // namespace perfd::client
