#include "agent/experiment/text_scan.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/injection.h"
#include "agent/variant/flow/far_branches.h"
#include "agent/variant/flow/leaf_calls.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPiece = 1u << 20;
constexpr uint64_t kLongestText = 1u << 30;

bool IsFixed(const MapEntry* map) {
  return map != nullptr && map->readable && !map->writable && !map->shared && map->inode != 0;
}

// A table of at most `most` bytes; empty: it cannot be read.
template <typename T>
std::vector<T> ReadTable(uint64_t address, uint64_t bytes, uint64_t most, const Memory& memory) {
  if (bytes > most) return {};
  std::vector<T> table(bytes / sizeof(T));
  const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(table.data()), table.size() * sizeof(T));
  return memory.Read(address, out).ok() ? table : std::vector<T>();
}

// What a module's program headers say, as it is mapped.
struct LoadedModule {
  uint64_t base = 0;
  uint64_t bias = 0;
  std::vector<CodeRange> segments;
  std::vector<Elf64_Dyn> dynamic;
};

std::optional<LoadedModule> ReadModule(uint64_t base, const Memory& memory) {
  constexpr uint64_t kMostHeaders = 64 * sizeof(Elf64_Phdr), kMostDynamic = 1u << 16;
  const auto head = ReadTable<Elf64_Ehdr>(base, sizeof(Elf64_Ehdr), 4096, memory);
  if (head.empty() || memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  const auto headers = ReadTable<Elf64_Phdr>(
      base + head[0].e_phoff, head[0].e_phnum * sizeof(Elf64_Phdr), kMostHeaders, memory);
  LoadedModule module{base, 0, {}, {}};
  for (const Elf64_Phdr& header : headers)
    if (header.p_type == PT_LOAD && header.p_offset == 0) module.bias = base - header.p_vaddr;
  for (const Elf64_Phdr& header : headers) {
    const uint64_t at = module.bias + header.p_vaddr;
    if (header.p_type == PT_LOAD) module.segments.push_back({at, at + header.p_memsz});
    if (header.p_type == PT_DYNAMIC)
      module.dynamic = ReadTable<Elf64_Dyn>(at, header.p_memsz, kMostDynamic, memory);
  }
  return module;
}

// Modules that may hold an address in `part`, by where their file's begin is mapped: that may be at several places, if the program
// reads the file too, or segments share a page of it.
std::vector<LoadedModule> ModulesAt(uint64_t address, const MapEntry& part,
                                    const std::vector<MapEntry>& maps, const Memory& memory) {
  std::vector<LoadedModule> modules;
  for (const MapEntry& map : maps) {
    const bool same = map.path == part.path && map.inode == part.inode && map.file_offset == 0;
    if (!same || map.start > part.start) continue;
    const auto module = ReadModule(map.start, memory);
    const auto holds = [address](const CodeRange& range) { return range.Contains(address); };
    if (module && std::any_of(module->segments.begin(), module->segments.end(), holds))
      modules.push_back(*module);
  }
  return modules;
}

// Source: System V gABI, Dynamic Section (DT_JMPREL); glibc elf/get-dynamic-info.h (addresses there may have been relocated).
bool FillsWord(const LoadedModule& module, uint64_t address, const Memory& memory) {
  constexpr uint64_t kMostRelocations = 4u << 20;
  uint64_t table = 0, size = 0;
  for (const Elf64_Dyn& entry : module.dynamic) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_JMPREL) table = entry.d_un.d_ptr;
    if (entry.d_tag == DT_PLTRELSZ) size = entry.d_un.d_val;
    if (entry.d_tag == DT_PLTREL && entry.d_un.d_val != DT_RELA) return false;
  }
  if (table != 0 && table < module.base) table += module.bias;
  const auto relocations = ReadTable<Elf64_Rela>(table, size, kMostRelocations, memory);
  return std::any_of(relocations.begin(), relocations.end(), [&](const Elf64_Rela& relocation) {
    return relocation.r_offset + module.bias == address;
  });
}

