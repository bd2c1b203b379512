#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/render/diff/memory_diff.h"
#include "client/render/diff/report_diff.h"
#include "client/render/report_text.h"
#include "client/render/text_table.h"

namespace perfd::client {
namespace {

using Json = nlohmann::ordered_json;

const char* MatchKey(LoopMatch match) {
  switch (match) {
    case LoopMatch::kSameId:
      return "same_id";
    case LoopMatch::kSameLines:
      return "same_lines";
    case LoopMatch::kSameFunction:
      return "same_function";
    case LoopMatch::kOnlyInA:
      return "only_in_a";
    case LoopMatch::kOnlyInB:
      return "only_in_b";
  }
  return "same_id";
}

const char* BasisName(ShareBasis basis) {
  return basis == ShareBasis::kWall ? "wall" : "cpu";
}

std::string ShareText(const ReportRow* row, double share, const Interval& interval) {
  if (row == nullptr) return "-";
  return absl::StrCat(Percent(share), " ", Interval95(interval.low, interval.high));
}

void AddSide(const char* side, const ReportRow* row, double share, const Interval& interval,
             Json* json) {
  const std::string prefix = absl::StrCat(side, "_");
  (*json)[prefix + "id"] = row == nullptr ? Json(nullptr) : Json(row->id);
  (*json)[prefix + "share"] = row == nullptr ? Json(nullptr) : Json(share);
  (*json)[prefix + "share_low"] = row == nullptr ? Json(nullptr) : Json(interval.low);
  (*json)[prefix + "share_high"] = row == nullptr ? Json(nullptr) : Json(interval.high);
}

}  // namespace

std::string RenderDiff(const Report& a, const Report& b, const TextStyle& style) {
  TextTable table(
      {{""}, {"CHANGE", true}, {"A 95%"}, {"B 95%"}, {"FUNCTION"}, {"SOURCE"}, {"MATCHED BY"}});
  const size_t room = static_cast<size_t>(std::max(style.width / 4, 20));
  const std::vector<LoopDiff> diffs = DiffReports(a, b);
  for (const LoopDiff& diff : diffs) {
    const ReportRow& row = diff.row();
    table.Add({diff.significant ? "!" : "", absl::StrFormat("%+.1f", diff.change * 100),
               ShareText(diff.a, diff.share_a, diff.interval_a),
               ShareText(diff.b, diff.share_b, diff.interval_b),
               CutEnd(Clean(LocationText(row)), room),
               CutFront(SourceText(row.location.source), room), MatchKey(diff.match)});
  }
  const bool wall = CommonBasis(a, b) == ShareBasis::kWall;
  const std::string title = absl::StrCat("A = ", Clean(a.status.id), "   B = ", Clean(b.status.id),
                                         "   change = B - A in points of the job's ",
                                         wall ? "elapsed" : "CPU", " time\n");
  const std::string memory = RenderMemoryDiff(a, b, diffs, style);
  if (table.empty()) return absl::StrCat(title, "Neither profile has loops.\n", memory);
  return absl::StrCat(title, table.Render(),
                      "  ! the 95 % intervals do not overlap: more than noise\n", memory);
}

Json DiffToJson(const Report& a, const Report& b) {
  Json loops = Json::array();
  const std::vector<LoopDiff> diffs = DiffReports(a, b);
  std::map<const LoopDiff*, Json> memory;  // null: of the whole job
  for (const MemoryDiff& diff : DiffMemory(a, b, diffs)) memory[diff.loop] = MemoryDiffToJson(diff);
  for (const LoopDiff& diff : diffs) {
    const ReportRow& row = diff.row();
    Json json = {{"match", MatchKey(diff.match)},
                 {"function", row.location.function},
                 {"file", row.location.source.file},
                 {"first_line", row.location.source.first_line},
                 {"last_line", row.location.source.last_line}};
    AddSide("a", diff.a, diff.share_a, diff.interval_a, &json);
    AddSide("b", diff.b, diff.share_b, diff.interval_b, &json);
    json["change"] = diff.change;
    json["significant"] = diff.significant;
    json["memory"] = memory[&diff];
    loops.push_back(std::move(json));
  }
  return {{"a", a.status.id},
          {"b", b.status.id},
          {"share_basis", BasisName(CommonBasis(a, b))},
          {"memory", memory[nullptr]},
          {"loops", loops}};
}

}  // namespace perfd::client
