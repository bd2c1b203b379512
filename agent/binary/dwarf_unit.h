// agent/binary/dwarf_unit.h - one compilation unit: its functions, inlined calls and lines. Private to debug_info.
//
// Source   DWARF 5 sections 3.3.3, 3.3.8 and 6.2.
#ifndef AGENT_BINARY_DWARF_UNIT_H_
#define AGENT_BINARY_DWARF_UNIT_H_

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/binary/function_lines.h"

namespace perfd::agent {

// Address ranges of an entry; empty ranges left out, capped.
std::vector<CodeRange> DieRanges(Dwarf_Die* die);
// Linkage name, else name, through abstract origin and specification; empty: none.
std::string DieName(Dwarf_Die* die);

class DwarfUnit {
 public:
  explicit DwarfUnit(const Dwarf_Die& unit) : unit_(unit) {}

  struct Function {
    CodeRange range;
    Dwarf_Off offset = 0;
  };

  // The function whose ranges hold `address`; nullptr: none.
  const Function* FindFunction(uint64_t address);
  // Lines of the parts (sorted) and, when `function` is given, its inlined calls and declaration.
  FunctionLines Lines(Dwarf* dwarf, std::span<const CodeRange> parts, const Function* function);

 private:
  void IndexFunctions(bool inside_functions);
  const Function* Search(uint64_t address) const;

  Dwarf_Die unit_;
  int indexed_ = 0;  // 1: functions of the unit and its namespaces; 2: nested ones too
  std::vector<Function> functions_;  // sorted by low
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_DWARF_UNIT_H_
