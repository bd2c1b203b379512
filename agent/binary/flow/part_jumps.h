// agent/binary/flow/part_jumps.h - which pieces of code without a name are parts of one function, by the jumps between them.
//
// Shape    a piece without a name is a part of another one that jumps into it, when it jumps back past that one's first
//          byte: a jump to the first byte may be a tail call, one into the middle of another function no compiler makes.
//          A part of a part is a part of the function.
// Limits   kMaxParts of a function; a piece with more than kMaxTargets, and the end of a very long one, is taken to lead nowhere;
//          the jumps of kMaxKept pieces are remembered.
// Threads  thread-bound.
// Source   gcc -freorder-blocks-and-partition, clang -fsplit-machine-functions: both leave and enter a partition by jumps only.
#ifndef AGENT_BINARY_FLOW_PART_JUMPS_H_
#define AGENT_BINARY_FLOW_PART_JUMPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/model/code.h"

namespace perfd::agent {

inline constexpr size_t kMaxParts = 64;

class PartJumps {
 public:
  struct Piece {
    CodeRange range;
    bool named = false;  // its name says what it is: never a part of another one by its jumps
  };
  using FindPiece = std::function<std::optional<Piece>(uint64_t address)>;
  using ReadCode = std::function<std::span<const std::byte>(const CodeRange& range)>;

  static constexpr size_t kMaxKept = 4096;
  static constexpr size_t kMaxTargets = 1024;

  PartJumps(FindPiece find, ReadCode read) : find_(std::move(find)), read_(std::move(read)) {}

  // First byte of the piece in which the function of `piece` is entered.
  uint64_t EntryOf(const Piece& piece);
  // The other parts of the function that is entered in `entry`.
  std::vector<CodeRange> PartsOf(const Piece& entry);
  // Whether any jump leads from one into the other.
  bool Linked(const CodeRange& a, const CodeRange& b);

 private:
  // Where direct jumps of the piece lead outside of it; sorted, each once.
  const std::vector<uint64_t>& Targets(const CodeRange& range);
  bool JumpsInto(const CodeRange& from, const CodeRange& to);
  bool LeadsThere(const CodeRange& whole, const CodeRange& part);
  bool IsPartOf(const Piece& part, const Piece& whole);
  std::optional<Piece> WholeOf(const Piece& part);

  FindPiece find_;
  ReadCode read_;
  std::map<uint64_t, std::vector<uint64_t>> targets_;  // by low
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_PART_JUMPS_H_
