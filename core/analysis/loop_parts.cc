#include "core/analysis/loop_parts.h"

#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using Place = std::tuple<std::string, uint64_t, uint64_t, std::string, std::string>;

bool HasParts(const CodeLocation& at) {
  return at.loop.has_value() && at.loop->innermost && !at.source.file.empty() &&
         at.source.first_line > 0;
}

Place PlaceOf(const CodeLocation& at) {
  return {at.module_id, at.function_low, at.loop->parent_header, at.loop->inlined_from,
          at.source.file};
}

bool Overlap(const SourceRange& a, const SourceRange& b) {
  return a.first_line <= b.last_line && b.first_line <= a.last_line;
}

}  // namespace

std::vector<LoopPart> LoopParts(const std::vector<ReportRow>& rows) {
  std::vector<LoopPart> parts(rows.size());
  std::map<Place, std::vector<size_t>> mains;
  for (size_t i = 0; i < rows.size(); ++i) {
    parts[i].main = i;
    if (!HasParts(rows[i].location)) continue;
    std::vector<size_t>& known = mains[PlaceOf(rows[i].location)];
    for (const size_t main : known) {
      if (!Overlap(rows[main].location.source, rows[i].location.source)) continue;
      parts[i].main = main;
      ++parts[main].loops;
      break;
    }
    if (parts[i].main == i) known.push_back(i);
  }
  for (LoopPart& part : parts) part.loops = parts[part.main].loops;
  return parts;
}

std::string LoopPartText(const std::vector<LoopPart>& parts, size_t row) {
  const LoopPart& part = parts.at(row);
  if (part.loops == 1) return "";
  if (part.main == row) return absl::StrCat("main of ", part.loops, " loops of its lines");
  return absl::StrCat("peeled, remainder or other part of #", part.main + 1);
}

}  // namespace perfd
