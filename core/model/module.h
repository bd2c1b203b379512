// core/model/module.h - one ELF file as its reader describes it.
//
// Units    file offsets and sizes in bytes; virtual addresses as in the ELF file.
#ifndef CORE_MODEL_MODULE_H_
#define CORE_MODEL_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.h"
#include "core/model/code.h"

namespace perfd {

// File bytes [file_offset, file_offset + file_size) are loaded at virtual_address. Source: ELF gABI, Program Header.
struct ModuleSegment {
  FileOffset file_offset = 0;
  ElfAddress virtual_address = 0;
  uint64_t file_size = 0;
  bool executable = false;

  ElfAddress virtual_end() const { return virtual_address + file_size; }
  bool operator==(const ModuleSegment&) const = default;
};

// How much is read of a module. Lines in a separate debug file are often compressed: a tenth of a second for a C library.
enum class ModuleDetail : uint8_t { kNames, kLines };

// Which file, and which state of it. A build-id may be missing, or the same in two files.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;

  bool operator==(const FileVersion&) const = default;
};

// Why a file that has debug information gives no lines.
enum class LinesProblem : uint8_t {
  kNone,
  kCompression,  // of its sections, in a way that is not known
  kTooLarge,     // when decompressed
  kDamaged,      // or of a version of DWARF that is not known
};

struct ModuleFacts {
  std::string build_id;   // hex; empty: none
  std::string code_hash;  // hex, of its executable segments; of a file without build-id only
  FileVersion file;
  bool has_lines = false;
  LinesProblem lines_problem = LinesProblem::kNone;
  bool lines_unread = false;  // its separate debug file has lines; they were not asked for
  bool has_symbols = false;
  std::vector<ModuleSegment> segments;

  bool operator==(const ModuleFacts&) const = default;
};

// The functions around some addresses, and the addresses that lie in none.
struct CodeFacts {
  std::vector<FunctionFacts> functions;
  std::vector<ElfAddress> unresolved;

  bool operator==(const CodeFacts&) const = default;
};

// One for the other, or nothing when no segment holds it.
std::optional<ElfAddress> ToElfAddress(const ModuleFacts& module, FileOffset offset);
std::optional<FileOffset> ToFileOffset(const ModuleFacts& module, ElfAddress address);

}  // namespace perfd

#endif  // CORE_MODEL_MODULE_H_
