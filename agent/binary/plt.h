// agent/binary/plt.h - names of the stubs through which a module calls other modules.
//
// Shape    ReadPltStubs(file) -> symbols named "memcpy@plt", 16 or 8 bytes each.
// Source   System V ABI AMD64 supplement 5.2 "Procedure Linkage Table"; ELF gABI "Relocation" (Elf64_Rela).
#ifndef AGENT_BINARY_PLT_H_
#define AGENT_BINARY_PLT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/binary/elf_file.h"

namespace perfd::agent {

struct PltStub {
  uint64_t low = 0;
  uint64_t high = 0;
  std::string name;  // with "@plt"
};

// Sorted by low.
std::vector<PltStub> ReadPltStubs(const ElfFile& file);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_PLT_H_
