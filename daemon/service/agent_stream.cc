#include "daemon/service/agent_stream.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/wire/lease_wire.h"
#include "core/wire/node_wire.h"
#include "core/wire/weight/message_weight.h"
#include "daemon/service/agent_codec.h"
#include "daemon/service/rpc_status.h"

namespace perfd::daemon {
namespace {

constexpr int kHeartbeatMs = 5000;
constexpr size_t kMaxSequencesPerMessage = 1024;

constexpr size_t kMostWeight =
    160 << 20;  // of a user's message: more than 16 MiB of an agent's windows

absl::Status CheckWeight(const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer copy(bytes);
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok() ||
      wire::MessageWeight(reader, *v1::AgentMessage::descriptor(), kMostWeight) <= kMostWeight)
    return absl::OkStatus();  // or Parse says what is wrong
  return absl::InvalidArgumentError(absl::StrCat(
      "a message of ", bytes.Length(), " bytes would take more than ", kMostWeight >> 20, " MiB"));
}

absl::Status Parse(const grpc::ByteBuffer& bytes, v1::AgentMessage& message) {
  if (bytes.Length() > AgentStream::kMaxMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a message of ", bytes.Length(),
                                                     " bytes is over the limit of ",
                                                     AgentStream::kMaxMessageBytes));
  }
  grpc::ByteBuffer copy(bytes);  // shares the slices
  grpc::ProtoBufferReader reader(&copy);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return absl::InvalidArgumentError("a message from the agent cannot be parsed");
}

grpc::ByteBuffer Serialise(const v1::DaemonMessage& message) {
  const std::string bytes = message.SerializeAsString();
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Who answers for what its agent sends.
ProfileHolder HolderOfPeer(const Peer& peer) {
  return peer.full_agent ? kSite : HolderOf(peer.requester);
}

// Whoever may connect may be refused as often as they like. The name: of a certificate, or of the user.
void RecordEnd(const Peer& peer, const absl::Status& why, PeerLog& log) {
  const std::string whose = absl::StrCat(peer.requester.name, ", uid ", peer.requester.uid);
  if (const auto more = log.Next(whose, SystemClock().MonotonicNs()); more.has_value())
    LogWarning("an agent's stream ends: {} ({}){}", Text(why), whose, LeftOutText(*more));
}

}  // namespace

std::shared_ptr<AgentStream> AgentStream::Begin(absl::StatusOr<Peer> peer, Pipeline& pipeline,
                                                Worker& pump) {
  std::shared_ptr<AgentStream> stream(new AgentStream(pipeline, pump));
  MutexLock lock(&stream->mutex_);
  stream->self_ = stream;
  stream->last_heard_ns_ = SystemClock().MonotonicNs();
  if (peer.ok()) {
    stream->peer_ = *std::move(peer);
  } else {
    stream->end_ = peer.status();
  }
  stream->SchedulePump();
  return stream;
}

void AgentStream::SchedulePump() {
  if (pumping_ || finished_) return;
  pumping_ = pump_.Post([self = shared_from_this()] { self->Pump(); });
  if (!pumping_) LogError("an agent stream cannot go on: the pump's queue is full");
}

void AgentStream::Pump() {
  bool read = false;
  bool write = false;
  std::optional<absl::Status> end;
  {
    MutexLock lock(&mutex_);
    pumping_ = false;
    if (finished_) return;
    v1::DaemonMessage message;
    if (end_.has_value() && !writing_) {
      finished_ = true;
      end = end_;
    } else if (!end_.has_value() && !writing_ && NextMessage(message)) {
      write = writing_ = true;
      write_buffer_ = Serialise(message);
    }
    read = MayRead();
    if (read) want_read_ = false;
  }
  // Outside the lock: the callbacks of these may run before they return.
  if (read) StartRead(&read_buffer_);
  if (write) StartWrite(&write_buffer_);
  if (end.has_value()) Finish(ToRpc(*end));
}

bool AgentStream::MayRead() {
  if (!want_read_ || end_.has_value() || parked_ || unacknowledged_ >= kMaxUnacknowledged)
    return false;
  // Only a stream that has registered can bring windows.
  if (connection_ == 0) return true;
  parked_ = pipeline_.AwaitRoom(HolderOfPeer(peer_), [self = shared_from_this()] {
    MutexLock lock(&self->mutex_);
    self->parked_ = false;
    self->last_heard_ns_ = SystemClock().MonotonicNs();
    self->SchedulePump();
  });
  return !parked_;
}

