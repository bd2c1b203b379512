#include "core/analysis/job_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/analysis/cluster_median.h"
#include "core/analysis/injection_forecast.h"
#include "core/analysis/injection_total.h"
#include "core/analysis/trip_classes.h"

namespace perfd {
namespace {

using Ranks = std::vector<const LoopMeasurement*>;

struct RankFigure {
  const LoopMeasurement* rank;
  const VariantFigures* figures;
};

// The names of all variants that some rank has figures of, in the order they appear.
std::vector<std::string> VariantsOf(const Ranks& ranks) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const LoopMeasurement* rank : ranks) {
    for (const VariantFigures& f : rank->figures) {
      if (f.thread == kTeam && known.insert(f.variant).second) names.push_back(f.variant);
    }
  }
  return names;
}

// By saturation; ties in the order of ranks.
std::vector<RankFigure> FiguresOf(const Ranks& ranks, const std::string& variant) {
  std::vector<RankFigure> all;
  for (const LoopMeasurement* rank : ranks) {
    const VariantFigures* figures = FindFigures(*rank, variant);
    if (figures != nullptr) all.push_back({rank, figures});
  }
  std::stable_sort(all.begin(), all.end(), [](const RankFigure& a, const RankFigure& b) {
    return a.figures->saturation.value < b.figures->saturation.value;
  });
  return all;
}

// The lower middle: always the figure of one rank.
const RankFigure& MedianRank(const std::vector<RankFigure>& sorted) {
  return sorted[(sorted.size() - 1) / 2];
}

// Ranks that were asked, but for those where no thread came by.
uint32_t Asked(const Ranks& ranks) {
  return static_cast<uint32_t>(
      std::count_if(ranks.begin(), ranks.end(), [](const LoopMeasurement* rank) {
        return rank->state != MeasureState::kNeverEntered || !rank->figures.empty();
      }));
}

// Of the median of some ranks; where there are others, it is as wide as one of them may be away.
Ratio OfRanks(const std::vector<RankFigure>& sorted, uint32_t asked, const LoopTime& time) {
  const Ratio own = ShownRatio(*MedianRank(sorted).figures);
  if (sorted.size() >= asked || !own.has_interval()) return own;
  std::vector<double> measured;
  measured.reserve(sorted.size());
  for (const RankFigure& rank : sorted) measured.push_back(rank.figures->saturation.value);
  return OfAnotherRank(own, measured, time.rank_times);
}

VariantSummary Summary(const Ranks& ranks, const std::string& variant, const LoopTime& time) {
  VariantSummary summary;
  summary.variant = variant;
  for (const LoopMeasurement* rank : ranks) {
    for (const VariantFigures& f : rank->figures) {
      if (f.variant != variant || f.thread != kTeam) continue;
      summary.base = f.base;
      summary.valid_runs += f.valid_runs;
      summary.invalid_runs += f.invalid_runs;
      summary.shadows += f.shadows;
    }
  }
  const std::vector<RankFigure> sorted = FiguresOf(ranks, variant);
  summary.ranks = {static_cast<uint32_t>(sorted.size()), Asked(ranks)};
  if (sorted.empty()) return summary;
  const VariantFigures& median = *MedianRank(sorted).figures;
  summary.saturation = OfRanks(sorted, summary.ranks.asked, time);
  summary.cycles = median.cycles;
  summary.edits = median.edits;
  summary.rank_min = sorted.front().figures->saturation.value;
  summary.rank_max = sorted.back().figures->saturation.value;
  summary.min_rank = RankName(*sorted.front().rank);
  summary.max_rank = RankName(*sorted.back().rank);
  return summary;
}

// One rank's verdict before its measurement is copied: few of many ranks are shown.
struct RankLine {
  const LoopMeasurement* rank;
  Bound bound;
  std::string outlier;
  Silence why;
};

// The figures of all instances together, unless those that take most of the time say otherwise.
ClassVerdict VerdictOfRank(const LoopMeasurement& rank, const VerdictEdges& edges) {
  const ClassVerdict verdict = VerdictOf(rank, kTeam, edges);
  if (!ClassesContradict(rank, verdict.bound, edges)) return verdict;
  return {Bound::kUnknown, false, Silence::kContradictory};
}

