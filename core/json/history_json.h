// core/json/history_json.h - the history of a program as JSON, and a profile read back from a report that was kept as JSON.
//
// Shape    {command, incomplete, profiles[{profile, command, user, job, state, started_unix_ns, ranks, nodes, build}],
//          loops[{loop_id, function, file, first_line, last_line, module, quantity, verdict, since, before, after,
//          points[{profile, loop_id, share, share_low, share_high, wall_share, wall_share_low, wall_share_high (null: not
//          divided), cycles_per_entry, iterations_per_entry, bound, sure,
//          gain} or null]}]}: a point for each profile.
// Units    shares 0..1; before and after in the unit of `quantity`: share, wall_share, cycles_per_iteration, cycles_per_entry.
// Errors   HistoryFromReportJson: kInvalidArgument; files may come from anyone.
// Threads  thread-safe (pure).
#ifndef CORE_JSON_HISTORY_JSON_H_
#define CORE_JSON_HISTORY_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/analysis/jobs/history.h"
#include "core/model/history.h"

namespace perfd {

nlohmann::ordered_json HistoryToJson(const ProgramHistory& history,
                                     const std::vector<LoopSeries>& series);

const char* HistoryQuantityKey(HistoryQuantity quantity);
const char* LevelVerdictKey(LevelVerdict verdict);  // too_few, steady, up, down

// `text`: a file of the archive, or what `report ID --json` prints.
absl::StatusOr<HistoryProfile> HistoryFromReportJson(absl::string_view text);

}  // namespace perfd

#endif  // CORE_JSON_HISTORY_JSON_H_
