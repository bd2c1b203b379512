#include "daemon/service/hook_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/wire/hook_wire.h"
#include "daemon/service/rpc_status.h"

namespace perfd::daemon {

absl::StatusOr<HookCaller> HookCallerOf(const Peer& peer) {
  if (peer.requester.privileged && peer.person) return HookCaller{"", peer.requester.name};
  if (!peer.person && !peer.agent_node.empty()) return HookCaller{peer.agent_node};
  return absl::PermissionDeniedError(
      absl::StrCat("user ", peer.requester.name,
                   " may not speak for the scheduler: prolog and epilog run as root, or use the "
                   "certificate of their node's agent"));
}

grpc::ServerUnaryReactor* HookCalls::Answer(Context* context, const v1::HookRequest* request,
                                            v1::HookResponse* response, Ask ask) {
  Reactor* reactor = context->DefaultReactor();
  TakeOver();
  const absl::StatusOr<Peer> peer = peer_(*context);
  const absl::StatusOr<HookCaller> caller =
      peer.ok() ? HookCallerOf(*peer) : absl::StatusOr<HookCaller>(peer.status());
  if (!caller.ok()) {
    reactor->Finish(ToRpc(caller.status()));
    return reactor;
  }
  // Request and response stay valid until Finish, also when the client has gone.
  const auto answer = [this, request, response, ask, caller = *caller]() -> absl::Status {
    ASSIGN_OR_RETURN(const HookJob job, wire::FromProto(request->job()));
    ASSIGN_OR_RETURN(const HookAnswer got, (shared_.pipeline.hooks().*ask)(caller, job));
    *response = wire::ToProto(got);
    return absl::OkStatus();
  };
  const auto work = [this, reactor, answer, begun = absl::Now()] {
    const absl::Status status = answer();
    shared_.pipeline.hooks().Took(absl::ToDoubleSeconds(absl::Now() - begun));
    reactor->Finish(ToRpc(status));
  };
  const auto decline = [this, reactor] {
    reactor->Finish(NotTaken(shared_.hooks, "too many jobs begin or end at once"));
  };
  if (!shared_.hooks.Post(work, decline)) decline();
  return reactor;
}

grpc::ServerUnaryReactor* HookCalls::Begin(Context* context, const v1::HookRequest* request,
                                           v1::HookResponse* response) {
  return Answer(context, request, response, &JobAdmission::Begin);
}

grpc::ServerUnaryReactor* HookCalls::End(Context* context, const v1::HookRequest* request,
                                         v1::HookResponse* response) {
  return Answer(context, request, response, &JobAdmission::End);
}

grpc::ServerUnaryReactor* HookCalls::List(Context* context, const v1::HookListRequest* request,
                                          v1::HookListResponse* response) {
  TakeOver();
  absl::StatusOr<Peer> peer = peer_(*context);
  if (peer.ok() && !peer->person)
    peer = absl::PermissionDeniedError("an agent's certificate may not be used to ask questions");
  return AnswerQuestion(shared_, *context, peer, *response,
                        [this, request, response](const Requester& requester) -> absl::Status {
                          ASSIGN_OR_RETURN(
                              const HookOverview overview,
                              shared_.pipeline.hooks().List(requester, request->limit()));
                          *response = wire::ToProto(overview);
                          return absl::OkStatus();
                        });
}

}  // namespace perfd::daemon
