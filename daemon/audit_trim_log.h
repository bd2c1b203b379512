// daemon/audit_trim_log.h - whose entries of the audit log retention deleted: counted, and said in the log.
//
// Shape    Record after every commit that changed something; Figure for /metrics.
// Limits   a line per user, sender and reason, and these at most once a minute; beyond kMostKeys the rest shares a line.
// Threads  thread-safe.
#ifndef DAEMON_AUDIT_TRIM_LOG_H_
#define DAEMON_AUDIT_TRIM_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "daemon/metrics/figures.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

class AuditTrimLog {
 public:
  static constexpr size_t kMostKeys = 16;
  static constexpr int64_t kEveryNs = 60 * kNsPerSecond;

  // `clock` must outlive it; `say` writes one line.
  AuditTrimLog(const Clock& clock, std::function<void(const std::string& line)> say)
      : clock_(clock), say_(std::move(say)) {}

  void Record(const AuditChange& change);
  AuditFigure Figure() const;

 private:
  void Hold(const AuditTrim& trim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const std::function<void(const std::string&)> say_;
  mutable Mutex mutex_;
  AuditFigure figure_ ABSL_GUARDED_BY(mutex_);
  std::vector<AuditTrim> unsaid_ ABSL_GUARDED_BY(mutex_);
  uint64_t unsaid_of_others_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t said_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not yet
};

}  // namespace perfd::daemon

#endif  // DAEMON_AUDIT_TRIM_LOG_H_
