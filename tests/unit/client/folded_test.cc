#include "client/render/folded.h"

#include <gtest/gtest.h>

#include "tests/unit/client/sample_report.h"

namespace perfd {
namespace {

TEST(FoldedTest, WithoutCallPathsModuleFunctionLoop) {
  EXPECT_EQ(RenderFolded(SampleReport()),
            "lulesh2.0;compute_forces;loop@lulesh.cc:812 500\n"
            "lulesh2.0;update;loop@lulesh.cc:100 250\n"
            "lulesh2.0;opal_progress;loop@0x401000 100\n"
            "lulesh2.0;main 100\n");
}

TEST(FoldedTest, WithCallPathsOneLineEach) {
  Report report = SampleReport();
  report.stacks = {{0, {"main", "foo"}, 12}, {3, {"a;b\n", ""}, 1}};
  EXPECT_EQ(RenderFolded(report), "rank 0;main;foo 12\nrank 3;a:b?;? 1\n");
}

TEST(FoldedTest, KernelHasNoModule) {
  ReportRow row;
  row.location.category = Category::kKernel;
  EXPECT_EQ(PlaceFrames(row), (std::vector<std::string>{"kernel", "?"}));
}

}  // namespace
}  // namespace perfd
