#include "agent/binary/eh_frame.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_reader.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxEntries = 8'000'000;

// Source: LSB Core 5.0, tables 10-5 (format) and 10-6 (application).
enum : uint8_t {
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

template <typename T>
uint64_t ReadSigned(ByteReader& reader) {
  return static_cast<uint64_t>(int64_t{reader.Read<T>()});
}

// The raw value in one of the formats; nothing for formats that no linker writes.
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

// A pointer that stands at `place`. Only absolute and pc-relative ones name code on x86-64.
std::optional<uint64_t> ReadPointer(ByteReader& reader, uint8_t encoding, uint64_t place) {
  if (encoding == kOmit || (encoding & kIndirect) != 0) return std::nullopt;
  const uint8_t application = encoding & kApplicationMask;
  if (application != 0 && application != kPcRelative) return std::nullopt;
  const auto value = ReadFormat(reader, encoding);
  if (!value || !reader.ok()) return std::nullopt;
  return application == kPcRelative ? *value + place : *value;
}

absl::string_view ReadText(ByteReader& reader, std::span<const std::byte> entry) {
  const size_t start = reader.offset();
  while (reader.ok() && reader.Read<uint8_t>() != 0) {
  }
  if (!reader.ok()) return {};
  return {reinterpret_cast<const char*>(entry.data()) + start, reader.offset() - start - 1};
}

// The encoding of code pointers in the FDEs of this CIE. `entry` starts after the id field.
std::optional<uint8_t> CodeEncoding(std::span<const std::byte> entry) {
  ByteReader reader(entry);
  const auto version = reader.Read<uint8_t>();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  const absl::string_view augmentation = ReadText(reader, entry);
  if (version == 4) reader.Skip(2);  // address and segment size
  if (augmentation == "eh") reader.Skip(8);
  ReadULeb(reader);  // code alignment
  ReadSLeb(reader);  // data alignment
  if (version == 1) reader.Skip(1);
  if (version != 1) ReadULeb(reader);  // return register
  if (!reader.ok()) return std::nullopt;
  if (augmentation.empty() || augmentation[0] != 'z') return kAbsolute;
  ReadULeb(reader);  // length of the augmentation
  for (const char letter : augmentation.substr(1)) {
    if (letter == 'R') {
      const auto encoding = reader.Read<uint8_t>();
      return reader.ok() ? std::optional(encoding) : std::nullopt;
    }
    if (letter == 'L') reader.Skip(1);
    if (letter == 'P' && !ReadFormat(reader, reader.Read<uint8_t>())) return std::nullopt;
  }
  return kAbsolute;
}

class EhFrameParser {
 public:
  EhFrameParser(std::span<const std::byte> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  EhFrame Parse() {
    for (size_t entries = 0; entries < kMaxEntries && NextEntry(); ++entries) {
    }
    auto& found = out_.functions;
    const auto before = [](const CodeRange& a, const CodeRange& b) {
      return a.low != b.low ? a.low < b.low : a.high > b.high;
    };
    std::sort(found.begin(), found.end(), before);
    const auto same = [](const CodeRange& a, const CodeRange& b) { return a.low == b.low; };
    found.erase(std::unique(found.begin(), found.end(), same), found.end());
    return std::move(out_);
  }

 private:
  // One CIE or FDE; false at the terminator or where a length leaves the section.
  bool NextEntry() {
    ByteReader reader(bytes_.subspan(position_));
    uint64_t length = reader.Read<uint32_t>();
    // Source: LSB Core 5.0, 10.6.1.1: a length of 0xffffffff is followed by a 64-bit length; the id stays 4 bytes.
    if (length == 0xFFFFFFFFU) length = reader.Read<uint64_t>();
    if (!reader.ok() || length < sizeof(uint32_t) || length > reader.remaining()) return false;
    const size_t id_at = position_ + reader.offset();
    const auto entry = bytes_.subspan(id_at, length);
    ByteReader body(entry);
    const auto id = body.Read<uint32_t>();
    const size_t start = position_;
    position_ = id_at + length;
    if (id == 0) {
      encoding_of_[start] = CodeEncoding(entry.subspan(sizeof id));
    } else if (id > id_at || !AddFde(body, encoding_of_.find(id_at - id), id_at)) {
      ++out_.skipped;
    }
    return true;
  }

  using Encodings = absl::flat_hash_map<size_t, std::optional<uint8_t>>;

  bool AddFde(ByteReader& body, Encodings::const_iterator cie, size_t id_at) {
    if (cie == encoding_of_.end() || !cie->second) return false;
    const uint8_t encoding = *cie->second;
    const auto low = ReadPointer(body, encoding, address_ + id_at + body.offset());
    if (!low) return false;
    const auto size = ReadFormat(body, encoding & kFormatMask);
    if (!size || !body.ok() || *low == 0 || *size == 0 || *low + *size < *low) return false;
    out_.functions.push_back({*low, *low + *size});
    return true;
  }

  std::span<const std::byte> bytes_;
  const uint64_t address_;
  size_t position_ = 0;
  Encodings encoding_of_;  // by offset of the CIE
  EhFrame out_;
};

}  // namespace

EhFrame ParseEhFrame(std::span<const std::byte> bytes, uint64_t address) {
  return EhFrameParser(bytes, address).Parse();
}

// Source: LSB Core 5.0, 10.6.2: version 1, three encodings, then the pointer to .eh_frame.
uint64_t EhFrameAddress(std::span<const std::byte> header, uint64_t address) {
  ByteReader reader(header);
  const auto version = reader.Read<uint8_t>();
  const auto encoding = reader.Read<uint8_t>();
  reader.Skip(2);
  if (!reader.ok() || version != 1) return 0;
  return ReadPointer(reader, encoding, address + reader.offset()).value_or(0);
}

}  // namespace perfd::agent
