#include <nlohmann/json.hpp>

#include "client/render/memory/memory_text.h"
#include "client/render/memory/memory_words.h"

namespace perfd::client {
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

Json ProfileToJson(const MemoryProfile& profile) {
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

Json BeyondToJson(const MemoryFigures& figures) {
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

Json EventToJson(const EventMemory& event) {
  return {
      {"name", event.name},
      {"period", event.by_frequency ? Json() : Json(event.rate)},
      {"frequency", event.by_frequency ? Json(event.rate) : Json()},
      {"samples", event.samples},
      {"accesses", event.accesses},
      {"latency_threshold", event.latency_threshold == 0 ? Json() : Json(event.latency_threshold)}};
}

Json RecordingToJson(const RecordingFacts& facts) {
  Json nodes = Json::array();
  for (const RecordedNumaNode& node : facts.numa_nodes)
    nodes.push_back({{"id", node.id}, {"memory_kib", node.memory_kib}, {"cpus", node.cpus}});
  return {{"host", facts.host},
          {"cpu", facts.cpu},
          {"command", facts.command},
          {"cpus", facts.cpus_online},
          {"memory_kib", facts.memory_kib},
          {"numa_nodes", std::move(nodes)}};
}

Json RecordsToJson(const RecordedMemory& memory) {
  const RecordingCounts& counts = memory.counts;
  return {{"lost", counts.lost},
          {"malformed", counts.malformed},
          {"late", counts.late},
          {"damaged_features", counts.damaged_features},
          {"truncated", counts.truncated},
          {"unfinished", counts.unfinished},
          {"damage", memory.damage.ok() ? Json() : Json(std::string(memory.damage.message()))}};
}

}  // namespace

Json MemoryToJson(const RecordedMemory& memory) {
  Json events = Json::array();
  for (const EventMemory& event : memory.events) events.push_back(EventToJson(event));
  Json processes = Json::array();
  for (const ProcessMemory& process : memory.processes)
    processes.push_back({{"pid", process.pid},
                         {"name", process.name},
                         {"threads", process.threads},
                         {"accesses", ProfileToJson(process.profile)}});
  return {{"version", 1},
          {"provenance", "replayed"},
          {"recording", RecordingToJson(memory.facts)},
          {"records", RecordsToJson(memory)},
          {"events", std::move(events)},
          {"accesses", ProfileToJson(memory.figures.profile)},
          {"beyond", BeyondToJson(memory.figures)},
          {"processes", std::move(processes)}};
}

}  // namespace perfd::client
