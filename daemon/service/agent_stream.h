// daemon/service/agent_stream.h - one agent's stream: reads its messages, writes commands and acknowledgements.
//
// Shape    a reactor without a thread. Everything that starts an operation (read, write, finish) does so in Pump, on
//          the pump worker, because gRPC may call back on the very thread that starts an operation.
// Limits   kMaxUnacknowledged windows are read ahead of their commits: then reading stops, and with it the agent.
//          The same when the daemon has too many windows of all agents under way.
//          kMaxOutbox commands may wait; an agent that does not read them is cut off.
// Errors   kInvalidArgument (a message that makes no sense) and kResourceExhausted (one over kMaxMessageBytes) blame
//          the message: logged and counted; the agent gives such a window up in the end. With any other code it comes
//          back with its windows. A window that is refused does not end the stream.
// Threads  thread-safe.
#ifndef DAEMON_SERVICE_AGENT_STREAM_H_
#define DAEMON_SERVICE_AGENT_STREAM_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "daemon/ingest/worker.h"
#include "daemon/pipeline/agent_link.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/identity.h"
#include "daemon/tls/tls_gate.h"
#include "perfd/v1/agent.pb.h"

namespace perfd::daemon {

class AgentStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public AgentLink,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  static constexpr uint64_t kMaxUnacknowledged = 64;
  static constexpr size_t kMaxMessageBytes = 16 << 20;
  static constexpr size_t kMaxOutbox = 4096;
  static constexpr absl::Duration kRegisterWithin = absl::Seconds(10);
  static constexpr absl::Duration kSilence =
      absl::Seconds(90);  // heartbeats come every few seconds

  // The stream keeps itself alive until gRPC is done with it, and is shared with the pipeline beyond that.
  static std::shared_ptr<AgentStream> Begin(absl::StatusOr<Peer> peer, Pipeline& pipeline,
                                            Worker& pump);

  void Welcome(uint64_t stored_sequence) override;
  void Start(const StartNode& command) override;
  void Stop(const StopNode& command) override;
  void Measure(const MeasureNode& command) override;
  void AskClock(int64_t job_ns, const std::optional<ClockReading>& known) override;
  void Charge(const ChargeNode& command) override;
  void AskDoctor(uint64_t request_id) override;
  void Close(const absl::Status& reason) override;

  // Ends a stream that never registered, has gone silent, or whose certificate does not hold any more.
  void Check(TlsGate& tls, int64_t now_ns);
  bool done();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AgentStream(Pipeline& pipeline, Worker& pump) : pipeline_(pipeline), pump_(pump) {}

  void Send(v1::DaemonMessage message);
  void SchedulePump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump();
  bool NextMessage(v1::DaemonMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Handle(const v1::AgentMessage& message);
  absl::Status HandleRegister(const v1::Register& message);
  absl::Status HandleWindow(uint64_t connection, const v1::Window& message);
  void Settled(uint64_t sequence, const absl::Status& status);
  bool MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Pipeline& pipeline_;
  Worker& pump_;
  Peer peer_;
  grpc::ByteBuffer read_buffer_;
  grpc::ByteBuffer write_buffer_;

  Mutex mutex_;
  std::shared_ptr<AgentStream> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  std::deque<v1::DaemonMessage> outbox_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> acknowledged_ ABSL_GUARDED_BY(mutex_);  // to be told
  std::string stream_id_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  int64_t last_heard_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // monotonic
  uint64_t connection_ ABSL_GUARDED_BY(mutex_) = 0;    // 0: not registered
  uint64_t unacknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool want_read_ ABSL_GUARDED_BY(mutex_) = true;
  bool parked_ ABSL_GUARDED_BY(mutex_) = false;  // waits for room in the daemon before it reads on
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;  // a Pump is scheduled
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_AGENT_STREAM_H_
