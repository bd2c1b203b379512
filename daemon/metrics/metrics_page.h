// daemon/metrics/metrics_page.h - the text of /metrics, from a snapshot that is refreshed every few seconds.
//
// Shape    Serve begins to refresh; Text is the last snapshot with the histograms as they are now.
// Threads  thread-safe. Own thread: perfd-metrics.
// Source   Prometheus "Text-based format" 0.0.4.
#ifndef DAEMON_METRICS_METRICS_PAGE_H_
#define DAEMON_METRICS_METRICS_PAGE_H_

#include <functional>
#include <memory>
#include <string>

#include "daemon/metrics/figures.h"

namespace perfd::daemon {

class MetricsPage {
 public:
  MetricsPage();
  ~MetricsPage();
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  void Serve(std::function<DaemonFigures()> figures);
  // Figures are asked for no more.
  void Stop();
  std::string Text() const;

  void ObserveCommit(double seconds);
  void ObserveAttach(double seconds);
  void ObserveStop(double seconds);
  void ObserveHook(double seconds);

 private:
  struct Parts;

  std::unique_ptr<Parts> parts_;  // everything that knows prometheus-cpp
};

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_METRICS_PAGE_H_
