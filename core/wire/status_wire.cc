// Notices, phases and the status of a profile.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

using Phase = NodeProgress::Phase;
using Severity = Notice::Severity;

static_assert(static_cast<int>(EndReason::kNodesLost) == v1::END_REASON_NODES_LOST);
static_assert(static_cast<int>(Severity::kError) + 1 == v1::SEVERITY_ERROR);
static_assert(static_cast<int>(LauncherNote::Disposition::kLeftOut) + 1 ==
              v1::LAUNCHER_DISPOSITION_LEFT_OUT);
static_assert(static_cast<int>(Phase::kDisconnected) + 1 == v1::NODE_PHASE_DISCONNECTED);
static_assert(static_cast<int>(ProfileState::kCancelled) + 1 == v1::PROFILE_STATE_CANCELLED);

void FillNode(const NodeProgress& node, v1::NodeProgress& out) {
  out.set_node(CleanText(node.node));
  out.set_phase(ToProto(node.phase));
  out.set_ranks(node.ranks);
  out.set_threads(node.threads);
  out.set_covered_ns(node.covered_ns);
  out.set_windows(node.windows);
}

absl::StatusOr<NodeProgress> ReadNode(const v1::NodeProgress& node) {
  RETURN_IF_ERROR(CheckText(node.node(), "nodes.node"));
  RETURN_IF_ERROR(CheckRange(node.ranks(), 0, INT32_MAX, "nodes.ranks"));
  RETURN_IF_ERROR(CheckRange(node.threads(), 0, INT32_MAX, "nodes.threads"));
  RETURN_IF_ERROR(CheckRange(node.covered_ns(), 0, INT64_MAX, "nodes.covered_ns"));
  NodeProgress out;
  out.node = node.node();
  ASSIGN_OR_RETURN(out.phase, FromProto(node.phase()));
  out.ranks = node.ranks();
  out.threads = node.threads();
  out.covered_ns = node.covered_ns();
  out.windows = node.windows();
  return out;
}

void FillProcesses(const std::vector<NamedProcess>& processes,
                   google::protobuf::RepeatedPtrField<v1::NamedProcess>& out) {
  for (const NamedProcess& process : processes) {
    v1::NamedProcess* to = out.Add();
    to->set_pid(process.pid);
    to->set_command(CleanText(process.command));
  }
}

absl::StatusOr<std::vector<NamedProcess>> ReadProcesses(
    const google::protobuf::RepeatedPtrField<v1::NamedProcess>& processes) {
  RETURN_IF_ERROR(CheckCount(processes.size(), LauncherNote::kMaxNamed, "notice.launchers"));
  std::vector<NamedProcess> out;
  for (const v1::NamedProcess& process : processes) {
    RETURN_IF_ERROR(CheckRange(process.pid(), 1, INT32_MAX, "notice.launchers.pid"));
    RETURN_IF_ERROR(CheckText(process.command(), "notice.launchers.command"));
    out.push_back({process.pid(), process.command()});
  }
  return out;
}

v1::LauncherNote LaunchersToProto(const LauncherNote& note) {
  v1::LauncherNote out;
  out.set_disposition(WireEnum<v1::LauncherDisposition>(note.disposition));
  FillProcesses(note.launchers, *out.mutable_launchers());
  FillProcesses(note.working, *out.mutable_working());
  out.set_working_count(note.working_count);
  out.set_launcher_count(note.launcher_count);
  return out;
}

absl::StatusOr<LauncherNote> ReadLaunchers(const v1::LauncherNote& note) {
  RETURN_IF_ERROR(CheckRange(note.working_count(), 0, INT32_MAX, "notice.launchers.working_count"));
  RETURN_IF_ERROR(
      CheckRange(note.launcher_count(), 0, INT32_MAX, "notice.launchers.launcher_count"));
  LauncherNote out;
  ASSIGN_OR_RETURN(out.disposition,
                   ModelEnum(note.disposition(), LauncherNote::Disposition::kLeftOut,
                             "notice.launchers.disposition"));
  ASSIGN_OR_RETURN(out.launchers, ReadProcesses(note.launchers()));
  ASSIGN_OR_RETURN(out.working, ReadProcesses(note.working()));
  out.working_count = note.working_count();
  out.launcher_count = note.launcher_count();
  return out;
}

absl::StatusOr<LoopProgress> ReadLoops(const v1::LoopProgress& loops) {
  RETURN_IF_ERROR(CheckRange(loops.hot(), 0, INT32_MAX, "loops.hot"));
  RETURN_IF_ERROR(CheckRange(loops.known(), 0, loops.hot(), "loops.known"));
  RETURN_IF_ERROR(CheckRatio(loops.done_ratio(), "loops.done_ratio"));
  RETURN_IF_ERROR(CheckRange(loops.left_ns(), 0, INT64_MAX, "loops.left_ns"));
  return LoopProgress{loops.hot(), loops.known(), loops.done_ratio(), loops.left_ns()};
}

// One that only a newer perfd knows is none that could be told.
EndReason ReadEnd(v1::EndReason end) {
  const int number = static_cast<int>(end);
  return number > 0 && number < kEndReasonCount ? static_cast<EndReason>(number) : EndReason::kNone;
}

