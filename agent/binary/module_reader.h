// agent/binary/module_reader.h - functions and loops of one ELF file around given addresses.
//
// Shape    Open(file, debug file or none, detail); FunctionsAt(addresses) -> each function once, sorted by low, with all its parts:
//          by symbols (NAME.cold); what has none by the ranges of DWARF; in files without local symbols by jumps (flow/part_jumps.h).
// Units    ELF virtual addresses.
// Errors   Open: kInvalidArgument (see ElfFile). FunctionsAt never fails: addresses in no function are `unresolved`.
// Limits   analysed functions are cached, at most kMaxCachedFunctions.
// Threads  thread-bound.
#ifndef AGENT_BINARY_MODULE_READER_H_
#define AGENT_BINARY_MODULE_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/binary/debug_info.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/flow/part_jumps.h"
#include "agent/binary/function_index.h"
#include "agent/binary/return_oracle.h"
#include "core/base/unique_fd.h"
#include "core/model/module.h"

namespace perfd::agent {

inline constexpr size_t kMaxCachedFunctions = 65536;

class ModuleReader {
 public:
  // A debug file that does not belong to the module or cannot be read is ignored. kNames: of it, only symbols are read.
  static absl::StatusOr<std::unique_ptr<ModuleReader>> Open(
      UniqueFd main, UniqueFd debug = {}, ModuleDetail detail = ModuleDetail::kLines);

  const ModuleFacts& facts() const { return facts_; }
  CodeFacts FunctionsAt(std::span<const ElfAddress> addresses);
  // The file has these bytes there, all in one segment.
  bool HasBytes(ElfAddress address, absl::string_view bytes) const;

 private:
  ModuleReader(std::unique_ptr<ElfFile> main, std::unique_ptr<ElfFile> debug, ModuleDetail detail);

  // Bounds of one part with an own name (DWARF names do not live in the file image).
  struct Found {
    FunctionBounds bounds;
    std::string name;
  };
  static CodeRange RangeOf(const Found& part);
  static PartJumps::Piece PieceOf(const Found& part);
  std::optional<Found> FindPart(uint64_t address);
  std::optional<PartJumps::Piece> PieceAt(uint64_t address);
  std::vector<CodeRange> DwarfRanges(uint64_t address);
  uint64_t EntryOf(const Found& part);
  std::vector<CodeRange> FurtherPartsOf(const Found& entry);
  Found WholeOf(const Found& part);
  const FunctionFacts* FunctionAt(uint64_t address);
  FunctionFacts Analyse(const Found& found, std::vector<CodeRange> further_parts);

  std::unique_ptr<ElfFile> main_;
  std::unique_ptr<ElfFile> debug_;
  FunctionIndex index_;
  ReturnOracle returns_;
  PartJumps jumps_;
  std::unique_ptr<DebugInfo> debug_info_;
  ModuleFacts facts_;
  std::map<uint64_t, FunctionFacts> cache_;  // by low
  std::map<uint64_t, uint64_t> entry_of_;    // low of each part of those -> low of the function
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_MODULE_READER_H_
