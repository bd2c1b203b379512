// agent/binary/debug_info.h - DWARF, read only as far as asked. The libdw door.
//
// Shape    Lines(entry, parts) reads the one compilation unit that holds the entry: by .debug_aranges, else by the ranges of
//          the units (clang writes no .debug_aranges). Subprogram(address) gives bounds where no symbol does.
// Errors   none: what is missing or damaged is left out.
// Limits   entries per unit, inlined calls per function and nesting are capped.
// Threads  thread-bound.
// Source   DWARF 5 sections 2.17 (ranges), 3.3 (subprograms, inlined calls), 6.1.2 (.debug_aranges), 6.2 (lines).
#ifndef AGENT_BINARY_DEBUG_INFO_H_
#define AGENT_BINARY_DEBUG_INFO_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/binary/frames/eh_frame.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/function_lines.h"
#include "core/model/module.h"

namespace perfd::agent {

struct Subprogram {
  CodeRange range;  // that holds the address
  std::vector<CodeRange>
      ranges;        // all of them, as the compiler lists them: the one with the entry first
  std::string name;  // as linked where known
};

class DebugInfo {
 public:
  // nullptr: the file has no usable DWARF; if it has some, `problem` says why. `file` must outlive the result.
  static std::unique_ptr<DebugInfo> Open(const ElfFile& file, LinesProblem* problem);
  ~DebugInfo();

  // Of a function with this entry and these parts (sorted).
  FunctionLines Lines(uint64_t entry, std::span<const CodeRange> parts);
  std::optional<Subprogram> FindSubprogram(uint64_t address);

 private:
  class Units;
  explicit DebugInfo(std::unique_ptr<Units> units);

  std::unique_ptr<Units> units_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_DEBUG_INFO_H_
