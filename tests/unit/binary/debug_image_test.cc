#include "agent/binary/compressed/debug_image.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "agent/binary/module_reader.h"
#include "tests/unit/binary/fixture.h"
#include "tests/unit/binary/memory_file.h"

namespace perfd::agent {
namespace {

constexpr char kFile[] = "kernels-gcc-O2-zstd";

// The file, with the header and the compression header of one of its sections changed.
std::string Changed(const std::string& name,
                    const std::function<void(Elf64_Shdr&, Elf64_Chdr&)>& change) {
  std::string bytes = FileText(Fixture(kFile));
  Elf64_Ehdr file{};
  std::memcpy(&file, bytes.data(), sizeof file);
  const auto header_at = [&](size_t i) { return file.e_shoff + i * sizeof(Elf64_Shdr); };
  Elf64_Shdr names{};
  std::memcpy(&names, bytes.data() + header_at(file.e_shstrndx), sizeof names);
  for (size_t i = 0; i < file.e_shnum; ++i) {
    Elf64_Shdr section{};
    std::memcpy(&section, bytes.data() + header_at(i), sizeof section);
    if (bytes.c_str() + names.sh_offset + section.sh_name != name) continue;
    EXPECT_NE(section.sh_flags & SHF_COMPRESSED, 0U);
    Elf64_Chdr compression{};
    const uint64_t at = section.sh_offset;
    std::memcpy(&compression, bytes.data() + at, sizeof compression);
    EXPECT_EQ(compression.ch_type, 2U);
    change(section, compression);
    std::memcpy(bytes.data() + at, &compression, sizeof compression);
    std::memcpy(bytes.data() + header_at(i), &section, sizeof section);
    return bytes;
  }
  ADD_FAILURE() << "no section " << name;
  return bytes;
}

LinesProblem ProblemOf(const std::string& bytes) {
  const auto reader = ModuleReader::Open(MemoryFile(bytes));
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return LinesProblem::kNone;
  EXPECT_EQ((*reader)->facts().has_lines, (*reader)->facts().lines_problem == LinesProblem::kNone);
  EXPECT_TRUE((*reader)->facts().has_symbols);
  return (*reader)->facts().lines_problem;
}

TEST(DebugImageTest, OnlyForWhatLibelfCannotRead) {
  for (const char* name : {"kernels-gcc-O2", "kernels-gcc-O2-dwarf4", "kernels-gcc-O2-stripped"}) {
    const auto file = ElfFile::Open(OpenFile(Fixture(name)));
    ASSERT_TRUE(file.ok()) << file.status();
    LinesProblem problem = LinesProblem::kNone;
    EXPECT_EQ(DebugImage::Make((*file)->handle(), (*file)->image(), &problem), nullptr) << name;
    EXPECT_EQ(problem, LinesProblem::kNone);
  }
}

TEST(DebugImageTest, AllOfItIsThere) {
  const auto plain = ModuleReader::Open(OpenFile(Fixture("kernels-gcc-O2")));
  const auto zstd = ModuleReader::Open(OpenFile(Fixture(kFile)));
  ASSERT_TRUE(plain.ok() && zstd.ok());
  EXPECT_EQ((*zstd)->facts().lines_problem, LinesProblem::kNone);
  for (const char* name : {"triple", "switched", "inlined", "chase"}) {
    const ElfAddress address = SymbolAddress(Fixture(kFile), name);
    EXPECT_EQ((*zstd)->FunctionsAt({&address, 1}), (*plain)->FunctionsAt({&address, 1})) << name;
  }
}

TEST(DebugImageTest, AsASeparateDebugFile) {
  const auto reader =
      ModuleReader::Open(OpenFile(Fixture("kernels-gcc-O2-stripped")), OpenFile(Fixture(kFile)));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->facts().has_lines);
}

TEST(DebugImageTest, HostileFilesLoseTheirLinesAndSayWhy) {
  EXPECT_EQ(ProblemOf(FileText(Fixture(kFile))), LinesProblem::kNone);
  const auto size = [](uint64_t bytes) {
    return ProblemOf(
        Changed(".debug_info", [&](Elf64_Shdr&, Elf64_Chdr& c) { c.ch_size = bytes; }));
  };
  uint64_t right = 0;
  Changed(".debug_info", [&](Elf64_Shdr&, Elf64_Chdr& c) { right = c.ch_size; });
  EXPECT_EQ(size(right), LinesProblem::kNone);
  EXPECT_EQ(size(right - 1), LinesProblem::kDamaged);
  EXPECT_EQ(size(right + 1), LinesProblem::kDamaged);
  EXPECT_EQ(size(0), LinesProblem::kDamaged);
  EXPECT_EQ(size(kMaxDebugImageBytes), LinesProblem::kTooLarge);
  EXPECT_EQ(size(UINT64_MAX), LinesProblem::kTooLarge);
  EXPECT_EQ(size(UINT64_MAX - 63), LinesProblem::kTooLarge);
  EXPECT_EQ(ProblemOf(Changed(".debug_line", [](Elf64_Shdr&, Elf64_Chdr& c) { c.ch_type = 3; })),
            LinesProblem::kCompression);
  const auto section = [](const std::function<void(Elf64_Shdr&)>& change) {
    return ProblemOf(Changed(".debug_info", [&](Elf64_Shdr& s, Elf64_Chdr&) { change(s); }));
  };
  EXPECT_EQ(section([](Elf64_Shdr& s) { s.sh_size = 3; }), LinesProblem::kDamaged);
  EXPECT_EQ(section([](Elf64_Shdr& s) { s.sh_size = sizeof(Elf64_Chdr); }), LinesProblem::kDamaged);
  EXPECT_EQ(section([](Elf64_Shdr& s) { s.sh_size -= 1; }), LinesProblem::kDamaged);
  EXPECT_EQ(section([](Elf64_Shdr& s) { s.sh_offset = UINT64_MAX - 2; }), LinesProblem::kDamaged);
}

// Source: DWARF 5 section 7.5.1.1: the version is behind the length of the first unit.
TEST(DebugImageTest, AnUnknownVersionOfDwarfIsSaidToo) {
  std::string bytes = FileText(Fixture("kernels-gcc-O2"));
  uint64_t at = 0;
  for (const std::string& line : OutputOf("readelf -SW " + Fixture("kernels-gcc-O2"))) {
    const size_t name = line.find(" .debug_info ");
    if (name == std::string::npos) continue;
    const size_t type = line.find("PROGBITS", name) + 8;
    at = std::stoull(line.substr(line.find(' ', line.find_first_not_of(' ', type))), nullptr, 16);
  }
  ASSERT_EQ(bytes.at(at + 4), 5);
  bytes[at + 4] = 77;
  EXPECT_EQ(ProblemOf(bytes), LinesProblem::kDamaged);
}

}  // namespace
}  // namespace perfd::agent
