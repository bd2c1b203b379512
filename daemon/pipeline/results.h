// daemon/pipeline/results.h - the aggregates of the profiles at work, kept equal to what the store holds.
//
// Shape    every stored window is in its aggregate exactly once, in the order of commits; an aggregate that is not in
//          memory is rebuilt from the store (compacted aggregate, then the windows after it).
// Threads  thread-safe; one profile's aggregate is locked at a time, so a long report delays only its own profile.
#ifndef DAEMON_PIPELINE_RESULTS_H_
#define DAEMON_PIPELINE_RESULTS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/model/measure_order.h"
#include "core/model/report.h"
#include "core/model/window.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/aggregate/recent_heat.h"
#include "daemon/control/loop_choice.h"
#include "daemon/limits/limits.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {

class Results {
 public:
  // `limits` outlives it.
  Results(SqliteStore& store, const Limits& limits) : store_(store), limits_(limits) {}

  // Errors of all: kDataLoss when the stored aggregate is damaged; what the store says.
  // A profile that has no windows yet: its first question would only make it.
  void Begin(const std::string& profile_id, ProfileHolder holder);
  // Brings the aggregate into memory and corrects the status: counts and spans as the stored windows have them.
  absl::Status Load(ProfileStatus& status);
  // Adds a window that was committed as `row_id`.
  absl::Status Add(const std::string& profile_id, const Window& window, int64_t row_id);
  absl::StatusOr<Report> Build(const ProfileStatus& status);
  absl::StatusOr<std::vector<ReportRow>> Top(const std::string& profile_id, int count);
  // What variants told so far of the loops in `rows`, without ranks.
  absl::StatusOr<std::vector<LoopVerdict>> Verdicts(const std::string& profile_id,
                                                    const std::vector<ReportRow>& rows);
  // What to measure by variants.
  absl::StatusOr<std::vector<MeasureLoop>> HotLoops(const ProfileStatus& status);
  // What is hot, with what it had in the seconds before now.
  absl::StatusOr<HeatNow> Heat(const ProfileStatus& status, int64_t now_unix_ns);
  // Stores report, aggregate and final status in one transaction.
  absl::StatusOr<Report> Finalise(ProfileStatus status);
  void Forget(const std::string& profile_id);
  // Forgets the others: whoever asks about a profile that has just ended brings its aggregate back.
  void RetainOnly(const std::function<bool(const std::string& profile_id)>& wanted);
  size_t size();
  // What each holder's aggregates take of memory, about. From now on those of users with more than Limit::kMemoryPerUser know no new
  // detail; root's and the site's may have what they need.
  std::map<ProfileHolder, int64_t> Bound();

 private:
  struct Live {
    Mutex mutex;
    ProfileAggregate aggregate ABSL_GUARDED_BY(mutex);
    RecentHeat heat ABSL_GUARDED_BY(mutex);
    int64_t row_id ABSL_GUARDED_BY(mutex) = 0;  // contained up to here
    uint64_t loose_windows ABSL_GUARDED_BY(mutex) =
        0;  // in the store one by one, not yet compacted
    ProfileHolder holder ABSL_GUARDED_BY(mutex) = kSite;
  };

  // Shared: a report may be under construction while the profile is forgotten.
  absl::StatusOr<std::shared_ptr<Live>> Get(const std::string& profile_id);
  absl::StatusOr<std::shared_ptr<Live>> Rebuild(const std::string& profile_id);

  SqliteStore& store_;
  const Limits& limits_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Live>> live_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_RESULTS_H_
