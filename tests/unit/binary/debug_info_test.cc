#include "agent/binary/debug_info.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/binary/function_index.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

std::vector<CodeRange> Whole(uint64_t low, uint64_t high) {
  return {{low, high}};
}

class DebugInfoTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = Fixture(GetParam());
    auto file = ElfFile::Open(OpenFile(path_));
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    LinesProblem problem = LinesProblem::kDamaged;
    info_ = DebugInfo::Open(*file_, &problem);
    ASSERT_NE(info_, nullptr);
    EXPECT_EQ(problem, LinesProblem::kNone);
  }

  std::string path_;
  std::unique_ptr<ElfFile> file_;
  std::unique_ptr<DebugInfo> info_;
};

TEST_P(DebugInfoTest, LinesEqualAddr2line) {
  FunctionIndex index(*file_, nullptr);
  for (const char* name : {"triple", "switched", "inlined"}) {
    const auto bounds = index.Find(SymbolAddress(path_, name));
    ASSERT_TRUE(bounds) << name;
    const FunctionLines lines = info_->Lines(bounds->low, Whole(bounds->low, bounds->high));
    std::string command = "printf '%x\\n'";
    for (uint64_t a = bounds->low; a < bounds->high; ++a) command += " " + std::to_string(a);
    command += " | addr2line -e " + path_;
    const std::vector<std::string> expected = OutputOf(command);
    ASSERT_EQ(expected.size(), bounds->high - bounds->low);
    for (uint64_t a = bounds->low; a < bounds->high; ++a) {
      const auto row = std::upper_bound(lines.rows.begin(), lines.rows.end(), a,
                                        [](uint64_t x, const LineRow& r) { return x < r.address; });
      ASSERT_NE(row, lines.rows.begin());
      const std::string& text = expected[a - bounds->low];
      const size_t colon = text.find(':');
      const int line = std::atoi(text.c_str() + colon + 1);  // "?" where the compiler says 0
      EXPECT_EQ(std::prev(row)->line, line) << name << " at " << std::hex << a;
      if (line == 0) continue;
      EXPECT_EQ(lines.files[std::prev(row)->file], text.substr(0, colon));
    }
  }
}

TEST_P(DebugInfoTest, SubprogramsAndDeclarations) {
  const uint64_t address = SymbolAddress(path_, "chase");
  const auto found = info_->FindSubprogram(address + 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "chase");
  EXPECT_EQ(found->range.low, address);
  const FunctionLines lines =
      info_->Lines(found->range.low, Whole(found->range.low, found->range.high));
  EXPECT_EQ(lines.declaration.first_line, Marks("kernels.cc").at("chase").first - 2);
  EXPECT_NE(lines.declaration.file.find("kernels.cc"), std::string::npos);
  EXPECT_FALSE(info_->FindSubprogram(1));
  EXPECT_TRUE(info_->Lines(1, Whole(1, 2)).rows.empty());
}

INSTANTIATE_TEST_SUITE_P(Builds, DebugInfoTest,
                         ::testing::Values("kernels-gcc-O2", "kernels-clang-O2", "kernels-gcc-O0",
                                           "kernels-gcc-O2-dwarf4", "kernels-gcc-O2-zstd",
                                           "kernels-clang-O2-zstd"));

}  // namespace
}  // namespace perfd::agent
