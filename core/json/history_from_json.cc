// A profile's history out of a report that somebody kept as JSON: any value may be missing, or of any type.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/json/history_json.h"

namespace perfd {
namespace {

using Json = nlohmann::json;

constexpr double kMaxCycles = 1e18;

// The member, or null when `json` is no object or has none of that name.
const Json& Member(const Json& json, const char* name) {
  static const Json kNone;
  if (!json.is_object()) return kNone;
  const auto it = json.find(name);
  return it == json.end() ? kNone : *it;
}

std::string TextOf(const Json& json, const char* name) {
  const Json& value = Member(json, name);
  return value.is_string() ? value.get_ref<const std::string&>().substr(0, kMaxHistoryText) : "";
}

double NumberOf(const Json& json, const char* name, double most) {
  const Json& value = Member(json, name);
  if (!value.is_number()) return 0;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::clamp(number, 0.0, most) : 0;
}

int32_t CountOf(const Json& json, const char* name) {
  return static_cast<int32_t>(NumberOf(json, name, INT32_MAX));
}

int64_t TimeOf(const Json& json, const char* name) {
  const Json& value = Member(json, name);
  return value.is_number_unsigned()
             ? static_cast<int64_t>(std::min<uint64_t>(value.get<uint64_t>(), INT64_MAX))
             : 0;
}

std::string Spaced(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

Bound BoundOf(const std::string& key) {
  for (int i = 0; i < kBoundCount; ++i) {
    if (Spaced(key) == BoundName(static_cast<Bound>(i))) return static_cast<Bound>(i);
  }
  return Bound::kUnknown;
}

ProfileState StateOf(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(ProfileState::kCancelled); ++i) {
    if (name == ProfileStateName(static_cast<ProfileState>(i))) return static_cast<ProfileState>(i);
  }
  return ProfileState::kDone;
}

const Json* RefOf(const Json& list, bool of_team) {
  if (!list.is_array()) return nullptr;
  for (const Json& figures : list) {
    if (TextOf(figures, "variant") != "REF") continue;
    if (!of_team || TextOf(figures, "thread") == "team") return &figures;
  }
  return nullptr;
}

// As ToHistory: REF of the rank whose time is nearest to the summary's.
void AddCycles(const Json& verdict, HistoryLoop& loop) {
  const Json* summary = RefOf(Member(verdict, "variants"), false);
  if (summary == nullptr) return;
  const double cycles = NumberOf(*summary, "cycles", kMaxCycles);
  const Json& ranks = Member(verdict, "ranks");
  const Json* nearest = nullptr;
  const Json* rank = nullptr;
  double distance = 0;
  for (size_t i = 0; ranks.is_array() && i < ranks.size(); ++i) {
    const Json* figures = RefOf(Member(ranks[i], "figures"), true);
    if (figures == nullptr) continue;
    const double away = std::abs(NumberOf(*figures, "cycles", kMaxCycles) - cycles);
    if (nearest != nullptr && away >= distance) continue;
    nearest = figures;
    rank = &ranks[i];
    distance = away;
  }
  if (nearest == nullptr || !(cycles > 0)) return;
  loop.cycles = NumberOf(*nearest, "cycles", kMaxCycles);
  loop.cycles_min = NumberOf(*nearest, "cycles_min", kMaxCycles);
  loop.iterations = NumberOf(*nearest, "iterations", kMaxCycles);
  const Json& deciles = Member(*rank, "trip_deciles");
  if (deciles.is_array() && deciles.size() == 11 && deciles[5].is_number())
    loop.iterations = std::clamp(deciles[5].get<double>(), 0.0, kMaxCycles);
}

void AddVerdict(const Json& verdict, HistoryLoop& loop) {
  loop.bound = BoundOf(TextOf(verdict, "bound"));
  loop.sure = Member(verdict, "sure") == true;
  const Json& gains = Member(verdict, "gains");
  if (gains.is_array() && !gains.empty()) {
    loop.gain = {NumberOf(Member(gains[0], "of_job"), "value", 1),
                 {static_cast<uint32_t>(CountOf(gains[0], "ranks")),
                  static_cast<uint32_t>(CountOf(gains[0], "ranks_asked"))}};
  }
  AddCycles(verdict, loop);
}

HistoryLoop LoopOf(const Json& row) {
  HistoryLoop loop;
  loop.id = TextOf(row, "id");
  loop.function = TextOf(row, "function");
  loop.file = TextOf(row, "file");
  loop.first_line = CountOf(row, "first_line");
  loop.last_line = CountOf(row, "last_line");
  const std::string module = TextOf(row, "module");
  loop.module = module.substr(module.rfind('/') + 1);
  loop.depth = CountOf(Member(row, "loop"), "depth");
  loop.cpu = {NumberOf(row, "share", 1),
              {NumberOf(row, "share_low", 1), NumberOf(row, "share_high", 1)}};
  if (Member(row, "wall_share").is_number())
    loop.wall = {NumberOf(row, "wall_share", 1),
                 {NumberOf(row, "wall_share_low", 1), NumberOf(row, "wall_share_high", 1)}};
  return loop;
}

void AddLoops(const Json& report, HistoryProfile& profile) {
  std::map<std::string, const Json*> verdicts;
  const Json& judged = Member(report, "verdicts");
  for (size_t i = 0; judged.is_array() && i < judged.size(); ++i)
    verdicts.emplace(TextOf(judged[i], "loop_id"), &judged[i]);
  const Json& rows = Member(report, "loops");
  if (!rows.is_array()) return;
  for (const Json& row : rows) {
    if (profile.loops.size() == kMaxHistoryLoops) return;
    profile.loops.push_back(LoopOf(row));
    const auto it = verdicts.find(profile.loops.back().id);
    if (it != verdicts.end()) AddVerdict(*it->second, profile.loops.back());
  }
}

// What most ranks have there; of equals the first by name.
std::string MostOf(const Json& ranks, const char* name) {
  std::map<std::string, size_t> counts;
  for (size_t i = 0; ranks.is_array() && i < ranks.size(); ++i) ++counts[TextOf(ranks[i], name)];
  counts.erase("");
  std::string most;
  size_t largest = 0;
  for (const auto& [text, count] : counts) {
    if (count <= largest) continue;
    most = text;
    largest = count;
  }
  return most;
}

int32_t SizeOf(const Json& list) {
  return list.is_array() ? static_cast<int32_t>(std::min<size_t>(list.size(), INT32_MAX)) : 0;
}

// Slurm's number, which only a file of the archive has, or what the ranks say.
std::string JobOf(const Json& report) {
  const Json& slurm = Member(Member(report, "job"), "slurm_job");
  if (slurm.is_number_unsigned()) return absl::StrCat(slurm.get<uint64_t>());
  return MostOf(Member(report, "ranks"), "job_id");
}

}  // namespace

absl::StatusOr<HistoryProfile> HistoryFromReportJson(absl::string_view text) {
  constexpr bool kAllowExceptions = false;  // text that is no JSON becomes a value without members
  const Json report = Json::parse(text.begin(), text.end(), nullptr, kAllowExceptions);
  const Json& status = Member(report, "status");
  HistoryProfile profile;
  profile.id = TextOf(status, "id");
  if (profile.id.empty()) return absl::InvalidArgumentError("no report as JSON");
  profile.command = MostOf(Member(report, "ranks"), "command");
  if (profile.command.empty()) profile.command = TextOf(Member(report, "job"), "command");
  profile.user = TextOf(Member(status, "requester"), "name");
  profile.job = JobOf(report);
  profile.state = StateOf(TextOf(status, "state"));
  profile.started_unix_ns = TimeOf(status, "started_unix_ns");
  if (profile.started_unix_ns == 0) profile.started_unix_ns = TimeOf(status, "submitted_unix_ns");
  profile.ranks = SizeOf(Member(report, "ranks"));
  profile.nodes = SizeOf(Member(report, "nodes"));
  AddLoops(report, profile);
  const Json& rows = Member(report, "loops");
  if (!profile.loops.empty()) profile.build = TextOf(rows[0], "module_id");
  return profile;
}

}  // namespace perfd