absl::Status ReadLists(const v1::ProfileStatus& status, ProfileStatus& out) {
  RETURN_IF_ERROR(CheckCount(status.nodes_size(), kMaxNodes, "nodes"));
  RETURN_IF_ERROR(CheckCount(status.notices_size(), kMaxNotices, "notices"));
  for (const v1::NodeProgress& node : status.nodes()) {
    ASSIGN_OR_RETURN(NodeProgress read, ReadNode(node));
    out.nodes.push_back(std::move(read));
  }
  for (const v1::Notice& notice : status.notices()) {
    ASSIGN_OR_RETURN(Notice read, FromProto(notice));
    out.notices.push_back(std::move(read));
  }
  return absl::OkStatus();
}

}  // namespace

v1::Notice ToProto(const Notice& notice) {
  v1::Notice out;
  out.set_severity(WireEnum<v1::Severity>(notice.severity));
  out.set_code(static_cast<int32_t>(notice.code));
  out.set_node(CleanText(notice.node));
  out.set_pid(notice.pid);
  out.set_text(CleanText(notice.text));
  if (notice.launchers.has_value()) *out.mutable_launchers() = LaunchersToProto(*notice.launchers);
  return out;
}

absl::StatusOr<Notice> FromProto(const v1::Notice& notice) {
  RETURN_IF_ERROR(CheckText(notice.node(), "notice.node"));
  RETURN_IF_ERROR(CheckText(notice.text(), "notice.text"));
  RETURN_IF_ERROR(CheckRange(notice.pid(), 0, INT32_MAX, "notice.pid"));
  RETURN_IF_ERROR(CheckRange(notice.code(), 0, static_cast<int>(absl::StatusCode::kUnauthenticated),
                             "notice.code"));
  Notice out;
  ASSIGN_OR_RETURN(out.severity, ModelEnum(notice.severity(), Severity::kError, "notice.severity"));
  out.code = static_cast<absl::StatusCode>(notice.code());
  out.node = notice.node();
  out.pid = notice.pid();
  out.text = notice.text();
  if (notice.has_launchers()) {
    ASSIGN_OR_RETURN(out.launchers, ReadLaunchers(notice.launchers()));
  }
  return out;
}

v1::NodePhase ToProto(Phase phase) {
  return WireEnum<v1::NodePhase>(phase);
}

absl::StatusOr<Phase> FromProto(v1::NodePhase phase) {
  return ModelEnum(phase, Phase::kDisconnected, "phase");
}

v1::ProfileStatus ToProto(const ProfileStatus& status) {
  v1::ProfileStatus out;
  out.set_id(CleanText(status.id));
  out.set_name(CleanText(status.name));
  out.set_state(WireEnum<v1::ProfileState>(status.state));
  *out.mutable_requester() = ToProto(status.requester);
  *out.mutable_spec() = ToProto(status.spec);
  out.set_submitted_unix_ns(status.submitted_unix_ns);
  out.set_started_unix_ns(status.started_unix_ns);
  out.set_finished_unix_ns(status.finished_unix_ns);
  out.set_submit_to_first_sample_ns(status.submit_to_first_sample_ns);
  out.set_progress_ratio(status.course.progress_ratio);
  out.set_samples(status.samples);
  const LoopProgress& loops = status.course.loops;
  out.mutable_loops()->set_hot(loops.hot);
  out.mutable_loops()->set_known(loops.known);
  out.mutable_loops()->set_done_ratio(loops.done_ratio);
  out.mutable_loops()->set_left_ns(loops.left_ns);
  out.set_end(static_cast<v1::EndReason>(status.course.end));
  for (const NodeProgress& node : status.nodes) FillNode(node, *out.add_nodes());
  for (const Notice& notice : status.notices) *out.add_notices() = ToProto(notice);
  return out;
}

absl::StatusOr<ProfileStatus> FromProto(const v1::ProfileStatus& status) {
  RETURN_IF_ERROR(CheckText(status.id(), "id"));
  RETURN_IF_ERROR(CheckText(status.name(), "name"));
  RETURN_IF_ERROR(CheckRange(status.submitted_unix_ns(), 0, INT64_MAX, "submitted_unix_ns"));
  RETURN_IF_ERROR(CheckRange(status.started_unix_ns(), 0, INT64_MAX, "started_unix_ns"));
  RETURN_IF_ERROR(CheckRange(status.finished_unix_ns(), 0, INT64_MAX, "finished_unix_ns"));
  RETURN_IF_ERROR(
      CheckRange(status.submit_to_first_sample_ns(), 0, INT64_MAX, "submit_to_first_sample_ns"));
  RETURN_IF_ERROR(CheckRatio(status.progress_ratio(), "progress_ratio"));
  ProfileStatus out;
  out.id = status.id();
  out.name = status.name();
  ASSIGN_OR_RETURN(out.state, ModelEnum(status.state(), ProfileState::kCancelled, "state"));
  out.requester = FromProto(status.requester());
  ASSIGN_OR_RETURN(out.spec, SpecFromProto(status.spec(), /*need_target=*/false));
  out.submitted_unix_ns = status.submitted_unix_ns();
  out.started_unix_ns = status.started_unix_ns();
  out.finished_unix_ns = status.finished_unix_ns();
  out.submit_to_first_sample_ns = status.submit_to_first_sample_ns();
  out.course.progress_ratio = status.progress_ratio();
  ASSIGN_OR_RETURN(out.course.loops, ReadLoops(status.loops()));
  out.course.end = ReadEnd(status.end());
  out.samples = status.samples();
  RETURN_IF_ERROR(ReadLists(status, out));
  return out;
}

}  // namespace perfd::wire
