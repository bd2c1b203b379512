#include "agent/binary/frames/eh_frame.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "agent/binary/frames/pointer_encoding.h"
#include "core/base/byte_reader.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxEntries = 8'000'000;

absl::string_view ReadText(ByteReader& reader, std::span<const std::byte> entry) {
  const size_t start = reader.offset();
  while (reader.ok() && reader.Read<uint8_t>() != 0) {
  }
  if (!reader.ok()) return {};
  return {reinterpret_cast<const char*>(entry.data()) + start, reader.offset() - start - 1};
}

// How the FDEs of a CIE are written.
struct FdeFormat {
  uint8_t code = kAbsolute;
  uint8_t table = kOmit;
};

// The letters of an augmentation and what stands for each.
std::optional<FdeFormat> ReadAugmentation(absl::string_view letters, ByteReader& reader) {
  FdeFormat format;
  ReadULeb(reader);  // length of the augmentation
  for (const char letter : letters) {
    if (letter == 'R') format.code = reader.Read<uint8_t>();
    if (letter == 'L') format.table = reader.Read<uint8_t>();
    if (letter == 'P' && !ReadFormat(reader, reader.Read<uint8_t>())) return std::nullopt;
  }
  return reader.ok() ? std::optional(format) : std::nullopt;
}

// `entry` starts after the id field.
std::optional<FdeFormat> FormatOf(std::span<const std::byte> entry) {
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
  if (augmentation.empty() || augmentation[0] != 'z') return FdeFormat{};
  return ReadAugmentation(augmentation.substr(1), reader);
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
    std::sort(out_.tables.begin(), out_.tables.end(),
              [](const ExceptionTableAt& a, const ExceptionTableAt& b) {
                return a.function.low < b.function.low;
              });
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
      format_of_[start] = FormatOf(entry.subspan(sizeof id));
    } else if (id > id_at || !AddFde(body, format_of_.find(id_at - id), id_at)) {
      ++out_.skipped;
    }
    return true;
  }

  using Formats = absl::flat_hash_map<size_t, std::optional<FdeFormat>>;

  bool AddFde(ByteReader& body, Formats::const_iterator cie, size_t id_at) {
    if (cie == format_of_.end() || !cie->second) return false;
    const FdeFormat& format = *cie->second;
    const auto low = ReadPointer(body, format.code, address_ + id_at + body.offset());
    if (!low) return false;
    const auto size = ReadFormat(body, format.code & kFormatMask);
    if (!size || !body.ok() || *low == 0 || *size == 0 || *low + *size < *low) return false;
    out_.functions.push_back({*low, *low + *size});
    AddTable(body, format.table, id_at);
    return true;
  }

  void AddTable(ByteReader& body, uint8_t encoding, size_t id_at) {
    if (encoding == kOmit) return;
    ReadULeb(body);  // length of the augmentation
    const uint64_t place = address_ + id_at + body.offset();
    const auto table = ReadPointer(body, encoding, place);
    // A value of zero stands for none, whatever it is relative to.
    if (table && *table != 0 && *table != place)
      out_.tables.push_back({out_.functions.back(), *table});
  }

  std::span<const std::byte> bytes_;
  const uint64_t address_;
  size_t position_ = 0;
  Formats format_of_;  // by offset of the CIE
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
