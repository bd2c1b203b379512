// daemon/service/doors/door.h - one gRPC server and the services on it, as one kind of peer sees them.
//
// Shape    Open builds it; Enter takes the next descriptor. Of a Unix door every connection is one uid's: Know says who that is. Through
//          one with TLS anybody may come, and proves who it is.
// Limits   over TCP Limit::kTlsMemory, by a quota of gRPC's; a user's Unix door has what the relay lets in (daemon/relay/relay.h).
// Threads  peer() at any time; the rest is the host's, under its lock.
// Source   grpcpp/server_posix.h AddInsecureChannelFromFd; grpcpp/server_builder.h ExternalConnectionAcceptor; gRPC doc/keepalive.md; grpcpp/resource_quota.h.
#ifndef DAEMON_SERVICE_DOORS_DOOR_H_
#define DAEMON_SERVICE_DOORS_DOOR_H_

#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "daemon/limits/limits.h"
#include "daemon/service/call_services.h"
#include "daemon/service/hook_calls.h"
#include "daemon/service/identity.h"

namespace perfd::daemon {

class Door {
 public:
  // Somewhat over AgentStream's limit, so that it can say what is wrong and count it. What is larger still gRPC ends with
  // RESOURCE_EXHAUSTED by itself.
  static constexpr int kMaxMessageBytes = AgentStream::kMaxMessageBytes + (4 << 20);

  // `shared` outlives it.
  explicit Door(ServiceShared& shared) : shared_(shared) {}

  // False: no server could be made. `tls`: null for a Unix door.
  bool Open(PeerSource source, std::shared_ptr<grpc::ServerCredentials> tls);
  // By the limits as they are; of a Unix door nothing.
  void SizeMemory();
  void Know(const Identities::Known& known);
  // What needs no looking up: at first, and when the rules change; the administrators only where their group is another one.
  void KnowCertain(const Peer& certain, bool administrators);
  bool IsKnown(absl::Time now) const { return now <= known_until_; }
  Peer peer() const;
  void Enter(UniqueFd connection);
  void Use(absl::Time now) { used_ = now; }
  absl::Time used() const { return used_; }
  // Of root, perfd's own or the agents' user: never evicted.
  bool full_agent() const { return peer().full_agent; }
  // A place among the users whom nobody knows.
  Share& unknown() { return unknown_; }
  void SetServing(bool healthy);
  void Shutdown(absl::Time deadline);

 private:
  ServiceShared& shared_;
  mutable Mutex mutex_;
  Peer peer_ ABSL_GUARDED_BY(mutex_);
  absl::Time known_until_;
  absl::Time used_;
  Share unknown_;
  grpc::ResourceQuota memory_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> tls_;  // null: a Unix door
  // In the order of destruction.
  std::unique_ptr<AgentCalls> agents_;
  std::unique_ptr<ProfilerCalls> profiler_;
  std::unique_ptr<HookCalls> hooks_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_DOORS_DOOR_H_
