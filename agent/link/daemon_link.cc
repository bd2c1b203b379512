#include "agent/link/daemon_link.h"

#include <pthread.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/link/link_codec.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/wire/lease_wire.h"
#include "core/wire/node_wire.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxOutbox = 1024;
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
constexpr int64_t kUpdateGoneNs = 100 * kNsPerMs;

std::string RandomId() {
  std::random_device device;
  return absl::StrFormat("%08x%08x", device(), device());
}

}  // namespace

// One life of the stream.
struct DaemonLink::Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::AgentService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<Stream> stream;
};

DaemonLink::DaemonLink(DialOptions dial, AgentIdentity identity, Spool& spool, LinkHandler& handler)
    : dial_(std::move(dial)),
      identity_(std::move(identity)),
      instance_id_(RandomId()),
      spool_(spool),
      handler_(handler) {}

DaemonLink::~DaemonLink() {
  Stop();
}

void DaemonLink::Stop() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

void DaemonLink::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "perfd-link");
}

void DaemonLink::SendUpdate(const SessionUpdate& update) {
  v1::AgentMessage message;
  *message.mutable_session() = EncodeUpdate(update);
  MutexLock lock(&mutex_);
  if (!connected_) return;  // the latest news of each session is told again after connecting
  if (outbox_.size() < kMaxOutbox) outbox_.push_back(std::move(message));
}

void DaemonLink::WindowReady() {
  MutexLock lock(&mutex_);
  windows_ = true;
}

bool DaemonLink::AwaitDrained(absl::Duration timeout) {
  const int64_t end_ns = clock_.MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
  while ((spool_.windows() > 0 || UpdateUnderWay()) && clock_.MonotonicNs() < end_ns)
    absl::SleepFor(absl::Milliseconds(20));
  return spool_.windows() == 0;
}

// News are not acknowledged: they have a moment to get through before the stream may be cancelled.
bool DaemonLink::UpdateUnderWay() {
  MutexLock lock(&mutex_);
  return !outbox_.empty() || writing_update_ ||
         clock_.MonotonicNs() - update_written_ns_ < kUpdateGoneNs;
}

bool DaemonLink::Wakeup() const {
  return stop_ || broken_ || !outbox_.empty() || (windows_ && RoomAhead());
}

bool DaemonLink::RoomAhead() const {
  return unacknowledged_ < refused_.Ahead(sent_sequence_, kMaxUnacknowledged);
}

void DaemonLink::Run() {
  const std::string address = dial_.options().address;
  absl::Duration pause = kFirstPause;
  std::string last_error;
  while (true) {
    dial_.WarnOfExpiry(absl::Now());
    const int64_t began_ns = clock_.MonotonicNs();
    const absl::Status status = Converse();
    connected_ = false;
    MutexLock lock(&mutex_);
    if (stop_) return;
    const std::string error = Text(status);
    if (error != last_error) LogWarning("perfd at {}: {}; trying again", address, error);
    last_error = error;
    if (clock_.MonotonicNs() - began_ns > 10 * kNsPerSecond) pause = kFirstPause;
    mutex_.AwaitWithTimeout(absl::Condition(&stop_), pause);
    if (stop_) return;
    pause = std::min(pause * 2, kLongestPause);
  }
}