std::array<uint32_t, kBoundCount> CountBounds(const std::vector<RankLine>& lines) {
  std::array<uint32_t, kBoundCount> counts{};
  for (const RankLine& line : lines) ++counts[static_cast<size_t>(line.bound)];
  return counts;
}

// Of the ranks that have a verdict, if more than half of them have it: else they differ, and no name is that of the loop. A
// weaker one counts where no rank has a full one.
ClassVerdict MostFrequent(const std::array<uint32_t, kBoundCount>& counts) {
  const bool weaker = counts[static_cast<size_t>(Bound::kWithinL1)] > 0;
  Bound most = weaker ? Bound::kWithinL1 : Bound::kUnknown;
  uint32_t votes = 0, all = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto bound = static_cast<Bound>(i);
    if (!IsDefinite(bound)) continue;
    all += counts[i];
    if (counts[i] <= votes) continue;
    most = bound;
    votes = counts[i];
  }
  if (all > 0 && 2 * votes <= all) return {Bound::kUnknown, false, Silence::kRanksDiffer};
  return {most, true, Silence::kNone};
}

std::string Agreement(const std::array<uint32_t, kBoundCount>& counts) {
  uint32_t judged = 0;
  std::vector<std::pair<uint32_t, Bound>> found;
  for (size_t i = 1; i < counts.size(); ++i) {
    judged += counts[i];
    if (counts[i] > 0) found.emplace_back(counts[i], static_cast<Bound>(i));
  }
  if (judged == 0) return "";
  if (judged == 1) return "1 rank";
  if (found.size() == 1) return absl::StrCat("all ", judged, " ranks agree");
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text =
      absl::StrCat(found[0].first, " of ", judged, " ranks ", BoundName(found[0].second));
  for (size_t i = 1; i < found.size(); ++i)
    absl::StrAppend(&text, ", ", found[i].first, " ", BoundName(found[i].second));
  return text;
}

std::string WhyOutlier(const RankLine& rank, const LoopVerdict& loop, const VerdictEdges& edges) {
  if (IsDefinite(rank.bound) && IsDefinite(loop.bound) && rank.bound != loop.bound)
    return absl::StrCat(BoundName(rank.bound), " where most are ", BoundName(loop.bound));
  for (const VariantSummary& summary : loop.variants) {
    const VariantFigures* f = FindFigures(*rank.rank, summary.variant);
    if (f == nullptr || summary.ranks.measured < 3) continue;
    const double median = summary.saturation.value;
    const bool excluded = median < f->saturation.low || median > f->saturation.high;
    if (!excluded || std::abs(f->saturation.value - median) <= edges.much_difference) continue;
    return absl::StrFormat("%s %.2f where the median rank has %.2f", summary.variant,
                           f->saturation.value, median);
  }
  return "";
}

MeasureState Furthest(const Ranks& ranks) {
  for (const MeasureState state :
       {MeasureState::kMeasured, MeasureState::kOpen, MeasureState::kRefused}) {
    if (std::any_of(ranks.begin(), ranks.end(),
                    [&](const LoopMeasurement* rank) { return rank->state == state; })) {
      return state;
    }
  }
  return MeasureState::kNeverEntered;
}

std::vector<Refusal> MergedRefusals(const Ranks& ranks) {
  std::map<std::tuple<std::string, std::string, uint64_t>, uint64_t> counts;
  for (const LoopMeasurement* rank : ranks) {
    for (const Refusal& r : rank->refusals) counts[{r.variant, r.reason, r.instruction}] += r.count;
    if (rank->state == MeasureState::kRefused || rank->state == MeasureState::kNeverEntered)
      ++counts[{"", rank->reason.empty() ? MeasureStateName(rank->state) : rank->reason, 0}];
  }
  std::vector<Refusal> merged;
  merged.reserve(counts.size());
  for (const auto& [key, count] : counts)
    merged.push_back({std::get<0>(key), std::get<2>(key), std::get<1>(key), count});
  return merged;
}

