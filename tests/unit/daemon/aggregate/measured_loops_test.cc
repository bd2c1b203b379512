#include "daemon/aggregate/findings/measured_loops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace perfd::daemon {
namespace {

LoopMeasurement Loop(uint64_t revision, int32_t pid = 1, int figures = 1) {
  LoopMeasurement loop;
  loop.node = "n1";
  loop.pid = pid;
  loop.loop_id = "abc";
  loop.revision = revision;
  loop.team = static_cast<int32_t>(revision);
  for (int thread = kTeam; thread < figures + kTeam; ++thread) {
    loop.figures.emplace_back();
    loop.figures.back().thread = thread;
  }
  return loop;
}

TEST(MeasuredLoops, TheHighestRevisionWinsInAnyOrder) {
  std::vector<uint64_t> revisions = {3, 1, 2, 2};
  std::sort(revisions.begin(), revisions.end());
  do {
    MeasuredLoops loops;
    for (uint64_t revision : revisions) loops.Add(Loop(revision));
    ASSERT_EQ(loops.State().loops.size(), 1u);
    EXPECT_EQ(loops.State().loops[0].revision, 3u);
  } while (std::next_permutation(revisions.begin(), revisions.end()));
}

TEST(MeasuredLoops, EqualRevisionsDoNotDependOnTheOrderEither) {
  LoopMeasurement a = Loop(1);
  LoopMeasurement b = Loop(1);
  b.reason = "other";
  MeasuredLoops ab;
  MeasuredLoops ba;
  ab.Add(a);
  ab.Add(b);
  ba.Add(b);
  ba.Add(a);
  EXPECT_EQ(ab.State(), ba.State());
}

TEST(MeasuredLoops, RanksAreKeptApartAndShareTheAssembly) {
  MeasuredLoops loops;
  for (int32_t pid : {1, 2}) {
    LoopMeasurement loop = Loop(1, pid);
    loop.listings = {{"LS", {{0x10, "add", "nop"}}}};
    loops.Add(loop);
  }
  const MeasuredState state = loops.State();
  EXPECT_EQ(state.loops.size(), 2u);
  EXPECT_TRUE(state.loops[0].listings.empty());
  ASSERT_EQ(state.listings.size(), 1u);
  EXPECT_EQ(state.listings[0].listing.lines[0].changed, "nop");
}

TEST(MeasuredLoops, AnOldMeasurementStillBringsItsListing) {
  MeasuredLoops loops;
  loops.Add(Loop(2));
  LoopMeasurement old = Loop(1);
  old.listings = {{"LS", {{0x10, "add", "nop"}}}};
  loops.Add(old);
  EXPECT_EQ(loops.State().listings.size(), 1u);
  EXPECT_EQ(loops.State().loops[0].revision, 2u);
}

TEST(MeasuredLoops, LimitsAreCounted) {
  MeasuredLoops loops({.loops = 2, .figures = 5, .listings = 4});
  loops.Add(Loop(1, 1, 3));
  loops.Add(Loop(1, 2, 3));  // would be six figures: the threads go
  loops.Add(Loop(1, 3, 1));  // a third loop
  const MeasuredState state = loops.State();
  ASSERT_EQ(state.loops.size(), 2u);
  EXPECT_EQ(state.loops[1].figures.size(), 1u);
  EXPECT_EQ(state.loops[1].figures[0].thread, kTeam);
  EXPECT_EQ(state.lost, 2u);
  loops.Add(Loop(2, 1, 4));  // replaces its own three: 4 + 1 fit
  EXPECT_EQ(loops.State().loops[0].figures.size(), 4u);
  EXPECT_EQ(loops.State().lost, 2u);
}

TEST(MeasuredLoops, FiguresOfTripClassesCountAndGoWithTheThreads) {
  MeasuredLoops loops({.loops = 3, .figures = 5, .listings = 4});
  LoopMeasurement classed = Loop(1, 1, 1);
  classed.trip_classes = {{1, 2, 4, {VariantFigures(), VariantFigures()}},
                          {9, 9, 4, {VariantFigures()}}};
  loops.Add(classed);        // four figures
  loops.Add(Loop(1, 2, 1));  // the fifth
  EXPECT_EQ(loops.State().lost, 0u);
  classed.pid = 3;
  loops.Add(classed);
  const MeasuredState state = loops.State();
  EXPECT_EQ(state.lost, 1u);
  EXPECT_EQ(state.loops[0].trip_classes.size(), 2u);
  EXPECT_TRUE(state.loops[2].trip_classes.empty());
  EXPECT_EQ(state.loops[2].figures.size(), 1u);
}

TEST(MeasuredLoops, PausesOfTheLogBecomeAUnion) {
  MeasuredLoops loops;
  AuditEntry entry;
  entry.unix_ns = 100;
  entry.pause_ns = 50;
  loops.AddAudit(entry);
  entry.pid = 2;
  loops.AddAudit(entry);
  entry.pause_ns = 0;
  loops.AddAudit(entry);
  EXPECT_EQ(loops.State().pauses.TotalNs(), 50);
  // Entries are written when the pause is over: this one began when the others ended.
  entry.unix_ns = 130;
  entry.pause_ns = 30;
  loops.AddAudit(entry);
  const MeasuredState state = loops.State();
  EXPECT_EQ(state.pauses.TotalNs(), 80);
  EXPECT_EQ(state.audited_ns, 130);
  EXPECT_EQ(state.audited, 4u);
}

}  // namespace
}  // namespace perfd::daemon