bool AgentStream::NextMessage(v1::DaemonMessage& message) {
  if (!outbox_.empty()) {
    message = std::move(outbox_.front());
    outbox_.pop_front();
    return true;
  }
  if (acknowledged_.empty()) return false;
  v1::Acknowledge& acknowledge = *message.mutable_acknowledge();
  acknowledge.set_stream_id(stream_id_);
  const size_t count = std::min(acknowledged_.size(), kMaxSequencesPerMessage);
  acknowledge.mutable_sequences()->Add(acknowledged_.begin(),
                                       acknowledged_.begin() + static_cast<ptrdiff_t>(count));
  acknowledged_.erase(acknowledged_.begin(), acknowledged_.begin() + static_cast<ptrdiff_t>(count));
  return true;
}

void AgentStream::Send(v1::DaemonMessage message) {
  MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  if (outbox_.size() >= kMaxOutbox) {
    end_ = absl::AbortedError("the agent does not read its commands");
  } else {
    outbox_.push_back(std::move(message));
  }
  SchedulePump();
}

void AgentStream::Welcome(uint64_t stored_sequence) {
  v1::DaemonMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_version(kVersion);
  welcome.set_heartbeat_ms(kHeartbeatMs);
  welcome.set_unix_ns(SystemClock().UnixNs());
  welcome.set_stored_sequence(stored_sequence);
  Send(std::move(message));
}

void AgentStream::Start(const StartNode& command) {
  Send(ToMessage(command));
}

void AgentStream::Stop(const StopNode& command) {
  Send(ToMessage(command));
}

void AgentStream::Measure(const MeasureNode& command) {
  Send(ToMessage(command));
}

void AgentStream::AskClock(int64_t job_ns, const std::optional<ClockReading>& known) {
  v1::DaemonMessage message;
  message.mutable_clock()->set_sent_ns(job_ns);
  message.mutable_clock()->set_unix_ns(SystemClock().UnixNs());
  if (known.has_value()) *message.mutable_clock()->mutable_reading() = wire::ToProto(*known);
  Send(std::move(message));
}

void AgentStream::Charge(const ChargeNode& command) {
  Send(ToMessage(command));
}

void AgentStream::AskDoctor(uint64_t request_id) {
  v1::DaemonMessage message;
  message.mutable_doctor()->set_request_id(request_id);
  Send(std::move(message));
}

void AgentStream::Close(const absl::Status& reason) {
  MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  end_ = reason;
  SchedulePump();
}

void AgentStream::Check(TlsGate& tls, int64_t now_ns) {
  int64_t heard_ns = 0;
  bool registered = false;
  {
    MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    // While we do not read, its silence is our doing.
    const bool read = !parked_ && unacknowledged_ < kMaxUnacknowledged;
    heard_ns = read ? last_heard_ns_ : now_ns;
    registered = connection_ != 0;
  }
  if (const absl::Status holds = tls.Recheck(peer_.certificate.get()); !holds.ok()) {
    RecordEnd(peer_, holds, pipeline_.peer_log());
    return Close(holds);
  }
  if (absl::Nanoseconds(now_ns - heard_ns) < (registered ? kSilence : kRegisterWithin)) return;
  Close(absl::DeadlineExceededError(registered ? "no heartbeat for 90 s"
                                               : "no Register message within 10 s"));
}

bool AgentStream::done() {
  MutexLock lock(&mutex_);
  return self_ == nullptr;
}

void AgentStream::OnReadDone(bool ok) {
  if (!ok) return Close(absl::OkStatus());  // the agent has closed its side, or is gone
  v1::AgentMessage message;
  absl::Status handled = peer_.full_agent ? absl::OkStatus() : CheckWeight(read_buffer_);
  if (handled.ok()) handled = Parse(read_buffer_, message);
  const bool readable = handled.ok();
  if (readable) handled = Handle(message);
  if (!handled.ok()) {
    if (!readable || absl::IsInvalidArgument(handled)) pipeline_.CountMalformed();
    RecordEnd(peer_, handled, pipeline_.peer_log());
    return Close(handled);
  }
  MutexLock lock(&mutex_);
  last_heard_ns_ = SystemClock().MonotonicNs();
  want_read_ = true;
  SchedulePump();
}

