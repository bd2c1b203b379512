#include "client/render/folded.h"

#include <gtest/gtest.h>

#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

TEST(FoldedTest, WithoutCallPathsModuleFunctionLoop) {
  EXPECT_EQ(RenderFolded(SampleReport()),
            "lulesh2.0;compute_forces;loop@lulesh.cc:812 2500000\n"
            "lulesh2.0;update;loop@lulesh.cc:100 1250000\n"
            "lulesh2.0;opal_progress;loop@0x401000 500000\n"
            "lulesh2.0;main 500000\n");
}

TEST(FoldedTest, WithCallPathsOneLineEach) {
  Report report = SampleReport();
  report.stacks = {{0, {"main", "foo"}, 12}, {3, {"a;b\n", ""}, 1}};
  EXPECT_EQ(RenderFolded(report), "rank 0;main;foo 2500000\nrank 3;a:b?;? 1\n");
}

// Both ranks used 2.5 s; rank 1 was sampled eight times as seldom.
TEST(FoldedTest, PathsOfARankThatWasSampledSeldomWeighAsMuch) {
  Report report = SampleReport();
  report.stacks = {{0, {"a"}, 60}, {0, {"b"}, 20}, {1, {"a"}, 10}};
  EXPECT_EQ(RenderFolded(report), "rank 0;a 1875000\nrank 0;b 625000\nrank 1;a 2500000\n");
}

TEST(FoldedTest, KernelHasNoModule) {
  ReportRow row;
  row.location.category = Category::kKernel;
  EXPECT_EQ(LocateFrames(row), (std::vector<std::string>{"kernel", "?"}));
}

}  // namespace
}  // namespace perfd::client