absl::Status DaemonLink::Converse() {
  Connection connection;
  const DialOptions dial = dial_.options();
  ASSIGN_OR_RETURN(connection.channel, Dial(dial));
  connection.stub = v1::AgentService::NewStub(connection.channel);
  connection.stream = connection.stub->Connect(&connection.context);
  {
    MutexLock lock(&mutex_);
    if (stop_) {
      connection.context.TryCancel();
    }
    context_ = &connection.context;
    broken_ = false;
    windows_ = true;
    unacknowledged_ = 0;
    sent_sequence_ = 0;
    outbox_.clear();
    writing_update_ = false;
  }
  absl::Status status = Greet(connection);
  if (status.ok()) {
    LogInfo("connected to perfd at {}", dial.address);
    for (const SessionUpdate& update : handler_.LatestUpdate()) SendUpdate(update);
    std::thread reader([&] { Read(connection); });
    pthread_setname_np(reader.native_handle(), "perfd-link-read");
    status = Write(connection);
    CancelUnlessEnded(connection, status);
    reader.join();
  } else {
    CancelUnlessEnded(connection, status);
  }
  {
    MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  const absl::Status finish = ToAbsl(connection.stream->Finish());
  RecordEnd(finish);
  return absl::IsCancelled(finish) || finish.ok() ? status : finish;
}

void DaemonLink::RecordEnd(const absl::Status& why) {
  const auto oldest = spool_.Next(0);
  std::optional<uint64_t> refused;
  {
    MutexLock lock(&mutex_);
    refused = refused_.Ended(why, {.oldest = oldest.has_value() ? oldest->sequence : 0,
                                   .sent = sent_sequence_,
                                   .stored = stored_sequence_});
  }
  if (!refused.has_value()) return;
  LogError("perfd has ended the stream again and again for window {} ({}): it is given up",
           *refused, Text(why));
  spool_.GiveUp(*refused);
}

// A stream that the daemon has ended carries its reason, and a cancel would take the place of that.
void DaemonLink::CancelUnlessEnded(Connection& connection, const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (stop_ || !absl::IsUnavailable(status)) connection.context.TryCancel();
}

absl::Status DaemonLink::Greet(Connection& connection) {
  v1::AgentMessage hello;
  v1::Register& reg = *hello.mutable_register_();
  reg.set_node(identity_.node);
  reg.set_version(kVersion);
  reg.set_protocol_version(kProtocolVersion);
  reg.set_stream_id(spool_.stream_id());
  reg.set_instance_id(instance_id_);
  reg.set_user_mode(identity_.user_mode);
  reg.set_replayed(identity_.replayed);
  reg.set_uid(identity_.uid);
  reg.set_cpus(identity_.cpus);
  reg.set_kernel(identity_.kernel);
  reg.set_sampling_event(identity_.sampling_event);
  reg.set_boot_id(identity_.boot_id);
  reg.set_pause_leases(true);
  reg.set_process_trees(true);
  reg.set_can_inject(handler_.Health().can_inject);
  std::set<std::string> active = spool_.profiles();
  for (const SessionUpdate& update : handler_.LatestUpdate()) {
    if (update.phase != NodeProgress::Phase::kFinished &&
        update.phase != NodeProgress::Phase::kFailed)
      active.insert(update.profile_id);
  }
  for (const std::string& id : active) reg.add_active_profiles(id);
  v1::DaemonMessage answer;
  if (!connection.stream->Write(hello) || !connection.stream->Read(&answer))
    return absl::UnavailableError("the daemon closed the stream");
  if (!answer.has_welcome())
    return absl::InternalError("the daemon did not greet; is it really perfd?");
  spool_.ContinueAfter(answer.welcome().stored_sequence());
  daemon_clock_.Welcomed(answer.welcome().unix_ns());
  if (const int64_t ahead_ns = daemon_clock_.AheadNs(); ahead_ns != 0)
    LogWarning(
        "this node's clock differs from the daemon's by {:.1f} s; its windows bear the daemon's "
        "time",
        static_cast<double>(ahead_ns) / static_cast<double>(kNsPerSecond));
  stored_sequence_ = answer.welcome().stored_sequence();
  MutexLock lock(&mutex_);
  heartbeat_ms_ = std::clamp(answer.welcome().heartbeat_ms(), 100, 60'000);
  connected_ = true;
  return absl::OkStatus();
}

v1::AgentMessage DaemonLink::HeartbeatMessage() {
  AgentHealth health = handler_.Health();
  health.spooled_windows = spool_.windows();
  health.spool_bytes = spool_.bytes();
  health.set_aside_windows = spool_.damaged();
  v1::AgentMessage message;
  *message.mutable_heartbeat() = wire::ToProto(health);
  return message;
}

absl::Status DaemonLink::Write(Connection& connection) {
  int64_t next_beat_ns = clock_.MonotonicNs();
  while (true) {
    std::vector<v1::AgentMessage> messages;
    bool send_windows = false;
    uint64_t sent = 0;
    {
      MutexLock lock(&mutex_);
      const int64_t wait_ns = std::max<int64_t>(0, next_beat_ns - clock_.MonotonicNs());
      mutex_.AwaitWithTimeout(absl::Condition(this, &DaemonLink::Wakeup),
                              absl::Nanoseconds(wait_ns));
      if (stop_ || broken_) return absl::UnavailableError("the stream has ended");
      messages = std::exchange(outbox_, {});
      writing_update_ = !messages.empty();
      send_windows = windows_ && RoomAhead();
      sent = sent_sequence_;
    }
    if (send_windows) {
      {
        MutexLock lock(&mutex_);
        windows_ = false;  // before looking: what comes while we look sets it again
      }
      // A window before the news that may call it the last one.
      auto window = spool_.Next(sent);
      v1::AgentMessage message;
      const bool sends =
          window.has_value() && message.mutable_window()->ParseFromString(window->bytes);
      if (sends) messages.insert(messages.begin(), std::move(message));
      MutexLock lock(&mutex_);
      if (sends) ++unacknowledged_;
      if (window.has_value()) {
        sent_sequence_ = window->sequence;
        windows_ = true;  // perhaps there is another
      }
    }
    if (clock_.MonotonicNs() >= next_beat_ns) {
      dial_.WarnOfExpiry(absl::Now());
      messages.push_back(HeartbeatMessage());
      MutexLock lock(&mutex_);
      next_beat_ns = clock_.MonotonicNs() + heartbeat_ms_ * kNsPerMs;
    }
    for (const v1::AgentMessage& message : messages) {
      if (!connection.stream->Write(message))
        return absl::UnavailableError("the daemon closed the stream");
    }
    MutexLock lock(&mutex_);
    if (std::exchange(writing_update_, false)) update_written_ns_ = clock_.MonotonicNs();
  }
}

void DaemonLink::Read(Connection& connection) {
  v1::DaemonMessage message;
  while (connection.stream->Read(&message)) OnMessage(message);
  MutexLock lock(&mutex_);
  broken_ = true;
}

void DaemonLink::OnOrder(absl::StatusOr<MeasureOrder> order, bool dry_run) {
  if (!order.ok()) {
    LogWarning("an order of perfd is not understood: {}", Text(order.status()));
    return;
  }
  order->dry_run |= dry_run;  // what would be too much is never done by mistake
  handler_.OnMeasure(*std::move(order));
}

// The clock is read here: what the answer waits for makes the reading less exact, not wrong.
void DaemonLink::OnProbe(const v1::ClockProbe& probe) {
  v1::AgentMessage answer;
  answer.mutable_clock()->set_sent_ns(probe.sent_ns());
  answer.mutable_clock()->set_here_ns(clock_.MonotonicNs());
  {
    MutexLock lock(&mutex_);
    if (outbox_.size() < kMaxOutbox) outbox_.push_back(std::move(answer));
  }
  // It may have been set right since the welcome.
  daemon_clock_.Told(probe.unix_ns());
  if (!probe.has_reading()) return;
  const absl::StatusOr<ClockReading> reading = wire::FromProto(probe.reading());
  if (reading.ok()) handler_.OnClock(*reading);
}

void DaemonLink::OnMessage(const v1::DaemonMessage& message) {
  switch (message.kind_case()) {
    case v1::DaemonMessage::kStart: {
      auto request = DecodeStart(message.start());
      if (request.ok())
        handler_.OnStart(std::move(request).value());
      else
        SendUpdate(FailedUpdate(message.start().profile_id(), identity_.node, request.status()));
      break;
    }
    case v1::DaemonMessage::kStop:
      handler_.OnStop(message.stop().profile_id());
      break;
    case v1::DaemonMessage::kMeasure:
      OnOrder(wire::FromProto(message.measure()), false);
      break;
    case v1::DaemonMessage::kRehearse:
      OnOrder(wire::FromProto(message.rehearse()), true);
      break;
    case v1::DaemonMessage::kAcknowledge: {
      if (message.acknowledge().stream_id() != spool_.stream_id()) break;
      for (uint64_t sequence : message.acknowledge().sequences()) spool_.Acknowledge(sequence);
      MutexLock lock(&mutex_);
      const auto count = static_cast<uint64_t>(message.acknowledge().sequences_size());
      unacknowledged_ -= std::min(unacknowledged_, count);
      windows_ = true;
      break;
    }
    case v1::DaemonMessage::kDoctor: {
      v1::AgentMessage answer;
      *answer.mutable_doctor() = EncodeDoctor(message.doctor().request_id(), handler_.OnDoctor());
      MutexLock lock(&mutex_);
      if (outbox_.size() < kMaxOutbox) outbox_.push_back(std::move(answer));
      break;
    }
    case v1::DaemonMessage::kClock:
      OnProbe(message.clock());
      break;
    case v1::DaemonMessage::kLease:
      handler_.OnLease(message.lease().profile_id(), message.lease().charge());
      break;
    case v1::DaemonMessage::kWelcome:
    case v1::DaemonMessage::KIND_NOT_SET:
      LogWarning("perfd sent a message of no use here (kind {})",
                 static_cast<int>(message.kind_case()));
      break;
  }
}

}  // namespace perfd::agent
