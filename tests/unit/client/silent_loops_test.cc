// Whatever shows a verdict says nothing of a loop about which nothing may be said; and does say it of one that has a name, so that
// this test can fail.
#include "tests/unit/core/analysis/silent_loops.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "client/render/csv.h"
#include "client/render/history/csv.h"
#include "client/render/history/text.h"
#include "client/render/diff/report_diff.h"
#include "client/render/saturation_text.h"
#include "client/render/verdict_text.h"
#include "core/analysis/jobs/history.h"
#include "core/analysis/jobs/job_line.h"
#include "core/json/history_json.h"
#include "core/json/report_json.h"
#include "core/json/verdict_json.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kId[] = "3fa9c2d100000001";  // of the heaviest loop of SampleReport

Report With(const LoopVerdict& verdict) {
  Report report = SampleReport();
  report.findings.verdicts = {verdict};
  return report;
}

ProgramHistory HistoryOf(const LoopVerdict& verdict) {
  ProgramHistory history;
  history.command = "app";
  history.profiles = {ToHistory(With(verdict))};
  return history;
}

// One that shows verdicts, as text. `ranks`: it also shows what each rank says.
struct Consumer {
  const char* name;
  std::string (*show)(const LoopVerdict& verdict);
  const char* gain;  // how it begins to tell one; null: it tells none
  bool ranks = false;
};

std::vector<Consumer> Consumers() {
  return {
      {"report", [](const LoopVerdict& v) { return RenderSaturations(With(v), {}, 0); },
       "best gain", true},
      {"loop", [](const LoopVerdict& v) { return RenderVerdict(v, {}).value(); }, "  gain  ", true},
      {"one rank",
       [](const LoopVerdict& v) {
         VerdictTextOptions options;
         options.rank = 0;
         return RenderVerdict(v, options).value();
       },
       "  gain  ", true},
      {"csv", [](const LoopVerdict& v) { return RenderCsv(With(v)); }, ",DL1,"},
      {"hook line", [](const LoopVerdict& v) { return JobLine(With(v)); }, "gain "},
      {"history",
       [](const LoopVerdict& v) {
         const ProgramHistory history = HistoryOf(v);
         return RenderHistory(history, LoopsOverTime(history.profiles), {{}, 12});
       },
       nullptr},
      {"loop over time",
       [](const LoopVerdict& v) {
         const ProgramHistory history = HistoryOf(v);
         return RenderLoopHistory(history, LoopsOverTime(history.profiles).at(0), {});
       },
       nullptr},
      {"history csv",
       [](const LoopVerdict& v) {
         const ProgramHistory history = HistoryOf(v);
         return RenderHistoryCsv(history, LoopsOverTime(history.profiles));
       },
       nullptr},
      {"diff",
       [](const LoopVerdict& v) {
         const Report report = With(v);
         return RenderDiff(report, report, {});
       },
       nullptr},
  };
}

bool HasName(const std::string& text) {
  for (const std::string& name : Names()) {
    if (absl::StrContains(text, name)) return true;
  }
  return false;
}

TEST(SilentLoopsTest, AreSilentForTheReasonsTheySay) {
  for (const SilentLoop& loop : SilentLoops(kId)) {
    EXPECT_EQ(loop.verdict.bound, Bound::kUnknown) << loop.what;
    EXPECT_EQ(SilenceName(loop.verdict.why), std::string(SilenceName(loop.why))) << loop.what;
    EXPECT_EQ(!loop.verdict.gains.empty(), loop.priced) << loop.what;
    EXPECT_FALSE(loop.verdict.sure) << loop.what;
    for (const ClassVerdict& verdict : loop.verdict.trips.verdicts) {
      if (loop.why != Silence::kRanksDiffer) {
        EXPECT_EQ(verdict.bound, Bound::kUnknown) << loop.what;
      }
    }
  }
}

TEST(SilentLoopsTest, HaveNoNameAndNoGainAnywhere) {
  for (const Consumer& consumer : Consumers()) {
    const std::string named = consumer.show(JudgedAs({MeasuredLoop()}, kId));
    const bool shows_names = std::string(consumer.name) != "diff";
    EXPECT_EQ(HasName(named), shows_names) << consumer.name << ":\n" << named;
    if (consumer.gain != nullptr) {
      EXPECT_TRUE(absl::StrContains(named, consumer.gain)) << consumer.name << ":\n" << named;
    }
    for (const SilentLoop& loop : SilentLoops(kId)) {
      SCOPED_TRACE(absl::StrCat(consumer.name, ", ", loop.what));
      const std::string text = consumer.show(loop.verdict);
      // Ranks that differ are told with what each of them says.
      if (loop.why != Silence::kRanksDiffer || !consumer.ranks) {
        EXPECT_FALSE(HasName(text)) << text;
      }
      if (!loop.priced && consumer.gain != nullptr) {
        EXPECT_FALSE(absl::StrContains(text, consumer.gain)) << text;
      }
    }
  }
}

TEST(SilentLoopsTest, HaveNoNameAndNoGainInJson) {
  const Json named = ReportToJson(With(JudgedAs({MeasuredLoop()}, kId)))["verdicts"][0];
  EXPECT_EQ(named["bound"], "memory_bound");
  EXPECT_EQ(named["level"], "beyond_L2");
  EXPECT_EQ(named["trip_classes"][1]["bound"], "memory_bound");
  EXPECT_EQ(named["ranks"][0]["trip_classes"][1]["bound"], "memory_bound");
  for (const SilentLoop& loop : SilentLoops(kId)) {
    SCOPED_TRACE(loop.what);
    const Json json = ReportToJson(With(loop.verdict))["verdicts"][0];
    EXPECT_EQ(json["bound"], "unknown");
    EXPECT_EQ(json["sure"], false);
    EXPECT_EQ(json["why"], SilenceName(loop.why));
    EXPECT_EQ(json["gains"].empty(), !loop.priced);
    const Json history =
        HistoryToJson(HistoryOf(loop.verdict), LoopsOverTime(HistoryOf(loop.verdict).profiles));
    EXPECT_FALSE(absl::StrContains(history.dump(), "_bound\"")) << history.dump();
    if (loop.why == Silence::kRanksDiffer) continue;
    EXPECT_EQ(json["level"], "unknown");
    for (const Json& one : json["trip_classes"]) EXPECT_EQ(one["bound"], "unknown");
    for (const Json& rank : json["ranks"]) {
      EXPECT_EQ(rank["bound"], "unknown");
      for (const Json& one : rank["trip_classes"]) EXPECT_EQ(one["bound"], "unknown");
    }
  }
}

// An archived file of a silent loop comes back as silent.
TEST(SilentLoopsTest, HaveNoNameAndNoGainInTheArchive) {
  for (const SilentLoop& loop : SilentLoops(kId)) {
    const auto read = HistoryFromReportJson(ReportToJson(With(loop.verdict)).dump());
    ASSERT_TRUE(read.ok()) << read.status();
    const HistoryLoop& row = read->loops.at(0);
    EXPECT_EQ(row.bound, Bound::kUnknown) << loop.what;
    EXPECT_EQ(row.gain.value > 0, loop.priced) << loop.what;
  }
}

}  // namespace
}  // namespace perfd::client
