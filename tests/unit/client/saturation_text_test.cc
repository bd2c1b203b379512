#include "client/render/saturation_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/render/report_text.h"
#include "client/render/verdict_text.h"
#include "core/analysis/trip_classes.h"
#include "core/json/report_json.h"
#include "core/json/verdict_json.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/client/sample_verdicts.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGolden[] =
    R"(What a fix would save  (times in shadows of the running job; gains are estimated)
  LOOP       SHARE  VERDICT                   DATA       FUNCTION
  3fa9c2d1   50.0%  memory bound (unsure)     beyond L2  compute_forces  lulesh.cc:812-821
            best gain  36.0% [30.0, 42.0] perfect cache (DL1) of the job
            also       5.0% no stores
            LS            0.97 +-0.02   ###################   ranks 0.30..0.97
            FP            0.20 +-0.02   ####                  ranks 0.20..0.96
            DL1           0.40 +-0.02   ########              ranks 0.40..0.90  pinned 2 of 3
            1 of 2 ranks memory bound, 1 arithmetic bound; fidelity 1.02 +-0.01 (warm, 40 runs in 4 shadows, against 15 live instances); up to 62 runs in 12 instances
            open: S2L
            not NO_SQRT at 0x401020: no square root in the loop (2 times)
            1 rank differs from the others: see `loops --loop`
  77aa0000   25.0%  refused                              update  lulesh.cc:100-109
            refused: the loop calls malloc (2 times)
)";

TEST(SaturationTextTest, Golden) {
  EXPECT_EQ(RenderSaturations(MeasuredReport(), {}, 12), kGolden);
}

TEST(SaturationTextTest, BlocksWhereTheTerminalHasThem) {
  const std::string text =
      RenderSaturations(MeasuredReport(), {.utf8 = true, .color = false, .width = 100}, 12);
  EXPECT_THAT(text, HasSubstr("0.97 ±0.02"));
  EXPECT_THAT(text, HasSubstr("███████████████████▍"));
  EXPECT_THAT(text, Not(HasSubstr("#")));
}

TEST(SaturationTextTest, AnIntervalThatSaysNothingIsNotShownAsOne) {
  EXPECT_EQ(SaturationText({0.82, 0.50, 1.00}, {}), "0.82 +-0.32");
  EXPECT_EQ(SaturationText({0.82, 0.32, 1.00}, {}), "0.82 +-0.50");  // the limit itself
  EXPECT_EQ(SaturationText({0.82, 0.31, 1.00}, {}), "0.82 unsure");
  EXPECT_EQ(SaturationText({0.82, 0.70, 28.58}, {}), "0.82 unsure");
  EXPECT_EQ(SaturationText({2.00, 1.30, 2.20}, {}), "2.00 +-0.70") << "a third of what it is";
}

TEST(SaturationTextTest, OneRunHasNoInterval) {
  EXPECT_EQ(SaturationText({0.82, 0, 0}, {}), "0.82");
  Report report = MeasuredReport();
  report.findings.verdicts[0].variants[1].saturation = {0.97, 0, 0};
  EXPECT_THAT(RenderSaturations(report, {}, 12), HasSubstr("  LS            0.97          ###"));
  EXPECT_THAT(*RenderVerdict(report.findings.verdicts[0], {}), HasSubstr("  LS       REF   0.97  -   "));
  const auto json = VerdictToJson(report.findings.verdicts[0]);
  EXPECT_EQ(json["variants"][1]["has_interval"], false);
  EXPECT_EQ(json["variants"][2]["has_interval"], true);
  report.findings.verdicts[0].ranks[0].measurement.figures[0].valid_runs = 2;
  EXPECT_EQ(VerdictToJson(report.findings.verdicts[0])["ranks"][0]["figures"][0]["saturation"]["high"], 0);
  VerdictTextOptions options;
  options.rank = 0;
  EXPECT_THAT(*RenderVerdict(report.findings.verdicts[0], options), HasSubstr("LS       0.97  -   "));
}

