#include <nlohmann/json.hpp>

#include "client/render/memory/memory_text.h"
#include "core/json/memory/memory_json.h"

namespace perfd::client {
namespace {

using Json = nlohmann::ordered_json;

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
                         {"accesses", MemoryProfileToJson(process.profile)}});
  return {{"version", 1},
          {"provenance", "replayed"},
          {"recording", RecordingToJson(memory.facts)},
          {"records", RecordsToJson(memory)},
          {"events", std::move(events)},
          {"accesses", MemoryProfileToJson(memory.figures.profile)},
          {"beyond", BeyondSharesToJson(memory.figures)},
          {"processes", std::move(processes)}};
}

}  // namespace perfd::client
