#include "core/json/status_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"
#include "core/json/report_json.h"
#include "core/spec/spec.h"

namespace perfd {
namespace {

const char* SeverityKey(Notice::Severity severity) {
  switch (severity) {
    case Notice::Severity::kInfo:
      return "info";
    case Notice::Severity::kWarning:
      return "warning";
    case Notice::Severity::kError:
      return "error";
  }
  return "info";
}

Json ProgressToJson(const NodeProgress& node) {
  return {
      {"node", node.node},       {"phase", NodePhaseName(node.phase)}, {"ranks", node.ranks},
      {"threads", node.threads}, {"covered_ns", node.covered_ns},      {"windows", node.windows}};
}

Json LoopsToJson(const LoopProgress& loops) {
  return {{"hot", loops.hot},
          {"known", loops.known},
          {"done_ratio", loops.done_ratio},
          {"left_ns", loops.left_ns}};
}

// From the first sample to the end; 0: not over, or none was taken.
int64_t UsedNs(const ProfileStatus& s) {
  if (s.started_unix_ns == 0 || s.finished_unix_ns == 0) return 0;
  return std::max<int64_t>(0, s.finished_unix_ns - s.started_unix_ns);
}

Json ProcessesToJson(const std::vector<NamedProcess>& processes) {
  Json list = Json::array();
  for (const NamedProcess& process : processes)
    list.push_back({{"pid", process.pid}, {"command", process.command}});
  return list;
}

Json LaunchersToJson(const LauncherNote& note) {
  const bool refused = note.disposition == LauncherNote::Disposition::kRefused;
  return {{"disposition", refused ? "refused" : "left_out"},
          {"waiting", ProcessesToJson(note.launchers)},
          {"waiting_count", note.launcher_count},
          {"working", ProcessesToJson(note.working)},
          {"working_count", note.working_count}};
}

}  // namespace

const char* StatusCodeKey(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return "ok";
    case absl::StatusCode::kCancelled:
      return "cancelled";
    case absl::StatusCode::kInvalidArgument:
      return "invalid_argument";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    case absl::StatusCode::kNotFound:
      return "not_found";
    case absl::StatusCode::kAlreadyExists:
      return "already_exists";
    case absl::StatusCode::kPermissionDenied:
      return "permission_denied";
    case absl::StatusCode::kUnauthenticated:
      return "unauthenticated";
    case absl::StatusCode::kResourceExhausted:
      return "resource_exhausted";
    case absl::StatusCode::kFailedPrecondition:
      return "failed_precondition";
    case absl::StatusCode::kUnimplemented:
      return "unimplemented";
    case absl::StatusCode::kUnavailable:
      return "unavailable";
    case absl::StatusCode::kDataLoss:
      return "data_loss";
    default:
      return "internal";
  }
}

Json NoticesToJson(const std::vector<Notice>& notices) {
  Json list = Json::array();
  for (const Notice& n : notices) {
    Json notice = {{"severity", SeverityKey(n.severity)},
                   {"code", StatusCodeKey(n.code)},
                   {"node", n.node},
                   {"pid", n.pid},
                   {"text", n.text}};
    if (n.launchers.has_value()) notice["launchers"] = LaunchersToJson(*n.launchers);
    list.push_back(std::move(notice));
  }
  return list;
}

Json StatusToJson(const ProfileStatus& s) {
  Json nodes = Json::array();
  for (const NodeProgress& node : s.nodes) nodes.push_back(ProgressToJson(node));
  return {{"id", s.id},
          {"name", s.name},
          {"state", ProfileStateName(s.state)},
          {"requester",
           {{"uid", s.requester.uid},
            {"name", s.requester.name},
            {"privileged", s.requester.privileged}}},
          {"submitted_unix_ns", s.submitted_unix_ns},
          {"started_unix_ns", s.started_unix_ns},
          {"finished_unix_ns", s.finished_unix_ns},
          {"submit_to_first_sample_ns", s.submit_to_first_sample_ns},
          {"progress_ratio", s.course.progress_ratio},
          {"loops", LoopsToJson(s.course.loops)},
          {"until_known", s.spec.until_known},
          {"asked_ns", s.spec.duration_ns},
          {"used_ns", UsedNs(s)},
          {"end", EndReasonKey(s.course.end)},
          {"samples", s.samples},
          {"dry_run", s.spec.dry_run},
          {"tree", s.spec.target.tree},
          {"spec", FormatProfileSpec(s.spec)},
          {"nodes", nodes},
          {"notices", NoticesToJson(s.notices)}};
}