std::vector<std::string> OpenVariants(const Ranks& ranks) {
  std::set<std::string> open;
  for (const LoopMeasurement* rank : ranks) open.insert(rank->open.begin(), rank->open.end());
  return {open.begin(), open.end()};
}

// One listing of each variant; ranks of one binary have the same.
void MoveListings(const LoopMeasurement& rank, std::vector<VariantListing>& listings) {
  for (const VariantListing& listing : rank.listings) {
    const bool known = std::any_of(listings.begin(), listings.end(), [&](const auto& other) {
      return other.variant == listing.variant;
    });
    if (!known) listings.push_back(listing);
  }
}

// Of the ranks that have the loop's name; where it has none, of those whose figures price a fix; else of all.
void FillFidelity(const Ranks& ranks, const VerdictEdges& edges, LoopVerdict& loop) {
  std::array<std::vector<const LoopMeasurement*>, 3> known;
  for (const LoopMeasurement* rank : ranks) {
    if (rank->fidelity.value <= 0) continue;
    const bool named =
        loop.bound != Bound::kUnknown && VerdictOfRank(*rank, edges).bound == loop.bound;
    const bool priced = !rank->figures.empty() && MayPrice(rank->fidelity, edges);
    known[named ? 0 : priced ? 1 : 2].push_back(rank);
  }
  for (auto& group : known) {
    if (group.empty()) continue;
    std::stable_sort(group.begin(), group.end(), [](const auto* a, const auto* b) {
      return a->fidelity.value < b->fidelity.value;
    });
    const LoopMeasurement& median = *group[(group.size() - 1) / 2];
    loop.fidelity = median.fidelity;
    loop.protocol = median.protocol;
    return;
  }
}

// How many ranks have threads that do not share the team's verdict.
uint32_t RanksWithUnevenThreads(const Ranks& ranks, const VerdictEdges& edges) {
  uint32_t uneven = 0;
  for (const LoopMeasurement* rank : ranks) {
    const Bound team = VerdictOf(*rank, kTeam, edges).bound;
    std::set<int32_t> threads;
    for (const VariantFigures& f : rank->figures) threads.insert(f.thread);
    uneven += std::any_of(threads.begin(), threads.end(), [&](int32_t thread) {
      const Bound bound = VerdictOf(*rank, thread, edges).bound;
      return IsDefinite(bound) && IsDefinite(team) && bound != team;
    });
  }
  return uneven;
}

bool IsSlowest(const LoopMeasurement& rank, const LoopTime& time) {
  return rank.node == time.slowest_node && rank.pid == time.slowest_pid;
}

// The rank the job waits for, if it was measured; else the median rank by LS, else the first with figures.
const LoopMeasurement& Decisive(const Ranks& ranks, const LoopTime& time) {
  for (const LoopMeasurement* rank : ranks) {
    if (IsSlowest(*rank, time) && rank->state != MeasureState::kRefused) return *rank;
  }
  const std::vector<RankFigure> by_ls = FiguresOf(ranks, "LS");
  if (!by_ls.empty()) return *MedianRank(by_ls).rank;
  for (const LoopMeasurement* rank : ranks) {
    if (!rank->figures.empty()) return *rank;
  }
  return *ranks.front();
}

// Of the slowest rank, which all wait for, where the variant was measured there; else of the median of those ranks that have
// it.
std::optional<Gain> GainOfRanks(const Ranks& may_price, uint32_t asked, const std::string& variant,
                                const LoopTime& time, const Ratio& share) {
  std::vector<RankFigure> priced = FiguresOf(may_price, variant);
  std::erase_if(priced, [](const RankFigure& rank) { return !PricesFix(*rank.figures); });
  if (priced.empty()) return std::nullopt;
  const MeasuredRanks measured = {static_cast<uint32_t>(priced.size()), asked};
  const auto slowest = std::find_if(priced.begin(), priced.end(), [&](const RankFigure& rank) {
    return IsSlowest(*rank.rank, time);
  });
  const Ratio saturation =
      slowest != priced.end() ? slowest->figures->saturation : OfRanks(priced, asked, time);
  std::optional<Gain> gain = GainOf(variant, saturation, share);
  if (gain.has_value()) gain->ranks = measured;
  return gain;
}

