// daemon/service/call_services.h - the two gRPC services as seen by one kind of peer.
//
// Shape    one pair per server; what they share with all other pairs is in Shared.
// Threads  callback API: no thread per call. Questions that may take a while run on the query workers.
#ifndef DAEMON_SERVICE_CALL_SERVICES_H_
#define DAEMON_SERVICE_CALL_SERVICES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "daemon/ingest/worker.h"
#include "daemon/limits/limits.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/agent_stream.h"
#include "daemon/service/peer_source.h"
#include "daemon/service/watch_streams.h"
#include "daemon/tls/tls_gate.h"
#include "perfd/v1/agent.grpc.pb.h"
#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd::daemon {

// Open agent streams, to find those that have to end.
class StreamList {
 public:
  static constexpr size_t kMaxStreams = 65536;

  // False: too many.
  bool Add(std::shared_ptr<AgentStream> stream);
  // Ends the silent ones, and those whose certificate does not hold any more.
  void Check(TlsGate& tls);
  void CloseAll(const absl::Status& reason);

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<AgentStream>> streams_
      ABSL_GUARDED_BY(mutex_);  // shared with gRPC and the pipeline
};

// Outlives every server.
struct ServiceShared {
  ServiceShared(Pipeline& spine, TlsGate& gate, Limits& bounds)
      : pipeline(spine), tls(gate), limits(bounds), watches(spine, gate, bounds) {}

  Pipeline& pipeline;
  TlsGate& tls;
  Limits& limits;
  Worker pump{"perfd-pump", 1, 1 << 18};
  Worker queries{"perfd-query", 2, 256};
  Worker hooks{"perfd-hook", 1, 4096};  // in the order of their coming
  StreamList streams;
  WatchStreams watches;
};

// Runs `answer` on a query worker as the peer, within their limits; its status ends the call.
grpc::ServerUnaryReactor* AnswerQuestion(ServiceShared& shared,
                                         grpc::CallbackServerContext& context,
                                         const absl::StatusOr<Peer>& peer,
                                         google::protobuf::MessageLite& response,
                                         std::function<absl::Status(const Requester&)> answer);

class AgentCalls final
    : public v1::AgentService::WithRawCallbackMethod_Connect<v1::AgentService::Service> {
 public:
  AgentCalls(ServiceShared& shared, PeerSource peer) : shared_(shared), peer_(std::move(peer)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  ServiceShared& shared_;
  const PeerSource peer_;
};

class ProfilerCalls final : public v1::Profiler::CallbackService {
 public:
  ProfilerCalls(ServiceShared& shared, PeerSource peer) : shared_(shared), peer_(std::move(peer)) {}

  static constexpr size_t kMostQuestionBytes = 64 << 10;
  static constexpr size_t kMostSubmitBytes = 256 << 10;

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Submit(Context* context, const v1::SubmitRequest* request,
                  v1::SubmitResponse* response) override;
  Reactor* GetProfile(Context* context, const v1::GetProfileRequest* request,
                      v1::ProfileStatus* response) override;
  Reactor* ListProfiles(Context* context, const v1::ListProfilesRequest* request,
                        v1::ListProfilesResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchEvent>* Watch(Context* context,
                                                  const v1::WatchRequest* request) override;
  Reactor* GetReport(Context* context, const v1::GetReportRequest* request,
                     v1::Report* response) override;
  Reactor* Cancel(Context* context, const v1::CancelRequest* request,
                  v1::ProfileStatus* response) override;
  Reactor* ListAudit(Context* context, const v1::ListAuditRequest* request,
                     v1::ListAuditResponse* response) override;
  Reactor* ListNodes(Context* context, const v1::ListNodesRequest* request,
                     v1::ListNodesResponse* response) override;
  Reactor* Doctor(Context* context, const v1::DoctorRequest* request,
                  v1::DoctorResponse* response) override;
  Reactor* GetReportUrl(Context* context, const v1::ReportUrlRequest* request,
                        v1::ReportUrlResponse* response) override;
  Reactor* GetHistory(Context* context, const v1::HistoryRequest* request,
                      v1::HistoryResponse* response) override;
  Reactor* ListLimits(Context* context, const v1::ListLimitsRequest* request,
                      v1::ListLimitsResponse* response) override;
  Reactor* GetVersion(Context* context, const v1::GetVersionRequest* request,
                      v1::GetVersionResponse* response) override;

 private:
  using Message = google::protobuf::MessageLite;
  // Requests are kept until they are answered: gRPC alone would take 20 MiB of each.
  absl::StatusOr<Peer> Person(const Context& context, const Message& request,
                              size_t most_bytes = kMostQuestionBytes) const;
  Reactor* Answer(Context* context, const Message& asked, Message& response,
                  std::function<absl::Status(const Requester&)> answer,
                  size_t most_bytes = kMostQuestionBytes);

  ServiceShared& shared_;
  const PeerSource peer_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_CALL_SERVICES_H_
