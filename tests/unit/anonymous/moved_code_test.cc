#include "agent/anonymous/moved_code.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLoaded = 0x5500'0000'0000;

// As GNU ld lays a file out: headers, text, constants, data; the data begin in the middle of a page.
ModuleFacts Plain() {
  ModuleFacts facts;
  facts.segments = {{0, 0, 0x700, false},
                    {0x1000, 0x1000, 0x2345, true},
                    {0x4000, 0x4000, 0x500, false},
                    {0x4db0, 0x5db0, 0x300, false}};
  return facts;
}

// As lld does: addresses run ahead of offsets, so that one page of the file is mapped twice.
ModuleFacts Lld() {
  ModuleFacts facts;
  facts.segments = {{0, 0, 0x700, false},
                    {0x700, 0x1700, 0x2900, true},
                    {0x3000, 0x5000, 0x200, false},
                    {0x3200, 0x6200, 0x300, false}};
  return facts;
}

FileNeighbour At(uint64_t start, uint64_t bytes, uint64_t offset) {
  FileNeighbour beside;
  beside.start = start;
  beside.end = start + bytes;
  beside.file_offset = offset;
  return beside;
}

TEST(BiasOfMovedTest, FollowsFromAnyMappingOfTheFile) {
  const LoadBias bias(kLoaded, 0);
  const RuntimeAddress start = kLoaded + 0x1000;
  const RuntimeAddress end = kLoaded + 0x4000;
  EXPECT_EQ(BiasOfMoved(Plain(), start, end, At(kLoaded, 0x1000, 0)), bias);
  EXPECT_EQ(BiasOfMoved(Plain(), start, end, At(kLoaded + 0x4000, 0x1000, 0x4000)), bias);
  // Of the data: its page of the file also holds the end of the constants.
  EXPECT_EQ(BiasOfMoved(Plain(), start, end, At(kLoaded + 0x5000, 0x2000, 0x4000)), bias);
  // The middle of the text, large pages of it.
  EXPECT_EQ(BiasOfMoved(Plain(), kLoaded + 0x2000, kLoaded + 0x3000,
                        At(kLoaded + 0x1000, 0x1000, 0x1000)),
            bias);
  EXPECT_EQ(BiasOfMoved(Lld(), kLoaded + 0x1000, kLoaded + 0x4000, At(kLoaded, 0x1000, 0)), bias);
  EXPECT_EQ(
      BiasOfMoved(Lld(), kLoaded + 0x1000, kLoaded + 0x4000, At(kLoaded + 0x5000, 0x1000, 0x3000)),
      bias);
}

TEST(BiasOfMovedTest, NoneWhereTheFileHasNoCode) {
  // Beyond the text; where its constants are; a mapping of nothing that the file has.
  EXPECT_FALSE(BiasOfMoved(Plain(), kLoaded + 0x1000, kLoaded + 0x5000, At(kLoaded, 0x1000, 0)));
  EXPECT_FALSE(BiasOfMoved(Plain(), kLoaded + 0x4000, kLoaded + 0x5000, At(kLoaded, 0x1000, 0)));
  EXPECT_FALSE(
      BiasOfMoved(Plain(), kLoaded + 0x1000, kLoaded + 0x4000, At(kLoaded, 0x1000, 0x9000)));
}

TEST(BiasOfMovedTest, NoneWhereTwoWouldDo) {
  ModuleFacts twice;
  twice.segments = {{0x1000, 0x1000, 0x800, true}, {0x1800, 0x2800, 0x800, true}};
  EXPECT_EQ(
      BiasOfMoved(twice, kLoaded + 0x1000, kLoaded + 0x2000, At(kLoaded + 0x1000, 0x1000, 0x1000)),
      std::nullopt);
}

class MovedCodeTest : public testing::Test {
 protected:
  absl::Status Check(uint64_t low, uint64_t high, const ProcessId& process = {7, 1, 0}) {
    return moved_.Check(process, Plain(), LoadBias(kLoaded, 0), {low, high},
                        [this](ElfAddress at, absl::string_view bytes) -> absl::StatusOr<bool> {
                          compared_ += absl::StrCat(absl::Hex(at.value()), "+",
                                                    absl::Hex(bytes.size()), " ");
                          return at.value() != differs_;
                        });
  }

  std::string compared_;
  uint64_t differs_ = 0;
  absl::Status memory_;
  MovedCode moved_{[this](int32_t, RuntimeAddress, size_t bytes) -> absl::StatusOr<std::string> {
    if (!memory_.ok()) return memory_;
    return std::string(bytes, 'x');
  }};
};

TEST_F(MovedCodeTest, EachPageIsComparedOnceUpToTheEndOfTheCode) {
  EXPECT_TRUE(Check(0x1fff, 0x2001).ok());
  EXPECT_TRUE(Check(0x1100, 0x3300).ok());
  EXPECT_EQ(compared_, "1000+1000 2000+1000 3000+345 ");
}

TEST_F(MovedCodeTest, AnotherProcessOrProgramIsAnotherMatter) {
  EXPECT_TRUE(Check(0x1000, 0x1001).ok());
  EXPECT_TRUE(Check(0x1000, 0x1001, {7, 2, 0}).ok());
  EXPECT_TRUE(Check(0x1000, 0x1001, {7, 2, 1}).ok());
  EXPECT_EQ(compared_, "1000+1000 1000+1000 1000+1000 ");
}

TEST_F(MovedCodeTest, OtherBytesAreNotTheFiles) {
  differs_ = 0x2000;
  EXPECT_TRUE(Check(0x1000, 0x1001).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(0x1000, 0x2001)));
  differs_ = 0;
  EXPECT_TRUE(Check(0x1000, 0x2001).ok()) << "asked again: it was not equal";
}

TEST_F(MovedCodeTest, NothingIsBelievedBeyondTheCodeOrUnread) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(0x4000, 0x4001)));
  memory_ = absl::PermissionDeniedError("no");
  EXPECT_TRUE(absl::IsPermissionDenied(Check(0x1000, 0x1001)));
  EXPECT_FALSE(MovedCode(nullptr)
                   .Check({}, Plain(), {}, {0x1000, 0x1001},
                          [](ElfAddress, absl::string_view) { return true; })
                   .ok());
}

TEST_F(MovedCodeTest, RemembersABoundedNumberOfProcesses) {
  for (int32_t pid = 1; pid <= static_cast<int32_t>(MovedCode::kMaxProcesses) + 1; ++pid)
    EXPECT_TRUE(Check(0x1000, 0x1001, {pid, 1, 0}).ok());
  compared_.clear();
  EXPECT_TRUE(Check(0x1000, 0x1001, {2, 1, 0}).ok());
  EXPECT_EQ(compared_, "");
  EXPECT_TRUE(Check(0x1000, 0x1001, {1, 1, 0}).ok());
  EXPECT_EQ(compared_, "1000+1000 ") << "the one that was asked about first is forgotten";
}

}  // namespace
}  // namespace perfd::agent
