#include "client/render/diff/memory_diff.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/memory/memory_sections.h"
#include "client/render/report_text.h"
#include "client/render/text_table.h"

namespace perfd::client {
namespace {

using Json = nlohmann::ordered_json;
using Places = std::map<std::string, const MemoryFigures*>;

constexpr auto kL2 = static_cast<size_t>(MemoryBorder::kL2);
constexpr int kLeastRoom = 20;

// Null: there is none.
const BeyondShare* ShareAtL2(const MemoryFigures* figures) {
  if (figures == nullptr || figures->beyond[kL2].why_not != NoShare::kNone) return nullptr;
  return &figures->beyond[kL2];
}

MemoryDiff Compare(const LoopDiff* loop, const MemoryFigures* a, const MemoryFigures* b,
                   bool comparable) {
  MemoryDiff diff{.loop = loop, .a = a, .b = b, .change = {}};
  const BeyondShare* of_a = ShareAtL2(a);
  const BeyondShare* of_b = ShareAtL2(b);
  if (!comparable || of_a == nullptr || of_b == nullptr) return diff;
  diff.change = of_b->share - of_a->share;
  diff.significant = !Overlap(of_a->interval, of_b->interval);
  return diff;
}

Places FiguresById(const MemoryReport& memory) {
  Places places;
  for (const MemoryPlace& place : memory.places) places.emplace(place.id, &place.figures);
  return places;
}

const MemoryFigures* FiguresOf(const Places& places, const ReportRow* row) {
  if (row == nullptr) return nullptr;
  const auto it = places.find(row->id);
  return it == places.end() ? nullptr : it->second;
}

const MemoryFigures* FiguresOf(const MemoryReport& memory) {
  return memory.Any() ? &memory.job : nullptr;
}

std::vector<MemoryEvent> Sorted(std::vector<MemoryEvent> events) {
  std::sort(events.begin(), events.end());
  return events;
}

std::string EventsText(const MemoryReport& memory) {
  return absl::StrJoin(memory.events, ", ", [](std::string* out, const MemoryEvent& event) {
    absl::StrAppend(out, Clean(event.name));
    if (event.latency_threshold > 0)
      absl::StrAppend(out, " from ", event.latency_threshold, " cycles on");
  });
}

std::string Side(const MemoryFigures* figures) {
  return figures == nullptr ? "-" : ShareText(figures->beyond[kL2]);
}

std::string Median(const MemoryFigures* figures) {
  return figures == nullptr ? "-" : LatencyText(figures->profile.latency.Quantile(0.5));
}

void AddSide(const char* side, const MemoryFigures* figures, Json* json) {
  const BeyondShare* share = ShareAtL2(figures);
  (*json)[absl::StrCat(side, "_beyond_l2")] = share == nullptr ? Json() : Json(share->share);
  (*json)[absl::StrCat(side, "_low")] = share == nullptr ? Json() : Json(share->interval.low);
  (*json)[absl::StrCat(side, "_high")] = share == nullptr ? Json() : Json(share->interval.high);
}

}  // namespace

bool SameMemoryEvents(const MemoryReport& a, const MemoryReport& b) {
  return Sorted(a.events) == Sorted(b.events);
}

std::vector<MemoryDiff> DiffMemory(const Report& a, const Report& b,
                                   const std::vector<LoopDiff>& loops) {
  const MemoryReport& of_a = a.findings.memory;
  const MemoryReport& of_b = b.findings.memory;
  if (!of_a.Any() && !of_b.Any()) return {};
  const bool comparable = SameMemoryEvents(of_a, of_b);
  std::vector<MemoryDiff> diffs = {Compare(nullptr, FiguresOf(of_a), FiguresOf(of_b), comparable)};
  const Places in_a = FiguresById(of_a), in_b = FiguresById(of_b);
  for (const LoopDiff& loop : loops) {
    MemoryDiff diff = Compare(&loop, FiguresOf(in_a, loop.a), FiguresOf(in_b, loop.b), comparable);
    if (diff.a != nullptr || diff.b != nullptr) diffs.push_back(diff);
  }
  return diffs;
}

std::string RenderMemoryDiff(const Report& a, const Report& b, const std::vector<LoopDiff>& loops,
                             const TextStyle& style) {
  const std::vector<MemoryDiff> diffs = DiffMemory(a, b, loops);
  if (diffs.empty()) return "";
  TextTable table({{""},
                   {"CHANGE", true},
                   {"A 95%"},
                   {"B 95%"},
                   {"A MEDIAN", true},
                   {"B MEDIAN", true},
                   {"FUNCTION"},
                   {"SOURCE"}});
  const size_t room = static_cast<size_t>(std::max(style.width / 4, kLeastRoom));
  for (const MemoryDiff& diff : diffs) {
    const ReportRow* row = diff.loop == nullptr ? nullptr : &diff.loop->row();
    table.Add({diff.significant ? "!" : "",
               diff.change.has_value() ? absl::StrFormat("%+.1f", *diff.change * 100) : "-",
               Side(diff.a), Side(diff.b), Median(diff.a), Median(diff.b),
               row == nullptr ? "the whole job" : CutEnd(Clean(LocationText(*row)), room),
               row == nullptr ? "" : CutFront(SourceText(row->location.source), room)});
  }
  std::string out = absl::StrCat(
      "\nAccesses to memory: change in points of the time of loads that was spent beyond L2; "
      "latency in cycles\n",
      table.Render());
  const MemoryReport& of_a = a.findings.memory;
  const MemoryReport& of_b = b.findings.memory;
  if (!of_a.Any() || !of_b.Any()) {
    absl::StrAppend(&out, "  ", of_a.Any() ? "B" : "A", " has no accesses to memory\n");
  } else if (!SameMemoryEvents(of_a, of_b)) {
    absl::StrAppend(&out, "  not compared, since they see other loads: A has ", EventsText(of_a),
                    ", B ", EventsText(of_b), "\n");
  }
  return out;
}

Json MemoryDiffToJson(const MemoryDiff& diff) {
  Json json = Json::object();
  AddSide("a", diff.a, &json);
  AddSide("b", diff.b, &json);
  json["change"] = diff.change.has_value() ? Json(*diff.change) : Json();
  json["significant"] = diff.significant;
  return json;
}

}  // namespace perfd::client
