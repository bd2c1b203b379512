#include "daemon/metrics/metrics_page.h"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <pthread.h>

#include <iterator>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "daemon/metrics/exposition.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kRefresh = absl::Seconds(3);

prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const char* name,
                                    const char* help,
                                    const prometheus::Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
}

prometheus::Gauge& AddGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

struct MetricsPage::Parts {
  prometheus::Registry registry;
  prometheus::Histogram& commit =
      AddHistogram(registry, "perfd_store_commit_seconds", "Time of one group commit of the store.",
                   {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5});
  prometheus::Histogram& attach = AddHistogram(registry, "perfd_attach_seconds",
                                               "Time from an accepted request to its first sample.",
                                               {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30});
  prometheus::Histogram& stop =
      AddHistogram(registry, "perfd_stop_seconds", "Time a rank stood still for one stop.",
                   {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1});
  prometheus::Histogram& hook = AddHistogram(
      registry, "perfd_hook_seconds", "Time of one call of a scheduler, from arrival to answer.",
      {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 1, 5});
  prometheus::Gauge& snapshot_time =
      AddGauge(registry, "perfd_snapshot_timestamp_seconds", "When this page was made.");
  prometheus::Gauge& window_time = AddGauge(registry, "perfd_window_stored_timestamp_seconds",
                                            "When a page last showed newly stored windows.");
  uint64_t windows_shown = 0;  // of the thread that makes the page

  void Refresh(const DaemonFigures& figures);

  Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::vector<prometheus::MetricFamily> snapshot ABSL_GUARDED_BY(mutex);
  std::thread refresher;
};

void MetricsPage::Parts::Refresh(const DaemonFigures& figures) {
  std::vector<prometheus::MetricFamily> families = Expose(figures, ReadProcessFigures());
  snapshot_time.SetToCurrentTime();
  if (figures.windows_stored > windows_shown) window_time.SetToCurrentTime();
  windows_shown = figures.windows_stored;
  MutexLock lock(&mutex);
  snapshot = std::move(families);
}

MetricsPage::MetricsPage() : parts_(std::make_unique<Parts>()) {}

MetricsPage::~MetricsPage() {
  Stop();
}

void MetricsPage::Serve(std::function<DaemonFigures()> figures) {
  Parts& parts = *parts_;
  parts.Refresh(figures());
  parts.refresher = std::thread([&parts, figures = std::move(figures)] {
    pthread_setname_np(pthread_self(), "perfd-metrics");
    while (true) {
      {
        MutexLock lock(&parts.mutex);
        if (parts.mutex.AwaitWithTimeout(absl::Condition(&parts.stopping), kRefresh)) return;
      }
      parts.Refresh(figures());
    }
  });
}

void MetricsPage::Stop() {
  {
    MutexLock lock(&parts_->mutex);
    parts_->stopping = true;
  }
  if (parts_->refresher.joinable()) parts_->refresher.join();
}

std::string MetricsPage::Text() const {
  std::vector<prometheus::MetricFamily> families;
  {
    MutexLock lock(&parts_->mutex);
    families = parts_->snapshot;
  }
  std::vector<prometheus::MetricFamily> own = parts_->registry.Collect();
  families.insert(families.end(), std::make_move_iterator(own.begin()),
                  std::make_move_iterator(own.end()));
  return prometheus::TextSerializer().Serialize(families);
}

void MetricsPage::ObserveCommit(double seconds) {
  parts_->commit.Observe(seconds);
}

void MetricsPage::ObserveAttach(double seconds) {
  parts_->attach.Observe(seconds);
}

void MetricsPage::ObserveStop(double seconds) {
  parts_->stop.Observe(seconds);
}

void MetricsPage::ObserveHook(double seconds) {
  parts_->hook.Observe(seconds);
}

}  // namespace perfd::daemon
