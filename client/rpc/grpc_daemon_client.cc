#include "client/rpc/grpc_daemon_client.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "absl/time/clock.h"
#include "client/rpc/backoff.h"
#include "client/rpc/convert.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/watch_stream.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/dial/dial_settings.h"
#include "core/wire/history_wire.h"
#include "core/wire/site/limit_wire.h"
#include "core/wire/wire.h"

namespace perfd::client {
namespace {

constexpr absl::Duration kQuick = absl::Seconds(10);
constexpr absl::Duration kReport = absl::Seconds(60);  // merging and sending tens of megabytes
constexpr absl::Duration kDoctor = absl::Seconds(30);  // asks every node

template <typename Request>
Request WithId(absl::string_view id) {
  Request request;
  request.set_id(std::string(id));
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcDaemonClient>> GrpcDaemonClient::ConnectAny(
    const DialOptions& options) {
  std::unique_ptr<GrpcDaemonClient> client(new GrpcDaemonClient(options));
  RETURN_IF_ERROR(client->Reconnect());
  return client;
}

absl::StatusOr<std::unique_ptr<GrpcDaemonClient>> GrpcDaemonClient::Connect(
    const DialOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<GrpcDaemonClient> client, ConnectAny(options));
  ASSIGN_OR_RETURN(const DaemonVersion daemon, client->GetVersion());
  RETURN_IF_ERROR(CheckProtocol(daemon.version, daemon.protocol_version));
  return client;
}

absl::Status GrpcDaemonClient::Reconnect() {
  ASSIGN_OR_RETURN(const auto channel, Dial(options_));
  stub_ = v1::Profiler::NewStub(channel);
  hooks_ = std::make_unique<GrpcHookClient>(channel, options_.address);
  return absl::OkStatus();
}

template <typename Request, typename Response>
absl::StatusOr<Response> GrpcDaemonClient::Call(Method<Request, Response> method,
                                                const Request& request, absl::Duration deadline) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  Response response;
  RETURN_IF_ERROR(FromRpc((stub_.get()->*method)(&context, request, &response), options_.address));
  return response;
}

std::vector<DoctorCheck> GrpcDaemonClient::CheckOwnCertificate() {
  if (!NeedsTls(options_)) return {};
  ExpiryCheck own = perfd::CheckOwnCertificate(options_, absl::Now());
  return {{.name = "certificate",
           .ok = own.ok,
           .optional = own.usable,
           .found = std::move(own.found),
           .fix = own.ok ? "" : kRenewOwnCertificate}};
}

absl::StatusOr<ProfileStatus> GrpcDaemonClient::Submit(const ProfileSpec& spec) {
  v1::SubmitRequest request;
  *request.mutable_spec() = wire::ToProto(spec);
  request.set_client_node(HostName());
  request.set_protocol_version(kProtocolVersion);
  ASSIGN_OR_RETURN(const v1::SubmitResponse response,
                   Call(&v1::Profiler::Stub::Submit, request, kQuick));
  return wire::FromProto(response.status());
}

absl::StatusOr<ProfileStatus> GrpcDaemonClient::GetProfile(absl::string_view id) {
  ASSIGN_OR_RETURN(
      const v1::ProfileStatus response,
      Call(&v1::Profiler::Stub::GetProfile, WithId<v1::GetProfileRequest>(id), kQuick));
  return wire::FromProto(response);
}

absl::StatusOr<std::vector<ProfileStatus>> GrpcDaemonClient::ListProfiles(bool active_only,
                                                                          int limit) {
  v1::ListProfilesRequest request;
  request.set_active_only(active_only);
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListProfilesResponse response,
                   Call(&v1::Profiler::Stub::ListProfiles, request, kQuick));
  std::vector<ProfileStatus> profiles;
  for (const v1::ProfileStatus& from : response.profiles()) {
    ASSIGN_OR_RETURN(ProfileStatus status, wire::FromProto(from));
    profiles.push_back(std::move(status));
  }
  return profiles;
}

absl::StatusOr<Report> GrpcDaemonClient::GetReport(absl::string_view id) {
  ASSIGN_OR_RETURN(const v1::Report response,
                   Call(&v1::Profiler::Stub::GetReport, WithId<v1::GetReportRequest>(id), kReport));
  return wire::FromProto(response);
}

