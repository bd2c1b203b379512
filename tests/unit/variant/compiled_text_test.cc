// Copies of compiled loops as text: objdump reads the same instructions, and no variant adds a recurrence.
#include <cstdio>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "agent/variant/flow/dataflow.h"
#include "agent/variant/decode.h"
#include "tests/unit/variant/compiled_library.h"

namespace perfd {
namespace {

class CompiledTextTest : public testing::TestWithParam<const char*> {};

// Address -> mnemonic, as objdump sees the bytes.
std::map<uint64_t, std::string> Disassemble(const CodeCopy& copy) {
  const std::string path = testing::TempDir() + "variant_copy_" + std::to_string(getpid()) + ".bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(copy.bytes.data()),
             static_cast<long>(copy.bytes.size()));
  const std::string command = absl::StrCat(
      "objdump -D -b binary -m i386:x86-64 --no-show-raw-insn --adjust-vma=", copy.address, " ",
      path);
  std::map<uint64_t, std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(":\t", 1));
    if (parts.size() != 2) continue;
    const std::vector<std::string> words =
        absl::StrSplit(parts[1], absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (words.empty()) continue;
    lines[std::strtoull(parts[0].c_str(), nullptr, 16)] = words[0];
  }
  if (pipe != nullptr) pclose(pipe);
  std::remove(path.c_str());
  return lines;
}

TEST_P(CompiledTextTest, ObjdumpReadsTheSameInstructions) {
  Library library(PathOf(GetParam()));
  for (const char* name : {"svdcmp", "triad", "roots", "gather", "widen", "choose"}) {
    for (const LoopBytes& bytes : library.Loops(library.Find(name))) {
      const auto code = DecodeLoop(bytes);
      if (!code.ok()) continue;
      for (const char* text : {"REF", "LS", "FP", "DL1", "S2L", "NO_STORE", "REF_CTL"}) {
        const auto copy =
            MakeCopy(*code, *ParseVariantName(text), {library.cache(), Exits::kOriginalText, 0});
        if (!copy.ok()) continue;
        const std::map<uint64_t, std::string> lines = Disassemble(*copy);
        size_t count = 0;
        for (size_t at = 0; at < copy->bytes.size(); ++count) {
          const auto i =
              DecodeLoopInstruction(std::span(copy->bytes).subspan(at), copy->address + at);
          ASSERT_TRUE(i.has_value());
          const auto line = lines.find(copy->address + at);
          ASSERT_NE(line, lines.end()) << name << " " << text << ": no line for " << i->text;
          const bool alias = absl::StrContains(i->mnemonic, "cmp") || i->flow != LoopFlow::kPlain;
          if (i->Is(kVectorOp) && !alias) {
            EXPECT_TRUE(absl::StartsWith(line->second, i->mnemonic))
                << line->second << " " << i->text;
          }
          at += i->length;
        }
        EXPECT_EQ(count, lines.size()) << name << " " << text;
      }
    }
  }
}

TEST_P(CompiledTextTest, NoVariantAddsARecurrence) {
  Library library(PathOf(GetParam()));
  for (const char* name : kKernels) {
    for (const LoopBytes& bytes : library.Loops(library.Find(name))) {
      const auto code = DecodeLoop(bytes);
      if (!code.ok()) continue;
      for (const char* text : kVariants) {
        const VariantName variant = *ParseVariantName(text);
        if (variant.Has(Change::kGroup) || variant.Has(Change::kPrefetch)) continue;
        const auto copy = MakeCopy(*code, variant, {library.cache(), Exits::kOriginalText, 0});
        if (!copy.ok()) continue;
        // The copy decoded afresh: one effect per original instruction, from all the code between two boundaries.
        std::vector<Effect> effects = Effects(*code);
        for (size_t n = 0; n < copy->address_map.size(); ++n) {
          const auto& instructions = code->instructions;
          size_t index = 0;
          while (index < instructions.size() &&
                 instructions[index].address != copy->address_map[n].original)
            ++index;
          if (index == instructions.size()) continue;
          const uint64_t end = n + 1 < copy->address_map.size()
                                   ? copy->address_map[n + 1].copy
                                   : copy->address + copy->bytes.size();
          std::vector<LoopInstruction> codes;
          for (uint64_t at = copy->address_map[n].copy; at < end;) {
            const auto i =
                DecodeLoopInstruction(std::span(copy->bytes).subspan(at - copy->address), at);
            ASSERT_TRUE(i.has_value());
            codes.push_back(*i);
            at += i->length;
          }
          effects[index] = EffectOf(codes);
        }
        EXPECT_TRUE(AddedRecurrences(*code, effects).empty()) << name << " " << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compilers, CompiledTextTest, testing::Values(PERFD_VARIANT_LIBRARIES),
                         LibraryTestName);

}  // namespace
}  // namespace perfd