TEST(SaturationTextTest, WhatSomeRanksHaveSaysHowMany) {
  Report report = MeasuredReport();
  LoopVerdict& loop = report.findings.verdicts[0];
  loop.gains[0].ranks = {1, 2};
  loop.gains[1].ranks = {1, 2};
  loop.variants[3].ranks = {1, 2};
  const std::string text = RenderSaturations(report, {}, 12);
  EXPECT_THAT(text, HasSubstr("perfect cache (DL1, measured on 1 of 2 ranks) of the job\n"));
  EXPECT_THAT(text, HasSubstr("also       5.0% no stores (1 of 2 ranks)\n"));
  EXPECT_THAT(text,
              HasSubstr("DL1           0.40 +-0.02   ########              1 of 2 ranks  pinned"));
  EXPECT_THAT(*RenderVerdict(loop, {}), HasSubstr("  1 of 2  "));
  const auto json = VerdictToJson(loop);
  EXPECT_EQ(json["gains"][0]["ranks"], 1);
  EXPECT_EQ(json["gains"][0]["ranks_asked"], 2);
  EXPECT_EQ(json["variants"][3]["ranks_asked"], 2);
  loop.gains[0].ranks = {};  // of a perfd that does not tell
  EXPECT_THAT(RenderSaturations(report, {}, 12), HasSubstr("perfect cache (DL1) of the job\n"));
}

TEST(SaturationTextTest, AFidelitySaysWhatItIsOfAndWhyItIsNotOne) {
  Fidelity fidelity{0.62, 0.57, 0.67, 15, 1, 1, CachesBefore::kWarm};
  EXPECT_EQ(FidelityText(fidelity, "warm", {}),
            "0.62 +-0.05 (warm, 1 run in 1 shadow, against 15 live instances)");
  fidelity.reason = FidelityReason::kWarmerCaches;
  EXPECT_THAT(FidelityText(fidelity, "warm", {}),
              HasSubstr("): runs repeated in place meet caches that the program does not"));
  fidelity.value = 0.95;
  EXPECT_THAT(FidelityText(fidelity, "warm", {}), Not(HasSubstr("caches that"))) << "near enough";
  EXPECT_EQ(FidelityText({0.62, 0.57, 0.67}, "", {}), "0.62 +-0.05") << "of an older perfd";
  Report report = MeasuredReport();
  report.findings.verdicts[0].fidelity.reason = FidelityReason::kColderCaches;
  const auto json = VerdictToJson(report.findings.verdicts[0])["fidelity"];
  EXPECT_EQ(json["live_instances"], 15);
  EXPECT_EQ(json["runs"], 40);
  EXPECT_EQ(json["shadows"], 4);
  EXPECT_EQ(json["caches"], "warm");
  EXPECT_EQ(json["reason"], "colder_caches");
}

