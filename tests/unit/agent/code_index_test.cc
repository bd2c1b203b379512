#include "agent/pipeline/code_index.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/fake_code_source.h"

namespace perfd {
namespace {

class CodeIndexTest : public testing::Test {
 protected:
  CodeIndexTest()
      : index_(
            [this](const RawModule&) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
              ++opens_;
              if (!open_error_.ok()) return open_error_;
              return std::make_unique<FakeCodeSource>(std::vector{LoopyFunction()}, &lookups_);
            },
            clock_) {
    module_.key.path = "/app";
  }

  FakeClock clock_;
  absl::Status open_error_;
  int opens_ = 0;
  int lookups_ = 0;
  RawModule module_;
  CodeIndex index_;
};

TEST_F(CodeIndexTest, AsksOnlyForWhatIsMissing) {
  auto code = index_.Learn(module_, {0x100, 0x900}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 1);
  EXPECT_NE(code->FunctionAt(0x400100), nullptr);
  EXPECT_EQ(code->FunctionAt(0x400200), nullptr);
  index_.Learn(module_, {0x1ff, 0x900}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 1) << "same function, and an address known to have none";
  index_.Learn(module_, {0x901}, absl::Seconds(1));
  EXPECT_EQ(lookups_, 2);
}

TEST_F(CodeIndexTest, TheSameBuildIdUnderAnotherPathIsKnownAlready) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  module_.key.path = "/copy";
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_EQ(opens_, 2);
  EXPECT_EQ(lookups_, 1);
}

TEST_F(CodeIndexTest, AFailedModuleIsTriedAgainLater) {
  open_error_ = absl::PermissionDeniedError("no");
  EXPECT_TRUE(absl::IsPermissionDenied(index_.Learn(module_, {0x100}, absl::Seconds(1))->error));
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  EXPECT_EQ(opens_, 1);
  open_error_ = absl::OkStatus();
  clock_.now_ns += 11 * kNsPerSecond;
  EXPECT_TRUE(index_.Learn(module_, {0x100}, absl::Seconds(1))->error.ok());
  EXPECT_EQ(opens_, 2);
}

TEST_F(CodeIndexTest, IdleReadersEndButTheirKnowledgeStays) {
  index_.Learn(module_, {0x100}, absl::Seconds(1));
  EXPECT_EQ(index_.reader_count(), 1u);
  clock_.now_ns += 31 * kNsPerSecond;
  index_.CloseIdleReaders(30 * kNsPerSecond);
  EXPECT_EQ(index_.reader_count(), 0u);
  index_.Learn(module_, {0x110}, absl::Seconds(1));
  EXPECT_EQ(opens_, 2);
  EXPECT_EQ(lookups_, 1);
}

}  // namespace
}  // namespace perfd
