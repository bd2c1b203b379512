// What the store keeps for the scheduler hook.
#include <memory>
#include <utility>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "daemon/store/sqlite_store.h"

namespace perfd {
namespace {

constexpr size_t kSmallWriteBytes = 4096;

}  // namespace

absl::StatusOr<HookRecord> SqliteStore::AdmitHookJob(HookAdmission admission) {
  // Shared with a writer that may outlive the wait.
  auto shared = std::make_shared<const HookAdmission>(std::move(admission));
  auto record = std::make_shared<HookRecord>();
  RETURN_IF_ERROR(Wait([shared, record](Database& db) -> absl::Status {
    ASSIGN_OR_RETURN(*record, AdmitJob(db, *shared));
    return absl::OkStatus();
  }));
  return *record;
}

absl::Status SqliteStore::EndHookJob(int64_t id, int64_t unix_ns) {
  return queue_.Push({.run = [id, unix_ns](Database& db) { return EndJob(db, id, unix_ns); },
                      .done =
                          [](const absl::Status& status) {
                            if (!status.ok())
                              LogWarning("the end of a job is not stored: {}", Text(status));
                          },
                      .bytes = kSmallWriteBytes,
                      .urgent = false});
}

absl::StatusOr<std::optional<HookRecord>> SqliteStore::HookJobOf(const HookJob& job) {
  absl::MutexLock lock(&read_mutex_);
  return FindJob(reader_, job);
}

absl::StatusOr<std::vector<HookRecord>> SqliteStore::HookJobs(std::optional<uint32_t> uid,
                                                              int32_t limit) {
  absl::MutexLock lock(&read_mutex_);
  return ReadJobs(reader_, uid, limit);
}

absl::StatusOr<int64_t> SqliteStore::HookCounter(absl::string_view name) {
  absl::MutexLock lock(&read_mutex_);
  return ReadHookCounter(reader_, name);
}

absl::StatusOr<HookUse> SqliteStore::HookUseSince(int64_t day_unix_ns) {
  absl::MutexLock lock(&read_mutex_);
  return ReadHookUse(reader_, day_unix_ns);
}

absl::StatusOr<std::vector<HookWait>> SqliteStore::HookWaits() {
  absl::MutexLock lock(&read_mutex_);
  return ReadHookWaits(reader_);
}

absl::StatusOr<std::vector<uint64_t>> SqliteStore::HookCounts() {
  absl::MutexLock lock(&read_mutex_);
  return CountJobs(reader_);
}

}  // namespace perfd
