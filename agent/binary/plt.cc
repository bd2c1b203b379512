#include "agent/binary/plt.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/binary/flow/decoder.h"
#include "agent/binary/symbol_table.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxRelocations = 4'000'000;
// Source: AMD64 supplement 5.2: lazy and IBT stubs take 16 bytes; the linkers' .plt.got stubs take 8 (16 with IBT).
constexpr size_t kStubBytes = 16;
constexpr size_t kShortStubBytes = 8;

using SlotNames = absl::flat_hash_map<uint64_t, absl::string_view>;

const ElfSection* Linked(const ElfFile& file, const ElfSection& section) {
  return section.link < file.sections().size() ? &file.sections()[section.link] : nullptr;
}

void AppendSlots(const ElfFile& file, const ElfSection& relocations, SlotNames& slots) {
  const ElfSection* symbols = Linked(file, relocations);
  const ElfSection* names = symbols == nullptr ? nullptr : Linked(file, *symbols);
  if (names == nullptr) return;
  const size_t count = std::min(relocations.bytes.size() / sizeof(Elf64_Rela), kMaxRelocations);
  for (size_t i = 0; i < count; ++i) {
    Elf64_Rela entry;
    std::memcpy(&entry, relocations.bytes.data() + i * sizeof entry, sizeof entry);
    const auto type = ELF64_R_TYPE(entry.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const uint64_t index = ELF64_R_SYM(entry.r_info);
    if (index >= symbols->bytes.size() / sizeof(Elf64_Sym)) continue;
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols->bytes.data() + index * sizeof symbol, sizeof symbol);
    slots[entry.r_offset] = TableText(names->bytes, symbol.st_name);
  }
}

// The slot the stub jumps through: `jmp *slot(%rip)`, after endbr64 where there is one.
uint64_t StubSlot(std::span<const std::byte> stub, uint64_t address) {
  for (int i = 0; i < 2 && !stub.empty(); ++i) {
    const auto instruction = Decode(stub, address);
    if (!instruction) return 0;
    if (instruction->flow == Flow::kSlotJump) return instruction->reference;
    if (instruction->flow != Flow::kPlain) return 0;
    stub = stub.subspan(instruction->length);
    address = instruction->end();
  }
  return 0;
}

void AppendStubs(const ElfSection& section, const SlotNames& slots, std::vector<PltStub>& stubs) {
  const auto bytes = section.bytes;
  for (size_t at = 0; at + kShortStubBytes <= bytes.size();) {
    const size_t size = std::min(kStubBytes, bytes.size() - at);
    const uint64_t address = section.address.value() + at;
    const auto slot = slots.find(StubSlot(bytes.subspan(at, size), address));
    const bool is_short = section.name == ".plt.got" && std::to_integer<int>(bytes[at]) == 0xFF;
    const size_t step = is_short ? kShortStubBytes : kStubBytes;
    if (slot != slots.end() && !slot->second.empty())
      stubs.push_back(
          {address, address + std::min(step, size), absl::StrCat(slot->second, "@plt")});
    at += step;
  }
}

}  // namespace

std::vector<PltStub> ReadPltStubs(const ElfFile& file) {
  SlotNames slots;
  for (const ElfSection& section : file.sections())
    if (section.type == SHT_RELA && (section.name == ".rela.plt" || section.name == ".rela.dyn"))
      AppendSlots(file, section, slots);
  std::vector<PltStub> stubs;
  for (const ElfSection& section : file.sections())
    if (section.name == ".plt" || section.name == ".plt.sec" || section.name == ".plt.got")
      AppendStubs(section, slots, stubs);
  std::sort(stubs.begin(), stubs.end(),
            [](const PltStub& a, const PltStub& b) { return a.low < b.low; });
  return stubs;
}

}  // namespace perfd::agent
