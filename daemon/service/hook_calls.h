// daemon/service/hook_calls.h - the gRPC service for schedulers' prologs and epilogs, as seen by one kind of peer.
//
// Errors   PERMISSION_DENIED unless the peer is root, an administrator or, for jobs of its own node, an agent.
// Threads  callback API. Begin and End run one after another on a thread of their own (perfd-hook): a burst of prologs
//          keeps nobody else waiting, and what a client gave up on is decided all the same.
#ifndef DAEMON_SERVICE_HOOK_CALLS_H_
#define DAEMON_SERVICE_HOOK_CALLS_H_

#include <utility>

#include "absl/status/statusor.h"
#include "daemon/pipeline/job_admission.h"
#include "daemon/service/call_services.h"
#include "daemon/service/peer_source.h"
#include "perfd/v1/hook.grpc.pb.h"

namespace perfd::daemon {

// Whether this peer may speak for schedulers.
absl::StatusOr<HookCaller> HookCallerOf(const Peer& peer);

class HookCalls final : public v1::Hook::CallbackService {
 public:
  HookCalls(ServiceShared& shared, PeerSource peer) : shared_(shared), peer_(std::move(peer)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Begin(Context* context, const v1::HookRequest* request,
                 v1::HookResponse* response) override;
  Reactor* End(Context* context, const v1::HookRequest* request,
               v1::HookResponse* response) override;
  Reactor* List(Context* context, const v1::HookListRequest* request,
                v1::HookListResponse* response) override;

 private:
  using Ask = absl::StatusOr<HookAnswer> (JobAdmission::*)(const HookCaller& caller,
                                                           const HookJob& job);
  Reactor* Answer(Context* context, const v1::HookRequest* request, v1::HookResponse* response,
                  Ask ask);

  ServiceShared& shared_;
  const PeerSource peer_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_HOOK_CALLS_H_
