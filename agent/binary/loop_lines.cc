#include "agent/binary/loop_lines.h"

#include <algorithm>
#include <map>

namespace perfd::agent {
namespace {

// Splits [range) out of what is there and gives it to `frame`. Frames come parents first, so the innermost wins.
void Paint(std::map<uint64_t, uint32_t>& pieces, const CodeRange& range, uint32_t frame) {
  if (range.low >= range.high) return;
  const auto split = [&pieces](uint64_t address) {
    auto after = pieces.upper_bound(address);
    const uint32_t before = after == pieces.begin() ? 0 : std::prev(after)->second;
    return pieces.try_emplace(address, before).first;
  };
  const auto last = split(range.high);
  const auto first = split(range.low);
  pieces.erase(std::next(first), last);
  first->second = frame;
}

template <typename T, typename Key>
const T* LastAtOrBefore(const std::vector<T>& sorted, uint64_t address, Key key) {
  auto at = std::upper_bound(sorted.begin(), sorted.end(), address,
                             [key](uint64_t a, const T& item) { return a < item.*key; });
  return at == sorted.begin() ? nullptr : &*std::prev(at);
}

// Compilers compute in an outer loop again what the source computes before it (and give it the line of that, or of the
// function's opening). The branch back carries the line of the loop statement, or of the end of a do-while: what comes
// before it in the source is part of the loop only when it is more than a tenth of the body. `lines` counts
// instructions per line and keeps `closing_line`.
void DropStrayLines(int32_t closing_line, int32_t declaration_line,
                    std::map<int32_t, size_t>& lines) {
  size_t total = 0;
  size_t before = 0;
  for (const auto& [line, count] : lines) {
    total += count;
    if (line < closing_line) before += count;
  }
  if (closing_line > 0 && before * 10 <= total)
    lines.erase(lines.begin(), lines.lower_bound(closing_line));
  if (declaration_line < closing_line)
    lines.erase(lines.begin(), lines.upper_bound(declaration_line));
}

}  // namespace

LoopLineFinder::LoopLineFinder(const FunctionLines& lines) : lines_(lines) {
  std::map<uint64_t, uint32_t> pieces;
  for (uint32_t frame = 0; frame < lines.frames.size(); ++frame) {
    depth_.push_back(frame == 0 ? 0 : depth_[lines.frames[frame].parent] + 1);
    for (const CodeRange& range : lines.frames[frame].ranges) Paint(pieces, range, frame);
  }
  for (const auto& [low, frame] : pieces) pieces_.push_back({low, frame});
}

LoopLineFinder::Place LoopLineFinder::PlaceOf(uint64_t address) const {
  Place place;
  if (const Piece* piece = LastAtOrBefore(pieces_, address, &Piece::low))
    place.frame = piece->frame;
  if (const LineRow* row = LastAtOrBefore(lines_.rows, address, &LineRow::address)) {
    place.file = row->file;
    place.line = row->line;
  }
  return place;
}

bool LoopLineFinder::Holds(uint32_t frame, uint32_t inner) const {
  while (depth_[inner] > depth_[frame]) inner = lines_.frames[inner].parent;
  return inner == frame;
}

std::vector<LoopLineFinder::Place> LoopLineFinder::SitesOf(
    std::span<const uint64_t> addresses) const {
  std::vector<Place> places;
  for (const uint64_t address : addresses) places.push_back(PlaceOf(address));
  return places;
}

uint32_t LoopLineFinder::CommonFrame(const std::vector<Place>& body,
                                     const std::vector<Place>& latches) const {
  std::map<uint32_t, size_t> counts;  // instructions per innermost frame
  size_t total = 0;
  for (const Place& place : body) {
    if (place.line == 0) continue;
    ++counts[place.frame];
    ++total;
  }
  uint32_t frame = 0;
  bool first = true;
  for (const Place& place : latches) {
    if (place.line == 0) continue;
    if (first) frame = place.frame;
    first = false;
    while (!Holds(frame, place.frame)) frame = lines_.frames[frame].parent;
  }
  for (; frame != 0; frame = lines_.frames[frame].parent) {
    size_t held = 0;
    for (const auto& [inner, count] : counts)
      if (Holds(frame, inner)) held += count;
    if (held * 10 >= total * 9) break;
  }
  return frame;
}

// The line in `frame` that stands for the instruction; none when it is not inside.
LoopLineFinder::Place LoopLineFinder::AtFrame(const Place& place, uint32_t frame) const {
  if (place.frame == frame) return place;
  if (!Holds(frame, place.frame)) return {};
  uint32_t inner = place.frame;
  while (depth_[inner] > depth_[frame] + 1) inner = lines_.frames[inner].parent;
  return {frame, lines_.frames[inner].call_file, lines_.frames[inner].call_line};
}

// Places with a known line, seen from `frame`.
std::vector<LoopLineFinder::Place> LoopLineFinder::SitesIn(uint32_t frame,
                                                           const std::vector<Place>& places) const {
  std::vector<Place> sites;
  for (const Place& inner : places) {
    const Place place = AtFrame(inner, frame);
    if (place.line > 0 && place.file != 0) sites.push_back(place);
  }
  return sites;
}

LoopSource LoopLineFinder::Find(std::span<const uint64_t> body,
                                std::span<const uint64_t> latches) const {
  LoopSource out;
  if (lines_.rows.empty() || lines_.frames.empty()) return out;
  const std::vector<Place> body_places = SitesOf(body);
  const std::vector<Place> latch_places = SitesOf(latches);
  const uint32_t frame = CommonFrame(body_places, latch_places);
  std::vector<Place> places = SitesIn(frame, body_places);
  std::vector<Place> closing = SitesIn(frame, latch_places);
  if (places.empty()) return out;
  std::map<uint32_t, size_t> weight;  // of each file; the latch decides where it has a line
  for (const Place& place : places) ++weight[place.file];
  for (const Place& place : closing) weight[place.file] += places.size();
  const uint32_t file =
      std::max_element(weight.begin(), weight.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const auto elsewhere = [file](const Place& place) { return place.file != file; };
  std::erase_if(places, elsewhere);
  std::erase_if(closing, elsewhere);
  std::map<int32_t, size_t> lines;
  for (const Place& place : places) ++lines[place.line];
  int32_t closing_line = INT32_MAX;
  for (const Place& place : closing) closing_line = std::min(closing_line, place.line);
  DropStrayLines(closing.empty() ? 0 : closing_line, lines_.frames[frame].declaration_line, lines);
  out.range = {lines_.files[file], lines.begin()->first, lines.rbegin()->first};
  if (frame != 0) out.inlined_from = lines_.frames[frame].name;
  return out;
}

}  // namespace perfd::agent
