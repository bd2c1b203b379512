// daemon/service/grpc_host.h - the gRPC servers: one per Unix uid, fed with accepted descriptors, and one for TLS.
//
// Shape    Adopt(fd, uid) hands a connection to the server of that uid; ListenTls opens the TCP door.
// Limits   kMaxUids servers; the one unused for longest makes room (its connections end and come again).
// Errors   ListenTls: kInvalidArgument (certificates; names deploy/make-certs.sh), kUnavailable (port taken).
// Threads  thread-safe. A watchdog thread (perfd-health) sets the health service and ends silent streams. Who a uid is, is
//          looked up on threads of their own (perfd-who), without a lock: only that uid's new connection waits for it.
// Source   grpcpp/server_posix.h AddInsecureChannelFromFd; gRPC doc/keepalive.md.
#ifndef DAEMON_SERVICE_GRPC_HOST_H_
#define DAEMON_SERVICE_GRPC_HOST_H_

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "core/service/accounts.h"
#include "daemon/ingest/worker.h"
#include "daemon/service/call_services.h"
#include "daemon/service/hook_calls.h"
#include "daemon/service/identity.h"
#include "daemon/tls/tls_gate.h"
#include "daemon/tls/tls_options.h"

namespace perfd::daemon {

class GrpcHost {
 public:
  static constexpr size_t kMaxUids = 256;
  // Somewhat over AgentStream's limit, so that it can say what is wrong and count it. What is larger still gRPC ends with
  // RESOURCE_EXHAUSTED by itself.
  static constexpr int kMaxMessageBytes = AgentStream::kMaxMessageBytes + (4 << 20);

  // `accounts` and `tls` must outlive it.
  GrpcHost(Pipeline& pipeline, IdentityOptions identity, Accounts& accounts, TlsGate& tls);
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
  // Ends every call within `within`, but for the answers that are being made. What waits to be answered is, or is refused.
  void Shutdown(absl::Duration within);
  size_t servers();

 private:
  // Services and the server built on them, in the order of destruction.
  struct Door {
    Mutex mutex;
    Peer peer ABSL_GUARDED_BY(mutex);  // of a Unix door; looked up anew now and then
    absl::Time known_until;            // of the host's lock
    absl::Time used;                   // ... too
    std::unique_ptr<AgentCalls> agents;
    std::unique_ptr<ProfilerCalls> profiler;
    std::unique_ptr<HookCalls> hooks;
    std::unique_ptr<grpc::Server> server;
  };

  std::shared_ptr<Door> KnownDoor(uint32_t uid);
  std::shared_ptr<Door> Introduce(uint32_t uid);
  std::shared_ptr<Door> DoorOf(uint32_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Open(Door* door, PeerSource source, const TlsOptions* tls, int* port);
  std::shared_ptr<Door> EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Know(Door& door, const Identities::Known& known);  // under the host's lock
  void End(std::shared_ptr<Door> evicted);
  bool Stopping();
  void Watchdog();

  Identities identities_;
  ServiceShared shared_;
  Mutex mutex_;
  // Doors are shared with their own peer source.
  std::map<uint32_t, std::shared_ptr<Door>> doors_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Door> tls_door_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Last: their threads use everything above.
  Worker introductions_{"perfd-who", Accounts::kThreads, 4096};
  std::thread watchdog_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_GRPC_HOST_H_
