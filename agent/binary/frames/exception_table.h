// agent/binary/frames/exception_table.h - where an exception that leaves a call goes on in the calling function.
//
// Shape    ReadLandingPads(bytes of the table, its address, start of the function) -> sorted by calls; those without a pad are
//          left out.
// Units    ELF virtual addresses.
// Errors   none: reading stops where the bytes do or where an encoding is not known.
// Threads  thread-safe (pure). The bytes are foreign.
// Source   Itanium C++ ABI, exception handling tables, 2.2; GCC, libstdc++-v3/libsupc++/eh_personality.cc (the layout in use).
#ifndef AGENT_BINARY_FRAMES_EXCEPTION_TABLE_H_
#define AGENT_BINARY_FRAMES_EXCEPTION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/code.h"

namespace perfd::agent {

// Code that runs when an exception comes out of one of the calls.
struct LandingPad {
  CodeRange calls;
  uint64_t address = 0;
};

inline constexpr size_t kMaxLandingPads = 1'000'000;

std::vector<LandingPad> ReadLandingPads(std::span<const std::byte> bytes, uint64_t address,
                                        uint64_t function);

// Of an instruction; null: none. `pads` is sorted.
const LandingPad* LandingPadOf(const std::vector<LandingPad>& pads, uint64_t instruction);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FRAMES_EXCEPTION_TABLE_H_
