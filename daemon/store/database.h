// daemon/store/database.h - the one door to SQLite: a connection and prepared statements that cannot leak.
//
// Shape    Statement s = db.Prepare(sql); s.Bind(1, x); while (s.Step() gives a row) s.Int(0) ...
// Errors   disk or size limit full: kResourceExhausted; busy: kUnavailable; corrupt: kDataLoss; else kInternal.
// Threads  thread-compatible: one thread, or one lock, per connection.
// Source   sqlite.org/c3ref: result codes, sqlite3_column_blob ("valid until the next step").
#ifndef DAEMON_STORE_DATABASE_H_
#define DAEMON_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace perfd::daemon {

class [[nodiscard]] Statement {
 public:
  explicit Statement(sqlite3_stmt* statement);

  // Parameters count from 1. A failed bind shows up in Step.
  void Bind(int index, int64_t value);
  void Bind(int index, double value);
  void Bind(int index, absl::string_view text);
  void BindBlob(int index, absl::string_view bytes);

  // True: a row is there. False: finished.
  absl::StatusOr<bool> Step();
  // For statements that return nothing.
  absl::Status Run();
  void Reset();

  // Columns count from 0.
  int64_t Int(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::string Blob(int column) const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

class Database {
 public:
  static absl::StatusOr<Database> Open(const std::string& path);

  absl::Status Exec(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // First column of the first row; kNotFound when there is none.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  int64_t LastInsertId() const;
  // True while a transaction is open (SQLite may have ended it itself after an error).
  bool InTransaction() const;

 private:
  struct Closer {
    void operator()(sqlite3* db) const;
  };
  explicit Database(sqlite3* db) : db_(db) {}
  std::unique_ptr<sqlite3, Closer> db_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_DATABASE_H_
