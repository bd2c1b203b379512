// client/rpc/watch_stream.h - one Watch call, read with a bound on every wait.
#ifndef CLIENT_RPC_WATCH_STREAM_H_
#define CLIENT_RPC_WATCH_STREAM_H_

#include <functional>
#include <string>

#include "client/rpc/daemon_client.h"
#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd::client {

struct WatchStreamRequest {
  std::string id;
  int top_loops = 10;
  std::function<absl::Status()> keep_going;  // asked every 100 ms; an error ends the stream with it
};

// Reads events until the stream ends. OK: the last event had a final state. kUnavailable: the daemon went away, ended
// the stream early or was silent for 15 s.
absl::Status ReadWatchStream(v1::Profiler::Stub& stub, const WatchStreamRequest& request,
                             const std::function<void(const WatchEvent&)>& on_event,
                             const std::string& address);

}  // namespace perfd::client

#endif  // CLIENT_RPC_WATCH_STREAM_H_
