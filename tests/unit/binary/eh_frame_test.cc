#include "agent/binary/frames/eh_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/binary/elf_file.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

std::set<std::pair<uint64_t, uint64_t>> ReadelfRanges(const std::string& path) {
  std::set<std::pair<uint64_t, uint64_t>> ranges;
  for (const std::string& line : OutputOf("readelf --debug-dump=frames -wN " + path)) {
    const size_t at = line.find(" pc=");
    const size_t dots = line.find("..", at);
    if (line.find(" FDE ") == std::string::npos || at == std::string::npos) continue;
    ranges.insert({std::stoull(line.substr(at + 4, dots - at - 4), nullptr, 16),
                   std::stoull(line.substr(dots + 2), nullptr, 16)});
  }
  return ranges;
}

TEST(EhFrameTest, EqualsReadelf) {
  for (const std::string& path : {Fixture("kernels-gcc-O2"), Fixture("kernels-clang-O2-stripped"),
                                  Fixture("shapes"), std::string("/bin/ls")}) {
    auto file = ElfFile::Open(OpenFile(path));
    ASSERT_TRUE(file.ok()) << file.status();
    const ElfSection* section = (*file)->FindSection(".eh_frame");
    ASSERT_NE(section, nullptr);
    const EhFrame parsed = ParseEhFrame(section->bytes, section->address.value());
    std::set<std::pair<uint64_t, uint64_t>> ours;
    for (const CodeRange& range : parsed.functions) ours.insert({range.low, range.high});
    const auto theirs = ReadelfRanges(path);
    ASSERT_FALSE(theirs.empty()) << path;
    EXPECT_EQ(ours, theirs) << path;
    EXPECT_EQ(parsed.skipped, 0U);
    // The header leads to the same place, for files without section headers.
    const uint64_t header = (*file)->eh_frame_header();
    EXPECT_EQ(EhFrameAddress((*file)->ReadToEnd(header), header), section->address);
  }
}

class EhFrameBytesTest : public ::testing::Test {
 protected:
  template <typename T>
  void Append(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }
  void Text(const char* text) {
    for (; *text != 0; ++text) Append(*text);
    Append('\0');
  }
  // A CIE with augmentation "zR" and the encoding; 20 bytes.
  void Cie(uint8_t encoding) {
    Append(uint32_t{16});
    Append(uint32_t{0});
    Append(uint8_t{1});
    Text("zR");
    Append(uint8_t{1});
    Append(uint8_t{0x78});
    Append(uint8_t{16});
    Append(uint8_t{1});
    Append(encoding);
    while (out_.size() % 4 != 0) Append(uint8_t{0});
  }
  std::vector<CodeRange> Parse() { return ParseEhFrame(out_, 0x5000).functions; }

  std::vector<std::byte> out_;
};

TEST_F(EhFrameBytesTest, PointerEncodings) {
  Cie(0x1B);  // pc-relative, signed 4 bytes
  ASSERT_EQ(out_.size(), 20U);
  Append(uint32_t{12});
  Append(uint32_t{24});    // back to the CIE
  Append(int32_t{-0x1C});  // from 0x501C
  Append(uint32_t{0x40});
  EXPECT_THAT(Parse(), ::testing::ElementsAre(CodeRange{0x5000, 0x5040}));
  out_.clear();
  Cie(0x00);  // absolute, 8 bytes
  Append(uint32_t{20});
  Append(uint32_t{24});
  Append(uint64_t{0x401000});
  Append(uint64_t{0x10});
  EXPECT_THAT(Parse(), ::testing::ElementsAre(CodeRange{0x401000, 0x401010}));
  out_.clear();
  Cie(0x03);  // absolute, unsigned 4 bytes
  Append(uint32_t{12});
  Append(uint32_t{24});
  Append(uint32_t{0x80000000});
  Append(uint32_t{0x10});
  EXPECT_THAT(Parse(), ::testing::ElementsAre(CodeRange{0x80000000, 0x80000010}));
}

TEST_F(EhFrameBytesTest, SkipsWhatItCannotTrust) {
  Cie(0x9B);  // indirect: the pointer is elsewhere
  Append(uint32_t{12});
  Append(uint32_t{24});
  Append(uint32_t{0});
  Append(uint32_t{0x10});
  Append(uint32_t{12});  // an FDE whose CIE pointer leads before the section
  Append(uint32_t{0xFFFFFF});
  Append(uint64_t{0});
  const EhFrame parsed = ParseEhFrame(out_, 0x5000);
  EXPECT_TRUE(parsed.functions.empty());
  EXPECT_EQ(parsed.skipped, 2U);
}

TEST_F(EhFrameBytesTest, StopsWhereALengthLeavesTheSection) {
  Cie(0x1B);
  Append(uint32_t{13});  // one more than is there
  Append(uint32_t{24});
  Append(int32_t{-0x1C});
  Append(uint32_t{0x40});
  EXPECT_TRUE(Parse().empty());
  EXPECT_TRUE(ParseEhFrame({}, 0).functions.empty());
}

}  // namespace
}  // namespace perfd::agent
