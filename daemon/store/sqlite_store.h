// daemon/store/sqlite_store.h - what the daemon must never lose: profiles, windows, aggregates, reports.
//
// Shape    writes queue up and one thread commits everything that waits in one transaction (WAL, synchronous=FULL);
//          a write is answered only after its commit. Reads go through a connection of their own.
// Errors   disk or size limit full: kResourceExhausted and healthy() is false until a Probe succeeds.
//          Queue full: kUnavailable. A damaged database or record: kDataLoss.
// Threads  thread-safe. `done` runs on the writer thread, in commit order, and must not wait for the store.
// Source   sqlite.org/wal.html, pragma.html#pragma_synchronous (FULL: durable across power loss in WAL mode).
#ifndef DAEMON_STORE_SQLITE_STORE_H_
#define DAEMON_STORE_SQLITE_STORE_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "daemon/store/commit_queue.h"
#include "daemon/store/database.h"
#include "daemon/store/hook_table.h"
#include "daemon/store/records.h"
#include "daemon/store/store_directory.h"

namespace perfd::daemon {

struct StoreOptions {
  std::string directory;
  int64_t hard_limit_bytes =
      0;  // the database never grows beyond it; 0: as large as the disk allows
  absl::Duration group_delay =
      absl::Milliseconds(10);  // how long a window waits for others to share its commit
  std::function<void(double seconds)> on_commit;  // how long each commit took; may be empty
  int64_t audit_user_bytes = 0;                   // AuditRetention, until the first Retain
  // On the writer thread, after the commit; may be empty. Every Retain calls it, also when nothing went.
  std::function<void(const AuditChange&)> on_audit;
  absl::Duration most_wait = absl::Seconds(30);  // for a commit, of those who wait for theirs
};

class SqliteStore {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(StoreOptions options);
  ~SqliteStore();  // commits what is queued
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  // Queued; `done` is called exactly once unless this returns an error.
  absl::Status Append(WindowRecord record, std::function<void(absl::StatusOr<AppendResult>)> done);
  // Remembers the sequence of a window that nobody wants: from now on it is a duplicate, and no gap.
  absl::Status Skip(StreamKey stream, uint64_t sequence, std::function<void(absl::Status)> done);
  // The audit entries of a window that is not wanted itself: what was done to a rank stays on record.
  absl::Status StoreAudit(WindowRecord record, std::function<void(absl::Status)> done);
  absl::Status Update(ProfileStatus status, std::function<void(absl::Status)> done);

  // These wait for the commit, at most `most_wait`.
  absl::StatusOr<std::string> Create(const ProfileStatus& status);
  absl::Status StoreFinal(FinalRecord record);
  absl::Status StoreStatus(const ProfileStatus& status);
  // Everything queued before this is committed and answered.
  absl::Status Flush();
  // Replaces the windows up to `up_to_row_id` by the aggregate that contains them.
  absl::Status Compact(const std::string& profile_id, std::string aggregate, int64_t up_to_row_id);
  absl::StatusOr<int> Retain(const RetentionPolicy& policy, int64_t now_unix_ns);
  // Writes and removes some pages: only this shows that a full disk has room again (small writes may reuse pages).
  absl::Status Probe();
  absl::Status SetHardLimit(int64_t bytes);

  absl::StatusOr<ProfileStatus> Profile(const std::string& profile_id);
  absl::StatusOr<std::vector<ProfileStatus>> Profiles(const ProfileQuery& query);
  absl::StatusOr<std::vector<std::string>> Find(absl::string_view prefix,
                                                std::optional<uint32_t> uid);
  absl::StatusOr<Report> FinalReport(const std::string& profile_id);
  absl::StatusOr<std::vector<LoopHistory>> History(absl::string_view location, int limit);
  absl::StatusOr<std::vector<AuditEntry>> Audit(const AuditQuery& query);  // newest first
  absl::StatusOr<std::vector<uint64_t>> StateCounts();  // indexed by ProfileState
  // By profile: windows that its aggregate does not contain.
  absl::StatusOr<std::map<std::string, uint64_t>> WindowCounts();
  // Of a stream: its highest sequence, how many below it were never seen, and whose it is.
  absl::StatusOr<StreamState> Stream(absl::string_view stream_id);
  // As of one instant, on a connection of its own, so that nobody waits for who reads.
  absl::Status ReadApart(const std::function<absl::Status(Database& db)>& read);

  // Jobs of schedulers (hook_table.h). AdmitHookJob waits for the commit. kAlreadyExists, kAborted: see there.
  // kDeadlineExceeded: not yet. Then, and only then, `late` is told what came of it, once, on the writer thread.
  using LateAdmission = std::function<void(const absl::StatusOr<HookRecord>& record)>;
  absl::StatusOr<HookRecord> AdmitHookJob(HookAdmission admission, LateAdmission late = nullptr);
  // Queued. An end without a node is that of the whole job. `only_begun`: see EndNode.
  absl::Status BeginHookJob(int64_t id, const std::string& node);
  absl::Status EndHookJob(int64_t id, const std::string& node, int64_t unix_ns,
                          bool only_begun = false);
  absl::StatusOr<std::optional<HookRecord>> HookJobOf(const HookJob& job);
  absl::StatusOr<std::optional<HookRun>> HookRunOf(const HookJob& job, absl::string_view node);
  absl::StatusOr<std::vector<HookRecord>> HookJobs(std::optional<uint32_t> uid, int32_t limit);
  absl::StatusOr<int64_t> HookCounter(absl::string_view name);
  absl::StatusOr<HookUse> HookUseSince(int64_t day_unix_ns);
  absl::StatusOr<std::vector<HookWait>> HookWaits();
  absl::StatusOr<std::vector<uint64_t>> HookCounts();

  bool healthy() const { return healthy_.load(); }
  int64_t SizeBytes() const;
  size_t QueueLength() const { return queue_.size(); }
  const std::string& directory() const { return directory_.path(); }

 private:
  SqliteStore(StoreOptions options, StoreDirectory directory, Database writer, Database reader);

  void Run();
  void CommitBatch(std::vector<CommitQueue::Write>& batch);
  absl::Status CommitTogether(std::vector<CommitQueue::Write>& batch,
                              std::vector<absl::Status>* own);
  // `committed` runs on the writer thread; may be empty. `ahead`: as of CommitQueue::Write.
  absl::Status Wait(std::function<absl::Status(Database&)> write,
                    std::function<void()> committed = {}, bool ahead = false);
  absl::Status TooSlow() const;
  void RecordOutcome(const absl::Status& status);

  StoreOptions options_;  // audit_user_bytes: writer thread only; the rest is constant
  StoreDirectory directory_;
  Database writer_;  // writer thread only
  CommitQueue queue_;
  std::atomic<bool> healthy_{true};
  Mutex read_mutex_;
  Database reader_ ABSL_GUARDED_BY(read_mutex_);
  std::thread thread_;
};

// The aggregate, then the windows that it does not contain.
absl::Status ReadResults(SqliteStore& store, const std::string& profile_id,
                         const ResultsVisitor& visitor);
absl::StatusOr<BytesByHolder> ReadBytes(SqliteStore& store);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_SQLITE_STORE_H_
