#include "core/json/history_json.h"

#include <nlohmann/json.hpp>
#include <string>

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;

std::string Key(std::string name) {
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
}

Json PointToJson(const HistoryProfile& profile, const HistoryLoop* loop) {
  if (loop == nullptr) return nullptr;
  const bool walled = loop->wall.has_value();
  return {{"profile", profile.id},
          {"loop_id", loop->id},
          {"share", loop->cpu.share},
          {"share_low", loop->cpu.interval.low},
          {"share_high", loop->cpu.interval.high},
          {"wall_share", walled ? Json(loop->wall->share) : Json(nullptr)},
          {"wall_share_low", walled ? Json(loop->wall->interval.low) : Json(nullptr)},
          {"wall_share_high", walled ? Json(loop->wall->interval.high) : Json(nullptr)},
          {"cycles_per_entry", loop->cycles},
          {"iterations_per_entry", loop->iterations},
          {"bound", Key(BoundName(loop->bound))},
          {"sure", loop->sure},
          {"gain", loop->gain.value},
          {"gain_ranks", loop->gain.ranks.measured},
          {"gain_ranks_asked", loop->gain.ranks.asked}};
}

Json ProfileToJson(const HistoryProfile& profile) {
  return {{"profile", profile.id},
          {"command", profile.command},
          {"user", profile.user},
          {"job", profile.job},
          {"state", ProfileStateName(profile.state)},
          {"started_unix_ns", profile.started_unix_ns},
          {"ranks", profile.ranks},
          {"nodes", profile.nodes},
          {"build", profile.build}};
}

Json SeriesToJson(const ProgramHistory& history, const LoopSeries& series) {
  const HistoryLoop& loop = *series.newest;
  const LevelChange& change = series.change;
  const bool changed = change.verdict == LevelVerdict::kUp || change.verdict == LevelVerdict::kDown;
  Json points = Json::array();
  for (size_t i = 0; i < series.loops.size(); ++i)
    points.push_back(PointToJson(history.profiles[i], series.loops[i]));
  return {{"loop_id", loop.id},
          {"function", loop.function},
          {"file", loop.file},
          {"first_line", loop.first_line},
          {"last_line", loop.last_line},
          {"module", loop.module},
          {"quantity", HistoryQuantityKey(series.quantity)},
          {"verdict", LevelVerdictKey(change.verdict)},
          {"since", changed ? Json(history.profiles[series.at[change.since]].id) : Json(nullptr)},
          {"before", changed ? Json(change.before) : Json(nullptr)},
          {"after", changed ? Json(change.after) : Json(nullptr)},
          {"points", points}};
}

}  // namespace

const char* HistoryQuantityKey(HistoryQuantity quantity) {
  switch (quantity) {
    case HistoryQuantity::kShare:
      return "share";
    case HistoryQuantity::kWallShare:
      return "wall_share";
    case HistoryQuantity::kCyclesPerIteration:
      return "cycles_per_iteration";
    case HistoryQuantity::kCyclesPerEntry:
      return "cycles_per_entry";
  }
  return "share";
}

const char* LevelVerdictKey(LevelVerdict verdict) {
  switch (verdict) {
    case LevelVerdict::kTooFew:
      return "too_few";
    case LevelVerdict::kSteady:
      return "steady";
    case LevelVerdict::kUp:
      return "up";
    case LevelVerdict::kDown:
      return "down";
  }
  return "too_few";
}

Json HistoryToJson(const ProgramHistory& history, const std::vector<LoopSeries>& series) {
  Json profiles = Json::array();
  for (const HistoryProfile& profile : history.profiles) profiles.push_back(ProfileToJson(profile));
  Json loops = Json::array();
  for (const LoopSeries& one : series) loops.push_back(SeriesToJson(history, one));
  return {{"command", history.command},
          {"incomplete", history.incomplete},
          {"profiles", profiles},
          {"loops", loops}};
}

}  // namespace perfd
