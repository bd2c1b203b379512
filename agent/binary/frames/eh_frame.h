// agent/binary/frames/eh_frame.h - bounds of functions from call frame information: works on stripped binaries.
//
// Shape    ParseEhFrame(bytes, address) -> ranges sorted by low, each once; which of them have a table of landing pads, and where.
// Errors   none: entries that do not parse are skipped and counted; parsing stops where lengths leave the section.
// Threads  thread-safe (pure). The bytes are foreign.
// Source   LSB Core 5.0 chapter 10.6.1 (.eh_frame) and 10.5 (pointer encodings, table 10-5 and 10-6).
#ifndef AGENT_BINARY_FRAMES_EH_FRAME_H_
#define AGENT_BINARY_FRAMES_EH_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/code.h"

namespace perfd::agent {

struct ExceptionTableAt {
  CodeRange function;
  uint64_t address = 0;  // exception_table.h reads it
};

struct EhFrame {
  std::vector<CodeRange> functions;
  std::vector<ExceptionTableAt> tables;  // sorted by function
  size_t skipped = 0;
};

// `address` is the virtual address of the first byte (pc-relative pointers count from where they stand).
EhFrame ParseEhFrame(std::span<const std::byte> bytes, uint64_t address);

// The address of .eh_frame from the bytes of .eh_frame_hdr at `address`; 0: not understood.
uint64_t EhFrameAddress(std::span<const std::byte> header, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FRAMES_EH_FRAME_H_
