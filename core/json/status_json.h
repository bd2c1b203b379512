// core/json/status_json.h - states, nodes, checks and errors as JSON for scripts.
//
// Shape    snake_case keys that are only ever added to. Times in ns since the epoch (*_unix_ns), ratios 0..1.
//   status  id, name, state, requester{uid,name,privileged}, submitted_unix_ns, started_unix_ns, finished_unix_ns,
//           submit_to_first_sample_ns, progress_ratio, loops{hot, known, done_ratio, left_ns (0: not known)}, until_known, asked_ns (the
//           longest when until_known), used_ns (0: not over), end ("": not over, or not told; time, known, nothing_learnt, ranks_ended,
//           job_ended, cancelled, nodes_lost), samples, dry_run, tree, spec (YAML text), nodes[], notices[]
//   node    node, phase, ranks, threads, covered_ns, windows     notice  severity, code, node, pid, text, and of one
//           about launchers: launchers{disposition (refused, left_out), waiting[], working[] of {pid, command}, their _counts}
//   error   {"error": {"code", "message", "exit_code"}}
#ifndef CORE_JSON_STATUS_JSON_H_
#define CORE_JSON_STATUS_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/node.h"
#include "core/model/profile.h"
#include "core/model/report.h"

namespace perfd {

using Json = nlohmann::ordered_json;

Json StatusToJson(const ProfileStatus& status);
Json NoticesToJson(const std::vector<Notice>& notices);
Json ProfilesToJson(const std::vector<ProfileStatus>& profiles);  // {"profiles": [...]}
Json NodesToJson(const std::vector<NodeStatus>& nodes);           // {"nodes": [...]}
Json DoctorToJson(const std::vector<DoctorReport>& reports);      // {"ok": ..., "places": [...]}
Json WatchEventToJson(const ProfileStatus& status, const std::vector<ReportRow>& top_loops);
Json ErrorToJson(absl::string_view code, absl::string_view message, int exit_code);

// "not_found", "permission_denied" ... for a canonical code.
const char* StatusCodeKey(absl::StatusCode code);

// One line; bytes that are not UTF-8 become U+FFFD.
std::string JsonLine(const Json& json);

}  // namespace perfd

#endif  // CORE_JSON_STATUS_JSON_H_
