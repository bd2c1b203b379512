// agent/binary/flow/part_map.h - the bytes of a function's parts, numbered as if they lay one behind the other.
//
// Shape    PositionOf(address) and AddressAt(position) are inverse; positions grow with addresses.
// Threads  thread-safe (const).
#ifndef AGENT_BINARY_FLOW_PART_MAP_H_
#define AGENT_BINARY_FLOW_PART_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace perfd::agent {

struct CodePart {
  uint64_t low = 0;
  std::span<const std::byte> bytes;

  uint64_t high() const { return low + bytes.size(); }
};

class PartMap {
 public:
  PartMap() = default;
  // Sorted, disjoint. Of parts that hold more than `limit` bytes together the first `limit` ones count.
  PartMap(std::vector<CodePart> parts, size_t limit);

  size_t size() const { return starts_.back(); }
  bool cut() const { return cut_; }
  // Nothing: no part holds it.
  std::optional<size_t> PositionOf(uint64_t address) const;
  uint64_t AddressAt(size_t position) const;
  size_t PartAt(size_t position) const;  // which part
  std::vector<uint64_t> Starts() const;  // first address of each part
  // From a position to the end of its part.
  std::span<const std::byte> BytesAt(size_t position) const;

 private:
  std::vector<CodePart> parts_;
  std::vector<size_t> starts_ = {0};  // position of each part's first byte, then size()
  bool cut_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_PART_MAP_H_
