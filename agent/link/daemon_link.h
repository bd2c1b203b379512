// agent/link/daemon_link.h - the one stream to the daemon: news and windows up, commands down, for
//                            ever reconnecting.
//
// Shape    Start() begins; SendUpdate and WindowReady wake it; Handler gets the commands. Windows go
//          out of the spool in order, at most kMaxUnacknowledged ahead of the daemon's
//          acknowledgements, and again after a reconnect.
// Errors   logged and retried with growing pauses (0.2 s to 5 s); the reason is logged once while
//          it stays the same. A window for which the daemon ends the stream again and again is set
//          aside (refused_windows.h).
// Threads  SendUpdate and WindowReady are thread-safe. Handler is called from the link's reading
//          thread.
// Safety   a unix daemon must run as root, as us, or as --daemon-uid (core/dial); commands come
//          from no one else.
#ifndef AGENT_LINK_DAEMON_LINK_H_
#define AGENT_LINK_DAEMON_LINK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent/doctor/node_checks.h"
#include "agent/link/daemon_clock.h"
#include "agent/link/refused_windows.h"
#include "agent/link/spool.h"
#include "agent/pipeline/session_update.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/dial/dial.h"
#include "core/dial/dial_settings.h"
#include "core/model/measure_order.h"
#include "core/model/node.h"
#include "perfd/v1/agent.grpc.pb.h"

namespace perfd::agent {

// Who this agent is; sent first.
struct AgentIdentity {
  std::string node;
  std::string sampling_event;
  std::string kernel;
  std::string boot_id;
  int32_t cpus = 0;
  uint32_t uid = 0;
  bool user_mode = false;
  bool replayed = false;  // shows a recording
};

class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  virtual void OnStart(SessionRequest request) = 0;
  virtual void OnStop(const std::string& profile_id) = 0;
  virtual void OnMeasure(MeasureOrder order) = 0;
  // What the daemon knows of this node's clock, and how the pauses of a lease have turned out.
  virtual void OnClock(const ClockReading& /*reading*/) {}
  virtual void OnLease(const std::string& /*profile_id*/, double /*charge*/) {}
  virtual std::vector<NodeCheck> OnDoctor() = 0;
  virtual AgentHealth Health() = 0;  // all but the spool
  // Sessions that run or ended lately: told again to a daemon that may not have heard.
  virtual std::vector<SessionUpdate> LatestUpdate() = 0;
};

class DaemonLink {
 public:
  static constexpr uint64_t kMaxUnacknowledged = 32;

  DaemonLink(DialOptions dial, AgentIdentity identity, Spool& spool, LinkHandler& handler);
  ~DaemonLink();

  void Start();
  // Ends the stream and its threads; no handler call comes after. The destructor does it too.
  void Stop();
  void SendUpdate(const SessionUpdate& update);
  void WindowReady();
  // What the next connection is made with. Thread-safe.
  DialSettings& dial() { return dial_; }
  // Waits until every window is acknowledged and the news are written; false at the timeout with
  // windows left.
  bool AwaitDrained(absl::Duration timeout);
  bool connected() const { return connected_; }
  // The highest sequence of our stream that the daemon had when it greeted us: what its commands
  // take into account.
  uint64_t stored_sequence() const { return stored_sequence_; }
  // How far the wall clock of this node is ahead of the daemon's; 0: they agree.
  int64_t clock_ahead_ns() const { return daemon_clock_.AheadNs(); }

 private:
  using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>;
  struct Connection;

  void Run();
  absl::Status Converse();
  absl::Status Greet(Connection& connection);
  absl::Status Write(Connection& connection);
  void Read(Connection& connection);
  void RecordEnd(const absl::Status& why);
  bool RoomAhead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelUnlessEnded(Connection& connection, const absl::Status& status);
  void OnMessage(const v1::DaemonMessage& message);
  void OnOrder(absl::StatusOr<MeasureOrder> order, bool dry_run);
  void OnProbe(const v1::ClockProbe& probe);
  v1::AgentMessage HeartbeatMessage();
  bool UpdateUnderWay();
  bool Wakeup() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DialSettings dial_;
  const AgentIdentity identity_;
  const std::string instance_id_;
  Spool& spool_;
  LinkHandler& handler_;
  const SystemClock clock_;
  DaemonClock daemon_clock_{clock_};
  std::atomic<bool> connected_ = false;
  std::atomic<uint64_t> stored_sequence_ = 0;

  Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;   // the reading side has ended
  bool windows_ ABSL_GUARDED_BY(mutex_) = false;  // something new in the spool, or room again
  std::vector<v1::AgentMessage> outbox_ ABSL_GUARDED_BY(mutex_);  // news; bounded, see kMaxOutbox
  bool writing_update_ ABSL_GUARDED_BY(mutex_) = false;           // taken out of the outbox
  int64_t update_written_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t unacknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // highest written on this connection
  RefusedWindows refused_ ABSL_GUARDED_BY(mutex_);
  int heartbeat_ms_ ABSL_GUARDED_BY(mutex_) = 5000;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) =
      nullptr;  // of the live stream, to cancel it
  std::thread thread_;
};

}  // namespace perfd::agent

#endif  // AGENT_LINK_DAEMON_LINK_H_
