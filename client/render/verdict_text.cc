#include "client/render/verdict_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/measured/trip_text.h"
#include "client/render/saturation_text.h"
#include "client/render/text_table.h"
#include "core/analysis/trip_classes.h"
#include "core/base/status_macros.h"

namespace perfd::client {
namespace {

constexpr size_t kShortIdDigits = 8;
constexpr size_t kBytesShown = 20;  // ten bytes: a jump is five

std::string BytesText(const AuditEntry& entry) {
  if (entry.original_bytes.empty() && entry.written_bytes.empty()) return "";
  return absl::StrCat(CutEnd(entry.original_bytes, kBytesShown), " -> ",
                      CutEnd(entry.written_bytes, kBytesShown));
}

std::string Two(double value) {
  return absl::StrFormat("%.2f", value);
}

std::string Address(uint64_t address) {
  return absl::StrCat("0x", absl::Hex(address));
}

std::string IntervalText(const Ratio& ratio) {
  if (!ratio.has_interval()) return "-";
  return absl::StrFormat("[%.2f, %.2f]", ratio.low, ratio.high);
}

std::string Summary(const LoopVerdict& loop, const TextStyle& style) {
  std::string text = Painted(style, Paint::kBold, "Measured by variants") + "\n";
  absl::StrAppend(&text, "  state      ", MeasureStateName(loop.state), ", ", loop.ranks_measured,
                  " of ", loop.ranks_total, " ranks\n  verdict    ", BoundText(loop), ", data in ",
                  DataLevelName(loop.level));
  absl::StrAppend(&text, loop.agreement.empty() ? "" : "; ", Clean(loop.agreement), "\n");
  for (const Gain& gain : loop.gains)
    absl::StrAppend(&text, "  gain       ", Clean(GainText(gain)), "\n");
  if (!loop.gains.empty())
    absl::StrAppend(
        &text, "             estimated: ", Percent(loop.slowest_share), " of the time of ",
        loop.slowest_rank.empty() ? "the job" : Clean(loop.slowest_rank), " x (1 - saturation)\n");
  absl::StrAppend(&text, "  cost       ", CostText(loop.cost), "\n");
  for (const std::string& remark : loop.remarks)
    absl::StrAppend(&text, "  remark     ", Clean(remark), "\n");
  if (!loop.open.empty())
    absl::StrAppend(&text, "  open       ", Clean(absl::StrJoin(loop.open, ", ")), "\n");
  for (const Refusal& refusal : loop.refusals)
    absl::StrAppend(&text, "  invalid    ", RefusalText(refusal), "\n");
  return text;
}

// "2", or "2 of 5" where some of what the variant is about had to stay.
std::string ChangedText(const VariantSummary& v) {
  if (v.edits.kept == 0) return absl::StrCat(v.edits.changed);
  return absl::StrCat(v.edits.changed, " of ", v.edits.changed + v.edits.kept);
}

std::string Variants(const LoopVerdict& loop) {
  TextTable table({{"VARIANT"},
                   {"BASE"},
                   {"SAT", true},
                   {"95% INTERVAL"},
                   {"MIN", true},
                   {"MAX", true},
                   {"RANKS"},
                   {"RUNS", true},
                   {"INVALID", true},
                   {"INSTANCES", true},
                   {"CYCLES", true},
                   {"CHANGED", true}});
  for (const VariantSummary& v : loop.variants)
    table.Add({v.variant, v.base, Two(v.saturation.value), IntervalText(v.saturation),
               Two(v.rank_min), Two(v.rank_max), RanksText(v.ranks), absl::StrCat(v.valid_runs),
               absl::StrCat(v.invalid_runs), absl::StrCat(v.shadows),
               absl::StrFormat("%.0f", v.cycles), ChangedText(v)});
  return table.empty() ? "" : absl::StrCat("\n", table.Render());
}

std::string TeamFigure(const LoopMeasurement& rank, absl::string_view variant) {
  for (const VariantFigures& f : rank.figures) {
    if (f.thread == kTeam && f.variant == variant && f.valid_runs > 0)
      return Two(f.saturation.value);
  }
  return "-";
}

std::string Ranks(const LoopVerdict& loop) {
  TextTable table({{"RANK", true},
                   {"NODE"},
                   {"PID", true},
                   {"STATE"},
                   {"VERDICT"},
                   {"LS", true},
                   {"FP", true},
                   {"DL1", true},
                   {"TEAM", true},
                   {"FIDELITY", true},
                   {"PROTOCOL"},
                   {"DIFFERS"}});
  for (const RankVerdict& r : loop.ranks) {
    const LoopMeasurement& m = r.measurement;
    const std::string why = m.state == MeasureState::kMeasured ? r.outlier : m.reason;
    table.Add({absl::StrCat(m.rank), m.node, absl::StrCat(m.pid), MeasureStateName(m.state),
               BoundText(r.bound, true, r.why), TeamFigure(m, "LS"), TeamFigure(m, "FP"),
               TeamFigure(m, "DL1"), absl::StrCat(m.team),
               m.fidelity.value > 0 ? Two(m.fidelity.value) : "-", m.protocol, why});
  }
  std::string text = table.empty() ? "" : absl::StrCat("\n", table.Render());
  if (loop.ranks_left_out > 0)
    absl::StrAppend(&text, "  ... and ", loop.ranks_left_out, " ranks that do not differ\n");
  return text;
}

std::string Threads(const LoopMeasurement& rank) {
  TextTable table({{"THREAD", true},
                   {"VARIANT"},
                   {"SAT", true},
                   {"95% INTERVAL"},
                   {"CYCLES", true},
                   {"FEWEST", true},
                   {"ITERATIONS", true},
                   {"STABILITY", true},
                   {"RUNS", true},
                   {"INVALID", true}});
  for (const VariantFigures& f : rank.figures)
    table.Add({f.thread == kTeam ? "team" : absl::StrCat(f.thread), f.variant,
               Two(f.saturation.value), IntervalText(ShownRatio(f)),
               absl::StrFormat("%.0f", f.cycles), absl::StrFormat("%.0f", f.cycles_min),
               absl::StrFormat("%.0f", f.iterations), Percent(f.stability),
               absl::StrCat(f.valid_runs), absl::StrCat(f.invalid_runs)});
  return table.empty() ? "" : table.Render();
}

std::string References(const LoopMeasurement& rank) {
  TextTable table({{"INSTRUCTION"},
                   {"GROUP", true},
                   {""},
                   {"BYTES", true},
                   {"FROM"},
                   {"TO"},
                   {"SPAN", true},
                   {"LINES"}});
  for (const TracedReference& r : rank.references)
    table.Add({Address(r.instruction), r.group < 0 ? "-" : absl::StrCat(r.group),
               absl::StrCat(r.reads ? "r" : "", r.writes ? "w" : ""), absl::StrCat(r.bytes),
               Address(r.lowest), Address(r.highest),
               Bytes(r.highest > r.lowest ? r.highest - r.lowest : 0),
               r.shared ? "shared between threads" : ""});
  return table.empty() ? "" : absl::StrCat("\nMemory accesses of one instance\n", table.Render());
}

std::string TripClasses(const LoopVerdict& loop, const TextStyle& style) {
  if (loop.trips.classes.empty()) return "";
  return absl::StrCat("\nInstances by trip count, of ", Clean(loop.trips.rank), "\n",
                      RenderTripClasses(loop.trips.classes, loop.trips.verdicts, style));
}

std::string OneRank(const RankVerdict& rank, const TextStyle& style) {
  const LoopMeasurement& m = rank.measurement;
  std::string text = absl::StrCat(
      "\nRank ", m.rank, " on ", Clean(m.node), ", pid ", m.pid, ": ", MeasureStateName(m.state),
      ", ", BoundText(rank.bound, true, rank.why), ", ", ProvenanceName(m.provenance), "\n");
  if (!m.reason.empty()) absl::StrAppend(&text, "  ", Clean(m.reason), "\n");
  if (!rank.outlier.empty()) absl::StrAppend(&text, "  differs: ", Clean(rank.outlier), "\n");
  if (m.fidelity.value > 0)
    absl::StrAppend(&text, "  fidelity ", FidelityText(m.fidelity, m.protocol, style), "\n");
  absl::StrAppend(&text, "  cost ", CostText(m.cost), "\n");
  if (m.trips.instances > 0) {
    absl::StrAppend(&text, "  trips of ", m.trips.instances, " instances, deciles:");
    for (double value : m.trips.decile) absl::StrAppendFormat(&text, " %.0f", value);
    text += "\n";
  }
  return absl::StrCat(text, RenderTripClasses(m.trip_classes, ClassVerdictsOf(m), style),
                      Threads(m), References(m));
}

absl::StatusOr<std::string> Listing(const LoopVerdict& loop, const VerdictTextOptions& options) {
  std::vector<std::string> known;
  for (const VariantListing& listing : loop.listings) {
    known.push_back(listing.variant);
    if (listing.variant != options.variant) continue;
    TextTable table({{"ADDRESS"}, {"REF"}, {listing.variant}});
    for (const ListingLine& line : listing.lines)
      table.Add({Address(line.address), line.original, line.changed});
    return absl::StrCat("\nAssembly (an empty cell: the same)\n", table.Render());
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no assembly of variant '", Clean(options.variant), "' of loop ",
      Clean(loop.loop_id), "; there is: ", known.empty() ? "none" : absl::StrJoin(known, ", ")));
}

}  // namespace

