// Copies of compiled loops, decoded afresh: no variant adds a recurrence.
#include "agent/variant/decode.h"
#include "agent/variant/flow/dataflow.h"
#include "tests/unit/variant/compiled_library.h"

namespace perfd::agent {
namespace {

class CompiledTextTest : public testing::TestWithParam<const char*> {};

// What addresses are made of is looked up among what the instruction reads (Definitions).
TEST_P(CompiledTextTest, AddressesAreMadeOfWhatIsRead) {
  Library library(PathOf(GetParam()));
  for (const char* name : kKernels) {
    for (const LoopBytes& bytes : library.Loops(library.Find(name))) {
      const auto code = DecodeLoop(bytes);
      if (!code.ok()) continue;
      for (const LoopInstruction& i : code->instructions)
        EXPECT_EQ(i.address_reads & ~i.reads, 0u) << name << ": " << i.mnemonic;
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
}  // namespace perfd::agent
