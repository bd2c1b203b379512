// client/rpc/grpc_daemon_client.h - DaemonClient over gRPC.
#ifndef CLIENT_RPC_GRPC_DAEMON_CLIENT_H_
#define CLIENT_RPC_GRPC_DAEMON_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "client/rpc/daemon_client.h"
#include "client/rpc/grpc_hook_client.h"
#include "core/base/clock.h"
#include "core/dial/dial.h"
#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd::client {

class GrpcDaemonClient final : public DaemonClient {
 public:
  // Connects and checks that the daemon is there and speaks our protocol.
  static absl::StatusOr<std::unique_ptr<GrpcDaemonClient>> Connect(const DialOptions& options);
  // Without the check of the protocol, for `perfctl version`.
  static absl::StatusOr<std::unique_ptr<GrpcDaemonClient>> ConnectAny(const DialOptions& options);

  std::vector<DoctorCheck> CheckOwnCertificate() override;
  absl::StatusOr<ProfileStatus> Submit(const ProfileSpec& spec) override;
  absl::StatusOr<ProfileStatus> GetProfile(absl::string_view id) override;
  absl::StatusOr<std::vector<ProfileStatus>> ListProfiles(bool active_only, int limit) override;
  absl::StatusOr<Report> GetReport(absl::string_view id) override;
  absl::StatusOr<ProfileStatus> Cancel(absl::string_view id) override;
  absl::StatusOr<std::vector<NodeStatus>> ListNodes() override;
  absl::StatusOr<std::vector<AuditEntry>> ListAudit(absl::string_view id, int limit) override;
  absl::StatusOr<std::string> GetReportUrl(absl::string_view id) override;
  absl::StatusOr<ProgramHistory> GetHistory(absl::string_view command, int limit) override;
  absl::StatusOr<std::vector<LimitUse>> ListLimits() override;
  HookClient& hooks() override { return *hooks_; }
  absl::StatusOr<std::vector<DoctorReport>> Doctor(absl::string_view node) override;
  absl::StatusOr<DaemonVersion> GetVersion() override;
  absl::Status Watch(const WatchOptions& options,
                     const std::function<void(const WatchEvent&)>& on_event) override;

 private:
  explicit GrpcDaemonClient(const DialOptions& options) : options_(options) {}
  // A channel made from a descriptor cannot reconnect: a lost daemon needs a new one.
  absl::Status Reconnect();
  absl::Status WaitToReconnect(absl::Duration wait,
                               const std::function<absl::Status()>& keep_going);

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Profiler::Stub::*)(grpc::ClientContext*, const Request&,
                                                      Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method, const Request& request,
                                absl::Duration deadline);

  DialOptions options_;
  SystemClock clock_;
  std::unique_ptr<v1::Profiler::Stub> stub_;
  std::unique_ptr<GrpcHookClient> hooks_;
};

}  // namespace perfd::client

#endif  // CLIENT_RPC_GRPC_DAEMON_CLIENT_H_
