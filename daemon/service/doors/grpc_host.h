// daemon/service/doors/grpc_host.h - the gRPC servers: one per Unix uid, fed with accepted descriptors, and one for TLS.
//
// Shape    Adopt(fd, uid) hands a connection to the server of that uid, through the relay unless it is root's or perfd's own user's;
//          ListenTls opens the TCP door.
// Limits   kMaxUids servers, of which Limit::kUnknownUsers for uids that nobody knows; the one unused for longest makes room, those
//          without connections first, never those of root, perfd and the agents' user.
// Errors   ListenTls: kInvalidArgument (certificates; names deploy/make-certs.sh), kUnavailable (port taken, or not ours).
// Threads  thread-safe. A watchdog thread (perfd-health) sets the health service and ends silent streams. Who a uid is, is
//          looked up on threads of their own (perfd-who), without a lock: only that uid's new connection waits for it.
// Source   grpcpp/server_posix.h AddInsecureChannelFromFd; gRPC doc/keepalive.md.
#ifndef DAEMON_SERVICE_DOORS_GRPC_HOST_H_
#define DAEMON_SERVICE_DOORS_GRPC_HOST_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "core/service/accounts.h"
#include "daemon/ingest/worker.h"
#include "daemon/limits/connections.h"
#include "daemon/relay/relay.h"
#include "daemon/service/call_services.h"
#include "daemon/service/doors/door.h"
#include "daemon/service/doors/tcp_door.h"
#include "daemon/service/identity.h"
#include "daemon/tls/tls_gate.h"
#include "daemon/tls/tls_options.h"

namespace perfd::daemon {

class GrpcHost {
 public:
  static constexpr size_t kMaxUids = 256;

  // `accounts`, `tls` and `limits` must outlive it.
  GrpcHost(Pipeline& pipeline, IdentityOptions identity, Accounts& accounts, TlsGate& tls,
           Limits& limits);
  ~GrpcHost();

  // Never waits.
  void Adopt(UniqueFd connection, uint32_t uid);
  // Returns the address with its real port.
  absl::StatusOr<std::string> ListenTls(const TlsOptions& options);
  // The files of TLS as they are now, from the next connection on. Ends every stream whose certificate does not hold by them,
  // or is revoked by now, also when the files are not taken. Without a TCP door nothing.
  absl::Status RenewTls(const TlsOptions& options);
  // Who may do what, from the next call on; calls under way end as they began. Looks everyone up anew who is connected, but
  // what needs no looking up - that somebody is not the agents' user any more - holds at once.
  void SetIdentity(IdentityOptions identity);
  // What the limits are now.
  void RenewLimits();
  // Ends every call within `within`, but for the answers that are being made. What waits to be answered is, or is refused.
  void Shutdown(absl::Duration within);
  size_t servers();

 private:
  std::shared_ptr<Door> KnownDoor(uint32_t uid);
  std::shared_ptr<Door> Introduce(uint32_t uid);
  std::shared_ptr<Door> DoorOf(uint32_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: all have to stay.
  std::shared_ptr<Door> EvictOldest(bool unknown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An error: there can be no door. *evicted has to be ended in either case.
  absl::Status MakeRoom(uint32_t uid, bool known, Share* place, std::shared_ptr<Door>* evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(std::shared_ptr<Door> evicted);
  void AdoptTcp(UniqueFd connection, const std::string& network);
  void LogClosed(const std::string& whose, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Stopping();
  void Watchdog();

  Identities identities_;
  ServiceShared shared_;
  Connections connections_;
  Relay relay_;
  Mutex mutex_;
  // Doors are shared with their own peer source.
  std::map<uint32_t, std::shared_ptr<Door>> doors_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Door> tls_door_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<TcpDoor> tcp_door_ ABSL_GUARDED_BY(mutex_);  // where its connections come from
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  RareLog closed_ ABSL_GUARDED_BY(mutex_);
  // Last: their threads use everything above.
  Worker introductions_{"perfd-who", Accounts::kThreads, 4096};
  std::thread watchdog_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_DOORS_GRPC_HOST_H_
