#include "client/render/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

TEST(LiveViewTest, ShowsProgressNodesAndLoops) {
  Report report = SampleReport();
  report.status.state = ProfileState::kSampling;
  report.status.course.progress_ratio = 0.5;
  const auto lines = RenderLive(report.status, report.loops, {});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "p-000042  SAMPLING  |###############               | 50.0%  1000 samples");
  EXPECT_EQ(lines[1], "  node1: finished, 1 ranks, 2 threads, 12 windows");
  EXPECT_EQ(lines[2], "   50.0% ##########  compute_forces  lulesh.cc:812-821");
}

TEST(LiveViewTest, SaysHowManyLoopsAreKnownAndAboutWhenAllWillBe) {
  Report report = SampleReport();
  ProfileStatus& status = report.status;
  status.state = ProfileState::kInjecting;
  status.spec.until_known = true;
  status.course.loops = {.hot = 12, .known = 7, .done_ratio = 0.6, .left_ns = 118'000'000'000};
  EXPECT_EQ(RenderLive(status, {}, {})[1], "  7 of 12 hot loops known, about 2 min to go");
  EXPECT_THAT(RenderLogLine(status, {}), HasSubstr(", 7 of 12 hot loops known, about 2 min to go"));
  status.course.loops.left_ns = 41'000'000'000;
  EXPECT_EQ(RenderLive(status, {}, {})[1], "  7 of 12 hot loops known, about 45 s to go");
  status.spec.until_known = false;
  EXPECT_EQ(RenderLive(status, {}, {})[1], "  7 of 12 hot loops known");
}

TEST(LiveViewTest, NoLineIsWiderThanTheTerminal) {
  Report report = SampleReport();
  report.loops[0].location.function = std::string(500, 'x');
  for (const std::string& line : RenderLive(report.status, report.loops, {.width = 80}))
    EXPECT_LE(Columns(line), 80u);
}

TEST(LiveViewTest, ManyNodesAreCounted) {
  Report report = SampleReport();
  report.status.nodes.assign(20, report.status.nodes[0]);
  const auto lines = RenderLive(report.status, {}, {});
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.back(), "  ... and 12 more nodes");
}

TEST(LiveViewTest, RedrawGoesUpOverTheOldBlock) {
  EXPECT_EQ(Redraw(0, {"a"}), "\r\x1b[2Ka\n\x1b[0J");
  EXPECT_EQ(Redraw(3, {"a"}), "\x1b[3A\r\x1b[2Ka\n\x1b[0J");
}

TEST(LiveViewTest, LogLineIsOneLine) {
  const Report report = SampleReport();
  EXPECT_EQ(RenderLogLine(report.status, report.loops),
            "p-000042 DONE 100.0% 1000 samples, heaviest loop 50.0% compute_forces "
            "lulesh.cc:812-821\n");
  EXPECT_EQ(RenderLogLine(report.status, {}), "p-000042 DONE 100.0% 1000 samples\n");
}

}  // namespace
}  // namespace perfd::client
