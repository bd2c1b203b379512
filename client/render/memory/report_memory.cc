#include "client/render/memory/report_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/render/loop_text.h"
#include "client/render/memory/memory_sections.h"
#include "client/render/text_table.h"
#include "core/analysis/memory/beyond_share.h"
#include "core/analysis/memory/memory_figures.h"
#include "core/base/status_macros.h"

namespace perfd::client {
namespace {

constexpr auto kL2 = static_cast<size_t>(MemoryBorder::kL2);
constexpr auto kWalk = static_cast<size_t>(TlbResult::kWalk);
constexpr size_t kShortId = 8;
constexpr size_t kMostName = 44;

std::string Lines(const MemoryPlace& place) {
  if (place.file.empty()) return "?";
  std::string out =
      absl::StrCat(place.file.substr(place.file.rfind('/') + 1), ":", place.first_line);
  if (place.last_line > place.first_line) absl::StrAppend(&out, "-", place.last_line);
  return out;
}

std::string Walks(const MemoryProfile& profile) {
  if (!TellsOfTlb(profile)) return "-";
  return Percent(RatioOf(profile.tlb[kWalk].weight, profile.all.weight));
}

std::string Instructions(const MemoryPlace& place, size_t top) {
  TextTable table({{"INSTRUCTION"},
                   {"SAMPLES", true},
                   {"SHARE", true},
                   {"TIME BEYOND L2", true},
                   {"WALKS", true},
                   {"MEDIAN LATENCY", true}});
  const uint64_t all = place.figures.profile.all.weight;
  for (size_t i = 0; i < std::min(top, place.references.size()); ++i) {
    const MemoryReference& reference = place.references[i];
    const MemoryProfile& profile = reference.figures.profile;
    table.Add({absl::StrCat("0x", absl::Hex(reference.instruction.value())),
               absl::StrCat(profile.all.samples), Percent(RatioOf(profile.all.weight, all)),
               ShareText(reference.figures.beyond[kL2]), Walks(profile),
               LatencyText(profile.latency.Quantile(0.5))});
  }
  return table.empty() ? "" : absl::StrCat("\n", table.Render());
}

std::string Ranks(const MemoryPlace& place, size_t top, const TextStyle& style) {
  constexpr int kBarCells = 20;
  TextTable table({{"RANK", true},
                   {"NODE"},
                   {"PID", true},
                   {"SAMPLES", true},
                   {"WALKS", true},
                   {"TIME BEYOND L2", true},
                   {""}});
  for (size_t i = 0; i < std::min(top, place.ranks.size()); ++i) {
    const RankMemory& rank = place.ranks[i];
    const double beyond = ShareOf(rank);
    const bool known = WhyNoShare(rank) == NoShare::kNone;
    table.Add(
        {absl::StrCat(rank.rank), rank.node, absl::StrCat(rank.pid), absl::StrCat(rank.all.samples),
         TellsOfTlb(place.figures.profile) ? Percent(RatioOf(rank.walks.weight, rank.all.weight))
                                           : "-",
         known ? Percent(beyond) : "-", known ? Bar(style, beyond, kBarCells) : ""});
  }
  std::string out = absl::StrCat("\n", table.Render());
  const size_t more = place.ranks.size() - std::min(top, place.ranks.size());
  if (more + place.ranks_left_out > 0)
    absl::StrAppend(&out, "  and ", more + place.ranks_left_out, " more (--top)\n");
  return out;
}

}  // namespace

std::string RenderMemoryPlaces(const Report& report, size_t top, const TextStyle& style) {
  const MemoryReport& memory = report.findings.memory;
  if (memory.places.empty()) return "";
  TextTable table({{"ID"},
                   {"SAMPLES", true},
                   {"SHARE", true},
                   {"TIME BEYOND L2", true},
                   {"WALKS", true},
                   {"MEDIAN LATENCY", true},
                   {"FUNCTION"},
                   {"SOURCE"}});
  const uint64_t all = memory.job.profile.all.weight;
  for (size_t i = 0; i < std::min(top, memory.places.size()); ++i) {
    const MemoryPlace& place = memory.places[i];
    const MemoryProfile& profile = place.figures.profile;
    table.Add({place.id.substr(0, kShortId), absl::StrCat(profile.all.samples),
               Percent(RatioOf(profile.all.weight, all)), ShareText(place.figures.beyond[kL2]),
               Walks(profile), LatencyText(profile.latency.Quantile(0.5)),
               CutEnd(place.function, kMostName), Lines(place)});
  }
  std::string out = absl::StrCat(
      Painted(style, Paint::kBold, "Accesses to memory"),
      "  (time of loads that was spent beyond L2; walks of the page table; latency in cycles)\n",
      table.Render());
  const size_t more = memory.places.size() - std::min(top, memory.places.size());
  if (more + memory.places_left_out > 0)
    absl::StrAppend(&out, "  ... and ", more + memory.places_left_out, " more\n");
  return out;
}

std::string RenderReportMemory(const Report& report, size_t top, const TextStyle& style) {
  const MemoryReport& memory = report.findings.memory;
  std::string out;
  TextTable events({{"EVENT"}, {"LOADS SEEN FROM", true}});
  for (const MemoryEvent& event : memory.events)
    events.Add({event.name, event.latency_threshold == 0
                                ? "-"
                                : absl::StrCat(event.latency_threshold, " cycles")});
  absl::StrAppend(&out, events.Render(), RenderFigures(memory.job, style), "\n",
                  RenderMemoryPlaces(report, top, style));
  return out;
}

std::string RenderMemoryPlace(const MemoryReport& memory, const MemoryPlace& place, size_t top,
                              const TextStyle& style) {
  const uint64_t all = memory.job.profile.all.weight;
  std::string out =
      absl::StrCat(Clean(place.function), "  ", Lines(place), "  ", place.id.substr(0, kShortId),
                   ", ", place.figures.profile.all.samples, " accesses, ",
                   Percent(RatioOf(place.figures.profile.all.weight, all)), " of the job's\n");
  absl::StrAppend(&out, RenderFigures(place.figures, style), Instructions(place, top),
                  Ranks(place, top, style));
  return out;
}

std::vector<std::string> MemoryRemarks(const MemoryReport& memory) {
  std::vector<std::string> out;
  for (const MemoryEvent& event : memory.events) {
    if (event.latency_threshold > 3)
      out.push_back(absl::StrCat("loads that took fewer than ", event.latency_threshold,
                                 " cycles were not sampled (", event.name, ")"));
  }
  if (memory.events.size() > 1)
    out.push_back("shares add up samples of several events, each by its period");
  if (memory.lost.accesses > 0)
    out.push_back(absl::StrCat(memory.lost.accesses,
                               " accesses are in no figure: there was no room for them"));
  for (const auto& [samples, what] : {std::pair(memory.lost.without_place, "place"),
                                      std::pair(memory.lost.without_instruction, "instruction"),
                                      std::pair(memory.lost.without_rank, "rank")}) {
    if (samples > 0)
      out.push_back(absl::StrCat(samples, " accesses are in the job's figures, and of no ", what));
  }
  return out;
}

absl::StatusOr<const MemoryPlace*> FindMemoryPlace(const Report& report, const std::string& which) {
  const std::vector<MemoryPlace>& places = report.findings.memory.places;
  const auto begins = [&](const std::string& id) { return absl::StartsWith(id, which); };
  // A place outside loops has no number.
  std::string id = which;
  if (which.size() < 4 || std::none_of(places.begin(), places.end(), [&](const MemoryPlace& place) {
        return begins(place.id);
      })) {
    ASSIGN_OR_RETURN(const ReportRow* row, FindRow(report, which));
    id = row->id;
  }
  for (const MemoryPlace& place : places) {
    if (absl::StartsWith(place.id, id)) return &place;
  }
  return absl::NotFoundError("no access to memory was sampled in this loop");
}

}  // namespace perfd::client