Json ProfilesToJson(const std::vector<ProfileStatus>& profiles) {
  Json list = Json::array();
  for (const ProfileStatus& status : profiles) list.push_back(StatusToJson(status));
  return {{"profiles", list}};
}

Json NodesToJson(const std::vector<NodeStatus>& nodes) {
  Json list = Json::array();
  for (const NodeStatus& n : nodes) {
    list.push_back({{"node", n.node},
                    {"connected", n.connected},
                    {"version", n.version},
                    {"user_mode", n.user_mode},
                    {"replayed", n.replayed},
                    {"uid", n.uid},
                    {"cpus", n.cpus},
                    {"kernel", n.kernel},
                    {"sampling_event", n.sampling_event},
                    {"last_seen_unix_ns", n.last_seen_unix_ns},
                    {"resident_bytes", n.health.resident_bytes},
                    {"cpu_ns", n.health.cpu_ns},
                    {"spooled_windows", n.health.spooled_windows},
                    {"spool_bytes", n.health.spool_bytes},
                    {"sessions", n.health.sessions},
                    {"set_aside_windows", n.health.set_aside_windows},
                    {"ring_bytes", n.health.ring_bytes},
                    {"ring_limit_bytes", n.health.ring_limit_bytes},
                    {"can_inject", n.health.can_inject},
                    {"inject_reason", n.health.inject_reason}});
  }
  return {{"nodes", list}};
}

Json DoctorToJson(const std::vector<DoctorReport>& reports) {
  Json places = Json::array();
  bool all_ok = true;
  for (const DoctorReport& report : reports) {
    Json checks = Json::array();
    all_ok = all_ok && Passes(report);
    for (const DoctorCheck& c : report.checks) {
      checks.push_back({{"name", c.name},
                        {"ok", c.ok},
                        {"optional", c.optional},
                        {"found", c.found},
                        {"fix", c.fix}});
    }
    Json place = {{"place", report.place}, {"checks", checks}};
    if (report.source == DoctorSource::kUserAgent) place["agent_of_uid"] = report.uid;
    places.push_back(std::move(place));
  }
  return {{"ok", all_ok}, {"places", places}};
}

Json WatchEventToJson(const ProfileStatus& status, const std::vector<ReportRow>& top_loops) {
  Json loops = Json::array();
  for (const ReportRow& row : top_loops) loops.push_back(RowToJson(row));
  return {{"status", StatusToJson(status)}, {"top_loops", loops}};
}

Json ErrorToJson(absl::string_view code, absl::string_view message, int exit_code) {
  return {
      {"error",
       {{"code", std::string(code)}, {"message", std::string(message)}, {"exit_code", exit_code}}}};
}

// JSON need not escape DEL, U+0080..U+009F and marks of direction (RFC 8259, 7), but a terminal acts on them. They are in strings only,
// and all are below U+10000.
std::string JsonLine(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string line;
  line.reserve(text.size() + 1);
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(rest), 1);
    const absl::string_view character = rest.substr(0, length);
    if (IsControlCharacter(character)) {
      absl::StrAppend(&line, "\\u", absl::Hex(CodePoint(character), absl::kZeroPad4));
    } else {
      absl::StrAppend(&line, character);
    }
    rest.remove_prefix(length);
  }
  return line + "\n";
}

}  // namespace perfd
