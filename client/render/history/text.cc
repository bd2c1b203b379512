#include "client/render/history/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/render/report_text.h"
#include "client/render/saturation_text.h"
#include "client/render/text_table.h"

namespace perfd::client {
namespace {

constexpr size_t kIdDigits = 8;
constexpr size_t kDateLetters = 10;  // of "2026-11-22 12:00:00 UTC"

bool Changed(const LoopSeries& series) {
  return series.change.verdict == LevelVerdict::kUp || series.change.verdict == LevelVerdict::kDown;
}

std::string Date(int64_t unix_ns) {
  return UtcTime(unix_ns).substr(0, kDateLetters);
}

std::string Figure(HistoryQuantity quantity, double value) {
  if (IsShare(quantity)) return Percent(value);
  return absl::StrFormat("%.*f", value < 100 ? 1 : 0, value);
}

const char* Unit(HistoryQuantity quantity) {
  switch (quantity) {
    case HistoryQuantity::kShare:
    case HistoryQuantity::kWallShare:
      return "";
    case HistoryQuantity::kCyclesPerIteration:
      return " cycles an iteration";
    case HistoryQuantity::kCyclesPerEntry:
      return " cycles an entry";
  }
  return "";
}

// A larger share is not more time: another loop may have become faster.
const char* Word(const LoopSeries& series) {
  const bool up = series.change.verdict == LevelVerdict::kUp;
  if (IsShare(series.quantity)) return up ? "heavier" : "lighter";
  return up ? "slower" : "faster";
}

std::string Place(const HistoryLoop& loop) {
  return SourceText({loop.file, loop.first_line, loop.last_line});
}

std::string GainCell(const HistoryGain& gain) {
  if (gain.value <= 0) return "-";
  const std::string some = gain.ranks.all() ? "" : absl::StrCat(" (", RanksText(gain.ranks), ")");
  return absl::StrCat(Percent(gain.value), some);
}

std::string VerdictCell(const HistoryLoop& loop) {
  if (loop.bound == Bound::kUnknown) return "-";
  return absl::StrCat(BoundName(loop.bound), loop.sure ? "" : "?");
}

std::string Heading(const ProgramHistory& history) {
  const std::vector<HistoryProfile>& profiles = history.profiles;
  std::string text = absl::StrCat(Clean(history.command), ": ", profiles.size(),
                                  profiles.size() == 1 ? " profile" : " profiles");
  if (!profiles.empty())
    absl::StrAppend(&text, ", ", Date(profiles.front().started_unix_ns), " to ",
                    Date(profiles.back().started_unix_ns));
  std::vector<int32_t> ranks;
  ranks.reserve(profiles.size());
  for (const HistoryProfile& profile : profiles) ranks.push_back(profile.ranks);
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end());
  if (!ranks.empty() && *least == *most) absl::StrAppend(&text, ", ", *least, " ranks each");
  if (!ranks.empty() && *least != *most)
    absl::StrAppend(&text, ", of ", *least, " to ", *most,
                    " ranks: jobs of different sizes compare badly");
  text += "\n";
  if (!history.incomplete.empty()) absl::StrAppend(&text, Clean(history.incomplete), "\n");
  return text + "\n";
}

// What changed first; else as given, by share.
std::vector<const LoopSeries*> Shown(const std::vector<LoopSeries>& series, size_t top) {
  std::vector<const LoopSeries*> shown;
  for (const LoopSeries& one : series) {
    if (Changed(one)) shown.push_back(&one);
  }
  size_t others = 0;
  for (const LoopSeries& one : series) {
    if (!Changed(one) && (top == 0 || others++ < top)) shown.push_back(&one);
  }
  return shown;
}

std::string Notes(const std::vector<const LoopSeries*>& shown) {
  std::string text;
  const auto any = [&](auto what) { return std::any_of(shown.begin(), shown.end(), what); };
  if (any([](const LoopSeries* s) { return Changed(*s) && IsShare(s->quantity); }))
    text +=
        "  heavier, lighter: of the job's time. Times of its entries were not measured in enough "
        "profiles\n  (submit with variants), and a share also changes when another loop does.\n";
  if (any([](const LoopSeries* s) { return s->change.verdict == LevelVerdict::kTooFew; }))
    absl::StrAppend(&text, "  too few: a change shows from ", kFewestPerSide,
                    " profiles on each side of it.\n");
  return text;
}

}  // namespace

std::string ChangeText(const ProgramHistory& history, const LoopSeries& series) {
  const LevelChange& change = series.change;
  if (change.verdict == LevelVerdict::kTooFew) return "too few profiles";
  if (change.verdict == LevelVerdict::kSteady) return "steady";
  const HistoryProfile& since = history.profiles[series.at[change.since]];
  std::string text =
      absl::StrCat(Word(series), " since ", since.id, " (", Date(since.started_unix_ns),
                   "): ", Figure(series.quantity, change.before), " -> ",
                   Figure(series.quantity, change.after), Unit(series.quantity));
  if (change.before > 0)
    absl::StrAppend(&text,
                    absl::StrFormat(" (%+.0f %%)", (change.after / change.before - 1) * 100));
  return text;
}

