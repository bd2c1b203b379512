// daemon/service/watch_streams.h - everyone who follows a profile: one thread looks and tells them what changed.
//
// Shape    an event at every change of state, notices or windows, and each second; the last one ends the call, and so
//          does a certificate that does not hold any more.
// Limits   Limit::kWatches and kWatchesPerUser.
// Threads  thread-safe. Own thread: perfd-watch; it sleeps while nobody watches.
#ifndef DAEMON_SERVICE_WATCH_STREAMS_H_
#define DAEMON_SERVICE_WATCH_STREAMS_H_

#include <grpcpp/support/server_callback.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/limits/limits.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/identity.h"
#include "daemon/tls/tls_gate.h"
#include "perfd/v1/profiler.pb.h"

namespace perfd::daemon {

class WatchStreams {
 public:
  WatchStreams(Pipeline& pipeline, TlsGate& tls, Limits& limits);
  ~WatchStreams();

  grpc::ServerWriteReactor<v1::WatchEvent>* Begin(absl::StatusOr<Peer> peer, std::string id,
                                                  int32_t top_loops);
  // Ends every call, now and from now on.
  void End(const absl::Status& reason);

 private:
  class Stream;
  using Places = std::array<Share, 2>;  // of this user, and of all
  struct Standing {
    std::shared_ptr<Stream> stream;  // shared with gRPC
    Places places;
  };

  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !streams_.empty();
  }

  Pipeline& pipeline_;
  TlsGate& tls_;
  Limits& limits_;
  Mutex mutex_;
  std::vector<Standing> streams_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_WATCH_STREAMS_H_
