// agent/binary/frames/pointer_encoding.h - the numbers and pointers of unwind and exception tables.
//
// Shape    each reads one value and advances the reader; LEB128 to 64 bits, what is above them is lost.
// Errors   nothing: an encoding that no linker writes, or the bytes end. Numbers: the reader is no longer ok().
// Threads  thread-safe (pure). The bytes are foreign.
// Source   LSB Core 5.0, tables 10-5 (format) and 10-6 (application); DWARF 5, 7.6 (LEB128).
#ifndef AGENT_BINARY_FRAMES_POINTER_ENCODING_H_
#define AGENT_BINARY_FRAMES_POINTER_ENCODING_H_

#include <cstdint>
#include <optional>

#include "core/base/byte_reader.h"

namespace perfd::agent {

enum PointerEncoding : uint8_t {
  kFormatMask = 0x0F,
  kAbsolute = 0x00,
  kULeb = 0x01,
  kUData2 = 0x02,
  kUData4 = 0x03,
  kUData8 = 0x04,
  kSLeb = 0x09,
  kSData2 = 0x0A,
  kSData4 = 0x0B,
  kSData8 = 0x0C,
  kApplicationMask = 0x70,
  kPcRelative = 0x10,
  kIndirect = 0x80,
  kOmit = 0xFF,
};

uint64_t ReadULeb(ByteReader& reader);
uint64_t ReadSLeb(ByteReader& reader);

// The raw value in one of the formats.
std::optional<uint64_t> ReadFormat(ByteReader& reader, uint8_t encoding);

// A pointer that stands at `place`. Only absolute and pc-relative ones name code on x86-64.
std::optional<uint64_t> ReadPointer(ByteReader& reader, uint8_t encoding, uint64_t place);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FRAMES_POINTER_ENCODING_H_