// Whether the linker fills a word for the linkage table of its module. A pointer of the program's own may change whenever it likes.
bool IsLinkageWord(uint64_t address, const MapEntry& map, const std::vector<MapEntry>& maps,
                   const Memory& memory) {
  const std::vector<LoadedModule> modules = ModulesAt(address, map, maps, memory);
  return std::any_of(modules.begin(), modules.end(), [&](const LoadedModule& module) {
    return FillsWord(module, address, memory);
  });
}

// Where a word of the linker's leads, if that is the code of a file. One that is not bound yet leads back to what binds it.
ImportSlot ReadSlot(uint64_t address, const Memory& memory, const std::vector<MapEntry>& maps) {
  ImportSlot slot{.address = address, .module = ""};
  std::array<uint8_t, sizeof(slot.value)> word{};
  uint64_t value = 0;
  const MapEntry* own = FindMapping(maps, address);
  if (own == nullptr || own->shared || own->inode == 0) return slot;
  if (own->writable && !IsLinkageWord(address, *own, maps, memory)) return slot;
  if (!memory.Read(address, word).ok()) return slot;
  memcpy(&value, word.data(), word.size());
  const MapEntry* map = FindMapping(maps, value);
  if (!IsFixed(map) || !map->executable) return slot;
  const std::vector<LoadedModule> modules = ModulesAt(value, *map, maps, memory);
  slot.value = value;
  if (!modules.empty()) slot.bias = LoadBias(modules[0].bias, 0);
  slot.module = map->path.substr(map->path.rfind('/') + 1);
  return slot;
}

Constant ReadConstant(const CodeRange& range, const Memory& memory,
                      const std::vector<MapEntry>& maps) {
  const MapEntry* map = FindMapping(maps, range.low);
  if (!IsFixed(map) || range.high > map->end) return {range, {}};
  auto bytes = memory.Read(range.low, range.high - range.low);
  return {range, bytes.ok() ? *std::move(bytes) : std::vector<uint8_t>()};
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> FindFarBranches(const LoopCode& loop, const Memory& memory) {
  ASSIGN_OR_RETURN(const std::vector<MapEntry> maps, ExecutableMaps(ProcFs(), memory.pid()));
  const MapEntry* map = FindMapping(maps, loop.header);
  if (map == nullptr)
    return absl::NotFoundError(absl::StrCat("0x", absl::Hex(loop.header), " is not mapped"));
  if (map->end - map->start > kLongestText)
    return absl::ResourceExhaustedError("the module's text is longer than 1 GiB");
  const CodeRange under{loop.header + 1, loop.header + kJumpBytes};
  std::vector<uint64_t> found;
  for (uint64_t at = map->start; at < map->end; at += kPiece) {
    const uint64_t size = std::min(kPiece + kLongestBranch - 1, map->end - at);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, memory.Read(at, size));
    for (uint64_t from : BranchesInto(bytes, at, under, loop.function))
      if (found.empty() || found.back() < from) found.push_back(from);
  }
  return found;
}

void ReadCalledCode(const Memory& memory, LoopBytes* bytes) {
  constexpr size_t kMostBytes = 4096;  // of one function
  constexpr int kMostRounds = 16;      // each follows one more jump into what was not read
  std::vector<MapEntry> maps;
  for (int round = 0; round < kMostRounds; ++round) {
    const WantedCode wanted = WantedBy(*bytes);
    if (wanted.empty()) return;
    if (maps.empty()) maps = ProcFs().Maps(memory.pid()).value_or(std::vector<MapEntry>());
    for (const uint64_t address : wanted.text) {
      std::vector<uint8_t> text(kMostBytes);
      text.resize(memory.ReadSome(address, text));
      bytes->called.text.push_back({address, std::move(text)});
    }
    for (const uint64_t address : wanted.slots)
      bytes->called.slots.push_back(ReadSlot(address, memory, maps));
    for (const CodeRange& range : wanted.constants)
      bytes->called.constants.push_back(ReadConstant(range, memory, maps));
  }
}

}  // namespace perfd::agent
