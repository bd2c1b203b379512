#include "agent/binary/frames/exception_table.h"

#include <algorithm>
#include <optional>

#include "agent/binary/frames/pointer_encoding.h"
#include "core/base/byte_reader.h"

namespace perfd::agent {
namespace {

struct Header {
  uint64_t pads_from = 0;  // what landing pads are counted from
  uint8_t encoding = kOmit;
  std::span<const std::byte> sites = {};
};

std::optional<Header> ReadHeader(ByteReader& reader, uint64_t address, uint64_t function) {
  Header header{.pads_from = function};
  const auto base = reader.Read<uint8_t>();
  if (base != kOmit) {
    const auto from = ReadPointer(reader, base, address + reader.offset());
    if (!from) return std::nullopt;
    header.pads_from = *from;
  }
  if (reader.Read<uint8_t>() != kOmit) ReadULeb(reader);  // where the types of handlers are
  header.encoding = reader.Read<uint8_t>();
  header.sites = reader.ReadSpan(ReadULeb(reader));
  return reader.ok() ? std::optional(header) : std::nullopt;
}

}  // namespace

std::vector<LandingPad> ReadLandingPads(std::span<const std::byte> bytes, uint64_t address,
                                        uint64_t function) {
  ByteReader reader(bytes);
  const std::optional<Header> header = ReadHeader(reader, address, function);
  std::vector<LandingPad> pads;
  if (!header) return pads;
  ByteReader sites(header->sites);
  while (sites.remaining() > 0 && pads.size() < kMaxLandingPads) {
    const auto start = ReadFormat(sites, header->encoding);
    const auto size = ReadFormat(sites, header->encoding);
    const auto pad = ReadFormat(sites, header->encoding);
    ReadULeb(sites);  // what is done there
    if (!start || !size || !pad || !sites.ok()) break;
    const CodeRange calls = {function + *start, function + *start + *size};
    if (*pad != 0 && calls.low < calls.high) pads.push_back({calls, header->pads_from + *pad});
  }
  std::sort(pads.begin(), pads.end(),
            [](const LandingPad& a, const LandingPad& b) { return a.calls.low < b.calls.low; });
  return pads;
}

const LandingPad* LandingPadOf(const std::vector<LandingPad>& pads, uint64_t instruction) {
  const auto after =
      std::upper_bound(pads.begin(), pads.end(), instruction,
                       [](uint64_t at, const LandingPad& pad) { return at < pad.calls.low; });
  if (after == pads.begin()) return nullptr;
  const LandingPad& pad = *std::prev(after);
  return pad.calls.Contains(instruction) ? &pad : nullptr;
}

}  // namespace perfd::agent
