// client/render/memory/memory_text.h - what the samples of a recording say about memory, for people and for programs.
//
// Shape    pure.
//   JSON   version (1), provenance ("replayed"), recording{host, cpu, command, cpus, memory_kib, numa_nodes[] {id, memory_kib, cpus}},
//          records{lost, malformed, late, damaged_features, truncated, unfinished, damage (text or null)},
//          events[] {name, period or null, frequency or null, samples, accesses, latency_threshold or null},
//          accesses, beyond[], processes[] {pid, name, threads, accesses}; accesses and beyond[] as in core/json/memory/memory_json.h
// Units    latencies in cycles, shares 0..1, weights in what the event counts.
#ifndef CLIENT_RENDER_MEMORY_MEMORY_TEXT_H_
#define CLIENT_RENDER_MEMORY_MEMORY_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/recording/recorded_memory.h"
#include "client/render/text_style.h"

namespace perfd::client {

std::string RenderMemory(const RecordedMemory& memory, size_t top, const TextStyle& style);
nlohmann::ordered_json MemoryToJson(const RecordedMemory& memory);
// What a reader has to know about the recording, a line each: losses, damage, what a threshold hides.
std::vector<std::string> MemoryRemarks(const RecordedMemory& memory);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEMORY_MEMORY_TEXT_H_
