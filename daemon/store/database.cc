#include "daemon/store/database.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kBusyTimeoutMs = 5000;

absl::Status ToStatus(sqlite3* db, absl::string_view operation) {
  const std::string text = absl::StrCat(operation, ": ", sqlite3_errmsg(db), " (sqlite ",
                                        sqlite3_extended_errcode(db), ")");
  switch (sqlite3_errcode(db)) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(text);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return absl::PermissionDeniedError(text);
    case SQLITE_IOERR:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace

Statement::Statement(sqlite3_stmt* statement) : statement_(statement) {}

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
}

void Statement::Bind(int index, double value) {
  sqlite3_bind_double(statement_.get(), index, value);
}

void Statement::Bind(int index, absl::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data() == nullptr ? "" : text.data(),
                      text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::BindBlob(int index, absl::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index, bytes.data() == nullptr ? "" : bytes.data(),
                      bytes.size(), SQLITE_TRANSIENT);
}

absl::StatusOr<bool> Statement::Step() {
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return ToStatus(sqlite3_db_handle(statement_.get()), sqlite3_sql(statement_.get()));
  }
}

absl::Status Statement::Run() {
  auto more = Step();
  while (more.ok() && *more) more = Step();
  sqlite3_reset(statement_.get());
  return more.status();
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::Real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::Text(int column) const {
  return Blob(column);
}

std::string Statement::Blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr || size <= 0) return {};
  return std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

void Database::Closer::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

absl::StatusOr<Database> Database::Open(const std::string& path) {
  sqlite3* raw = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &raw, kFlags, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) {
    if (raw == nullptr) return absl::ResourceExhaustedError("open database: no memory");
    return ToStatus(raw, absl::StrCat("open ", path));
  }
  sqlite3_extended_result_codes(raw, 0);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  return db;
}

absl::Status Database::Exec(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return ToStatus(db_.get(), sql.substr(0, 80));
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr) !=
      SQLITE_OK) {
    return ToStatus(db_.get(), sql);
  }
  return Statement(raw);
}

absl::StatusOr<int64_t> Database::QueryInt(absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::NotFoundError(absl::StrCat(sql, ": no row"));
  return statement.Int(0);
}

int64_t Database::LastInsertId() const {
  return sqlite3_last_insert_rowid(db_.get());
}

bool Database::InTransaction() const {
  return sqlite3_get_autocommit(db_.get()) == 0;
}

}  // namespace perfd::daemon
