// core/json/memory/memory_json.h - figures of accesses to memory as JSON, the same wherever they are shown.
//
// Shape    pure.
//   profile   samples, weight, kernel, without_{address,latency,source}, loads[] and missed[] {level, samples, weight}, dtlb[]
//             {result, samples, weight}, stores, hit_modified, locked, latency{low, high: of the median; histogram[] {low, high, samples}}
//   beyond[]  {border: l1, l2, l3, node; share, share_low, share_high (null, and why_not: too_few, not_told, no_latency), samples,
//             untold, without_latency}
//   report    events[] {name, latency_threshold}, accesses (a profile), beyond[], places[] {id, function, file, first_line, last_line, loop,
//             accesses, beyond[], references[] {instruction (ELF address, hex), accesses, beyond[]}, ranks[] {node, rank, pid, samples,
//             weight, walks, beyond_l2 (or null and why_not)}, references_left_out,
//             ranks_left_out}, places_left_out, lost{accesses (in no figure), without_{place,instruction,rank} (in the job's figures)}
// Units    latencies in cycles, shares 0..1, weights in what the event counts.
#ifndef CORE_JSON_MEMORY_MEMORY_JSON_H_
#define CORE_JSON_MEMORY_MEMORY_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "core/model/memory/memory_report.h"

namespace perfd {

nlohmann::ordered_json MemoryProfileToJson(const MemoryProfile& profile);
nlohmann::ordered_json BeyondSharesToJson(const MemoryFigures& figures);
nlohmann::ordered_json MemoryPlaceToJson(const MemoryPlace& place);
// Null where there are no accesses.
nlohmann::ordered_json MemoryReportToJson(const MemoryReport& report);

}  // namespace perfd

#endif  // CORE_JSON_MEMORY_MEMORY_JSON_H_
