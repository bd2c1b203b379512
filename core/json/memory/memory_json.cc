#include "core/json/memory/memory_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/analysis/memory/beyond_share.h"
#include "core/json/memory/memory_words.h"

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;

Json LevelsToJson(const std::array<AccessCount, kMemoryLevels>& counts) {
  Json out = Json::array();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].samples == 0) continue;
    out.push_back({{"level", LevelWords(static_cast<MemoryLevel>(i)).key},
                   {"samples", counts[i].samples},
                   {"weight", counts[i].weight}});
  }
  return out;
}

Json TlbToJson(const MemoryProfile& profile) {
  Json out = Json::array();
  for (size_t i = 0; i < kTlbResults; ++i) {
    if (profile.tlb[i].samples == 0) continue;
    out.push_back({{"result", TlbWords(static_cast<TlbResult>(i)).key},
                   {"samples", profile.tlb[i].samples},
                   {"weight", profile.tlb[i].weight}});
  }
  return out;
}

// The last bucket has no end.
Json HighToJson(const LatencyRange& range) {
  return range.high == UINT64_MAX ? Json() : Json(range.high);
}

Json LatencyToJson(const LatencyHistogram& histogram) {
  Json buckets = Json::array();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (histogram.at(i) == 0) continue;
    const LatencyRange range = LatencyHistogram::RangeOf(i);
    buckets.push_back(
        {{"low", range.low}, {"high", HighToJson(range)}, {"samples", histogram.at(i)}});
  }
  const LatencyRange median = histogram.Quantile(0.5);
  return {{"low", median.low}, {"high", HighToJson(median)}, {"histogram", std::move(buckets)}};
}

const char* WhyNotKey(NoShare why) {
  switch (why) {
    case NoShare::kNone:
      return "";
    case NoShare::kTooFew:
      return "too_few";
    case NoShare::kNotTold:
      return "not_told";
    case NoShare::kNoLatency:
      return "no_latency";
  }
  return "";
}

Json ReferenceToJson(const MemoryReference& reference) {
  return {{"instruction", absl::StrCat("0x", absl::Hex(reference.instruction.value()))},
          {"accesses", MemoryProfileToJson(reference.figures.profile)},
          {"beyond", BeyondSharesToJson(reference.figures)}};
}

Json RankToJson(const RankMemory& rank) {
  const NoShare why_not = WhyNoShare(rank);
  const bool known = why_not == NoShare::kNone;
  return {{"node", rank.node},
          {"rank", rank.rank},
          {"pid", rank.pid},
          {"samples", rank.all.samples},
          {"weight", rank.all.weight},
          {"walks", rank.walks.samples},
          {"beyond_l2", known ? Json(ShareOf(rank)) : Json()},
          {"why_not", known ? Json() : Json(WhyNotKey(why_not))}};
}

}  // namespace

Json MemoryProfileToJson(const MemoryProfile& profile) {
  return {{"samples", profile.all.samples},
          {"weight", profile.all.weight},
          {"kernel", profile.kernel.samples},
          {"without_address", profile.without_address},
          {"without_latency", profile.without_latency},
          {"without_source", profile.without_source},
          {"loads", LevelsToJson(profile.loads)},
          {"missed", LevelsToJson(profile.missed)},
          {"dtlb", TlbToJson(profile)},
          {"stores", profile.stores.samples},
          {"hit_modified", profile.hit_modified.samples},
          {"locked", profile.locked.samples},
          {"latency", LatencyToJson(profile.latency)}};
}

Json BeyondSharesToJson(const MemoryFigures& figures) {
  Json out = Json::array();
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    const BeyondShare& share = figures.beyond[i];
    const bool known = share.why_not == NoShare::kNone;
    out.push_back({{"border", BorderWords(static_cast<MemoryBorder>(i)).key},
                   {"share", known ? Json(share.share) : Json()},
                   {"share_low", known ? Json(share.interval.low) : Json()},
                   {"share_high", known ? Json(share.interval.high) : Json()},
                   {"why_not", known ? Json() : Json(WhyNotKey(share.why_not))},
                   {"samples", share.samples},
                   {"untold", share.untold},
                   {"without_latency", share.without_latency}});
  }
  return out;
}

Json MemoryPlaceToJson(const MemoryPlace& place) {
  Json references = Json::array();
  for (const MemoryReference& reference : place.references)
    references.push_back(ReferenceToJson(reference));
  Json ranks = Json::array();
  for (const RankMemory& rank : place.ranks) ranks.push_back(RankToJson(rank));
  return {{"id", place.id},
          {"function", place.function},
          {"file", place.file},
          {"first_line", place.first_line},
          {"last_line", place.last_line},
          {"loop", place.loop},
          {"accesses", MemoryProfileToJson(place.figures.profile)},
          {"beyond", BeyondSharesToJson(place.figures)},
          {"references", std::move(references)},
          {"references_left_out", place.references_left_out},
          {"ranks", std::move(ranks)},
          {"ranks_left_out", place.ranks_left_out}};
}

Json MemoryReportToJson(const MemoryReport& report) {
  if (!report.Any()) return {};
  Json events = Json::array();
  for (const MemoryEvent& event : report.events) {
    const uint32_t threshold = event.latency_threshold;
    events.push_back(
        {{"name", event.name}, {"latency_threshold", threshold == 0 ? Json() : Json(threshold)}});
  }
  Json places = Json::array();
  for (const MemoryPlace& place : report.places) places.push_back(MemoryPlaceToJson(place));
  return {{"events", std::move(events)},
          {"accesses", MemoryProfileToJson(report.job.profile)},
          {"beyond", BeyondSharesToJson(report.job)},
          {"places", std::move(places)},
          {"places_left_out", report.places_left_out},
          {"lost",
           {{"accesses", report.lost.accesses},
            {"without_place", report.lost.without_place},
            {"without_instruction", report.lost.without_instruction},
            {"without_rank", report.lost.without_rank}}}};
}

}  // namespace perfd
