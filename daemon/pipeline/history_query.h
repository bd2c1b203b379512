// daemon/pipeline/history_query.h - the profiles of one program, from the stored reports.
//
// Shape    Find looks through the profiles that are over, newest first, until it has enough of the program.
// Limits   the newest kMaxProfiles; kReadNs of reading: what is left out is said, and was remembered for the next question.
//          One question at a time reads reports: the others make do with what is remembered, and say so.
//          What reports told is kept for kMaxKept profiles (a report may be tens of megabytes, its history is not).
// Errors   kNotFound: no such program, or no profile that is over; what the store says.
// Threads  thread-safe; reports are read one after the other, without a lock.
#ifndef DAEMON_PIPELINE_HISTORY_QUERY_H_
#define DAEMON_PIPELINE_HISTORY_QUERY_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/history.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {

class HistoryQuery {
 public:
  static constexpr int32_t kMaxProfiles = 1000;
  static constexpr size_t kMaxKept = 1000;
  static constexpr int64_t kReadNs = 5 * kNsPerSecond;

  HistoryQuery(SqliteStore& store, const Clock& clock) : store_(store), clock_(clock) {}

  // `uid`: only this owner's. `command` empty: that of the newest profile.
  absl::StatusOr<ProgramHistory> Find(std::optional<uint32_t> uid, std::string command,
                                      size_t limit);

 private:
  struct Kept {
    uint64_t samples = 0;  // late windows may have come since
    HistoryProfile profile;
  };
  absl::StatusOr<ProgramHistory> Collect(std::optional<uint32_t> uid, std::string command,
                                         size_t limit, int64_t until_ns);
  std::optional<HistoryProfile> Remembered(const ProfileStatus& status);
  // Nothing where there is no report, or none that can be read.
  std::optional<HistoryProfile> Read(const ProfileStatus& status);

  SqliteStore& store_;
  const Clock& clock_;
  std::atomic<bool> reading_{false};
  Mutex mutex_;
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);  // by id: the oldest is first
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_HISTORY_QUERY_H_
