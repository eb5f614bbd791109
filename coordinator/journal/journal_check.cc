#include "coordinator/journal/journal_check.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_store.h"
#include "coordinator/journal/seals.h"

namespace proctor {
namespace {
using Problems = std::vector<std::string>;

// The first column of each row.
Status each_text(sqlite::Database& db, std::string_view sql, Problems& out) {
  PROCTOR_TRY(auto rows, db.prepare(sql));
  return each_row(rows, [&] { out.push_back(printable(rows.text(0), 300)); });
}

// No text of ours holds a NUL: zeros are what is left of a page that ran over.
constexpr const char* kZeros =
    "SELECT 'attempt ' || run || '.' || attempt || ' holds zeros for text' FROM attempts WHERE "
    "instr(CAST(rationale AS BLOB), x'00') OR instr(CAST(reason AS BLOB), x'00') OR "
    "instr(CAST(violated AS BLOB), x'00') "
    "UNION ALL SELECT 'note ' || seq || ' holds zeros for text' FROM notes WHERE "
    "instr(CAST(detail AS BLOB), x'00') OR instr(CAST(kind AS BLOB), x'00') "
    "UNION ALL SELECT 'meta ' || key || ' holds zeros for text' FROM meta WHERE "
    "instr(CAST(value AS BLOB), x'00') LIMIT 20";

// What rows say of each other.
constexpr const char* kRules =
    "SELECT 'run ' || run || ' ended with attempt ' || attempt || ', which is missing or says "
    "otherwise' "
    "FROM runs WHERE state = 'ended' AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.run = "
    "runs.run "
    "AND a.attempt = runs.attempt AND (a.sets_outcome IS NOT 1 OR a.outcome IS runs.outcome)) "
    "UNION ALL SELECT 'attempt ' || run || '.' || attempt || ' decided its run, which has not "
    "ended' "
    "FROM attempts WHERE sets_outcome = 1 AND run NOT IN (SELECT run FROM runs WHERE state = "
    "'ended') "
    "UNION ALL SELECT 'run ' || run || ' has ' || count(*) || ' attempts of ' || max(attempt) "
    "FROM attempts GROUP BY run HAVING max(attempt) <> count(*) "
    "UNION ALL SELECT 'attempt ' || run || '.' || attempt || ' cost something else than was "
    "charged' "
    "FROM attempts WHERE charged IS NOT NULL AND "
    "charged + overrun <> cost_model + cost_execution + cost_human + cost_overhead LIMIT 100";

Status look_at_rows(sqlite::Database& db, JournalFinding& out) {
  PROCTOR_TRY(const RestoredState state, journal::load_state(db));
  out.attempts = state.attempts.size();
  out.ended = state.ended.size();
  out.parked = state.parked.size();
  out.reviews = state.reviews.size();
  out.last_epoch = state.last_epoch;
  PROCTOR_CHECK_OK(journal::each_attempt(db, std::nullopt, [](const AttemptRecord&) {}));
  PROCTOR_TRY(const auto epochs, journal::load_epochs(db));
  constexpr std::size_t kAtOnce = 10'000;
  for (std::int64_t after = 0;;) {
    PROCTOR_TRY(const auto notes, journal::load_notes(db, after, kAtOnce));
    if (notes.empty()) break;
    after = notes.back().seq;
    out.notes += notes.size();
  }
  return ok_status();
}

// A changed, added or missing row shows in its block's seal.
Status look_at_seals(sqlite::Database& db, JournalFinding& out) {
  PROCTOR_TRY(std::vector<std::string> broken, journal::broken_seals(db));
  std::ranges::move(broken, std::back_inserter(out.problems));
  return ok_status();
}

Status look_inside(const fs::path& file, JournalFinding& out) {
  PROCTOR_TRY(auto db, sqlite::Database::open(file, sqlite::Database::Mode::kReadOnly));
  PROCTOR_TRY(out.blank, journal::has_nothing_yet(db));
  if (out.blank) return ok_status();
  PROCTOR_CHECK_OK(journal::prepare_for_reading(db));
  Problems pages;
  PROCTOR_CHECK_OK(each_text(db, "PRAGMA integrity_check(100)", pages));
  if (pages.size() != 1 || pages[0] != "ok")
    for (const std::string& page : pages) out.problems.push_back("page: " + page);
  const auto note = [&](const Status& s) {
    if (!s.ok()) out.problems.push_back(s.error().detail);
  };
  note(each_text(db, kZeros, out.problems));
  note(look_at_rows(db, out));
  note(each_text(db, kRules, out.problems));
  note(look_at_seals(db, out));
  return ok_status();
}
}  // namespace

Result<JournalFinding> check_journal(const fs::path& file) {
  JournalFinding out;
  PROCTOR_CHECK_OK(check_journal_kinds(file));
  PROCTOR_TRY(out.wal, wal_facts(file));
  if (const Status files = check_journal_files(file); !files.ok()) {
    // SQLite would write its own view of the log over the index, which says otherwise.
    out.problems.push_back(files.error().detail);
    return out;
  }
  std::error_code ec;
  out.blank = !fs::exists(file, ec) || journal::was_never_made(file);
  if (out.blank) return out;
  const Status inside = look_inside(file, out);
  // One of a newer proctor is no damaged one.
  if (!inside.ok() &&
      (inside.error().code == Errc::kUnavailable || inside.error().code == Errc::kConflict))
    return inside.error();
  if (!inside.ok()) out.problems.push_back(inside.error().detail);
  return out;
}

Status journal::check_pages(sqlite::Database& db) {
  Problems found;
  PROCTOR_CHECK_OK(each_text(db, "PRAGMA quick_check(1)", found));
  if (found.size() == 1 && found[0] == "ok") found.clear();
  if (found.empty()) PROCTOR_CHECK_OK(each_text(db, kZeros, found));
  if (found.empty()) return ok_status();
  std::ranges::replace(found[0], '\n', ' ');
  return Error{Errc::kCorrupt, db.filename() + " is damaged: " + found[0]};
}

namespace {
using sqlite::Database;
using sqlite::Statement;

struct Table {
  std::string name;
  std::vector<std::string> columns, key;  // those that both files have
};

Result<std::vector<std::string>> names(Database& db, const std::string& sql) {
  std::vector<std::string> out;
  PROCTOR_TRY(auto rows, db.prepare(sql));
  PROCTOR_CHECK_OK(each_row(rows, [&] { out.emplace_back(rows.text(0)); }));
  return out;
}

// Names come from our own schema; those of the damaged file are only compared with them.
Result<std::vector<Table>> tables_of(Database& fresh, Database& damaged) {
  std::vector<Table> out;
  PROCTOR_TRY(
      const auto tables,
      names(fresh, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rootpage"));
  for (const std::string& name : tables) {
    const std::string info = "pragma_table_info('" + name + "')";
    PROCTOR_TRY(const auto own, names(fresh, "SELECT name FROM " + info + " ORDER BY cid"));
    PROCTOR_TRY(const auto had, names(damaged, "SELECT name FROM " + info));
    Table table{name, {}, {}};
    for (const std::string& column : own)
      if (std::ranges::find(had, column) != had.end()) table.columns.push_back(column);
    PROCTOR_TRY(table.key, names(fresh, "SELECT name FROM " + info + " WHERE pk > 0 ORDER BY pk"));
    if (!table.columns.empty()) out.push_back(std::move(table));
  }
  return out;
}

class Copier {
 public:
  Copier(Database& from, Database& to, const Table& table) : from_(from), to_(to), table_(table) {}

  // True: every row of the table is there.
  Result<bool> both_ways() {
    PROCTOR_TRY(const bool forward,
                copy(select(fmt::format(" ORDER BY {}", fmt::join(table_.key, ", "))), {}));
    if (forward) return true;
    PROCTOR_CHECK_OK(
        copy(select(fmt::format(" ORDER BY {} DESC", fmt::join(table_.key, " DESC, "))), {}));
    return false;
  }
  // The rows whose first key column is this.  False: they cannot be read.
  Result<bool> of_key(std::int64_t key) {
    return copy(select(" WHERE " + table_.key[0] + " = ?"), key);
  }

  std::uint64_t rows() const { return rows_; }
  const std::string& damage() const { return damage_; }

 private:
  std::string select(const std::string& rest) const {
    return fmt::format("SELECT {} FROM {}{}", fmt::join(table_.columns, ", "), table_.name, rest);
  }
  // The order is that of the table itself: nothing is sorted, rows come until the damage.
  Result<bool> copy(const std::string& sql, std::optional<std::int64_t> key) {
    auto rows = from_.prepare(sql);
    if (!rows.ok()) {
      damage_ = rows.error().detail;
      return false;
    }
    if (key) rows->bind(0, *key);
    const std::vector<const char*> marks(table_.columns.size(), "?");
    PROCTOR_TRY(auto insert,
                to_.prepare(fmt::format("INSERT OR IGNORE INTO {}({}) VALUES({})", table_.name,
                                        fmt::join(table_.columns, ", "), fmt::join(marks, ", "))));
    while (true) {
      const Result<bool> row = rows->step();
      if (!row.ok()) {
        damage_ = row.error().detail;
        return false;
      }
      if (!*row) return true;
      for (int i = 0; i < static_cast<int>(table_.columns.size()); ++i)
        insert.bind_column(i, *rows, i);
      // A row that the tables' types refuse is damage as well.
      if (const auto changed = insert.run(); changed.ok())
        rows_ += static_cast<std::uint64_t>(*changed);
    }
  }

  Database& from_;
  Database& to_;
  const Table& table_;
  std::uint64_t rows_ = 0;
  std::string damage_;
};

Status copy_tables(Database& damaged, Database& fresh, std::uint32_t runs, Salvage& out) {
  PROCTOR_TRY(const std::vector<Table> tables, tables_of(fresh, damaged));
  for (const Table& table : tables) {
    // The registration has the scopes; seals are made over what could be saved.
    if (table.name == "scopes" || table.name == "seals" || table.name == "keyed_seal") continue;
    Copier copier(damaged, fresh, table);
    PROCTOR_TRY(const bool whole, copier.both_ways());
    const bool by_run = table.name == "attempts" || table.name == "runs";
    if (!whole && by_run)
      for (std::uint32_t run = 0; run < runs; ++run) {
        PROCTOR_TRY(const bool read, copier.of_key(run));
        if (!read && table.name == "attempts") out.unreadable.push_back(RunId(run));
      }
    if (!whole && (table.name == "notes" || table.name == "reviews" || table.name == "epochs")) {
      PROCTOR_TRY(const std::int64_t last, fresh.integer("SELECT coalesce(max(" + table.key[0] +
                                                         "), 0) FROM " + table.name));
      for (std::int64_t key = 1; key <= last; ++key) PROCTOR_CHECK_OK(copier.of_key(key));
    }
    out.rows += copier.rows();
    if (!whole)
      out.notes.push_back("table " + table.name + " is damaged (" +
                          printable(copier.damage(), 200) + "): " + std::to_string(copier.rows()) +
                          " rows could be read");
  }
  return ok_status();
}

// Rows that are not those that were written are kept, because nothing says which of a block they
// are; told.
void tell_unsealed(Database& damaged, Database& fresh, Salvage& out) {
  const Result<bool> sealed = journal::has_seals(damaged);
  if (!sealed.ok() || !*sealed) return;
  const Result<journal::Blocks> written = journal::stored_seals(damaged),
                                there = journal::seal_all(fresh);
  if (!written.ok() || !there.ok()) return;
  for (const std::string& difference : journal::compare_seals(*there, *written))
    if (!difference.starts_with("table scopes:"))
      out.notes.push_back("not as it was sealed: " + difference);
}

// Rows that do not stand alone.

Status remove_run(Database& db, std::int64_t run) {
  const std::string where = " WHERE run = " + std::to_string(run);
  PROCTOR_CHECK_OK(db.exec(("DELETE FROM attempts" + where).c_str()));
  return db.exec(("DELETE FROM runs" + where).c_str());
}

Status judge_attempts(Database& db, Salvage& out) {
  // A worker whose row is gone keeps its number for a name.
  PROCTOR_CHECK_OK(db.exec(
      "INSERT INTO workers(id, name) SELECT DISTINCT worker, 'unknown-' || worker FROM attempts "
      "WHERE worker IS NOT NULL AND worker NOT IN (SELECT id FROM workers)"));
  if (journal::each_attempt(db, std::nullopt, [](const AttemptRecord&) {}).ok()) return ok_status();
  std::vector<std::int64_t> all;
  PROCTOR_TRY(auto rows, db.prepare("SELECT DISTINCT run FROM attempts ORDER BY run"));
  PROCTOR_CHECK_OK(each_row(rows, [&] { all.push_back(rows.integer(0)); }));
  for (const std::int64_t run : all) {
    const bool fits = 0 <= run && run <= UINT32_MAX;
    const RunId id(static_cast<std::uint32_t>(fits ? run : 0));
    const Status read = journal::each_attempt(db, id, [](const AttemptRecord&) {});
    if (fits && read.ok()) continue;
    out.notes.push_back("run " + std::to_string(run) + ": " +
                        (fits ? read.error().detail : "no such run"));
    if (fits) out.unreadable.push_back(id);
    PROCTOR_CHECK_OK(remove_run(db, run));
  }
  return ok_status();
}

// An attempt that decided says how its run ended; a run says nothing that its attempt does not.
Status judge_runs(Database& db, Salvage& out) {
  constexpr const char* kAlone =
      "state NOT IN ('ended', 'parked') OR (state = 'ended' AND NOT EXISTS (SELECT 1 FROM attempts "
      "a WHERE "
      "a.run = runs.run AND a.attempt = runs.attempt AND (a.sets_outcome IS NOT 1 OR a.outcome IS "
      "runs.outcome)))";
  PROCTOR_TRY(
      auto rows,
      db.prepare(std::string("SELECT run, attempt FROM runs WHERE attempt > 0 AND ") + kAlone));
  PROCTOR_CHECK_OK(each_row(rows, [&] {
    out.ended.push_back({RunId(static_cast<std::uint32_t>(rows.integer(0))),
                         AttemptNo(static_cast<std::uint32_t>(rows.integer(1)))});
  }));
  PROCTOR_CHECK_OK(db.exec((std::string("DELETE FROM runs WHERE ") + kAlone).c_str()));
  return db.exec(
      "INSERT OR IGNORE INTO runs(run, state, outcome, attempt, at_ms) SELECT run, 'ended', "
      "outcome, attempt, "
      "result_ms FROM attempts WHERE sets_outcome = 1");
}

// Those that are read back must parse; the others are for people.
Status judge_notes(Database& db, Salvage& out) {
  std::vector<std::int64_t> broken;
  for (std::int64_t after = 0;;) {
    auto some = journal::load_notes(db, after, 1);
    if (some.ok() && some->empty()) break;
    PROCTOR_TRY(const std::int64_t seq,
                db.integer("SELECT min(seq) FROM notes WHERE seq > " + std::to_string(after)));
    after = seq;
    const auto reads = [&] {
      if (!some.ok()) return false;
      const Note& note = (*some)[0].note;
      if (note.detail.find('\0') != std::string::npos) return false;
      if (note.kind == BudgetRaised::kNote) return fact_of<BudgetRaised>(note).ok();
      if (note.kind == BudgetAlert::kNote) return fact_of<BudgetAlert>(note).ok();
      return note.kind != RunDominates::kNote || fact_of<RunDominates>(note).ok();
    };
    if (!reads()) broken.push_back(seq);
  }
  for (const std::int64_t seq : broken)
    PROCTOR_CHECK_OK(db.exec(("DELETE FROM notes WHERE seq = " + std::to_string(seq)).c_str()));
  if (!broken.empty())
    out.notes.push_back(std::to_string(broken.size()) + " notes could not be read");
  return ok_status();
}

// Up to the first that is missing or does not fit its seal.
Status judge_reviews(Database& db, Salvage& out) {
  Digest last;
  std::uint32_t count = 0;
  PROCTOR_TRY(auto rows, db.prepare("SELECT " + journal::columns_of<journal::ReviewRow>().names() +
                                    " FROM reviews ORDER BY seq"));
  bool whole = true;
  PROCTOR_CHECK_OK(each_row(rows, [&] {
    journal::ReviewRow row;
    journal::RowReader v(rows);
    fields(v, row);
    const Result<Digest> due = seal_of(last, row.review);
    whole = whole && v.ok() && row.review.seq == count + 1 && due.ok() && *due == row.seal;
    if (!whole) return out.reviews_lost.push_back(std::move(row.review));
    last = row.seal;
    ++count;
  }));
  PROCTOR_CHECK_OK(db.exec(("DELETE FROM reviews WHERE seq > " + std::to_string(count)).c_str()));
  PROCTOR_CHECK_OK(db.exec("DELETE FROM meta WHERE key = 'reviews'"));
  if (count == 0) return ok_status();
  PROCTOR_TRY(auto head, db.prepare("INSERT INTO meta(key, value) VALUES('reviews', ?)"));
  head.bind(0, std::string_view(reviews_head(count, last)));
  return head.run().ok() ? ok_status() : Status(Error{Errc::kUnavailable, "journal: meta"});
}

// A copy to read from: SQLite writes its index of the log, and what that said before is why the
// journal is refused.  Where the disk does not let all of it be read, the file itself.
class Source {
 public:
  Source(const fs::path& damaged, const std::string& beside) : path_(beside + ".source") {
    const auto copy = [&](const char* part) {
      std::error_code ec;
      const fs::path to = path_.string() + part;
      fs::remove(to, ec);
      if (fs::exists(damaged.string() + part, ec)) fs::copy_file(damaged.string() + part, to, ec);
      return !ec;
    };
    copied_ = copy("") && copy("-wal");
    if (!copied_) original_ = damaged;
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    std::error_code ec;
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(path_.string() + part, ec);
  }
  const fs::path& path() const { return copied_ ? path_ : original_; }

 private:
  fs::path path_, original_;
  bool copied_ = false;
};
}  // namespace

Result<Salvage> salvage_journal(const fs::path& damaged, Database& fresh, std::uint32_t runs) {
  Salvage out;
  const Status files = check_journal_files(damaged);
  out.tail_missing = !files.ok();
  if (!files.ok()) out.notes.push_back(files.error().detail);
  PROCTOR_CHECK_OK(fresh.exec("PRAGMA foreign_keys = OFF"));
  PROCTOR_TRY(auto transaction, sqlite::Transaction::begin(fresh, "BEGIN IMMEDIATE"));
  const Source source(damaged, fresh.filename());
  auto old = Database::open(source.path(), Database::Mode::kReadOnly);
  Status copied = old.ok() ? copy_tables(*old, fresh, runs, out) : Status(std::move(old).error());
  if (old.ok() && copied.ok()) tell_unsealed(*old, fresh, out);
  if (!copied.ok() || out.rows == 0) {
    out.notes.push_back(
        "nothing of the file can be read" +
        (copied.ok() ? std::string() : " (" + printable(copied.error().detail, 200) + ")"));
    out.tail_missing = true;
  }
  PROCTOR_CHECK_OK(judge_attempts(fresh, out));
  PROCTOR_CHECK_OK(judge_runs(fresh, out));
  PROCTOR_CHECK_OK(judge_notes(fresh, out));
  PROCTOR_CHECK_OK(judge_reviews(fresh, out));
  PROCTOR_CHECK_OK(transaction.commit());
  PROCTOR_CHECK_OK(fresh.exec("PRAGMA foreign_keys = ON"));
  return out;
}
}  // namespace proctor
