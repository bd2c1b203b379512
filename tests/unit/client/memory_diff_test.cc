#include "client/render/diff/memory_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Of loads beyond L2, with an interval of 4 points.
MemoryFigures Figures(double share, uint64_t median_cycles) {
  MemoryFigures figures;
  figures.profile.all = {.samples = 100, .weight = 100'000};
  figures.profile.latency.Add(median_cycles, 100);
  figures.beyond[static_cast<size_t>(MemoryBorder::kL2)] = {
      .why_not = NoShare::kNone,
      .share = share,
      .interval = {.low = share - 0.02, .high = share + 0.02},
      .samples = 100};
  return figures;
}

Report With(std::vector<std::pair<std::string, MemoryFigures>> places) {
  Report report = SampleReport();
  report.loops = {SampleLoop("1111", "near", 10, 0.50), SampleLoop("2222", "far", 20, 0.40)};
  MemoryReport& memory = report.findings.memory;
  memory = {};
  if (places.empty()) return report;
  memory.events = {{.name = "ibs_op", .latency_threshold = 0}};
  memory.job = Figures(0.30, 40);
  for (auto& [id, figures] : places) {
    MemoryPlace place;
    place.id = id;
    place.loop = true;
    place.figures = figures;
    memory.places.push_back(place);
  }
  return report;
}

std::string Text(const Report& a, const Report& b) {
  return RenderMemoryDiff(a, b, DiffReports(a, b), TextStyle{.width = 160});
}

TEST(MemoryDiffTest, ReportsWithoutAccessesSayNothing) {
  const Report a = With({}), b = With({});
  EXPECT_TRUE(DiffMemory(a, b, DiffReports(a, b)).empty());
  EXPECT_EQ(Text(a, b), "");
  EXPECT_THAT(RenderDiff(a, b, TextStyle{}), Not(HasSubstr("Accesses")));
  EXPECT_TRUE(DiffToJson(a, b)["memory"].is_null());
}

TEST(MemoryDiffTest, AChangeIsMarkedWhereTheIntervalsAreApart) {
  const Report a = With({{"1111", Figures(0.10, 12)}, {"2222", Figures(0.20, 100)}});
  const Report b = With({{"1111", Figures(0.13, 12)}, {"2222", Figures(0.80, 400)}});
  const auto loops = DiffReports(a, b);
  const auto diffs = DiffMemory(a, b, loops);
  ASSERT_EQ(diffs.size(), 3u);
  EXPECT_EQ(diffs[0].loop, nullptr);
  EXPECT_DOUBLE_EQ(diffs[0].change.value_or(1), 0);
  for (size_t i = 1; i < diffs.size(); ++i) {
    const bool far = diffs[i].loop->a->id == "2222";
    EXPECT_NEAR(diffs[i].change.value_or(0), far ? 0.6 : 0.03, 1e-12);
    EXPECT_EQ(diffs[i].significant, far) << "[8, 12] and [11, 15] overlap";
  }
  const auto json = DiffToJson(a, b);
  EXPECT_EQ(json["memory"]["change"], 0.0);
  for (const auto& loop : json["loops"]) {
    const bool far = loop["a_id"] == "2222";
    EXPECT_EQ(loop["memory"]["significant"], far);
    EXPECT_EQ(loop["memory"]["b_beyond_l2"], far ? 0.80 : 0.13);
  }
  EXPECT_THAT(Text(a, b), HasSubstr("+60.0"));
  EXPECT_THAT(Text(a, b), HasSubstr("the whole job"));
  EXPECT_THAT(RenderDiff(a, b, TextStyle{.width = 160}), HasSubstr("Accesses to memory"));
}

TEST(MemoryDiffTest, WhatOneOfThemDoesNotHaveIsNoChange) {
  const Report a = With({{"1111", Figures(0.10, 12)}});
  const Report none = With({});
  const Report few = [] {
    Report report = With({{"1111", Figures(0.90, 12)}});
    report.findings.memory.places[0].figures.beyond[static_cast<size_t>(MemoryBorder::kL2)] = {
        .why_not = NoShare::kTooFew, .samples = 3};
    return report;
  }();
  for (const Report* b : {&none, &few}) {
    for (const MemoryDiff& diff : DiffMemory(a, *b, DiffReports(a, *b))) {
      if (diff.loop == nullptr && b == &few) continue;
      EXPECT_FALSE(diff.change.has_value());
      EXPECT_FALSE(diff.significant);
    }
  }
  EXPECT_THAT(Text(a, none), HasSubstr("B has no accesses"));
  EXPECT_THAT(Text(none, a), HasSubstr("A has no accesses"));
  EXPECT_TRUE(DiffToJson(a, none)["loops"][0]["memory"]["change"].is_null());
}

TEST(MemoryDiffTest, OtherEventsSeeOtherLoads) {
  const Report a = With({{"1111", Figures(0.10, 12)}});
  for (const MemoryEvent& other : {MemoryEvent{.name = "mem-loads", .latency_threshold = 30},
                                   MemoryEvent{.name = "ibs_op", .latency_threshold = 30}}) {
    Report b = With({{"1111", Figures(0.90, 12)}});
    b.findings.memory.events = {other};
    for (const MemoryDiff& diff : DiffMemory(a, b, DiffReports(a, b))) {
      EXPECT_FALSE(diff.change.has_value());
      EXPECT_FALSE(diff.significant);
    }
    EXPECT_THAT(Text(a, b), HasSubstr("not compared"));
    EXPECT_THAT(Text(a, b), HasSubstr("from 30 cycles on"));
  }
}

}  // namespace
}  // namespace perfd::client
