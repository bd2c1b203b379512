// daemon/archive/archiver.h - puts every finished profile into the archive folder, in its own time.
//
// Shape    Begin starts with what the store has that the folder lacks; Add names a profile whose report was just stored.
//          The report is read again when its turn comes. Whatever goes wrong in the folder is counted, said once, and tried
//          again after 1 s .. 60 s: the profiles themselves know nothing of it.
// Limits   kMostPending profiles wait; beyond that the oldest are dropped, counted, and found again at the next start.
// Threads  thread-safe; own thread perfd-archive. Add never waits.
#ifndef DAEMON_ARCHIVE_ARCHIVER_H_
#define DAEMON_ARCHIVE_ARCHIVER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/node.h"
#include "core/model/profile.h"
#include "core/model/report.h"
#include "daemon/archive/archive_folder.h"
#include "daemon/metrics/figures.h"

namespace perfd::daemon {

struct ArchiverOptions {
  std::string folder;  // empty: there is no archive, and nothing happens
  ArchiveLimits limits;
  // From the store; kNotFound: gone since, or without a report.
  std::function<absl::StatusOr<Report>(const std::string& id)> report;
  std::function<std::vector<ProfileStatus>()> newest;  // at most as many as are worth looking at
};

class Archiver {
 public:
  static constexpr size_t kMostPending = 4096;
  static constexpr int64_t kCatchUpNs = int64_t{7} * 24 * 3600 * kNsPerSecond;
  static constexpr int64_t kSweepNs = 600 * kNsPerSecond;
  static constexpr int64_t kFirstWaitNs = kNsPerSecond;
  static constexpr int64_t kLongestWaitNs = 60 * kNsPerSecond;

  Archiver(ArchiverOptions options, const Clock& clock);
  ~Archiver() { Stop(); }
  Archiver(const Archiver&) = delete;
  Archiver& operator=(const Archiver&) = delete;

  void Begin();
  void Add(const std::string& profile_id);
  void Stop();

  // One turn of the thread: everything that waits and is due. Tests call it by hand, without Begin.
  void Turn();
  // What the folder lacks of the profiles that ended within kCatchUpNs.
  void CatchUp();

  bool on() const { return !options_.folder.empty(); }
  ArchiveFigure Figures();
  std::vector<DoctorCheck> Checks();

 private:
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || (!pending_.empty() && wait_ns_ == 0);
  }
  // False: try again later.
  bool ArchiveOne(const std::string& id);
  void RecordFailure(const std::string& id, const absl::Status& status);
  void Sweep();

  const ArchiverOptions options_;
  const Clock& clock_;
  const ArchiveFolder folder_;
  const int64_t started_monotonic_ns_;
  const int64_t started_unix_ns_;
  Mutex mutex_;
  std::deque<std::string> pending_ ABSL_GUARDED_BY(mutex_);
  ArchiveFigure figure_ ABSL_GUARDED_BY(mutex_);
  std::string trouble_ ABSL_GUARDED_BY(mutex_);  // of the last attempt
  int64_t wait_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: the last attempt was successful
  int64_t due_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t sweep_due_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_ARCHIVE_ARCHIVER_H_
