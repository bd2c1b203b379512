// agent/binary/symbol_table.h - function symbols of .symtab and .dynsym, one per address, the best name first.
//
// Shape    ReadSymbols(file) -> SymbolTable; Find(address) -> the innermost symbol that holds it.
//          NamedParts(symbols) -> which of them are parts of others.
// Errors   none: entries that point outside their tables are skipped.
// Threads  thread-safe (const). Names point into the ElfFile.
// Source   ELF gABI "Symbol Table" (elf.h: Elf64_Sym).
#ifndef AGENT_BINARY_SYMBOL_TABLE_H_
#define AGENT_BINARY_SYMBOL_TABLE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/binary/elf_file.h"

namespace perfd::agent {

struct FunctionSymbol {
  uint64_t low = 0;
  uint64_t high = 0;  // low when the symbol has no size
  absl::string_view name;
  bool global = false;
  bool typed = false;  // STT_FUNC or STT_GNU_IFUNC; else a label without type
  uint32_t unit =
      0;  // of a local symbol: the same for all of one source file, as far as STT_FILE tells; else 0

  bool sized() const { return high > low; }
};

class SymbolTable {
 public:
  SymbolTable() = default;
  // Takes symbols in any order.
  explicit SymbolTable(std::vector<FunctionSymbol> symbols);

  const std::vector<FunctionSymbol>& symbols() const { return symbols_; }
  // The sized symbol with the highest start that holds `address`; nullptr: none.
  const FunctionSymbol* Find(uint64_t address) const;
  // The last symbol at or before, and the first one after `address`; nullptr: none.
  const FunctionSymbol* Before(uint64_t address) const;
  const FunctionSymbol* After(uint64_t address) const;

 private:
  std::vector<FunctionSymbol> symbols_;  // sorted by low, each low once
  std::vector<uint64_t> reach_;          // highest end among symbols [0, i]
};

// Which symbols are parts of functions by their names: NAME.cold of NAME. Of two functions of one name the one of the same source
// file; where that does not tell, all of them.
class NamedParts {
 public:
  NamedParts() = default;
  // All symbols, aliases included.
  explicit NamedParts(const std::vector<FunctionSymbol>& symbols);

  // Addresses; sorted, each once.
  std::vector<uint64_t> WholesOf(uint64_t part) const;
  std::vector<uint64_t> PartsOf(uint64_t whole) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> wholes_;  // part, whole; sorted
  std::vector<std::pair<uint64_t, uint64_t>> parts_;   // whole, part; sorted
};

// Adds the function symbols of `file`. Addresses must be inside executable segments of `code`.
void AppendSymbols(const ElfFile& file, const ElfFile& code, std::vector<FunctionSymbol>& out);

// The zero-terminated text at `offset` of a string table; empty when it leaves the table.
absl::string_view TableText(std::span<const std::byte> table, uint64_t offset);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_SYMBOL_TABLE_H_
