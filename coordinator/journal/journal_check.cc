#include "coordinator/journal/journal_check.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/row_seals.h"

namespace proctor {
namespace {

using Problems = std::vector<std::string>;

// The first column of each row.
Status each_text(sqlite::Database& db, std::string_view sql, Problems& out) {
  PROCTOR_TRY(auto rows, db.prepare(sql));
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) return ok_status();
    out.push_back(printable(rows.text(0), 300));
  }
}

// No text of ours holds a NUL: zeros are what is left of a page that ran over.
constexpr const char* kZeros =
    "SELECT 'attempt ' || run || '.' || attempt || ' holds zeros for text' FROM attempts WHERE "
    "instr(CAST(rationale AS BLOB), x'00') OR instr(CAST(reason AS BLOB), x'00') "
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
  if (!inside.ok() && inside.error().code == Errc::kUnavailable) return inside.error();
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

}  // namespace proctor
