#include "daemon/metrics/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <pthread.h>

#include <exception>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/metrics/exposition.h"

namespace perfd {
namespace {

constexpr absl::Duration kRefresh = absl::Seconds(3);
constexpr size_t kHttpThreads = 2;

// The last snapshot; a scrape copies it.
class Snapshot final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    absl::MutexLock lock(&mutex_);
    return families_;
  }
  void Set(std::vector<prometheus::MetricFamily> families) {
    absl::MutexLock lock(&mutex_);
    families_ = std::move(families);
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<prometheus::MetricFamily> families_ ABSL_GUARDED_BY(mutex_);
};

prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const char* name,
                                    const char* help,
                                    const prometheus::Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
}

prometheus::Gauge& AddGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

struct MetricsServer::Parts {
  // Shared with the exposer, which keeps weak references.
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::shared_ptr<Snapshot> snapshot = std::make_shared<Snapshot>();
  prometheus::Histogram& commit = AddHistogram(
      *registry, "perfd_store_commit_seconds", "Time of one group commit of the store.",
      {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5});
  prometheus::Histogram& attach = AddHistogram(*registry, "perfd_attach_seconds",
                                               "Time from an accepted request to its first sample.",
                                               {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30});
  prometheus::Histogram& stop =
      AddHistogram(*registry, "perfd_stop_seconds", "Time a rank stood still for one stop.",
                   {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1});
  prometheus::Gauge& snapshot_time =
      AddGauge(*registry, "perfd_snapshot_timestamp_seconds", "When this page was made.");
  prometheus::Gauge& window_time = AddGauge(*registry, "perfd_window_stored_timestamp_seconds",
                                            "When a page last showed newly stored windows.");
  uint64_t windows_shown = 0;  // of the thread that makes the page

  void Refresh(const DaemonFigures& figures);

  absl::Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread refresher;
  std::unique_ptr<prometheus::Exposer> exposer;
};

void MetricsServer::Parts::Refresh(const DaemonFigures& figures) {
  snapshot->Set(Expose(figures, ReadProcessFigures()));
  snapshot_time.SetToCurrentTime();
  if (figures.windows_stored > windows_shown) window_time.SetToCurrentTime();
  windows_shown = figures.windows_stored;
}

MetricsServer::MetricsServer() : parts_(std::make_unique<Parts>()) {}

MetricsServer::~MetricsServer() {
  Stop();
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen '", address, "' is not HOST:PORT"));
  }
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  Parts& parts = *server->parts_;
  try {
    parts.exposer = std::make_unique<prometheus::Exposer>(address, kHttpThreads);
    parts.exposer->RegisterCollectable(parts.snapshot);
    parts.exposer->RegisterCollectable(parts.registry);
    const std::vector<int> ports = parts.exposer->GetListeningPorts();
    server->address_ =
        absl::StrCat(address.substr(0, colon + 1), ports.empty() ? 0 : ports.front());
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics on ", address, ": ",
                                               error.what(), "; choose another --metrics-listen"));
  }
  return server;
}

void MetricsServer::Serve(std::function<DaemonFigures()> figures) {
  Parts& parts = *parts_;
  parts.Refresh(figures());
  parts.refresher = std::thread([&parts, figures = std::move(figures)] {
    pthread_setname_np(pthread_self(), "perfd-metrics");
    while (true) {
      {
        absl::MutexLock lock(&parts.mutex);
        if (parts.mutex.AwaitWithTimeout(absl::Condition(&parts.stopping), kRefresh)) return;
      }
      parts.Refresh(figures());
    }
  });
}

void MetricsServer::Stop() {
  {
    absl::MutexLock lock(&parts_->mutex);
    parts_->stopping = true;
  }
  if (parts_->refresher.joinable()) parts_->refresher.join();
}

void MetricsServer::ObserveCommit(double seconds) {
  parts_->commit.Observe(seconds);
}

void MetricsServer::ObserveAttach(double seconds) {
  parts_->attach.Observe(seconds);
}

void MetricsServer::ObserveStop(double seconds) {
  parts_->stop.Observe(seconds);
}

}  // namespace perfd
