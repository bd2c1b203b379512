// What the store keeps for the scheduler hook.
#include <memory>
#include <optional>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {
namespace {

constexpr size_t kSmallWriteBytes = 4096;

// One decision on its way into the store. Shared by the writer, which may outlive the wait, and who waits.
class Admitting {
 public:
  explicit Admitting(HookAdmission admission) : admission_(std::move(admission)) {}

  // Writer thread.
  absl::Status Run(Database& db) {
    ASSIGN_OR_RETURN(record_, AdmitJob(db, admission_));
    return absl::OkStatus();
  }
  // Writer thread. True: nobody waits any more.
  bool Answer(const absl::StatusOr<HookRecord>& answer) {
    MutexLock lock(&mutex_);
    answer_ = answer;
    return given_up_;
  }
  const HookRecord& record() const { return record_; }

  // Nothing: it takes longer.
  std::optional<absl::StatusOr<HookRecord>> Await(absl::Duration most) {
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &Admitting::Answered), most);
    given_up_ = !answer_.has_value();
    return answer_;
  }

 private:
  bool Answered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return answer_.has_value(); }

  const HookAdmission admission_;
  HookRecord record_;  // writer thread
  Mutex mutex_;
  std::optional<absl::StatusOr<HookRecord>> answer_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<HookRecord> SqliteStore::AdmitHookJob(HookAdmission admission, LateAdmission late) {
  const auto admitting = std::make_shared<Admitting>(std::move(admission));
  RETURN_IF_ERROR(queue_.Push({.run = [admitting](Database& db) { return admitting->Run(db); },
                               .done =
                                   [admitting, late = std::move(late)](const absl::Status& status) {
                                     const absl::StatusOr<HookRecord> answer =
                                         status.ok()
                                             ? absl::StatusOr<HookRecord>(admitting->record())
                                             : absl::StatusOr<HookRecord>(status);
                                     if (admitting->Answer(answer) && late) late(answer);
                                   },
                               .bytes = kSmallWriteBytes,
                               .urgent = true,
                               .ahead = true}));
  const std::optional<absl::StatusOr<HookRecord>> answer = admitting->Await(options_.most_wait);
  if (answer.has_value()) return *answer;
  return absl::DeadlineExceededError(TooSlow().message());
}

absl::Status SqliteStore::BeginHookJob(int64_t id, const std::string& node) {
  return queue_.Push({.run = [id, node](Database& db) { return BeginNode(db, id, node); },
                      .done =
                          [](const absl::Status& status) {
                            if (!status.ok())
                              LogWarning("that a node began a job is not stored: {}", Text(status));
                          },
                      .bytes = kSmallWriteBytes,
                      .urgent = false,
                      .ahead = true});
}

absl::Status SqliteStore::EndHookJob(int64_t id, const std::string& node, int64_t unix_ns,
                                     bool only_begun) {
  return queue_.Push(
      {.run = [id, node, unix_ns,
               only_begun](Database& db) { return EndNode(db, id, node, unix_ns, only_begun); },
       .done =
           [](const absl::Status& status) {
             if (!status.ok()) LogWarning("the end of a job is not stored: {}", Text(status));
           },
       .bytes = kSmallWriteBytes,
       .urgent = false,
       .ahead = true});
}

absl::StatusOr<std::optional<HookRun>> SqliteStore::HookRunOf(const HookJob& job,
                                                              absl::string_view node) {
  MutexLock lock(&read_mutex_);
  return FindRun(reader_, job, node);
}

absl::StatusOr<std::optional<HookRecord>> SqliteStore::HookJobOf(const HookJob& job) {
  MutexLock lock(&read_mutex_);
  return FindJob(reader_, job);
}

absl::StatusOr<std::vector<HookRecord>> SqliteStore::HookJobs(std::optional<uint32_t> uid,
                                                              int32_t limit) {
  MutexLock lock(&read_mutex_);
  return ReadJobs(reader_, uid, limit);
}

absl::StatusOr<int64_t> SqliteStore::HookCounter(absl::string_view name) {
  MutexLock lock(&read_mutex_);
  return ReadHookCounter(reader_, name);
}

absl::StatusOr<HookUse> SqliteStore::HookUseSince(int64_t day_unix_ns) {
  MutexLock lock(&read_mutex_);
  return ReadHookUse(reader_, day_unix_ns);
}

absl::StatusOr<std::vector<HookWait>> SqliteStore::HookWaits() {
  MutexLock lock(&read_mutex_);
  return ReadHookWaits(reader_);
}

absl::StatusOr<std::vector<uint64_t>> SqliteStore::HookCounts() {
  MutexLock lock(&read_mutex_);
  return CountJobs(reader_);
}

}  // namespace perfd::daemon
