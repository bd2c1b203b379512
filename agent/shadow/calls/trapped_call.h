// agent/shadow/calls/trapped_call.h - the system call by which a shadow ended: which, and where the program makes it.
//
// Shape    a plain value, and its words: "calls write() from libc.so.6+0xf8a37".
// Units    the address is behind the instruction, in the rank; the offset is from where its file is mapped first.
// Source   numbers and names: arch/x86/entry/syscalls/syscall_64.tbl.
#ifndef AGENT_SHADOW_CALLS_TRAPPED_CALL_H_
#define AGENT_SHADOW_CALLS_TRAPPED_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct TrappedCall {
  uint32_t number = 0;
  uint64_t address = 0;
  std::string file;  // its last part; empty: mapped from none
  uint64_t offset = 0;

  bool operator==(const TrappedCall&) const = default;
};

TrappedCall LocateCall(uint32_t number, uint64_t address, const std::vector<MapEntry>& maps);

std::string TextOf(const TrappedCall& call);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_CALLS_TRAPPED_CALL_H_
