#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/wire/check/check.h"
#include "core/wire/history_wire.h"
#include "core/wire/node_wire.h"
#include "core/wire/site/limit_wire.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"
#include "daemon/service/call_services.h"
#include "daemon/service/placed_answer.h"
#include "daemon/service/rpc_status.h"

namespace perfd::daemon {

absl::StatusOr<Peer> ProfilerCalls::Person(const Context& context, const Message& request,
                                           size_t most_bytes) const {
  TakeOver();
  ASSIGN_OR_RETURN(Peer peer, peer_(context));
  if (request.ByteSizeLong() > most_bytes)
    return absl::ResourceExhaustedError(absl::StrCat("a request of ", request.ByteSizeLong(),
                                                     " bytes is over the limit of ", most_bytes));
  if (peer.person) return peer;
  return absl::PermissionDeniedError("an agent's certificate may not be used to ask questions");
}

grpc::ServerUnaryReactor* AnswerQuestion(ServiceShared& shared,
                                         grpc::CallbackServerContext& context,
                                         const absl::StatusOr<Peer>& peer,
                                         google::protobuf::MessageLite& response,
                                         std::function<absl::Status(const Requester&)> answer) {
  absl::StatusOr<Share> place =
      peer.ok() ? shared.limits.Acquire(Limit::kQuestionsPerUser, peer->requester)
                : absl::StatusOr<Share>(peer.status());
  if (!place.ok()) {
    grpc::ServerUnaryReactor* refusal = context.DefaultReactor();
    refusal->Finish(ToRpc(place.status()));
    return refusal;
  }
  auto* reactor = new PlacedAnswer(shared.limits, response);
  reactor->Hold(*std::move(place));
  // Request and response stay valid until Finish, also when the client has gone.
  const auto decline = [&shared, reactor] {
    reactor->Finish(NotTaken(shared.queries, "the daemon is busy: try again"));
  };
  const bool queued = shared.queries.Post(
      [reactor, answer = std::move(answer), requester = peer->requester] {
        reactor->Send(requester, answer(requester));
      },
      decline, HolderOf(peer->requester));
  if (!queued) decline();
  return reactor;
}

grpc::ServerUnaryReactor* ProfilerCalls::Answer(
    Context* context, const Message& asked, Message& response,
    std::function<absl::Status(const Requester&)> answer, size_t most_bytes) {
  return AnswerQuestion(shared_, *context, Person(*context, asked, most_bytes), response,
                        std::move(answer));
}

grpc::ServerUnaryReactor* ProfilerCalls::Submit(Context* context, const v1::SubmitRequest* request,
                                                v1::SubmitResponse* response) {
  return Answer(
      context, *request, *response,
      [this, request, response](const Requester& requester) -> absl::Status {
        if (request->protocol_version() != kProtocolVersion) {
          return absl::FailedPreconditionError(absl::StrCat(
              "the client speaks protocol ", request->protocol_version(), ", this perfd (",
              kVersion, ") speaks ", kProtocolVersion, ": install the same version on both"));
        }
        perfd::daemon::SubmitRequest submit;
        ASSIGN_OR_RETURN(submit.spec, wire::FromProto(request->spec()));
        submit.requester = requester;
        submit.client_node = request->client_node();
        ASSIGN_OR_RETURN(const ProfileStatus status, shared_.pipeline.Submit(submit));
        *response->mutable_status() = wire::ToProto(status);
        return absl::OkStatus();
      },
      kMostSubmitBytes);
}

grpc::ServerUnaryReactor* ProfilerCalls::GetProfile(Context* context,
                                                    const v1::GetProfileRequest* request,
                                                    v1::ProfileStatus* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(const ProfileStatus status,
                                   shared_.pipeline.Get(requester, request->id()));
                  *response = wire::ToProto(status);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::ListProfiles(Context* context,
                                                      const v1::ListProfilesRequest* request,
                                                      v1::ListProfilesResponse* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(
                      const std::vector<ProfileStatus> profiles,
                      shared_.pipeline.List(requester, request->active_only(), request->limit()));
                  for (const ProfileStatus& status : profiles)
                    *response->add_profiles() = wire::ToProto(status);
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::WatchEvent>* ProfilerCalls::Watch(Context* context,
                                                               const v1::WatchRequest* request) {
  return shared_.watches.Begin(Person(*context, *request), request->id(), request->top_loops());
}

grpc::ServerUnaryReactor* ProfilerCalls::GetReport(Context* context,
                                                   const v1::GetReportRequest* request,
                                                   v1::Report* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(const Report report,
                                   shared_.pipeline.GetReport(requester, request->id()));
                  *response = wire::ToProto(report);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::Cancel(Context* context, const v1::CancelRequest* request,
                                                v1::ProfileStatus* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(const ProfileStatus status,
                                   shared_.pipeline.Cancel(requester, request->id()));
                  *response = wire::ToProto(status);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::ListAudit(Context* context,
                                                   const v1::ListAuditRequest* request,
                                                   v1::ListAuditResponse* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(
                      const std::vector<AuditEntry> entries,
                      shared_.pipeline.Audit(requester, request->id(), request->limit()));
                  for (const AuditEntry& entry : entries)
                    *response->add_entries() = wire::ToProto(entry);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::ListNodes(Context* context,
                                                   const v1::ListNodesRequest* request,
                                                   v1::ListNodesResponse* response) {
  return Answer(context, *request, *response, [this, response](const Requester&) -> absl::Status {
    for (const NodeStatus& node : shared_.pipeline.Nodes())
      *response->add_nodes() = wire::ToProto(node);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* ProfilerCalls::Doctor(Context* context, const v1::DoctorRequest* request,
                                                v1::DoctorResponse* response) {
  auto* reactor = new PlacedAnswer(shared_.limits, *response);
  const auto begin = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Peer peer, Person(*context, *request));
    ASSIGN_OR_RETURN(Share place, shared_.limits.Acquire(Limit::kQuestionsPerUser, peer.requester));
    reactor->Hold(std::move(place));
    return shared_.pipeline.Doctor(
        peer.requester, request->node(),
        [reactor, response, requester = peer.requester](const std::vector<DoctorReport>& reports) {
          for (const DoctorReport& report : reports) {
            v1::DoctorReport& out = *response->add_reports();
            out.set_place(report.place);
            out.set_source(wire::WireEnum<v1::DoctorSource>(report.source));
            out.set_uid(report.uid);
            wire::ToProto(report.checks, *out.mutable_checks());
          }
          reactor->Send(requester, absl::OkStatus());
        });
  };
  if (const absl::Status begun = begin(); !begun.ok()) reactor->Finish(ToRpc(begun));
  return reactor;
}

grpc::ServerUnaryReactor* ProfilerCalls::GetReportUrl(Context* context,
                                                      const v1::ReportUrlRequest* request,
                                                      v1::ReportUrlResponse* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(const std::string url,
                                   shared_.pipeline.ReportUrl(requester, request->id()));
                  response->set_url(url);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::GetHistory(Context* context,
                                                    const v1::HistoryRequest* request,
                                                    v1::HistoryResponse* response) {
  return Answer(context, *request, *response,
                [this, request, response](const Requester& requester) -> absl::Status {
                  ASSIGN_OR_RETURN(const ProgramHistory history,
                                   shared_.pipeline.History(
                                       requester, request->command().substr(0, kMaxHistoryText),
                                       request->limit()));
                  *response = wire::ToProto(history);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ProfilerCalls::ListLimits(Context* context,
                                                    const v1::ListLimitsRequest* request,
                                                    v1::ListLimitsResponse* response) {
  const absl::StatusOr<Peer> peer = peer_(*context);
  const bool full_agent = peer.ok() && peer->full_agent;
  return Answer(context, *request, *response,
                [this, response, full_agent](const Requester& requester) -> absl::Status {
                  *response = wire::ToProto(
                      shared_.limits.UsesOf(requester, SystemClock().UnixNs(), full_agent));
                  return absl::OkStatus();
                });
}

// Also for an agent's certificate.
grpc::ServerUnaryReactor* ProfilerCalls::GetVersion(Context* context, const v1::GetVersionRequest*,
                                                    v1::GetVersionResponse* response) {
  response->set_version(kVersion);
  response->set_protocol_version(kProtocolVersion);
  Reactor* reactor = context->DefaultReactor();
  TakeOver();
  reactor->Finish(ToRpc(peer_(*context).status()));
  return reactor;
}

}  // namespace perfd::daemon
