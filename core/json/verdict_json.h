// core/json/verdict_json.h - measured loops and the audit log as JSON. Keys are stable: they are only ever added to.
//
// Shape    verdict   loop_id, location_key, state, bound, sure, level, agreement, share, slowest_share, slowest_rank,
//                    ranks_measured, ranks_total, variants[], gains[], remarks[], fidelity{}, protocol, refusals[], open[],
//                    cost{}, predicted{}, listings[], ranks[], ranks_left_out, provenance, gain_provenance, why,
//                    trip_classes[] (also of each rank), trip_rank; of variants and gains: on `ranks` of `ranks_asked`
//          fidelity  value, low, high, live_instances, runs, shadows, caches, reason, why
//          ratio     value, low, high (both 0: no interval)      injection  cost{}, added_wall_ns, added_ratio, shared_ns, pauses_lost
//          audit     unix_ns, profile, requester, node, pid, loop, action, address, original_bytes, written_bytes, pause_ns,
//                    outcome
// Units    ratios; cycles of the TSC; *_ns; addresses as "0x..." text.
#ifndef CORE_JSON_VERDICT_JSON_H_
#define CORE_JSON_VERDICT_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/model/loop_verdict.h"

namespace perfd {

nlohmann::ordered_json VerdictToJson(const LoopVerdict& loop);
nlohmann::ordered_json InjectionToJson(const InjectionTotal& total);
nlohmann::ordered_json AuditToJson(const std::vector<AuditEntry>& entries);  // {"entries": [...]}

}  // namespace perfd

#endif  // CORE_JSON_VERDICT_JSON_H_
