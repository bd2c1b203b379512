// daemon/metrics/metrics_server.h - /metrics over HTTP, from a snapshot that is refreshed every few seconds.
//
// Shape    Create listens; Serve begins to refresh. A scrape only copies the last snapshot.
// Errors   Create: kUnavailable when the address is taken, kInvalidArgument when it is none.
// Threads  thread-safe. Own threads: two HTTP workers, perfd-metrics.
#ifndef DAEMON_METRICS_METRICS_SERVER_H_
#define DAEMON_METRICS_METRICS_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/metrics/figures.h"

namespace perfd {

class MetricsServer {
 public:
  // "HOST:PORT"; port 0: any free one.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Create(const std::string& address);
  ~MetricsServer();

  void Serve(std::function<DaemonFigures()> figures);
  // Figures are asked for no more.
  void Stop();
  const std::string& address() const { return address_; }

  void ObserveCommit(double seconds);
  void ObserveAttach(double seconds);
  void ObserveStop(double seconds);

 private:
  struct Parts;
  MetricsServer();

  std::string address_;
  std::unique_ptr<Parts> parts_;  // everything that knows prometheus-cpp
};

}  // namespace perfd

#endif  // DAEMON_METRICS_METRICS_SERVER_H_
