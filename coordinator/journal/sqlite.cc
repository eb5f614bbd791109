#include "coordinator/journal/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "common/base/owned.h"
#include "coordinator/journal/journal_wal.h"

namespace proctor::sqlite {

namespace {

// What the caller should do about a result code.
Errc code_for(int rc) {
  switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
    case SQLITE_NOMEM:
      return Errc::kExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_INTERRUPT:
      return Errc::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return Errc::kInvalid;
    default:
      return Errc::kCorrupt;
  }
}

// SQLite says "disk I/O error" for all of these.
const char* io_step(int rc) {
  switch (rc) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
      return " (fsync failed)";
    case SQLITE_IOERR_WRITE:
      return " (write failed)";
    case SQLITE_IOERR_READ:
    case SQLITE_IOERR_SHORT_READ:
      return " (read failed)";
    case SQLITE_IOERR_TRUNCATE:
      return " (truncate failed)";
    default:
      return "";
  }
}

Error error_of(sqlite3* db, int rc) {
  std::string detail = sqlite3_errstr(rc);
  if (db != nullptr) {
    const char* file = sqlite3_db_filename(db, "main");
    const char* text = sqlite3_errmsg(db);
    detail = std::string(file == nullptr ? "" : file) + ": " + (text == nullptr ? "" : text);
    detail += io_step(rc);
    const int os = sqlite3_system_errno(db);
    if ((rc & 0xff) == SQLITE_CANTOPEN && os != 0) {
      detail += std::string(" (") + std::strerror(os) + ")";
    }
  }
  return Error{code_for(rc), detail};
}

// SQLite reads a URI up to its query or fragment and decodes the rest.
std::string uri_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '%') {
      out += "%25";
    } else if (c == '?') {
      out += "%3f";
    } else if (c == '#') {
      out += "%23";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void CloseDatabase::operator()(sqlite3* db) const noexcept {
  sqlite3_close_v2(db);
}
void FinalizeStatement::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

void Statement::bind(int at, std::int64_t value) {
  PROCTOR_ASSERT(sqlite3_bind_int64(handle_.get(), at + 1, value) == SQLITE_OK);
}
void Statement::bind(int at, std::string_view text) {
  const int rc =
      sqlite3_bind_text64(handle_.get(), at + 1, text.data() == nullptr ? "" : text.data(),
                          text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  PROCTOR_ASSERT(rc == SQLITE_OK);
}
void Statement::bind_blob(int at, std::string_view bytes) {
  const int rc =
      sqlite3_bind_blob64(handle_.get(), at + 1, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  PROCTOR_ASSERT(rc == SQLITE_OK);
}
void Statement::bind_null(int at) {
  PROCTOR_ASSERT(sqlite3_bind_null(handle_.get(), at + 1) == SQLITE_OK);
}
void Statement::bind_column(int at, const Statement& from, int column) {
  const int rc =
      sqlite3_bind_value(handle_.get(), at + 1, sqlite3_column_value(from.handle_.get(), column));
  PROCTOR_ASSERT(rc == SQLITE_OK || rc == SQLITE_NOMEM);
}

Result<bool> Statement::step() {
  const int rc = sqlite3_step(handle_.get());
  if (rc == SQLITE_ROW) return true;
  sqlite3* db = sqlite3_db_handle(handle_.get());
  if (rc == SQLITE_DONE) {
    sqlite3_reset(handle_.get());
    return false;
  }
  Error error = error_of(db, rc);
  sqlite3_reset(handle_.get());
  return error;
}

Result<std::int64_t> Statement::run() {
  while (true) {
    PROCTOR_TRY(const bool row, step());
    if (!row) return sqlite3_changes64(sqlite3_db_handle(handle_.get()));
  }
}

void Statement::reset() {
  sqlite3_reset(handle_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}
std::string_view Statement::text(int column) const {
  return blob(column);
}
std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Statement::Kind Statement::kind(int column) const {
  switch (sqlite3_column_type(handle_.get(), column)) {
    case SQLITE_NULL:
      return Kind::kNull;
    case SQLITE_INTEGER:
      return Kind::kInteger;
    case SQLITE_BLOB:
      return Kind::kBlob;
    default:
      return Kind::kText;
  }
}
int Statement::columns() const {
  return sqlite3_column_count(handle_.get());
}
std::string Statement::name(int column) const {
  const char* name = sqlite3_column_name(handle_.get(), column);
  return name == nullptr ? "" : name;
}

Result<Database> Database::open(const fs::path& file, Mode mode) {
  PROCTOR_CHECK_OK(check_journal_kinds(file));
  std::string name = file.string();
  if (mode == Mode::kImmutable) name = "file:" + uri_path(name) + "?immutable=1";
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kCreate) {
    flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  } else {
    flags |= SQLITE_OPEN_READONLY | (mode == Mode::kImmutable ? SQLITE_OPEN_URI : 0);
  }
  // SQLite would make it for every user to read; the files beside it get its mode.
  if (mode == Mode::kCreate) {
    const UniqueFd made(
        ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  }
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(name.c_str(), &raw, flags, nullptr);
  std::unique_ptr<sqlite3, CloseDatabase> db(raw);
  if (rc != SQLITE_OK) return error_of(raw, rc);
  // No trigger is ours: one that somebody has put there does nothing, whatever is written.  What a
  // view of somebody's calls is not to be trusted either.
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
    if (const int off = sqlite3_db_config(raw, option, 0, nullptr); off != SQLITE_OK)
      return error_of(raw, off);
  sqlite3_busy_timeout(raw, 60'000);  // an operator's shell may hold the write lock for a while
  return Database(std::move(db));
}

Status Database::exec(const char* sql) {
  const int rc = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return error_of(db_.get(), rc);
  return ok_status();
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement statement;
  sqlite3_stmt* raw = nullptr;
  const int rc = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (rc != SQLITE_OK) return error_of(db_.get(), rc);
  statement.handle_.reset(raw);
  return statement;
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  PROCTOR_TRY(Statement statement, prepare(sql));
  PROCTOR_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

std::string Database::filename() const {
  const char* name = sqlite3_db_filename(db_.get(), "main");
  return name == nullptr ? "" : name;
}

Status Database::is_in_place() const {
  int moved = 0;
  const int asked = sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (asked != SQLITE_OK || moved == 0) return ok_status();
  return Error{Errc::kUnavailable, filename() +
                                       " was removed or renamed while it was written: nothing more "
                                       "is written; put it back (if its folder was moved: go on "
                                       "there), or see proctor journal recover"};
}

Result<Transaction> Transaction::begin(Database& db, const char* sql) {
  PROCTOR_CHECK_OK(db.exec(sql));
  return Transaction(&db);
}
Transaction::~Transaction() {
  if (db_ != nullptr) (void)db_->exec("ROLLBACK");
}
Status Transaction::commit() {
  PROCTOR_CHECK_OK(db_->exec("COMMIT"));
  db_ = nullptr;
  return ok_status();
}

Result<Snapshot> Snapshot::of(Database& db) {
  if (sqlite3_get_autocommit(db.handle()) == 0) return Snapshot(std::nullopt);
  PROCTOR_TRY(Transaction own, Transaction::begin(db, "BEGIN"));
  return Snapshot(std::move(own));
}

}  // namespace proctor::sqlite
