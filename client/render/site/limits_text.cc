#include "client/render/site/limits_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/render/text_style.h"
#include "client/render/text_table.h"
#include "core/base/clock.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

constexpr int64_t kNearPercent = 90;

const char* NameOf(LimitPer per) {
  switch (per) {
    case LimitPer::kEveryone:
      return "everyone";
    case LimitPer::kUser:
      return "user";
    case LimitPer::kAddress:
      return "address";
    case LimitPer::kStream:
      return "stream";
  }
  return "";
}

std::string Period(int64_t period_ns) {
  const int64_t seconds = period_ns / kNsPerSecond;
  if (seconds == 0) return "";
  if (seconds == 60) return " a minute";
  if (seconds == 24 * 3600) return " a day";
  return absl::StrCat(" in ", seconds, " s");
}

std::string Amount(const LimitUse& limit, int64_t value) {
  return limit.unit.empty() ? absl::StrCat(value) : absl::StrCat(value, " ", limit.unit);
}

std::string LimitText(const LimitUse& limit) {
  if (!limit.bound) return "none for you";
  std::string text = absl::StrCat(Amount(limit, limit.value), Period(limit.period_ns));
  if (limit.kept > 0) absl::StrAppend(&text, " (", limit.kept, " kept back)");
  return text;
}

std::string MostText(const LimitUse& limit) {
  return absl::StrJoin(limit.most, ", ", [&](std::string* out, const LimitHolding& holding) {
    absl::StrAppend(out, "uid ", holding.uid, ": ", Amount(limit, holding.used));
  });
}

std::string Table(const std::vector<LimitUse>& limits, bool everyones) {
  const bool of_all =
      std::any_of(limits.begin(), limits.end(), [](const LimitUse& l) { return !l.most.empty(); });
  std::vector<TextTable::Column> columns = {
      {"WHAT"}, {"USED", true}, {"LIMIT", true}, {"REFUSED", true}, {"KEY"}};
  if (of_all && !everyones) columns.insert(columns.end() - 1, {"MOST"});
  TextTable table(columns);
  for (const LimitUse& limit : limits) {
    if ((limit.per == LimitPer::kEveryone) != everyones) continue;
    std::string what = limit.what;
    if (limit.per == LimitPer::kAddress) what += ", of one address";
    if (limit.per == LimitPer::kStream) what += ", of one agent's stream";
    std::vector<std::string> cells = {what,
                                      limit.used.has_value() ? Amount(limit, *limit.used) : "-",
                                      LimitText(limit), absl::StrCat(limit.refusals), limit.key};
    if (of_all && !everyones) cells.insert(cells.end() - 1, MostText(limit));
    table.Add(std::move(cells));
  }
  return table.Render();
}

bool IsNear(const LimitUse& limit) {
  const int64_t open = limit.value - limit.kept;
  return limit.bound && limit.used.has_value() && *limit.used * 100 >= open * kNearPercent;
}

}  // namespace

std::string RenderLimits(const std::vector<LimitUse>& limits) {
  std::string text = absl::StrCat("Yours\n", Table(limits, /*everyones=*/false), "Everyone's\n",
                                  Table(limits, /*everyones=*/true));
  for (const LimitUse& limit : limits) {
    if (!IsNear(limit)) continue;
    absl::StrAppend(&text, Clean(limit.what), ": ", Amount(limit, *limit.used), " of ",
                    LimitText(limit), ": ", Clean(limit.instead), "\n");
  }
  return text;
}

std::string LimitsToJsonLine(const std::vector<LimitUse>& limits) {
  Json list = Json::array();
  for (const LimitUse& limit : limits) {
    Json most = Json::array();
    for (const LimitHolding& holding : limit.most)
      most.push_back({{"uid", holding.uid}, {"used", holding.used}});
    list.push_back({{"key", limit.key},
                    {"what", limit.what},
                    {"per", NameOf(limit.per)},
                    {"unit", limit.unit},
                    {"period_s", limit.period_ns / kNsPerSecond},
                    {"value", limit.value},
                    {"kept", limit.kept},
                    {"bound", limit.bound},
                    {"used", limit.used.has_value() ? Json(*limit.used) : Json()},
                    {"refusals", limit.refusals},
                    {"instead", limit.instead},
                    {"most", most}});
  }
  return JsonLine({{"limits", list}});
}

}  // namespace perfd::client
