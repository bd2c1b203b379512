#include "daemon/service/agent_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxName = 255;
constexpr size_t kMaxNotices = 256;
constexpr int kMaxRanks = 65536;
constexpr int kMaxActive = 4096;

absl::Status CheckName(const char* what, const std::string& text, bool required = true) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if ((text.empty() && required) || text.size() > kMaxName || !printable) {
    return absl::InvalidArgumentError(
        absl::StrCat("register: ", what, " is empty, too long or not printable"));
  }
  return absl::OkStatus();
}

absl::Status CheckRight(const v1::Register& message, const Peer& peer) {
  if (!peer.agent_node.empty() && peer.agent_node != message.node()) {
    return absl::PermissionDeniedError(absl::StrCat("the certificate is for the agent of node ",
                                                    peer.agent_node, ", not of ", message.node()));
  }
  if (!peer.full_agent && !message.user_mode()) {
    return absl::PermissionDeniedError(
        absl::StrCat("user ", peer.requester.name,
                     " may only run an agent for their own processes: start perf-agent "
                     "with --user-mode"));
  }
  if (message.replayed() && !message.user_mode())
    return absl::InvalidArgumentError("register: a recording is its user's: it runs in user mode");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AgentFacts> ToFacts(const v1::Register& message, const Peer& peer) {
  if (message.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the agent (version ", message.version(), ") speaks protocol ",
                     message.protocol_version(), ", this perfd (", kVersion, ") speaks ",
                     kProtocolVersion, ": install the same version on both"));
  }
  RETURN_IF_ERROR(CheckName("node", message.node()));
  RETURN_IF_ERROR(CheckName("stream_id", message.stream_id()));
  RETURN_IF_ERROR(CheckName("instance_id", message.instance_id(), false));
  RETURN_IF_ERROR(CheckName("version", message.version(), false));
  RETURN_IF_ERROR(CheckRight(message, peer));
  if (message.active_profiles_size() > kMaxActive || message.kernel().size() > kMaxName ||
      message.sampling_event().size() > kMaxName || message.boot_id().size() > kMaxName) {
    return absl::InvalidArgumentError("register: a field is too long");
  }
  AgentFacts facts;
  facts.node = message.node();
  facts.version = message.version();
  facts.stream_id = message.stream_id();
  facts.instance_id = message.instance_id();
  facts.boot_id = message.boot_id();
  facts.user_mode = message.user_mode();
  facts.uid =
      peer.requester.uid;  // what the kernel or the certificate says, not what the message says
  if (!peer.agent_node.empty() && peer.certificate != nullptr)
    facts.certificate_expiry_seconds = absl::ToUnixSeconds(peer.certificate->facts().ends);
  facts.cpus = message.cpus();
  facts.kernel = message.kernel();
  facts.sampling_event = message.sampling_event();
  facts.abilities = {.pause_leases = message.pause_leases(),
                     .process_trees = message.process_trees(),
                     .replayed = message.replayed()};
  facts.can_inject = message.can_inject();
  facts.active_profiles.assign(message.active_profiles().begin(), message.active_profiles().end());
  return facts;
}

absl::StatusOr<SessionUpdate> ToUpdate(const v1::SessionUpdate& message) {
  SessionUpdate update;
  update.profile_id = message.profile_id();
  ASSIGN_OR_RETURN(update.phase, wire::FromProto(message.phase()));
  // The agent tells its latest news again after every reconnect: what is too much of it is cut, not refused.
  update.ranks = std::min(message.ranks_size(), kMaxRanks);
  update.threads = std::max(0, message.threads());
  for (const v1::Notice& from : message.notices()) {
    if (update.notices.size() == kMaxNotices) break;
    absl::StatusOr<Notice> notice = wire::FromProto(from);
    if (notice.ok()) update.notices.push_back(*std::move(notice));
  }
  update.last_sequence = message.last_sequence();
  update.first_sample = message.first_sample();
  return update;
}

absl::StatusOr<IncomingWindow> ToWindow(const v1::Window& message) {
  IncomingWindow incoming;
  ASSIGN_OR_RETURN(incoming.window, wire::FromProto(message));
  incoming.body = message.SerializeAsString();
  return incoming;
}

v1::DaemonMessage ToMessage(const StartNode& command) {
  v1::DaemonMessage message;
  v1::StartCommand& start = *message.mutable_start();
  start.set_profile_id(command.profile_id);
  *start.mutable_spec() = wire::ToProto(command.spec);
  *start.mutable_requester() = wire::ToProto(command.requester);
  start.set_remaining_ns(command.remaining_ns);
  start.set_wait_ns(command.wait_ns);
  return message;
}

v1::DaemonMessage ToMessage(const StopNode& command) {
  v1::DaemonMessage message;
  message.mutable_stop()->set_profile_id(command.profile_id);
  message.mutable_stop()->set_reason(command.reason);
  return message;
}

v1::DaemonMessage ToMessage(const MeasureNode& command) {
  v1::DaemonMessage message;
  v1::MeasureCommand& order =
      command.order.dry_run ? *message.mutable_rehearse() : *message.mutable_measure();
  order = wire::ToProto(command.order);
  return message;
}

v1::DaemonMessage ToMessage(const ChargeNode& command) {
  v1::DaemonMessage message;
  message.mutable_lease()->set_profile_id(command.profile_id);
  message.mutable_lease()->set_charge(command.charge);
  return message;
}

}  // namespace perfd::daemon
