#include "agent/binary/elf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <iterator>

#include "tests/unit/binary/fixture.h"
#include "tests/unit/binary/memory_file.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& bytes) {
  const auto file = ElfFile::Open(MemoryFile(bytes));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

// Names and debug information are none of it: a stripped file has the same code.
TEST(ElfFileTest, BuildsWithoutBuildIdAreToldApartByTheirCode) {
  const auto hash = [](const std::string& path) {
    auto file = ElfFile::Open(OpenFile(path));
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? (*file)->CodeHash() : "";
  };
  const std::string path = Fixture("kernels-gcc-O2");
  EXPECT_EQ(hash(path).size(), 16u);
  EXPECT_EQ(hash(path), hash(path));
  EXPECT_NE(hash(path), hash(Fixture("kernels-gcc-O3")));
  EXPECT_EQ(hash(path), hash(Fixture("kernels-gcc-O2-stripped")));
}

TEST(ElfFileTest, FactsEqualReadelf) {
  const std::string path = Fixture("kernels-gcc-O2");
  auto file = ElfFile::Open(OpenFile(path));
  ASSERT_TRUE(file.ok()) << file.status();
  std::string build_id;
  for (const std::string& line : OutputOf("readelf -n " + path))
    if (const size_t at = line.find("Build ID: "); at != std::string::npos)
      build_id = line.substr(at + 10);
  EXPECT_EQ((*file)->build_id(), build_id);
  EXPECT_FALSE(build_id.empty());
  size_t loads = 0;
  for (const std::string& line : OutputOf("readelf -lW " + path)) {
    const size_t at = line.find("LOAD ");
    if (at == std::string::npos) continue;
    ASSERT_LT(loads, (*file)->segments().size());
    const ModuleSegment& segment = (*file)->segments()[loads++];
    unsigned long offset = 0, address = 0, physical = 0, size = 0;
    ASSERT_EQ(
        std::sscanf(line.c_str() + at + 5, "%lx %lx %lx %lx", &offset, &address, &physical, &size),
        4);
    EXPECT_EQ(segment.file_offset, offset);
    EXPECT_EQ(segment.virtual_address, address);
    EXPECT_EQ(segment.file_size, size);
    EXPECT_EQ(segment.executable, line.find("R E") != std::string::npos);
  }
  EXPECT_EQ(loads, (*file)->segments().size());
}

TEST(ElfFileTest, ReadsOnlyInsideASegment) {
  auto file = ElfFile::Open(OpenFile(Fixture("kernels-gcc-O2")));
  ASSERT_TRUE(file.ok());
  const ModuleSegment& segment = (*file)->segments()[0];
  const ElfAddress low = segment.virtual_address;
  EXPECT_EQ((*file)->Read(low, segment.file_size).size(), segment.file_size);
  EXPECT_TRUE((*file)->Read(low, segment.file_size + 1).empty());
  EXPECT_TRUE((*file)->Read(low + 8, UINT64_MAX).empty());
  EXPECT_TRUE((*file)->Read(UINT64_MAX, 1).empty());
}

TEST(ElfFileTest, RefusesWithTheReason) {
  EXPECT_THAT(ErrorOf("#!/bin/sh\nexit 0\n"), HasSubstr("script"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("not an ELF file"));
  EXPECT_THAT(ErrorOf("\x7f"
                      "EL"),
              HasSubstr("not an ELF file"));
  const std::string good = FileText(Fixture("kernels-gcc-O2"));
  std::string bytes = good;
  bytes[4] = 1;  // EI_CLASS
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("32-bit"));
  bytes = good;
  bytes[18] = static_cast<char>(183);  // e_machine: AArch64
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("machine 183"));
  bytes = good;
  bytes[16] = 4;  // e_type: a core file
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("type 4"));
  EXPECT_THAT(ErrorOf(good.substr(0, 63)), HasSubstr("truncated"));
}

TEST(ElfFileTest, SurvivesEveryTruncation) {
  const std::string good = FileText(Fixture("shapes"));
  for (size_t size = 64; size < good.size(); size += 97) {
    auto file = ElfFile::Open(MemoryFile(good.substr(0, size)));
    if (!file.ok()) continue;
    for (const ElfSection& section : (*file)->sections()) EXPECT_LE(section.bytes.size(), size);
  }
}

// Source: the check value of CRC-32 is the one of "123456789".
TEST(ElfFileTest, DebugLinkCrcHasTheCheckValue) {
  const std::string text = "123456789";
  EXPECT_EQ(DebugLinkCrc(std::as_bytes(std::span(text))), 0xCBF43926U);
}

}  // namespace
}  // namespace perfd::agent
