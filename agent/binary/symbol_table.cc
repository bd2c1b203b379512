#include "agent/binary/symbol_table.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "agent/binary/symbol_name.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxSymbols = 20'000'000;
constexpr size_t kMaxNamesakes = 16;  // more functions of one name than that have no parts

// Of two symbols at one address the kept one has the better name and the larger size.
void Merge(FunctionSymbol& kept, const FunctionSymbol& other) {
  const bool better = kept.typed != other.typed     ? other.typed
                      : kept.global != other.global ? other.global
                                                    : IsBetterName(other.name, kept.name);
  const uint64_t high = std::max(kept.high, other.high);
  if (better) kept = other;
  kept.high = high;
}

bool IsFunction(const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
  return type == STT_NOTYPE;
}

// Assembly without .type: only global labels, local ones mark places inside functions. LLVM gives parts of functions a size, but no
// type.
bool IsPlace(const Elf64_Sym& symbol, absl::string_view name) {
  if (ELF64_ST_TYPE(symbol.st_info) != STT_NOTYPE) return false;
  return ELF64_ST_BIND(symbol.st_info) == STB_LOCAL &&
         (symbol.st_size == 0 || WholeOf(name).empty());
}

void AppendTable(const ElfSection& table, std::span<const std::byte> names, const ElfFile& code,
                 std::vector<FunctionSymbol>& out) {
  const size_t count = std::min(table.bytes.size() / sizeof(Elf64_Sym), kMaxSymbols);
  uint32_t unit = static_cast<uint32_t>(out.size()) + 1;  // unlike all before that has functions
  for (size_t i = 0; i < count; ++i) {
    Elf64_Sym raw;
    std::memcpy(&raw, table.bytes.data() + i * sizeof raw, sizeof raw);
    if (ELF64_ST_TYPE(raw.st_info) == STT_FILE) unit = static_cast<uint32_t>(out.size()) + 1;
    if (!IsFunction(raw)) continue;
    const ModuleSegment* segment = code.SegmentAt(raw.st_value);
    if (segment == nullptr || !segment->executable) continue;
    FunctionSymbol symbol;
    symbol.name = TableText(names, raw.st_name);
    if (symbol.name.empty() || IsPlace(raw, symbol.name)) continue;
    const uint64_t end = segment->virtual_end().value();
    symbol.low = raw.st_value;
    symbol.high = raw.st_size > end - raw.st_value ? end : raw.st_value + raw.st_size;
    symbol.global = ELF64_ST_BIND(raw.st_info) != STB_LOCAL;
    symbol.typed = ELF64_ST_TYPE(raw.st_info) != STT_NOTYPE || !symbol.global;  // or it is a part
    symbol.unit = symbol.global ? 0 : unit;
    out.push_back(symbol);
  }
}

std::vector<uint64_t> SecondsOf(const std::vector<std::pair<uint64_t, uint64_t>>& sorted,
                                uint64_t first) {
  std::vector<uint64_t> seconds;
  for (auto at = std::lower_bound(sorted.begin(), sorted.end(), std::pair{first, uint64_t{0}});
       at != sorted.end() && at->first == first; ++at)
    seconds.push_back(at->second);
  return seconds;
}

}  // namespace

absl::string_view TableText(std::span<const std::byte> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* text = reinterpret_cast<const char*>(table.data()) + offset;
  const size_t length = strnlen(text, table.size() - offset);
  return length == table.size() - offset ? absl::string_view() : absl::string_view(text, length);
}

void AppendSymbols(const ElfFile& file, const ElfFile& code, std::vector<FunctionSymbol>& out) {
  for (const ElfSection& section : file.sections()) {
    if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
    if (section.link >= file.sections().size()) continue;
    AppendTable(section, file.sections()[section.link].bytes, code, out);
  }
}

NamedParts::NamedParts(const std::vector<FunctionSymbol>& symbols) {
  using Name = std::pair<uint32_t, absl::string_view>;  // unit
  absl::flat_hash_map<Name, std::set<uint64_t>> functions;
  for (const FunctionSymbol& symbol : symbols) {
    const absl::string_view whole = WholeOf(symbol.name);
    if (whole.empty()) continue;
    functions[{0, whole}];
    functions[{symbol.unit, whole}];
  }
  if (functions.empty()) return;
  for (const FunctionSymbol& symbol : symbols) {
    const auto wanted = functions.find({symbol.unit, symbol.name});
    if (wanted != functions.end()) wanted->second.insert(symbol.low);
  }
  for (const FunctionSymbol& symbol : symbols) {
    const absl::string_view name = WholeOf(symbol.name);
    if (name.empty()) continue;
    const std::set<uint64_t>& near = functions.at({symbol.unit, name});
    const std::set<uint64_t>& all = near.empty() ? functions.at({0, name}) : near;
    if (all.size() > kMaxNamesakes) continue;
    for (const uint64_t whole : all) {
      if (whole == symbol.low) continue;
      wholes_.emplace_back(symbol.low, whole);
      parts_.emplace_back(whole, symbol.low);
    }
  }
  for (auto* pairs : {&wholes_, &parts_}) {
    std::sort(pairs->begin(), pairs->end());
    pairs->erase(std::unique(pairs->begin(), pairs->end()), pairs->end());
  }
}

std::vector<uint64_t> NamedParts::WholesOf(uint64_t part) const {
  return SecondsOf(wholes_, part);
}

std::vector<uint64_t> NamedParts::PartsOf(uint64_t whole) const {
  return SecondsOf(parts_, whole);
}

SymbolTable::SymbolTable(std::vector<FunctionSymbol> symbols) {
  std::sort(symbols.begin(), symbols.end(),
            [](const FunctionSymbol& a, const FunctionSymbol& b) { return a.low < b.low; });
  for (const FunctionSymbol& symbol : symbols) {
    if (!symbols_.empty() && symbols_.back().low == symbol.low) {
      Merge(symbols_.back(), symbol);
    } else if (symbol.typed || symbols_.empty() || reach_.back() <= symbol.low) {
      // A label without type inside a function is a place, not a function.
      symbols_.push_back(symbol);
    } else {
      continue;
    }
    const uint64_t before = symbols_.size() > 1 ? reach_[symbols_.size() - 2] : 0;
    reach_.resize(symbols_.size());
    reach_.back() = std::max(before, symbols_.back().high);
  }
}

const FunctionSymbol* SymbolTable::Before(uint64_t address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](uint64_t a, const FunctionSymbol& s) { return a < s.low; });
  return at == symbols_.begin() ? nullptr : &*std::prev(at);
}

const FunctionSymbol* SymbolTable::After(uint64_t address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](uint64_t a, const FunctionSymbol& s) { return a < s.low; });
  return at == symbols_.end() ? nullptr : &*at;
}

const FunctionSymbol* SymbolTable::Find(uint64_t address) const {
  const FunctionSymbol* before = Before(address);
  if (before == nullptr) return nullptr;
  for (auto i = static_cast<size_t>(before - symbols_.data()) + 1; i-- > 0;) {
    if (reach_[i] <= address) return nullptr;
    if (symbols_[i].high > address) return &symbols_[i];
  }
  return nullptr;
}

}  // namespace perfd::agent