void AgentStream::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok && !end_.has_value()) end_ = absl::UnavailableError("the agent is gone");
  SchedulePump();
}

void AgentStream::OnCancel() {
  Close(absl::CancelledError("the agent is gone"));
}

void AgentStream::OnDone() {
  std::shared_ptr<AgentStream> self;
  uint64_t connection = 0;
  {
    MutexLock lock(&mutex_);
    self = std::move(self_);
    self_ = nullptr;
    connection = connection_;
  }
  if (connection != 0) pipeline_.AgentGone(connection);
}

absl::Status AgentStream::Handle(const v1::AgentMessage& message) {
  uint64_t connection = 0;
  {
    MutexLock lock(&mutex_);
    connection = connection_;
  }
  if (message.has_register_() != (connection == 0)) {
    return absl::InvalidArgumentError("the first message, and only the first, must be Register");
  }
  switch (message.kind_case()) {
    case v1::AgentMessage::kRegister:
      return HandleRegister(message.register_());
    case v1::AgentMessage::kHeartbeat:
      pipeline_.Heartbeat(connection, wire::FromProto(message.heartbeat()));
      return absl::OkStatus();
    case v1::AgentMessage::kSession: {
      ASSIGN_OR_RETURN(const SessionUpdate update, ToUpdate(message.session()));
      pipeline_.OnSessionUpdate(connection, update);
      return absl::OkStatus();
    }
    case v1::AgentMessage::kWindow:
      return HandleWindow(connection, message.window());
    case v1::AgentMessage::kDoctor: {
      ASSIGN_OR_RETURN(std::vector<DoctorCheck> checks, wire::FromProto(message.doctor().checks()));
      pipeline_.DoctorAnswer(connection, message.doctor().request_id(), std::move(checks));
      return absl::OkStatus();
    }
    case v1::AgentMessage::kClock:
      pipeline_.ClockAnswer(connection, message.clock().sent_ns(), message.clock().here_ns());
      return absl::OkStatus();
    case v1::AgentMessage::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an empty message, or one of a newer agent");
}

absl::Status AgentStream::HandleRegister(const v1::Register& message) {
  ASSIGN_OR_RETURN(AgentFacts facts, ToFacts(message, peer_));
  {
    MutexLock lock(&mutex_);
    stream_id_ = facts.stream_id;
  }
  ASSIGN_OR_RETURN(const uint64_t connection,
                   pipeline_.AgentConnected(std::move(facts), shared_from_this()));
  MutexLock lock(&mutex_);
  connection_ = connection;
  return absl::OkStatus();
}

absl::Status AgentStream::HandleWindow(uint64_t connection, const v1::Window& message) {
  absl::StatusOr<IncomingWindow> window = ToWindow(message);
  const uint64_t sequence = message.sequence();
  if (sequence == 0) return absl::InvalidArgumentError("a window without a sequence");
  {
    MutexLock lock(&mutex_);
    ++unacknowledged_;
  }
  auto settled = [self = shared_from_this(), sequence](const absl::Status& status) {
    self->Settled(sequence, status);
  };
  if (window.ok()) {
    window->sender = HolderOfPeer(peer_);
    pipeline_.AcceptWindow(connection, *std::move(window), std::move(settled));
  } else {
    pipeline_.RefuseWindow(connection, HolderOfPeer(peer_), message.profile_id(), sequence,
                           window.status(), std::move(settled));
  }
  return absl::OkStatus();
}

void AgentStream::Settled(uint64_t sequence, const absl::Status& status) {
  MutexLock lock(&mutex_);
  --unacknowledged_;
  if (status.ok()) {
    acknowledged_.push_back(sequence);
  } else if (!end_.has_value()) {
    end_ = absl::UnavailableError(
        absl::StrCat("window ", sequence, " is not stored: ", status.message()));
    RecordEnd(peer_, *end_, pipeline_.peer_log());
  }
  SchedulePump();
}

}  // namespace perfd::daemon
