#include "core/analysis/jobs/history.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace perfd {
namespace {

std::string BaseOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

std::string Cut(absl::string_view text) {
  return std::string(text.substr(0, kMaxHistoryText));
}

const VariantFigures* TeamFigures(const LoopMeasurement& measurement) {
  for (const VariantFigures& figures : measurement.figures) {
    if (figures.variant == "REF" && figures.thread == kTeam) return &figures;
  }
  return nullptr;
}

// The rank whose time of REF the summary shows: the median rank. Ranks beyond the report's limits are not there.
const LoopMeasurement* MedianRank(const LoopVerdict& verdict, double cycles) {
  const LoopMeasurement* nearest = nullptr;
  double distance = 0;
  for (const RankVerdict& rank : verdict.ranks) {
    const VariantFigures* figures = TeamFigures(rank.measurement);
    if (figures == nullptr) continue;
    const double away = std::abs(figures->cycles - cycles);
    if (nearest != nullptr && away >= distance) continue;
    nearest = &rank.measurement;
    distance = away;
  }
  return nearest;
}

// Of the median instance seen; figures have it for the runs of a shadow only, and count a team's threads together.
double TripsOf(const LoopMeasurement& measurement, const VariantFigures& figures) {
  if (measurement.trips.instances == 0) return figures.iterations;
  return measurement.trips.decile[measurement.trips.decile.size() / 2];
}

void AddVerdict(const LoopVerdict& verdict, HistoryLoop& loop) {
  loop.bound = verdict.bound;
  loop.sure = verdict.sure;
  if (!verdict.gains.empty())
    loop.gain = {verdict.gains.front().of_job.value, verdict.gains.front().ranks};
  for (const VariantSummary& summary : verdict.variants) {
    if (summary.variant != "REF" || !(summary.cycles > 0)) continue;
    const LoopMeasurement* rank = MedianRank(verdict, summary.cycles);
    if (rank == nullptr) return;
    const VariantFigures& figures = *TeamFigures(*rank);
    loop.cycles = figures.cycles;
    loop.cycles_min = figures.cycles_min;
    loop.iterations = TripsOf(*rank, figures);
  }
}

HistoryLoop LoopOf(const ReportRow& row) {
  const CodeLocation& at = row.location;
  HistoryLoop loop;
  loop.id = Cut(row.id);
  loop.function = Cut(at.function);
  loop.file = Cut(at.source.file);
  loop.first_line = at.source.first_line;
  loop.last_line = at.source.last_line;
  loop.module = Cut(BaseOf(at.module_path));
  if (at.loop.has_value()) loop.depth = at.loop->depth;
  loop.cpu = {row.share, row.share_interval};
  if (row.wall.has_value()) loop.wall = {row.wall->share, row.wall->interval};
  return loop;
}

// What most ranks ran; of equals the first by name.
std::string MostOf(const std::vector<RankSummary>& ranks, std::string RankInfo::*member) {
  std::map<std::string, size_t> counts;
  for (const RankSummary& rank : ranks) ++counts[rank.info.*member];
  counts.erase("");
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : Cut(most->first);
}

using Key = std::function<std::string(const HistoryLoop&)>;

std::string LineKey(const HistoryLoop& loop) {
  if (loop.first_line == 0) return "";
  return absl::StrCat(loop.function, "|", BaseOf(loop.file), "|", loop.first_line);
}

std::string FunctionKey(const HistoryLoop& loop) {
  if (loop.depth == 0) return "";
  return absl::StrCat(loop.function, "|", loop.module, "|", loop.depth);
}

// Positions by key, without those that share a key: an ambiguous key matches nothing.
std::map<std::string, size_t> Unique(const std::vector<const HistoryLoop*>& loops, const Key& key) {
  constexpr size_t kAmbiguous = SIZE_MAX;
  std::map<std::string, size_t> unique;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] == nullptr) continue;
    const auto [it, fresh] = unique.emplace(key(*loops[i]), i);
    if (!fresh) it->second = kAmbiguous;
  }
  unique.erase("");
  std::erase_if(unique, [](const auto& entry) { return entry.second == kAmbiguous; });
  return unique;
}

// Gives each loop of the profile to its series; what is left over begins one.
void Join(const HistoryProfile& profile, size_t at, size_t count, std::vector<LoopSeries>& all) {
  std::vector<const HistoryLoop*> known, fresh;
  for (const LoopSeries& series : all) known.push_back(series.newest);
  for (const HistoryLoop& loop : profile.loops) fresh.push_back(&loop);
  const Key keys[] = {[](const HistoryLoop& loop) { return loop.id; }, LineKey, FunctionKey};
  for (const Key& key : keys) {
    const auto in_known = Unique(known, key);
    for (const auto& [name, j] : Unique(fresh, key)) {
      const auto it = in_known.find(name);
      if (it == in_known.end() ||
          !MayBeOneFunction(known[it->second]->function, fresh[j]->function))
        continue;
      all[it->second].loops[at] = all[it->second].newest = fresh[j];
      known[it->second] = fresh[j] = nullptr;
    }
  }
  for (const HistoryLoop* loop : fresh) {
    if (loop == nullptr) continue;
    LoopSeries series;
    series.loops.resize(count, nullptr);
    series.loops[at] = series.newest = loop;
    all.push_back(std::move(series));
  }
}