const LoopVerdict* FindVerdict(const Report& report, absl::string_view loop_id) {
  const auto found = std::find_if(report.findings.verdicts.begin(), report.findings.verdicts.end(),
                                  [&](const LoopVerdict& loop) { return loop.loop_id == loop_id; });
  return found == report.findings.verdicts.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> RenderVerdict(const LoopVerdict& loop,
                                          const VerdictTextOptions& options) {
  std::string text = Summary(loop, options.style);
  absl::StrAppend(&text, Variants(loop));
  if (!options.rank.has_value()) {
    absl::StrAppend(&text, TripClasses(loop, options.style), Ranks(loop));
  } else {
    bool found = false;
    for (const RankVerdict& rank : loop.ranks) {
      if (rank.measurement.rank != *options.rank) continue;
      found = true;
      absl::StrAppend(&text, OneRank(rank, options.style));
    }
    if (!found)
      return absl::NotFoundError(absl::StrCat("rank ", *options.rank, " has no figures of loop ",
                                              Clean(loop.loop_id), " in this report"));
  }
  if (options.variant.empty()) return text;
  ASSIGN_OR_RETURN(const std::string listing, Listing(loop, options));
  return text + listing;
}

std::string RenderAudit(const std::vector<AuditEntry>& entries) {
  if (entries.empty()) return "Nothing was injected.\n";
  TextTable table({{"TIME"},
                   {"PROFILE"},
                   {"WHO"},
                   {"NODE"},
                   {"PID", true},
                   {"ACTION"},
                   {"LOOP"},
                   {"ADDRESS"},
                   {"BYTES"},
                   {"PAUSE MS", true},
                   {"BROUGHT BY"},
                   {"OUTCOME"}});
  for (const AuditEntry& e : entries)
    table.Add({UtcTime(e.unix_ns), e.profile_id, e.origin.requester, e.node, absl::StrCat(e.pid),
               e.action, e.loop_id.substr(0, kShortIdDigits),
               e.address == 0 ? "" : absl::StrCat("0x", absl::Hex(e.address)), BytesText(e),
               absl::StrFormat("%.3f", static_cast<double>(e.pause_ns) / 1e6),
               e.origin.brought_by.empty() ? "-" : e.origin.brought_by, e.outcome});
  return table.Render();
}

}  // namespace perfd::client
