#include "daemon/store/sqlite_store.h"

#include <pthread.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/base/status_macros.h"
#include "daemon/store/audit_table.h"
#include "daemon/store/profile_id.h"
#include "daemon/store/profile_table.h"
#include "daemon/store/schema.h"
#include "daemon/store/window_table.h"

namespace perfd::daemon {
namespace {

constexpr size_t kSmallWriteBytes = 4096;
constexpr int64_t kProbeBytes = 64 << 10;
constexpr int64_t kNoLimitPages =
    4294967294;  // SQLite's own largest page count (sqlite.org/limits.html, 13)

absl::Status Configure(Database& db) {
  // auto_vacuum only takes effect before the first table exists.
  RETURN_IF_ERROR(db.Exec("PRAGMA auto_vacuum=INCREMENTAL"));
  RETURN_IF_ERROR(db.Exec("PRAGMA journal_mode=WAL"));
  RETURN_IF_ERROR(db.Exec("PRAGMA synchronous=FULL"));
  return db.Exec("PRAGMA journal_size_limit=67108864");
}

absl::Status LimitSize(Database& db, int64_t bytes) {
  ASSIGN_OR_RETURN(const int64_t page, db.QueryInt("PRAGMA page_size"));
  const int64_t pages = bytes <= 0 ? kNoLimitPages : std::max<int64_t>(1, bytes / page);
  return db.QueryInt(absl::StrCat("PRAGMA max_page_count=", pages)).status();
}

size_t AuditTextBytes(const WindowRecord& record) {
  size_t bytes = 0;
  for (const AuditEntry& entry : record.audit)
    bytes += sizeof(entry) + entry.original_bytes.size() + entry.written_bytes.size() +
             entry.outcome.size();
  return bytes;
}

void TellAudit(const StoreOptions& options, const AuditChange& change) {
  if (options.on_audit && (!change.trimmed.empty() || change.bytes.has_value()))
    options.on_audit(change);
}

absl::Status CommitOne(Database& db, const std::function<absl::Status()>& body) {
  RETURN_IF_ERROR(db.Exec("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) status = db.Exec("COMMIT");
  if (!status.ok() && db.InTransaction()) (void)db.Exec("ROLLBACK");
  return status;
}

// The store's trouble, not the write's.
bool IsSick(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsDataLoss(status) || absl::IsPermissionDenied(status) || absl::IsInternal(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(StoreOptions options) {
  ASSIGN_OR_RETURN(StoreDirectory directory, StoreDirectory::Hold(options.directory));
  ASSIGN_OR_RETURN(Database writer, Database::Open(directory.DatabasePath()));
  RETURN_IF_ERROR(Configure(writer));
  RETURN_IF_ERROR(Migrate(writer));
  RETURN_IF_ERROR(LimitSize(writer, options.hard_limit_bytes));
  ASSIGN_OR_RETURN(Database reader, Database::Open(directory.DatabasePath()));
  RETURN_IF_ERROR(reader.Exec("PRAGMA query_only=1"));
  ASSIGN_OR_RETURN(const bool rows_left, HasReplacedWindows(writer));
  auto store = std::unique_ptr<SqliteStore>(new SqliteStore(
      std::move(options), std::move(directory), std::move(writer), std::move(reader)));
  if (rows_left) store->queue_.BeginPieces();
  return store;
}

SqliteStore::SqliteStore(StoreOptions options, StoreDirectory directory, Database writer,
                         Database reader)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      writer_(std::move(writer)),
      queue_(options_.group_delay),
      reader_(std::move(reader)),
      thread_([this] { Run(); }) {
  queue_.SetPieces(kSweepBytes, SweepWindows);
}

SqliteStore::~SqliteStore() {
  queue_.Close();
  thread_.join();
}

void SqliteStore::Run() {
  pthread_setname_np(pthread_self(), "perfd-store");
  while (true) {
    std::vector<CommitQueue::Write> batch = queue_.Drain();
    if (batch.empty()) return;
    CommitBatch(batch);
  }
}

namespace {

constexpr double kSlowCommitS = 1;

double MegaBytes(const std::vector<CommitQueue::Write>& batch) {
  size_t bytes = 0;
  for (const CommitQueue::Write& write : batch) bytes += write.bytes;
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

void SqliteStore::CommitBatch(std::vector<CommitQueue::Write>& batch) {
  const absl::Time start = absl::Now();
  std::vector<absl::Status> own(batch.size());
  const absl::Status together = CommitTogether(batch, &own);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (options_.on_commit) options_.on_commit(seconds);
  if (seconds > kSlowCommitS)
    LogWarning("the store took {:.1f} s for a commit of {} writes, {:.1f} MB: who submits a profile waits for it",
               seconds, batch.size(), MegaBytes(batch));
  for (size_t i = 0; i < batch.size(); ++i) {
    CommitQueue::Write& write = batch[i];
    // After a failed batch each gets a transaction of its own.
    const absl::Status status =
        together.ok() ? own[i] : CommitOne(writer_, [&] { return write.run(writer_); });
    RecordOutcome(status);
    if (write.done) write.done(status);
  }
}

// A write that is refused leaves nothing behind and costs the others neither their place nor a commit of their own.
absl::Status SqliteStore::CommitTogether(std::vector<CommitQueue::Write>& batch,
                                         std::vector<absl::Status>* own) {
  return CommitOne(writer_, [&]() -> absl::Status {
    for (size_t i = 0; i < batch.size(); ++i) {
      RETURN_IF_ERROR(writer_.Exec("SAVEPOINT one"));
      absl::Status& status = (*own)[i] = batch[i].run(writer_);
      if (IsSick(status) || !writer_.InTransaction()) return status;
      if (!status.ok()) RETURN_IF_ERROR(writer_.Exec("ROLLBACK TO one"));
      RETURN_IF_ERROR(writer_.Exec("RELEASE one"));
    }
    return absl::OkStatus();
  });
}

void SqliteStore::RecordOutcome(const absl::Status& status) {
  if (!IsSick(status) || !healthy_.exchange(false)) return;
  LogError("the store cannot write: {}; nothing is acknowledged until it can", Text(status));
}

absl::Status SqliteStore::TooSlow() const {
  return absl::UnavailableError(
      absl::StrCat("the store did not commit within ", absl::FormatDuration(options_.most_wait)));
}

absl::Status SqliteStore::Append(WindowRecord record,
                                 std::function<void(absl::StatusOr<AppendResult>)> done) {
  const size_t bytes = record.body.size();
  // Shared by the two callbacks of one write.
  auto result = std::make_shared<AppendResult>();
  auto shared = std::make_shared<const WindowRecord>(std::move(record));
  return queue_.Push({.run = [this, result, shared](Database& db) -> absl::Status {
                        ASSIGN_OR_RETURN(*result,
                                         AppendWindow(db, *shared, options_.audit_user_bytes));
                        return absl::OkStatus();
                      },
                      .done =
                          [this, result, done = std::move(done)](const absl::Status& status) {
                            if (status.ok()) {
                              TellAudit(options_, {result->trimmed, std::nullopt});
                              done(*result);
                            } else {
                              done(status);
                            }
                          },
                      .bytes = bytes,
                      .urgent = false});
}

absl::Status SqliteStore::Skip(StreamKey stream, uint64_t sequence,
                               std::function<void(absl::Status)> done) {
  return queue_.Push({.run = [stream = std::move(stream),
                              sequence](Database& db) { return SkipWindow(db, stream, sequence); },
                      .done = std::move(done),
                      .bytes = kSmallWriteBytes,
                      .urgent = false});
}

absl::Status SqliteStore::StoreAudit(WindowRecord record, std::function<void(absl::Status)> done) {
  record.body.clear();
  const size_t bytes = kSmallWriteBytes + AuditTextBytes(record);
  auto shared = std::make_shared<const WindowRecord>(std::move(record));
  // Shared by the two callbacks of one write.
  auto trims = std::make_shared<std::vector<AuditTrim>>();
  return queue_.Push({.run = [this, shared, trims](Database& db) -> absl::Status {
                        RETURN_IF_ERROR(CheckOwner(db, shared->stream));
                        ASSIGN_OR_RETURN(*trims,
                                         InsertAudit(db, *shared, options_.audit_user_bytes));
                        return absl::OkStatus();
                      },
                      .done =
                          [this, trims, done = std::move(done)](const absl::Status& status) {
                            if (status.ok()) TellAudit(options_, {*trims, std::nullopt});
                            done(status);
                          },
                      .bytes = bytes,
                      .urgent = false});
}

absl::Status SqliteStore::Update(ProfileStatus status, std::function<void(absl::Status)> done) {
  auto shared = std::make_shared<const ProfileStatus>(std::move(status));
  return queue_.Push({.run = [shared](Database& db) { return UpdateProfile(db, *shared); },
                      .done = std::move(done),
                      .bytes = kSmallWriteBytes,
                      .urgent = false});
}

absl::Status SqliteStore::Wait(std::function<absl::Status(Database&)> write,
                               std::function<void()> committed, bool ahead) {
  struct Outcome {
    Notification ready;
    absl::Status status;
  };
  // Shared: the writer may finish after we stopped waiting.
  auto outcome = std::make_shared<Outcome>();
  RETURN_IF_ERROR(
      queue_.Push({.run = std::move(write),
                   .done =
                       [outcome, committed = std::move(committed)](const absl::Status& status) {
                         if (status.ok() && committed) committed();
                         outcome->status = status;
                         outcome->ready.Notify();
                       },
                   .bytes = kSmallWriteBytes,
                   .urgent = true,
                   .ahead = ahead}));
  if (!outcome->ready.WaitForNotificationWithTimeout(options_.most_wait)) return TooSlow();
  return outcome->status;
}

absl::StatusOr<std::string> SqliteStore::Create(const ProfileStatus& status) {
  auto id = std::make_shared<std::string>();  // shared with a writer that may outlive the wait
  const auto insert = [id, status](Database& db) -> absl::Status {
    ASSIGN_OR_RETURN(*id, InsertProfile(db, status));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Wait(insert, {}, /*ahead=*/true));
  return *id;
}

absl::Status SqliteStore::StoreFinal(FinalRecord record) {
  auto shared = std::make_shared<const FinalRecord>(std::move(record));
  return Wait([shared](Database& db) { return WriteFinal(db, *shared); }, [this] { queue_.BeginPieces(); });
}

absl::Status SqliteStore::StoreStatus(const ProfileStatus& status) {
  return Wait([status](Database& db) { return UpdateProfile(db, status); });
}

absl::Status SqliteStore::Flush() {
  return Wait([](Database&) { return absl::OkStatus(); });
}

absl::Status SqliteStore::Compact(const std::string& profile_id, std::string aggregate,
                                  int64_t up_to_row_id) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(profile_id));
  const auto write = [profile, up_to_row_id,
                      body = std::move(aggregate)](Database& db) -> absl::Status {
    RETURN_IF_ERROR(WriteAggregate(db, profile, body));
    return ReplaceWindows(db, profile, up_to_row_id);
  };
  // The windows that it replaces are stored already.
  return Wait(write, [this] { queue_.BeginPieces(); }, /*ahead=*/true);
}

absl::StatusOr<int> SqliteStore::Retain(const RetentionPolicy& policy, int64_t now_unix_ns) {
  auto count = std::make_shared<int>(0);  // shared with a writer that may outlive the wait
  auto audit = std::make_shared<AuditChange>();
  const auto write = [=, this](Database& db) -> absl::Status {
    options_.audit_user_bytes = policy.audit.user_bytes;
    ASSIGN_OR_RETURN(*count, ApplyRetention(db, policy, now_unix_ns));
    ASSIGN_OR_RETURN(audit->trimmed, ApplyAuditRetention(db, policy.audit, now_unix_ns));
    ASSIGN_OR_RETURN(audit->bytes, AuditBytes(db));
    RETURN_IF_ERROR(ApplyHookRetention(db));
    return db.Exec("PRAGMA incremental_vacuum(1024)");
  };
  RETURN_IF_ERROR(Wait(write, [this, audit] {
    TellAudit(options_, *audit);
    queue_.BeginPieces();
  }));
  return *count;
}

absl::Status SqliteStore::Probe() {
  RETURN_IF_ERROR(Wait([](Database& db) {
    return db.Exec(absl::StrCat("INSERT OR REPLACE INTO meta(key, value) VALUES('probe', zeroblob(",
                                kProbeBytes, "))"));
  }));
  RETURN_IF_ERROR(Wait([](Database& db) { return db.Exec("DELETE FROM meta WHERE key='probe'"); }));
  if (!healthy_.exchange(true)) LogInfo("the store can write again");
  return absl::OkStatus();
}

absl::Status SqliteStore::SetHardLimit(int64_t bytes) {
  return Wait([bytes](Database& db) { return LimitSize(db, bytes); });
}

absl::StatusOr<ProfileStatus> SqliteStore::Profile(const std::string& profile_id) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(profile_id));
  MutexLock lock(&read_mutex_);
  return ReadProfile(reader_, profile);
}

absl::StatusOr<std::vector<ProfileStatus>> SqliteStore::Profiles(const ProfileQuery& query) {
  MutexLock lock(&read_mutex_);
  return ReadProfiles(reader_, query);
}

absl::StatusOr<std::vector<std::string>> SqliteStore::Find(absl::string_view prefix,
                                                           std::optional<uint32_t> uid) {
  MutexLock lock(&read_mutex_);
  return FindProfiles(reader_, prefix, uid);
}

absl::StatusOr<Report> SqliteStore::FinalReport(const std::string& profile_id) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(profile_id));
  std::string body;
  {
    MutexLock lock(&read_mutex_);
    ASSIGN_OR_RETURN(body, ReadReport(reader_, profile));
  }
  return DecodeReport(profile, body);  // a large report takes a while: nobody waits for it
}

absl::StatusOr<std::vector<LoopHistory>> SqliteStore::History(absl::string_view location,
                                                              int limit) {
  MutexLock lock(&read_mutex_);
  return ReadLoopHistory(reader_, location, limit);
}

absl::StatusOr<std::vector<AuditEntry>> SqliteStore::Audit(const AuditQuery& query) {
  MutexLock lock(&read_mutex_);
  return ReadAudit(reader_, query);
}

absl::StatusOr<std::vector<uint64_t>> SqliteStore::StateCounts() {
  MutexLock lock(&read_mutex_);
  return CountStates(reader_);
}

absl::StatusOr<std::map<std::string, uint64_t>> SqliteStore::WindowCounts() {
  MutexLock lock(&read_mutex_);
  return CountWindows(reader_);
}

absl::StatusOr<StreamState> SqliteStore::Stream(absl::string_view stream_id) {
  MutexLock lock(&read_mutex_);
  StreamState state;
  ASSIGN_OR_RETURN(state.last, StoredSequence(reader_, stream_id));
  ASSIGN_OR_RETURN(state.missing, MissingSequences(reader_, stream_id));
  ASSIGN_OR_RETURN(state.owner, StreamOwner(reader_, stream_id));
  return state;
}

absl::Status SqliteStore::ReadApart(const std::function<absl::Status(Database& db)>& read) {
  ASSIGN_OR_RETURN(Database db, Database::Open(directory_.DatabasePath()));
  RETURN_IF_ERROR(db.Exec("PRAGMA query_only=1"));
  // One transaction: a compaction in between would take the windows from under us. Closing the connection ends it.
  RETURN_IF_ERROR(db.Exec("BEGIN"));
  return read(db);
}

int64_t SqliteStore::SizeBytes() const {
  int64_t total = 0;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(directory_.DatabasePath() + suffix, error);
    if (!error) total += static_cast<int64_t>(size);
  }
  return total;
}

absl::Status ReadResults(SqliteStore& store, const std::string& profile_id,
                         const ResultsVisitor& visitor) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(profile_id));
  return store.ReadApart([&](Database& db) -> absl::Status {
    if (visitor.holder != nullptr) {
      ASSIGN_OR_RETURN(const ProfileHolder holder, ReadHolder(db, profile));
      visitor.holder(holder);
    }
    ASSIGN_OR_RETURN(const std::string aggregate, ReadAggregate(db, profile));
    ASSIGN_OR_RETURN(const int64_t up_to, LastRowId(db));
    RETURN_IF_ERROR(visitor.aggregate(aggregate, up_to));
    return ForEachWindow(db, profile, visitor.window);
  });
}

absl::StatusOr<BytesByHolder> ReadBytes(SqliteStore& store) {
  BytesByHolder bytes;
  RETURN_IF_ERROR(store.ReadApart([&](Database& db) -> absl::Status {
    ASSIGN_OR_RETURN(bytes, SumBytes(db));
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace perfd::daemon
