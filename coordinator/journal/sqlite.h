#pragma once
// SQLite for this room: its files beside a journal, connections and statements.
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

namespace proctor {
// The part of a journal's files that SQLite says nothing of: how much of the write-ahead log it
// takes.  It reads the log up to the first frame whose checksum is wrong and forgets the rest
// without a word.  That is right after a crash, when the rest was never synced.  It is a loss when
// transactions that were durable stand behind it, and those can be told: a commit is only begun
// when the one before is on disk, so two commits behind a broken frame mean that one of them was;
// and the log's index, where it survived, is only moved on after the sync.  The index also tells of
// a log that is gone.  Reads files, thread-safe.
// Source: "WAL-mode File Format", sqlite.org/fileformat2.html section 4.
struct WalFacts {
  bool there = false;
  bool header_broken = false;  // nothing of it can be read
  std::uint64_t frames = 0;    // whole ones in the file, valid or not
  std::uint64_t valid = 0;     // up to the last commit: what SQLite takes
  std::uint64_t commits = 0;   // transactions in those
  std::uint64_t behind = 0;    // commits of the same log behind the first broken frame
  std::uint64_t indexed = 0;   // frames that its index (FILE-shm) calls durable; 0: it does not say
  // Of a log that is missing or empty: durable frames of its index that are not in the journal.
  std::uint64_t gone = 0;
};

// kInvalid: the journal, a file of SQLite's beside it, or its lock is none but a pipe, a device, a
// folder or a link.  SQLite opens by name, and would wait for a pipe's other end for ever: call it
// before anything is opened.
Status check_journal_kinds(const fs::path& journal);

// Of the log beside this journal.  kUnavailable: it cannot be read.
Result<WalFacts> wal_facts(const fs::path& journal);

// kCorrupt with what is damaged: a journal that SQLite would open as if nothing were missing.  Call
// it before SQLite opens the file for writing, which may remove the log.
Status check_journal_files(const fs::path& journal);
}  // namespace proctor

namespace proctor::sqlite {
// The few lines of SQLite this room needs: a connection, a prepared statement, errors as Results.
// Owns its handles.  One thread at a time.  Stored bytes are from outside: column readers convert,
// the rows' readers judge.

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

// Calls `visit` at each row that is left.
template <class Visit>
Status each_row(Statement& rows, const Visit& visit) {
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) return ok_status();
    visit();
  }
}

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
