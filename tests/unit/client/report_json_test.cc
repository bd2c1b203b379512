#include "core/json/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json/status_json.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using nlohmann::json;

TEST(ReportJsonTest, HoldsEverythingUnderStableKeys) {
  const json report = json::parse(JsonLine(ReportToJson(SampleReport())));
  EXPECT_EQ(report["status"]["id"], "p-000042");
  EXPECT_EQ(report["status"]["state"], "DONE");
  ASSERT_EQ(report["loops"].size(), 2u);
  const json& loop = report["loops"][0];
  EXPECT_EQ(loop["id"], "3fa9c2d100000001");
  EXPECT_EQ(loop["function"], "compute_forces");
  EXPECT_EQ(loop["file"], "/src/lulesh.cc");
  EXPECT_EQ(loop["first_line"], 812);
  EXPECT_EQ(loop["last_line"], 821);
  EXPECT_EQ(loop["loop"]["depth"], 2);
  EXPECT_EQ(loop["loop"]["header"], "0x401000");
  EXPECT_EQ(loop["openmp"], true);
  EXPECT_EQ(loop["hot"], true);
  EXPECT_DOUBLE_EQ(loop["share_low"], 0.48);
  EXPECT_EQ(loop["ranks"][1]["node"], "node2");
  EXPECT_EQ(loop["threads"][0]["tid"], 101);
  EXPECT_EQ(report["waiting"][0]["waiting"], true);
  EXPECT_TRUE(report["functions"][0]["loop"].is_null());
  EXPECT_EQ(report["totals"]["outside_loops"]["samples"], 100);
  EXPECT_EQ(report["ranks"][1]["ended_early"], true);
  EXPECT_EQ(report["accounting"]["lost"], 7);
  EXPECT_EQ(report["accounting"]["dropped_total"], 5);
  EXPECT_EQ(report["nodes"][0]["event"], "cpu-clock");
  EXPECT_EQ(report["overhead"]["job_cpu_ns"], 5'000'000'000);
  EXPECT_EQ(report["provenance"], "sampled");
}

TEST(ReportJsonTest, CallPathsHaveSamplesAndTime) {
  Report sample = SampleReport();
  sample.stacks = {{0, {"main"}, 30}, {0, {"other"}, 10}, {7, {"nobody"}, 1}};
  const json report = json::parse(JsonLine(ReportToJson(sample)));
  EXPECT_EQ(report["stacks"][0]["samples"], 30);
  EXPECT_DOUBLE_EQ(report["stacks"][0]["seconds"].get<double>(), 1.875);
  EXPECT_DOUBLE_EQ(report["stacks"][1]["seconds"].get<double>(), 0.625);
  EXPECT_EQ(report["stacks"][2]["seconds"], 0.0) << "of no rank that is known";
}

TEST(ReportJsonTest, WhatActsOnATerminalIsEscaped) {
  const std::string text = "a\x7F\xC2\x9B\xE2\x80\xAE\xD8\x9C\xE2\x82\xAC\xF0\x9F\x98\x80";
  EXPECT_EQ(JsonLine(json(text)),
            "\"a\\u007f\\u009b\\u202e\\u061c\xE2\x82\xAC\xF0\x9F\x98\x80\"\n");
  EXPECT_EQ(json::parse(JsonLine(json(text))), json(text));
}

TEST(ReportJsonTest, KernelTimeHasItsCauses) {
  Report sample = SampleReport();
  sample.time.kernel = {{KernelCause::kPageFault, 30, 0.03, 0}, {KernelCause::kIo, 10, 0.01, 0}};
  sample.functions.emplace_back().location.category = Category::kKernel;
  sample.functions.back().location.kernel_cause = KernelCause::kPageFault;
  sample.functions.back().location.kernel_caller = "Touch";
  const json report = json::parse(JsonLine(ReportToJson(sample)));
  const json& causes = report["totals"]["kernel_causes"];
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0]["cause"], "page_faults");
  EXPECT_DOUBLE_EQ(causes[0]["share"], 0.03);
  EXPECT_EQ(causes[0]["samples"], 30);
  EXPECT_TRUE(causes[0]["wall_share"].is_null()) << "it is not divided";
  EXPECT_EQ(report["functions"][1]["kernel_cause"], "page_faults");
  EXPECT_EQ(report["functions"][1]["kernel_caller"], "Touch");
  EXPECT_TRUE(report["functions"][0]["kernel_cause"].is_null());
}

TEST(ReportJsonTest, TotalsAddToOne) {
  const json report = json::parse(JsonLine(ReportToJson(SampleReport())));
  double sum = 0;
  for (const char* key : {"loops", "outside_loops", "libraries", "kernel", "unknown"})
    sum += report["totals"][key]["share"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(ReportJsonTest, NamesThatAreNotUtf8StayParsable) {
  Report report = SampleReport();
  report.loops[0].location.function = "bad\xFFname";
  const std::string line = JsonLine(ReportToJson(report));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(json::accept(line));
}

TEST(ReportJsonTest, ErrorsNameTheirCode) {
  const json error = json::parse(JsonLine(ErrorToJson("not_found", "no profile", 3)));
  EXPECT_EQ(error["error"]["code"], "not_found");
  EXPECT_EQ(error["error"]["exit_code"], 3);
}

TEST(ReportJsonTest, DoctorIsOkWhenOnlyOptionalChecksFail) {
  const std::vector<DoctorReport> reports = {
      {"perfd", {{"a", true, false, "", ""}, {"b", false, true, "", "fix"}}}};
  EXPECT_EQ(DoctorToJson(reports)["ok"], true);
  EXPECT_EQ(DoctorToJson({{"n", {{"c", false, false, "", "fix"}}}})["ok"], false);
}

}  // namespace
}  // namespace perfd::client