// A loop that the profile does not have took less than the least of those it has, if these were cut, else nothing.
LevelPoint Absent(const HistoryProfile& profile, ShareBasis basis) {
  const bool cut = profile.loops.size() >= kMaxHistoryLoops;
  return {0, 0, cut ? ShareOf(profile.loops.back(), basis).share : 0};
}

ShareBasis BasisOf(HistoryQuantity quantity) {
  return quantity == HistoryQuantity::kWallShare ? ShareBasis::kWall : ShareBasis::kCpu;
}

LevelPoint PointOf(const HistoryLoop& loop, HistoryQuantity quantity) {
  if (IsShare(quantity)) {
    const HistoryShare share = ShareOf(loop, BasisOf(quantity));
    return {share.share, share.interval.low, share.interval.high};
  }
  const double per = quantity == HistoryQuantity::kCyclesPerEntry ? 1 : loop.iterations;
  const double value = loop.cycles / per;
  const double low = loop.cycles_min / per;
  return {value, low, value + (value - low)};  // as far above the median as the fastest is below
}

bool Has(const HistoryLoop* loop, HistoryQuantity quantity) {
  if (IsShare(quantity)) return true;
  if (loop == nullptr) return false;
  return loop->cycles > 0 &&
         (quantity == HistoryQuantity::kCyclesPerEntry || loop->iterations >= 1);
}

// Time is what one wants to know; a share also changes when something else does.
void Judge(std::span<const HistoryProfile> profiles, ShareBasis basis, LoopSeries& series) {
  const HistoryQuantity share =
      basis == ShareBasis::kWall ? HistoryQuantity::kWallShare : HistoryQuantity::kShare;
  for (const HistoryQuantity quantity :
       {HistoryQuantity::kCyclesPerIteration, HistoryQuantity::kCyclesPerEntry, share}) {
    series.quantity = quantity;
    series.at.clear();
    series.points.clear();
    for (size_t i = 0; i < series.loops.size(); ++i) {
      if (!Has(series.loops[i], quantity)) continue;
      series.at.push_back(i);
      series.points.push_back(series.loops[i] == nullptr ? Absent(profiles[i], basis)
                                                         : PointOf(*series.loops[i], quantity));
    }
    series.change = FindChange(series.points);
    if (series.change.verdict != LevelVerdict::kTooFew) return;
  }
}

}  // namespace

std::string ProgramOf(const Report& report) {
  std::string program = MostOf(report.ranks, &RankInfo::command);
  if (program.empty()) program = Cut(report.status.spec.target.command.value_or(""));
  return program;
}

HistoryProfile ToHistory(const Report& report) {
  HistoryProfile profile;
  const ProfileStatus& status = report.status;
  profile.id = status.id;
  profile.command = ProgramOf(report);
  profile.user = Cut(status.requester.name);
  profile.job = status.spec.target.slurm_job.has_value()
                    ? absl::StrCat(*status.spec.target.slurm_job)
                    : MostOf(report.ranks, &RankInfo::job_id);
  profile.state = status.state;
  profile.started_unix_ns =
      status.started_unix_ns > 0 ? status.started_unix_ns : status.submitted_unix_ns;
  profile.ranks = static_cast<int32_t>(report.ranks.size());
  profile.nodes = static_cast<int32_t>(report.nodes.size());
  if (!report.loops.empty()) profile.build = Cut(report.loops.front().location.module_id);
  std::map<std::string, const LoopVerdict*> verdicts;
  for (const LoopVerdict& verdict : report.findings.verdicts) verdicts.emplace(verdict.loop_id, &verdict);
  for (const ReportRow& row : report.loops) {
    if (profile.loops.size() == kMaxHistoryLoops) break;
    profile.loops.push_back(LoopOf(row));
    const auto it = verdicts.find(row.id);
    if (it != verdicts.end()) AddVerdict(*it->second, profile.loops.back());
  }
  return profile;
}

bool IsShare(HistoryQuantity quantity) {
  return quantity == HistoryQuantity::kShare || quantity == HistoryQuantity::kWallShare;
}

ShareBasis CommonBasis(std::span<const HistoryProfile> profiles) {
  bool any = false;
  for (const HistoryProfile& profile : profiles) {
    for (const HistoryLoop& loop : profile.loops) {
      if (!loop.wall.has_value()) return ShareBasis::kCpu;
      any = true;
    }
  }
  return any ? ShareBasis::kWall : ShareBasis::kCpu;
}

HistoryShare ShareOf(const HistoryLoop& loop, ShareBasis basis) {
  return basis == ShareBasis::kWall ? loop.wall.value_or(HistoryShare{}) : loop.cpu;
}

std::vector<LoopSeries> LoopsOverTime(std::span<const HistoryProfile> profiles) {
  const ShareBasis basis = CommonBasis(profiles);
  std::vector<LoopSeries> all;
  for (size_t i = 0; i < profiles.size(); ++i) Join(profiles[i], i, profiles.size(), all);
  for (LoopSeries& series : all) {
    for (const HistoryLoop* loop : series.loops) {
      if (loop != nullptr)
        series.largest_share = std::max(series.largest_share, ShareOf(*loop, basis).share);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const LoopSeries& a, const LoopSeries& b) {
    return a.largest_share > b.largest_share;
  });
  if (all.size() > kMaxSeries) all.resize(kMaxSeries);
  for (LoopSeries& series : all) Judge(profiles, basis, series);
  return all;
}

}  // namespace perfd