absl::StatusOr<ProfileStatus> GrpcDaemonClient::Cancel(absl::string_view id) {
  ASSIGN_OR_RETURN(const v1::ProfileStatus response,
                   Call(&v1::Profiler::Stub::Cancel, WithId<v1::CancelRequest>(id), kQuick));
  return wire::FromProto(response);
}

absl::StatusOr<std::vector<NodeStatus>> GrpcDaemonClient::ListNodes() {
  ASSIGN_OR_RETURN(const v1::ListNodesResponse response,
                   Call(&v1::Profiler::Stub::ListNodes, v1::ListNodesRequest(), kQuick));
  return NodesFromProto(response);
}

absl::StatusOr<std::vector<AuditEntry>> GrpcDaemonClient::ListAudit(absl::string_view id,
                                                                    int limit) {
  auto request = WithId<v1::ListAuditRequest>(id);
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListAuditResponse response,
                   Call(&v1::Profiler::Stub::ListAudit, request, kReport));
  return AuditFromProto(response);
}

absl::StatusOr<std::string> GrpcDaemonClient::GetReportUrl(absl::string_view id) {
  ASSIGN_OR_RETURN(
      const v1::ReportUrlResponse response,
      Call(&v1::Profiler::Stub::GetReportUrl, WithId<v1::ReportUrlRequest>(id), kQuick));
  return response.url();
}

absl::StatusOr<ProgramHistory> GrpcDaemonClient::GetHistory(absl::string_view command, int limit) {
  v1::HistoryRequest request;
  request.set_command(std::string(command));
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::HistoryResponse response,
                   Call(&v1::Profiler::Stub::GetHistory, request, kReport));
  return wire::FromProto(response);
}

absl::StatusOr<std::vector<LimitUse>> GrpcDaemonClient::ListLimits() {
  ASSIGN_OR_RETURN(const v1::ListLimitsResponse response,
                   Call(&v1::Profiler::Stub::ListLimits, v1::ListLimitsRequest(), kQuick));
  return wire::FromProto(response);
}

absl::StatusOr<std::vector<DoctorReport>> GrpcDaemonClient::Doctor(absl::string_view node) {
  v1::DoctorRequest request;
  request.set_node(std::string(node));
  ASSIGN_OR_RETURN(const v1::DoctorResponse response,
                   Call(&v1::Profiler::Stub::Doctor, request, kDoctor));
  return DoctorFromProto(response);
}

absl::StatusOr<DaemonVersion> GrpcDaemonClient::GetVersion() {
  ASSIGN_OR_RETURN(const v1::GetVersionResponse response,
                   Call(&v1::Profiler::Stub::GetVersion, v1::GetVersionRequest(), kQuick));
  return DaemonVersion{response.version(), response.protocol_version()};
}

absl::Status GrpcDaemonClient::WaitToReconnect(absl::Duration wait,
                                               const std::function<absl::Status()>& keep_going) {
  for (; wait > absl::ZeroDuration(); wait -= absl::Milliseconds(100)) {
    RETURN_IF_ERROR(keep_going());
    absl::SleepFor(absl::Milliseconds(100));
  }
  return absl::OkStatus();
}

absl::Status GrpcDaemonClient::Watch(const WatchOptions& options,
                                     const std::function<void(const WatchEvent&)>& on_event) {
  const int64_t start_ns = clock_.MonotonicNs();
  WatchStreamRequest request{
      options.id, options.top_loops, [&]() -> absl::Status {
        if (options.stop()) return absl::CancelledError("interrupted");
        if (absl::Nanoseconds(clock_.MonotonicNs() - start_ns) >= options.timeout)
          return absl::DeadlineExceededError("the profile was not over within the timeout");
        return absl::OkStatus();
      }};
  ReconnectPolicy policy;
  for (;;) {
    absl::Status status = ReadWatchStream(
        *stub_, request,
        [&](const WatchEvent& event) {
          policy.Heard();
          request.id = event.status.id;  // "last" must not come to mean another profile
          on_event(event);
        },
        options_.address);
    while (absl::IsUnavailable(status)) {
      const auto wait = policy.NextWait(clock_.MonotonicNs());
      if (!wait.has_value()) return status;
      RETURN_IF_ERROR(WaitToReconnect(*wait, request.keep_going));
      const absl::Status connected = Reconnect();
      if (connected.ok()) break;
      status = connected;
    }
    if (!absl::IsUnavailable(status)) return status;
  }
}

}  // namespace perfd::client