TEST(SaturationTextTest, CpuTimeOfShadowsSaysWhereItIsCounted) {
  EXPECT_THAT(CostText({.shadows = 2}), Not(HasSubstr("CPU time")));
  EXPECT_THAT(CostText({.shadows = 2, .shadow_cpu_ns = 1'250'000'000}),
              HasSubstr(", CPU time of shadows 1.25 s (counted to the job's children)"));
}

TEST(SaturationTextTest, NothingToShow) {
  EXPECT_EQ(RenderSaturations(SampleReport(), {}, 12), "");
  EXPECT_EQ(RenderInjection(SampleReport()), "");
  EXPECT_THAT(RenderReport(SampleReport(), {}), Not(HasSubstr("What a fix would save")));
}

TEST(SaturationTextTest, LoopsOfOnePhaseSayWhenTheyWereSeen) {
  Report report = MeasuredReport();
  ReportRow& row = report.loops[0];
  ASSERT_EQ(row.id, report.findings.verdicts[0].loop_id);
  for (NodeCoverage& node : report.nodes) node.covered_ns = 60'000'000'000;
  row.samples = 1000;
  row.seen.first_ns = 12'000'000'000;
  row.seen.last_ns = 40'000'000'000;
  EXPECT_THAT(RenderSaturations(report, {}, 12),
              HasSubstr("\n            seen from 12 s to 40 s of 60 s\n"));
  EXPECT_THAT(RenderReport(report, {}), HasSubstr("threads 2  seen from 12 s to 40 s of 60 s\n"));
  row.samples = 49;  // may have been there, and was not seen
  EXPECT_EQ(PhaseText(report, row), "");
  row.samples = 50;
  EXPECT_NE(PhaseText(report, row), "");
  row.seen.first_ns = 0;
  row.seen.last_ns = 48'000'000'000;  // nearly all the time
  EXPECT_EQ(PhaseText(report, row), "");
}

TEST(SaturationTextTest, PausesThatOverlapAndPausesWithoutARecordAreTold) {
  Report report = MeasuredReport();
  EXPECT_THAT(RenderInjection(report), Not(HasSubstr("pauses")));
  report.findings.injection.shared_ns = 1'500'000'000;
  report.findings.injection.pauses_lost = 7;
  const std::string text = RenderInjection(report);
  EXPECT_THAT(text,
              HasSubstr("\n  pauses of several nodes overlapped for 1.50 s, which count once\n"));
  EXPECT_THAT(text, HasSubstr("\n  the records of 7 pauses are lost: they count in full"));
  EXPECT_EQ(InjectionToJson(report.findings.injection)["pauses_lost"], 7);
}

TEST(SaturationTextTest, TopCutsTheTable) {
  const std::string text = RenderSaturations(MeasuredReport(), {}, 1);
  EXPECT_THAT(text, HasSubstr("... and 1 more loops"));
  EXPECT_THAT(text, Not(HasSubstr("77aa0000")));
}

TEST(SaturationTextTest, TheReportSaysWhatInjectionCost) {
  EXPECT_THAT(
      RenderReport(MeasuredReport(), {}),
      HasSubstr("Injection: 0.15 s of wall time added, 0.250% of the profile; budget 2.0%\n"
                "  6 stops 0.0120 s (longest 4.0 ms), 12 shadows 0.24 s (longest 30.0 ms)"));
}

TEST(SaturationTextTest, NamesOfStrangersAreCleaned) {
  Report report = MeasuredReport();
  report.findings.verdicts[0].remarks = {"\x1b[31mred"};
  report.findings.verdicts[0].gains[0].name = "\x1b[2J";
  report.findings.verdicts[1].refusals[0].reason = "\x07";
  report.findings.verdicts[0].variants[1].variant = "\x1bX";
  const std::string text = RenderSaturations(report, {}, 12);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
}

TEST(VerdictTextTest, AllRanks) {
  const Report report = MeasuredReport();
  const auto text = RenderVerdict(report.findings.verdicts[0], {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text,
              HasSubstr("verdict    memory bound (unsure), data in beyond L2; 1 of 2 ranks"));
  EXPECT_THAT(*text, HasSubstr("36.0% [30.0, 42.0] perfect cache (DL1)"));
  EXPECT_THAT(*text, HasSubstr("60.0% of the time of rank 1 on node2"));
  EXPECT_THAT(*text, HasSubstr("arithmetic bound where most are memory bound"));
  EXPECT_THAT(*text, HasSubstr("not NO_SQRT at 0x401020: no square root in the loop (2 times)"));
  EXPECT_THAT(*text, Not(HasSubstr("STABILITY")));
}

VariantFigures Sat(const char* variant, double value, uint32_t valid = 31) {
  VariantFigures figures;
  figures.variant = variant;
  figures.base = "REF";
  figures.saturation = {value, value - 0.01, value + 0.01};
  figures.cycles = 100;
  figures.edits.changed = 1;
  figures.valid_runs = valid;
  figures.invalid_runs = 31 - valid;
  return figures;
}

Report WithTripClasses() {
  Report report = MeasuredReport();
  VariantFigures longer = Sat("REF", 1);
  longer.cycles = 1900;
  LoopVerdict& loop = report.findings.verdicts[0];
  loop.trips.rank = "rank 1 on node2";
  loop.trips.classes = {
      {3, 12, 5, {Sat("REF", 1), Sat("LS", 0.98), Sat("FP", 0.99), Sat("CTRL", 0.97)}},
      {800, 800, 5, {longer, Sat("LS", 0.97), Sat("FP", 0.2), Sat("DL1", 0.4, 0)}}};
  loop.ranks[1].measurement.trip_classes = loop.trips.classes;
  loop.trips.verdicts = ClassVerdictsOf(loop.ranks[1].measurement);
  return report;
}

TEST(VerdictTextTest, ShortAndLongInstancesApart) {
  const Report report = WithTripClasses();
  const auto text = RenderVerdict(report.findings.verdicts[0], {});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(
      *text,
      HasSubstr(
          "Instances by trip count, of rank 1 on node2\n"
          "  TRIPS  INSTANCES   TIME  VERDICT                  LS           FP         CTRL  DL1\n"
          "   3-12          5   5.0%  overhead bound  0.98 +-0.01  0.99 +-0.01  0.97 +-0.01    -\n"
          "    800          5  95.0%  memory bound    0.97 +-0.01  0.20 +-0.01            -    "
          "-\n"));
  VerdictTextOptions options;
  options.rank = 1;
  EXPECT_THAT(*RenderVerdict(report.findings.verdicts[0], options),
              HasSubstr("\n   3-12          5   5.0%"));
  EXPECT_THAT(*RenderVerdict(MeasuredReport().findings.verdicts[0], {}), Not(HasSubstr("by trip count")));
}

TEST(VerdictJsonTest, TripClasses) {
  const auto json = VerdictToJson(WithTripClasses().findings.verdicts[0]);
  ASSERT_EQ(json["trip_classes"].size(), 2u);
  EXPECT_EQ(json["trip_rank"], "rank 1 on node2");
  EXPECT_EQ(json["trip_classes"][0]["bound"], "overhead_bound");
  EXPECT_EQ(json["trip_classes"][1]["shortest"], 800);
  EXPECT_DOUBLE_EQ(json["trip_classes"][1]["time"], 0.95);
  EXPECT_EQ(json["trip_classes"][1]["figures"][1]["variant"], "LS");
  EXPECT_EQ(json["ranks"][0]["trip_classes"].size(), 0u);
  EXPECT_EQ(json["ranks"][1]["trip_classes"].size(), 2u);
}

TEST(VerdictTextTest, AnUnknownVerdictSaysWhy) {
  Report report = MeasuredReport();
  LoopVerdict& loop = report.findings.verdicts[0];
  loop.bound = Bound::kUnknown;
  loop.why = Silence::kTooNoisy;
  loop.ranks[0].bound = Bound::kUnknown;
  loop.ranks[0].why = Silence::kFpDidNotCount;
  EXPECT_THAT(RenderSaturations(report, {}, 12), HasSubstr("50.0%  unknown "));
  EXPECT_THAT(RenderSaturations(report, {}, 12), HasSubstr("no verdict: too noisy\n"));
  EXPECT_THAT(*RenderVerdict(loop, {}), HasSubstr("unknown: FP did not count"));
  EXPECT_EQ(VerdictToJson(loop)["ranks"][0]["why"], "FP did not count");
  loop.bound = Bound::kWithinL1;
  loop.why = Silence::kNone;
  EXPECT_THAT(RenderSaturations(report, {}, 12), HasSubstr("50.0%  not bound beyond L1 (unsure)"));
  EXPECT_EQ(VerdictToJson(loop)["bound"], "not_bound_beyond_L1");
}

TEST(VerdictTextTest, OneRankDownToThreads) {
  const Report report = MeasuredReport();
  VerdictTextOptions options;
  options.rank = 0;
  const auto text = RenderVerdict(report.findings.verdicts[0], options);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("Rank 0 on node1, pid 100: measured, memory bound, shadow"));
  EXPECT_THAT(*text, HasSubstr("STABILITY"));
  EXPECT_THAT(*text, HasSubstr("trips of 9 instances, deciles: 128 128"));
  EXPECT_THAT(*text, HasSubstr("0x401010"));
  options.rank = 7;
  EXPECT_EQ(RenderVerdict(report.findings.verdicts[0], options).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(VerdictTextTest, AssemblySideBySide) {
  const Report report = MeasuredReport();
  VerdictTextOptions options;
  options.variant = "LS";
  EXPECT_THAT(*RenderVerdict(report.findings.verdicts[0], options),
              HasSubstr("  ADDRESS   REF                      LS\n"
                        "  0x401010  vmovupd ymm0, [rax]\n"
                        "  0x401014  vaddpd ymm1, ymm1, ymm0  nop\n"));
  options.variant = "FP";
  const auto missing = RenderVerdict(report.findings.verdicts[0], options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("there is: LS"));
}

TEST(VerdictTextTest, FindsByLoop) {
  const Report report = MeasuredReport();
  EXPECT_EQ(FindVerdict(report, "77aa000000000002"), &report.findings.verdicts[1]);
  EXPECT_EQ(FindVerdict(report, "none"), nullptr);
}

TEST(VerdictJsonTest, HoldsEverything) {
  const auto json = ReportToJson(MeasuredReport());
  const auto& loop = json["verdicts"][0];
  EXPECT_EQ(loop["bound"], "memory_bound");
  EXPECT_EQ(loop["provenance"], "shadow");
  EXPECT_EQ(loop["gain_provenance"], "estimated");
  EXPECT_EQ(loop["gains"][0]["of_job"]["value"], 0.36);
  EXPECT_EQ(loop["variants"][1]["saturation"]["low"], 0.96);
  EXPECT_EQ(loop["ranks"][1]["outlier"], "arithmetic bound where most are memory bound");
  EXPECT_EQ(loop["ranks"][0]["figures"][0]["thread"], "team");
  EXPECT_EQ(loop["ranks"][0]["figures"][1]["thread"], 0);
  EXPECT_EQ(loop["ranks"][0]["trip_deciles"].size(), 11u);
  EXPECT_EQ(loop["listings"][0]["lines"][1]["changed"], "nop");
  EXPECT_EQ(json["verdicts"][1]["state"], "refused");
  EXPECT_EQ(json["injection"]["added_wall_ns"], 150'000'000);
}

TEST(AuditTextTest, OneLineEach) {
  AuditEntry entry;
  entry.unix_ns = 1'700'000'000'000'000'000;
  entry.profile_id = "p-000042";
  entry.origin = {"alice", "certificate agent/node1"};
  entry.node = "node1";
  entry.pid = 100;
  entry.loop_id = "3fa9c2d100000001";
  entry.action = "install";
  entry.address = 0x401000;
  entry.original_bytes = "f30f1efa55";
  entry.written_bytes = "e9fbffffff";
  entry.pause_ns = 1'234'000;
  entry.outcome = "ok";
  const std::string text = RenderAudit({entry});
  EXPECT_THAT(text, HasSubstr("2023-11-14 22:13:20 UTC  p-000042  alice  node1  100  install  "
                              "3fa9c2d1  0x401000  f30f1efa55 -> e9fbffffff     1.234  "
                              "certificate agent/node1  ok\n"));
  EXPECT_EQ(RenderAudit({}), "Nothing was injected.\n");
  EXPECT_EQ(AuditToJson({entry})["entries"][0]["written_bytes"], "e9fbffffff");
  EXPECT_EQ(AuditToJson({entry})["entries"][0]["brought_by"], "certificate agent/node1");
}

}  // namespace
}  // namespace perfd::client