std::string Spark(const LoopSeries& series, const TextStyle& style) {
  // Source: Unicode Block Elements, U+2581 lower one eighth up to U+2588 full block.
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kLetters = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const auto& letters = style.utf8 ? kBlocks : kLetters;
  std::vector<std::string> cells(series.loops.size(), " ");
  double largest = 0;
  for (const LevelPoint& point : series.points) largest = std::max(largest, point.value);
  for (size_t i = 0; i < series.points.size(); ++i) {
    const double ratio = largest > 0 ? series.points[i].value / largest : 0;
    cells[series.at[i]] =
        letters[static_cast<size_t>(std::lround(std::clamp(ratio, 0.0, 1.0) * 7))];
  }
  std::string text;
  for (size_t i = cells.size() - std::min(cells.size(), kMaxSpark); i < cells.size(); ++i)
    text += cells[i];
  return text;
}

std::string RenderHistory(const ProgramHistory& history, const std::vector<LoopSeries>& series,
                          const HistoryTextOptions& options) {
  const ShareBasis basis = CommonBasis(history.profiles);
  const size_t room = static_cast<size_t>(std::max(options.style.width / 4, 20));
  const std::vector<const LoopSeries*> shown = Shown(series, options.top);
  TextTable table({{"LOOP"},
                   {basis == ShareBasis::kWall ? "WALL" : "CPU", true},
                   {"OVER TIME"},
                   {"CHANGE"},
                   {"VERDICT"},
                   {"FUNCTION"},
                   {"SOURCE"}});
  for (const LoopSeries* one : shown) {
    const HistoryLoop& loop = *one->newest;
    table.Add({loop.id.substr(0, kIdDigits), Percent(ShareOf(loop, basis).share),
               Spark(*one, options.style), ChangeText(history, *one), VerdictCell(loop),
               CutEnd(Clean(loop.function), room), CutFront(Place(loop), room)});
  }
  if (table.empty()) return Heading(history) + "  None of them has loops.\n";
  std::string text = Heading(history) + table.Render();
  if (shown.size() < series.size())
    absl::StrAppend(&text, "  and ", series.size() - shown.size(), " steady ones: --top 0\n");
  return text + Notes(shown);
}

absl::StatusOr<const LoopSeries*> FindSeries(const std::vector<LoopSeries>& series,
                                             absl::string_view text) {
  const LoopSeries* found = nullptr;
  for (const LoopSeries& one : series) {
    const bool is_it =
        std::any_of(one.loops.begin(), one.loops.end(), [&](const HistoryLoop* loop) {
          return loop != nullptr &&
                 (absl::StartsWith(loop->id, text) || absl::StrContains(loop->function, text));
        });
    if (!is_it) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("several loops match '", text, "': give the beginning of an id"));
    }
    found = &one;
  }
  if (found == nullptr) return absl::NotFoundError(absl::StrCat("no loop matches '", text, "'"));
  return found;
}

std::string RenderLoopHistory(const ProgramHistory& history, const LoopSeries& series,
                              const TextStyle& style) {
  const HistoryLoop& newest = *series.newest;
  const ShareBasis basis = CommonBasis(history.profiles);
  TextTable table({{"PROFILE"},
                   {"STARTED"},
                   {"JOB"},
                   {"RANKS", true},
                   {basis == ShareBasis::kWall ? "WALL 95%" : "CPU 95%"},
                   {"CYCLES/ENTRY", true},
                   {"ITERATIONS", true},
                   {"VERDICT"},
                   {"GAIN", true}});
  for (size_t i = 0; i < series.loops.size(); ++i) {
    const HistoryProfile& profile = history.profiles[i];
    std::vector<std::string> cells = {profile.id, UtcTime(profile.started_unix_ns),
                                      profile.job.empty() ? "-" : profile.job,
                                      absl::StrCat(profile.ranks)};
    if (const HistoryLoop* loop = series.loops[i]; loop != nullptr) {
      const bool timed = loop->cycles > 0;
      const HistoryShare share = ShareOf(*loop, basis);
      cells.push_back(absl::StrCat(Percent(share.share), " ",
                                   Interval95(share.interval.low, share.interval.high)));
      cells.push_back(timed ? absl::StrFormat("%.0f", loop->cycles) : "-");
      cells.push_back(timed ? absl::StrFormat("%.0f", loop->iterations) : "-");
      cells.push_back(VerdictCell(*loop));
      cells.push_back(GainCell(loop->gain));
    } else {
      cells.insert(cells.end(), {"-", "-", "-", "-", "-"});
    }
    table.Add(std::move(cells));
  }
  return absl::StrCat(Heading(history), Clean(newest.function), "  ", Clean(Place(newest)), "\n",
                      Spark(series, style), "  ", ChangeText(history, series), "\n\n",
                      table.Render());
}

}  // namespace perfd::client
