#pragma once
// The few lines of SQLite this room needs: a connection, a prepared statement, errors as Results.
// Owns its handles.  One thread at a time.  Stored bytes are from outside: column readers convert,
// the rows' readers judge.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/files.h"
#include "common/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace proctor::sqlite {

struct CloseDatabase {
  void operator()(sqlite3* db) const noexcept;
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept;
};

// A prepared statement; parameters and columns count from 0.
class Statement {
 public:
  Statement() = default;

  void bind(int at, std::int64_t value);
  void bind(int at, std::string_view text);  // copied
  void bind_blob(int at, std::string_view bytes);
  void bind_null(int at);
  // A column of another statement's row, whatever its type.
  void bind_column(int at, const Statement& from, int column);

  // True with a row, false at the end (and then reset).
  Result<bool> step();
  // Runs to the end, resets, and gives the number of changed rows.
  Result<std::int64_t> run();
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string_view text(int column) const;  // until the next step
  std::string_view blob(int column) const;

  sqlite3_stmt* handle() const { return handle_.get(); }  // for what this class does not wrap
  // Of statements whose columns are not known beforehand.  A float is told as kText.
  enum class Kind { kNull, kInteger, kText, kBlob };
  Kind kind(int column) const;
  int columns() const;
  std::string name(int column) const;

 private:
  friend class Database;
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> handle_;
};

class Database {
 public:
  // kImmutable: nobody writes and there is no WAL; needs no right to write beside the file.
  enum class Mode { kCreate, kReadOnly, kImmutable };
  static Result<Database> open(const fs::path& file, Mode mode);

  Status exec(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  Result<std::int64_t> integer(std::string_view sql);  // the first column of the first row
  std::string filename() const;
  // kUnavailable: removed or renamed since it was opened, so what is written is found by nobody.
  Status is_in_place() const;
  sqlite3* handle() const { return db_.get(); }  // for what this class does not wrap

 private:
  explicit Database(std::unique_ptr<sqlite3, CloseDatabase> db) : db_(std::move(db)) {}
  std::unique_ptr<sqlite3, CloseDatabase> db_;
};

// BEGIN; rolled back at the end unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& db, const char* sql);
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;
};

// All reads under it see one state: the one that is held already, or else one of its own.
class Snapshot {
 public:
  static Result<Snapshot> of(Database& db);

 private:
  explicit Snapshot(std::optional<Transaction> own) : own_(std::move(own)) {}
  std::optional<Transaction> own_;
};

}  // namespace proctor::sqlite
