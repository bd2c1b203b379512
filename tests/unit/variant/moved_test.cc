// A copy that was moved is the copy that is made there.
#include "agent/variant/moved.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/variant/loop_generator.h"
#include "tests/unit/variant/variant_names.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kShifts[] = {64, 4096, 1 << 20};

class MovedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx2()) GTEST_SKIP() << "the generated loops need AVX2";
  }

  Arena arena_;
  std::mt19937 random_{20261123};
};

TEST_F(MovedTest, AMovedCopyIsTheOneThatIsMadeThere) {
  int compared = 0, differ = 0;
  for (int n = 0; n < 300; ++n) {
    const GeneratedLoop loop = GenerateLoop(arena_, &random_);
    const auto code = DecodeLoop(loop.bytes);
    ASSERT_TRUE(code.ok()) << n << ": " << code.status();
    for (const char* name : {"REF", "LS", "FP", "DL1", "NO_STORE", "COUNT"}) {
      const VariantName variant = *ParseVariantName(name);
      const uint64_t at = arena_.copy() + random_() % 200;
      const auto copy = MakeCopy(*code, variant, {at, Exits::kStub, arena_.copy() - 4096});
      if (!copy.ok()) continue;
      for (const uint64_t shift : kShifts) {
        const auto there =
            MakeCopy(*code, variant, {at + shift, Exits::kStub, arena_.copy() - 4096});
        ASSERT_TRUE(there.ok());
        ASSERT_EQ(there->entry, copy->entry + shift);
        const auto moved = MovedBytes(*copy, shift);
        ASSERT_TRUE(moved.ok()) << moved.status();
        ASSERT_EQ(*moved, there->bytes) << n << " " << name;
        differ += *moved == copy->bytes ? 0 : 1;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 3000);
  EXPECT_EQ(differ, compared) << "each has an exit that counts from its own place";
}

TEST_F(MovedTest, RefusesWhatCannotBe) {
  CodeCopy copy;
  copy.address = 0x10000000;
  copy.bytes = {0x90, 0xc3};
  EXPECT_EQ(MovedBytes(copy, 8).status().code(), absl::StatusCode::kInvalidArgument);
  copy.bytes = {0x06};  // no instruction in 64-bit mode
  EXPECT_EQ(MovedBytes(copy, 64).status().code(), absl::StatusCode::kInvalidArgument);
  copy.bytes = {0xe9, 0, 0, 0};  // cut short
  EXPECT_EQ(MovedBytes(copy, 64).status().code(), absl::StatusCode::kInvalidArgument);
  copy.bytes = {0xe9, 0, 0, 0, 0x80};  // 2 GiB below
  EXPECT_EQ(MovedBytes(copy, 64).status().code(), absl::StatusCode::kOutOfRange);
  copy.bytes = {0xeb, 0x40};  // a short exit has no room for another distance
  EXPECT_EQ(MovedBytes(copy, 64).status().code(), absl::StatusCode::kOutOfRange);
  copy.bytes = {};
  EXPECT_TRUE(MovedBytes(copy, 64)->empty());
}

}  // namespace
}  // namespace perfd::agent