void FillGains(const Ranks& ranks, const LoopTime& time, const JudgeOptions& options,
               LoopVerdict& loop) {
  // The share of one rank has no interval of its own: as wide, relatively, as that of the whole job.
  Ratio share{time.slowest_share, time.slowest_share, time.slowest_share};
  if (time.share > 0) {
    share.low *= time.share_low / time.share;
    share.high = std::min(1.0, share.high * time.share_high / time.share);
  }
  Ranks may_price;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(may_price),
               [&](const LoopMeasurement* rank) { return MayPrice(*rank, options.edges); });
  const uint32_t asked = Asked(ranks);
  for (const VariantSummary& variant : loop.variants) {
    if (auto gain = GainOfRanks(may_price, asked, variant.variant, time, share))
      loop.gains.push_back(*std::move(gain));
  }
  std::stable_sort(loop.gains.begin(), loop.gains.end(),
                   [](const Gain& a, const Gain& b) { return a.of_job.value > b.of_job.value; });
  const LoopMeasurement& decisive = Decisive(ranks, time);
  loop.remarks = RemarksOf(decisive, options.edges);
  loop.level = LevelOf(decisive, options.edges);
}

// What is true of the rank that decides the gains need not be of the others, who gave the loop its verdict.
void NameRank(const LoopMeasurement& decisive, const VerdictEdges& edges, size_t remarks,
              LoopVerdict& loop) {
  if (VerdictOfRank(decisive, edges).bound == loop.bound) return;
  for (size_t i = 0; i < remarks; ++i)
    loop.remarks[i] = absl::StrCat(RankName(decisive), ": ", loop.remarks[i]);
}

// Instances of several ranks cannot be joined: each has times of its own.
void FillTripClasses(const Ranks& ranks, const LoopTime& time, const JudgeOptions& options,
                     LoopVerdict& loop) {
  const LoopMeasurement* shown = &Decisive(ranks, time);
  for (const LoopMeasurement* rank : ranks) {
    if (shown->trip_classes.empty()) shown = rank;
  }
  if (shown->trip_classes.empty()) return;
  loop.trips = {shown->trip_classes, ClassVerdictsOf(*shown, options.edges), RankName(*shown)};
  std::string remark = TripRemark(*shown, options.edges);
  if (!remark.empty()) loop.remarks.push_back(std::move(remark));
}

std::string CountText(size_t count) {
  return absl::StrCat(count, count == 1 ? " rank" : " ranks");
}

// Why figures are missing: the reason of most ranks, which is no refusal.
void SayWhyOpen(const Ranks& ranks, LoopVerdict& loop) {
  std::map<std::string, size_t> reasons;
  for (const LoopMeasurement* rank : ranks) {
    if (rank->state == MeasureState::kOpen && !rank->reason.empty()) ++reasons[rank->reason];
  }
  const auto most =
      std::max_element(reasons.begin(), reasons.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != reasons.end())
    loop.remarks.push_back(absl::StrCat("open in ", CountText(most->second), ": ", most->first));
}

// Of a dry run: how long an instance takes is not known before one was timed (agent/experiment/loop/in_situ.cc).
void SayWhereInSitu(const Ranks& ranks, LoopVerdict& loop) {
  const auto count = std::count_if(ranks.begin(), ranks.end(), [](const LoopMeasurement* rank) {
    return rank->provenance == Provenance::kEstimated && rank->protocol == kInSituProtocol;
  });
  if (count == 0) return;
  loop.remarks.push_back(absl::StrCat(
      "recovery mode: if its instances take less than 10 us, variants would run in ",
      CountText(static_cast<size_t>(count)), " themselves, outside of P1 and without a fork"));
}

