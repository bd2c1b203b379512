// client/rpc/daemon_client.h - what perfctl asks of perfd, in model values; commands know nothing of gRPC.
//
// Shape    one method per request; Watch delivers events until the profile is over.
// Errors   the daemon's canonical code and message; kUnavailable says which address and how to start perfd;
//          kDeadlineExceeded when perfd does not answer in time. Every call is bounded.
// Threads  thread-bound.
#ifndef CLIENT_RPC_DAEMON_CLIENT_H_
#define CLIENT_RPC_DAEMON_CLIENT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/rpc/hook_client.h"
#include "core/model/history.h"
#include "core/model/node.h"
#include "core/model/profile.h"
#include "core/model/report.h"
#include "core/model/site/limit_use.h"

namespace perfd::client {

struct DaemonVersion {
  std::string version;
  int protocol_version = 0;
};

struct WatchEvent {
  ProfileStatus status;
  std::vector<ReportRow> top_loops;  // heaviest first, without per-rank detail
};

struct WatchOptions {
  std::string id;
  int top_loops = 10;
  absl::Duration timeout = absl::InfiniteDuration();
  std::function<bool()> stop = [] { return false; };  // asked several times a second
};

class DaemonClient {
 public:
  virtual ~DaemonClient() = default;

  // Of this side, for `doctor`; nothing without TLS.
  virtual std::vector<DoctorCheck> CheckOwnCertificate() = 0;

  virtual absl::StatusOr<ProfileStatus> Submit(const ProfileSpec& spec) = 0;
  // `id`: "p-000042", a unique prefix of it, or "last".
  virtual absl::StatusOr<ProfileStatus> GetProfile(absl::string_view id) = 0;
  // Newest first.
  virtual absl::StatusOr<std::vector<ProfileStatus>> ListProfiles(bool active_only, int limit) = 0;
  virtual absl::StatusOr<Report> GetReport(absl::string_view id) = 0;
  virtual absl::StatusOr<ProfileStatus> Cancel(absl::string_view id) = 0;
  virtual absl::StatusOr<std::vector<NodeStatus>> ListNodes() = 0;
  // What was injected, newest first; `id` empty: into any profile's ranks.
  virtual absl::StatusOr<std::vector<AuditEntry>> ListAudit(absl::string_view id, int limit) = 0;
  // The address of the report's page for a browser.
  virtual absl::StatusOr<std::string> GetReportUrl(absl::string_view id) = 0;
  // The loops of one program over its profiles; `command` empty: that of the newest profile.
  virtual absl::StatusOr<ProgramHistory> GetHistory(absl::string_view command, int limit) = 0;
  // What each limit is for the caller, in the order of perfd's table. kUnimplemented: a perfd of before.
  virtual absl::StatusOr<std::vector<LimitUse>> ListLimits() = 0;
  // What schedulers ask.
  virtual HookClient& hooks() = 0;
  // `node` empty: the daemon and every connected node.
  virtual absl::StatusOr<std::vector<DoctorReport>> Doctor(absl::string_view node) = 0;
  virtual absl::StatusOr<DaemonVersion> GetVersion() = 0;

  // Ends OK after the event with a final state; kCancelled when `stop` said so, kDeadlineExceeded at the timeout.
  // A daemon that goes away is given 30 s to come back.
  virtual absl::Status Watch(const WatchOptions& options,
                             const std::function<void(const WatchEvent&)>& on_event) = 0;
};

}  // namespace perfd::client

#endif  // CLIENT_RPC_DAEMON_CLIENT_H_
