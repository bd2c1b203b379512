#include "agent/binary/frames/pointer_encoding.h"

namespace perfd::agent {
namespace {

template <typename T>
uint64_t ReadSigned(ByteReader& reader) {
  return static_cast<uint64_t>(int64_t{reader.Read<T>()});
}

}  // namespace

uint64_t ReadULeb(ByteReader& reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && reader.ok(); shift += 7) {
    const auto byte = reader.Read<uint8_t>();
    if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return value;
}

uint64_t ReadSLeb(ByteReader& reader) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && reader.ok(); shift += 7) {
    const auto byte = reader.Read<uint8_t>();
    if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80) != 0) continue;
    if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
    return value;
  }
  return value;
}

std::optional<uint64_t> ReadFormat(ByteReader& reader, uint8_t encoding) {
  switch (encoding & kFormatMask) {
    case kAbsolute:
    case kUData8:
    case kSData8:
      return reader.Read<uint64_t>();
    case kULeb:
      return ReadULeb(reader);
    case kUData2:
      return reader.Read<uint16_t>();
    case kUData4:
      return reader.Read<uint32_t>();
    case kSLeb:
      return ReadSLeb(reader);
    case kSData2:
      return ReadSigned<int16_t>(reader);
    case kSData4:
      return ReadSigned<int32_t>(reader);
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> ReadPointer(ByteReader& reader, uint8_t encoding, uint64_t place) {
  if (encoding == kOmit || (encoding & kIndirect) != 0) return std::nullopt;
  const uint8_t application = encoding & kApplicationMask;
  if (application != 0 && application != kPcRelative) return std::nullopt;
  const auto value = ReadFormat(reader, encoding);
  if (!value || !reader.ok()) return std::nullopt;
  return application == kPcRelative ? *value + place : *value;
}

}  // namespace perfd::agent