// Outliers stay; of the rest the first.
void CopyRanks(std::vector<RankLine> lines, size_t limit, LoopVerdict& loop) {
  if (lines.size() > limit) {
    loop.ranks_left_out = lines.size() - limit;
    std::stable_partition(lines.begin(), lines.end(),
                          [](const RankLine& line) { return !line.outlier.empty(); });
    lines.resize(limit);
  }
  for (RankLine& line : lines) {
    loop.ranks.push_back({line.bound, std::move(line.outlier), line.why, *line.rank});
    loop.ranks.back().measurement.listings.clear();
  }
}

Silence FirstWhy(const std::vector<RankLine>& lines) {
  for (const RankLine& line : lines) {
    if (line.why != Silence::kNone) return line.why;
  }
  return Silence::kNone;
}

void FillRanks(const Ranks& ranks, const JudgeOptions& options, LoopVerdict& loop) {
  std::vector<RankLine> lines;
  bool sure = true;
  for (const LoopMeasurement* rank : ranks) {
    const ClassVerdict verdict = VerdictOfRank(*rank, options.edges);
    lines.push_back({rank, verdict.bound, "", verdict.why});
    sure = sure && (verdict.bound == Bound::kUnknown || verdict.sure);
    loop.ranks_measured += verdict.bound != Bound::kUnknown;
  }
  const auto counts = CountBounds(lines);
  const ClassVerdict most = MostFrequent(counts);
  loop.bound = most.bound;
  loop.sure = sure && loop.bound != Bound::kUnknown;
  loop.agreement = Agreement(counts);
  if (loop.bound == Bound::kUnknown)
    loop.why = most.why == Silence::kNone ? FirstWhy(lines) : most.why;
  uint32_t outliers = 0;
  for (RankLine& line : lines) {
    line.outlier = WhyOutlier(line, loop, options.edges);
    outliers += !line.outlier.empty();
  }
  if (outliers > 0)
    loop.remarks.push_back(absl::StrCat(outliers, outliers == 1 ? " rank differs" : " ranks differ",
                                        " from the others: see `loops --loop`"));
  CopyRanks(std::move(lines), options.ranks, loop);
}

}  // namespace

std::string RankName(const LoopMeasurement& loop) {
  return absl::StrCat("rank ", loop.rank, " on ", loop.node);
}

LoopVerdict JudgeLoop(Ranks ranks, const LoopTime& time, const JudgeOptions& options) {
  std::sort(ranks.begin(), ranks.end(), [](const LoopMeasurement* a, const LoopMeasurement* b) {
    return std::tie(a->rank, a->node, a->pid) < std::tie(b->rank, b->node, b->pid);
  });
  LoopVerdict loop;
  loop.loop_id = ranks.front()->loop_id;
  loop.location_key = ranks.front()->location_key;
  loop.state = Furthest(ranks);
  loop.share = time.share;
  loop.slowest_share = time.slowest_share;
  loop.slowest_rank = time.slowest_rank;
  loop.ranks_total = static_cast<uint32_t>(ranks.size());
  for (const std::string& variant : VariantsOf(ranks))
    loop.variants.push_back(Summary(ranks, variant, time));
  FillGains(ranks, time, options, loop);
  const size_t of_decisive = loop.remarks.size();
  FillTripClasses(ranks, time, options, loop);
  FillRanks(ranks, options, loop);
  NameRank(Decisive(ranks, time), options.edges, of_decisive, loop);
  FillFidelity(ranks, options.edges, loop);
  if (const uint32_t uneven = RanksWithUnevenThreads(ranks, options.edges); uneven > 0) {
    loop.remarks.push_back(
        absl::StrCat("in ", uneven, uneven == 1 ? " rank" : " ranks",
                     " some threads have another verdict than the slowest: see `loops --loop`"));
  }
  SayWhyOpen(ranks, loop);
  SayWhereInSitu(ranks, loop);
  loop.refusals = MergedRefusals(ranks);
  loop.open = OpenVariants(ranks);
  loop.predicted = JobCost(ranks);
  for (const LoopMeasurement* rank : ranks) {
    AddCost(rank->cost, loop.cost);
    MoveListings(*rank, loop.listings);
  }
  return loop;
}

}  // namespace perfd
