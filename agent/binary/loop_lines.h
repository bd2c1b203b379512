// agent/binary/loop_lines.h - which source lines a loop is.
//
// Shape    LoopLines(lines, addresses, latches): instruction addresses of the body and of the branches that close it.
//          The loop belongs to the deepest inlined frame that holds all latches and nine tenths of the body; its lines
//          are those of that frame's instructions in the latch's file, with deeper inlined calls counted at the line
//          that calls them. Lines of other files are never mixed in; stray lines before the latch's are left out.
// Threads  thread-safe (pure).
// Source   our own rule: an instruction that the compiler moved in from elsewhere must not move the loop to the caller.
#ifndef AGENT_BINARY_LOOP_LINES_H_
#define AGENT_BINARY_LOOP_LINES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/binary/function_lines.h"
#include "core/model/code.h"

namespace perfd::agent {

struct LoopSource {
  SourceRange range;
  std::string inlined_from;  // as linked where known; empty: not inlined
};

class LoopLineFinder {
 public:
  // `lines` must outlive the finder.
  explicit LoopLineFinder(const FunctionLines& lines);

  LoopSource Find(std::span<const uint64_t> body, std::span<const uint64_t> latches) const;

 private:
  struct Place {
    uint32_t frame = 0;
    uint32_t file = 0;
    int32_t line = 0;  // 0: unknown
  };
  struct Piece {  // innermost frame from `low` to the next piece
    uint64_t low = 0;
    uint32_t frame = 0;
  };

  Place PlaceOf(uint64_t address) const;
  std::vector<Place> SitesOf(std::span<const uint64_t> addresses) const;
  uint32_t CommonFrame(const std::vector<Place>& body, const std::vector<Place>& latches) const;
  bool Holds(uint32_t frame, uint32_t inner) const;
  Place AtFrame(const Place& place, uint32_t frame) const;
  std::vector<Place> SitesIn(uint32_t frame, const std::vector<Place>& places) const;

  const FunctionLines& lines_;
  std::vector<uint32_t> depth_;  // of each frame
  std::vector<Piece> pieces_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_LOOP_LINES_H_
