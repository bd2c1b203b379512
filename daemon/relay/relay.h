// daemon/relay/relay.h - stands between the users' connections and gRPC, and lets in what has room.
//
// Shape    Carry takes a client's connection and gives gRPC another one in its place, over which the same bytes go.
// Why      gRPC 1.51 bounds what it receives by a memory quota only, and under that may use a connection that it has destroyed, which
//          ends the process (docs/adr/0046). Without a quota it has no bound on messages that are not complete.
// Limits   daemon/relay/relayed_connection.h.
// Errors   Carry: kUnavailable without descriptors, or after Close. Who breaks a rule of RequestMeter is in the log, a line a second.
// Threads  thread-safe. Own thread: perfd-relay, which is_trusted is called on.
// Source   epoll(7), edge-triggered; unix(7).
#ifndef DAEMON_RELAY_RELAY_H_
#define DAEMON_RELAY_RELAY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "daemon/limits/limits.h"
#include "daemon/relay/due_connections.h"
#include "daemon/relay/relayed_connection.h"

namespace perfd::daemon {

class Relay {
 public:
  // `limits` outlives it.
  Relay(Limits& limits, RelayRules rules);
  ~Relay() { Close(absl::ZeroDuration()); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  absl::StatusOr<UniqueFd> Carry(UniqueFd client, uint32_t uid);
  // Gives on what gRPC has said, until it has ended every connection or the time is over, and ends the rest.
  void Close(absl::Duration within);

 private:
  void Run();
  void TakeArrivals();
  void Wait();
  void MoveAll();
  void Move(uint64_t number, int64_t now_ns);
  // Whether there is anything left to wait for.
  bool IsOpen();
  void LogClosed(uint32_t uid, const absl::Status& why);

  UniqueFd events_;  // epoll
  UniqueFd wake_;    // eventfd
  Mutex mutex_;
  std::vector<std::unique_ptr<RelayedConnection>> arrivals_ ABSL_GUARDED_BY(mutex_);
  std::optional<int64_t> close_by_ns_ ABSL_GUARDED_BY(mutex_);
  // The thread's own.
  RelayShared shared_;
  uint64_t newest_ = 0;
  std::map<uint64_t, std::unique_ptr<RelayedConnection>> connections_;
  DueConnections due_;
  RareLog closed_;
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_RELAY_H_
