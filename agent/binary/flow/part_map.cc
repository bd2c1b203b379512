#include "agent/binary/flow/part_map.h"

#include <utility>

namespace perfd::agent {

PartMap::PartMap(std::vector<CodePart> parts, size_t limit) : parts_(std::move(parts)) {
  for (CodePart& part : parts_) {
    if (part.bytes.size() > limit - size()) {
      part.bytes = part.bytes.first(limit - size());
      cut_ = true;
    }
    starts_.push_back(size() + part.bytes.size());
  }
}

std::optional<size_t> PartMap::PositionOf(uint64_t address) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (address >= parts_[i].low && address - parts_[i].low < parts_[i].bytes.size())
      return starts_[i] + (address - parts_[i].low);
  }
  return std::nullopt;
}

size_t PartMap::PartAt(size_t position) const {
  size_t part = 0;
  while (position >= starts_[part + 1]) ++part;
  return part;
}

uint64_t PartMap::AddressAt(size_t position) const {
  const size_t part = PartAt(position);
  return parts_[part].low + (position - starts_[part]);
}

std::vector<uint64_t> PartMap::Starts() const {
  std::vector<uint64_t> starts;
  for (const CodePart& part : parts_) starts.push_back(part.low);
  return starts;
}

std::span<const std::byte> PartMap::BytesAt(size_t position) const {
  const size_t part = PartAt(position);
  return parts_[part].bytes.subspan(position - starts_[part]);
}

}  // namespace perfd::agent
