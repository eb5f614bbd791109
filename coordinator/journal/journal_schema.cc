#include "coordinator/journal/journal_schema.h"

#include <cctype>
#include <string>

#include "common/base/text.h"
#include "coordinator/journal/row_seals.h"

namespace proctor::journal {

namespace {

// Columns are never renamed or reused; a new one comes with the next schema version.
constexpr const char* kFirstTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE scopes(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cap INTEGER NOT NULL) STRICT;
CREATE TABLE epochs(epoch INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL,
  version TEXT NOT NULL, begun_ms INTEGER NOT NULL) STRICT;
CREATE TABLE workers(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE attempts(
  run INTEGER NOT NULL, attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  seq INTEGER NOT NULL, ask INTEGER NOT NULL,
  worker INTEGER REFERENCES workers(id), boot INTEGER,
  denied_scope INTEGER REFERENCES scopes(id), short_by INTEGER,
  infrastructure INTEGER, sets_outcome INTEGER, outcome TEXT, termination TEXT,
  charged INTEGER, overrun INTEGER,
  setup_ms INTEGER, agent_ms INTEGER, acceptance_ms INTEGER, cpu_ms INTEGER, tool_calls INTEGER,
  input_tokens INTEGER, output_tokens INTEGER, model_calls INTEGER, stored_bytes INTEGER,
  rationale TEXT, reason TEXT, report BLOB, archive BLOB, archive_bytes INTEGER,
  started_ms INTEGER, finished_ms INTEGER,
  cost_model INTEGER, cost_execution INTEGER, cost_human INTEGER, cost_overhead INTEGER,
  intent_ms INTEGER, granted_ms INTEGER, result_ms INTEGER, settled_ms INTEGER, ended_ms INTEGER,
  metered TEXT,
  PRIMARY KEY(run, attempt)) STRICT, WITHOUT ROWID;
CREATE TABLE runs(run INTEGER PRIMARY KEY, state TEXT NOT NULL, outcome TEXT, attempt INTEGER,
  scope INTEGER REFERENCES scopes(id), short_by INTEGER, at_ms INTEGER) STRICT;
CREATE TABLE notes(seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, run INTEGER,
  attempt INTEGER, detail TEXT NOT NULL) STRICT;
CREATE INDEX notes_of_run ON notes(run) WHERE run IS NOT NULL;
)sql";

// Schema 3.  What people spent on runs after they ended.
constexpr const char* kReviews = R"sql(
CREATE TABLE reviews(seq INTEGER PRIMARY KEY, run INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  milli_minutes INTEGER NOT NULL, charged INTEGER NOT NULL, reviewer TEXT NOT NULL, note TEXT NOT NULL,
  seal BLOB NOT NULL) STRICT;
)sql";

// Schema 4.  See row_seals.h.
constexpr const char* kSeals = R"sql(
CREATE TABLE seals(part TEXT NOT NULL, block INTEGER NOT NULL, rows INTEGER NOT NULL, sum BLOB NOT NULL,
  PRIMARY KEY(part, block)) STRICT, WITHOUT ROWID;
)sql";

// Schema 5.  See keyed_seal.h.
constexpr const char* kKeyedSeal = R"sql(
CREATE TABLE keyed_seal(id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL, since_ms INTEGER NOT NULL,
  at_ms INTEGER NOT NULL, commits INTEGER NOT NULL, rows INTEGER NOT NULL, sum BLOB NOT NULL, mac BLOB NOT NULL)
  STRICT;
)sql";

// For people with a sqlite3 shell.
constexpr const char* kViews = R"sql(
CREATE VIEW attempt_story(run, attempt, at_ms, at, fact, detail) AS
  SELECT run, attempt, at_ms, strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch'), fact, detail
  FROM (
    SELECT run, attempt, intent_ms AS at_ms, 0 AS step, 'intent' AS fact,
      printf('ask %d micro-dollars, sequence %d', ask, seq) AS detail FROM attempts
    UNION ALL SELECT run, attempt, granted_ms, 1, 'granted',
      'worker ' || coalesce((SELECT name FROM workers WHERE id = worker), '-')
      FROM attempts WHERE granted_ms IS NOT NULL
    UNION ALL SELECT run, attempt, ended_ms, 2, state,
      coalesce(reason, 'short by ' || short_by || ' in ' ||
        (SELECT name FROM scopes WHERE id = denied_scope), '')
      FROM attempts WHERE ended_ms IS NOT NULL
    UNION ALL SELECT run, attempt, result_ms, 3, 'result',
      outcome || ', ' || termination || coalesce(': ' || rationale, '')
      FROM attempts WHERE result_ms IS NOT NULL
    UNION ALL SELECT run, attempt, settled_ms, 4, 'settled',
      printf('charged %d of %d micro-dollars, overrun %d', charged, ask, overrun)
      FROM attempts WHERE settled_ms IS NOT NULL
    UNION ALL SELECT run, NULL, at_ms, 5, 'reviewed',
      printf('%d thousandths of a minute by %s, charged %d micro-dollars', milli_minutes, reviewer, charged)
      FROM reviews
    UNION ALL SELECT run, attempt, at_ms, 5, kind, detail FROM notes WHERE run IS NOT NULL)
  ORDER BY run, at_ms, attempt, step;
CREATE VIEW balance(spent, reserved, overrun, cap) AS
  SELECT coalesce(sum(charged), 0) + (SELECT coalesce(sum(charged), 0) FROM reviews),
    coalesce(sum(CASE WHEN settled_ms IS NULL AND granted_ms IS NOT NULL AND state <> 'voided'
      THEN ask END), 0),
    coalesce(sum(overrun), 0),
    (SELECT cap FROM scopes WHERE id = 0)
  FROM attempts;
)sql";

Status check_schema(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t application, db.integer("PRAGMA application_id"));
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  if (application != kApplicationId) {
    return Error{Errc::kInvalid, db.filename() + " is an SQLite file but not a Proctor journal"};
  }
  if (kSchemaVersion < version) {
    return Error{Errc::kInvalid, db.filename() + " has journal schema " + std::to_string(version) +
                                     ", written by a newer proctor; this one knows up to " +
                                     std::to_string(kSchemaVersion)};
  }
  if (version < 1) {
    return Error{Errc::kCorrupt, db.filename() + " has journal schema " + std::to_string(version)};
  }
  return ok_status();
}

Status create(sqlite::Database& db) {
  PROCTOR_TRY(auto transaction, sqlite::Transaction::begin(db, "BEGIN IMMEDIATE"));
  PROCTOR_CHECK_OK(db.exec(kFirstTables));
  PROCTOR_CHECK_OK(db.exec(kReviews));
  PROCTOR_CHECK_OK(db.exec(kSeals));
  PROCTOR_CHECK_OK(db.exec(kKeyedSeal));
  PROCTOR_CHECK_OK(db.exec(kViews));
  const std::string marks = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  PROCTOR_CHECK_OK(db.exec(marks.c_str()));
  return transaction.commit();
}

// Schema 2: what a meter counted.  Schema 3: reviews, and views that know them.  Schema 4: seals,
// over what is there now.  Schema 5: the keyed one, which is made when the journal is written to.
Status upgrade(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  if (version == kSchemaVersion) return ok_status();
  PROCTOR_TRY(auto transaction, sqlite::Transaction::begin(db, "BEGIN IMMEDIATE"));
  if (version < 2) PROCTOR_CHECK_OK(db.exec("ALTER TABLE attempts ADD COLUMN metered TEXT"));
  if (version < 3) {
    PROCTOR_CHECK_OK(db.exec(kReviews));
    PROCTOR_CHECK_OK(db.exec("DROP VIEW IF EXISTS attempt_story; DROP VIEW IF EXISTS balance"));
    PROCTOR_CHECK_OK(db.exec(kViews));
  }
  if (version < 4) {
    PROCTOR_CHECK_OK(db.exec(kSeals));
    PROCTOR_TRY(const Blocks blocks, seal_all(db));
    PROCTOR_CHECK_OK(store_seals(db, blocks));
  }
  PROCTOR_CHECK_OK(db.exec(kKeyedSeal));
  const std::string mark = "PRAGMA user_version = " + std::to_string(kSchemaVersion);
  PROCTOR_CHECK_OK(db.exec(mark.c_str()));
  return transaction.commit();
}

// Without what does not count in SQL: an older version broke its lines elsewhere, and a column that
// came later stands in the line of the one before.
std::string without_space(std::string_view sql) {
  std::string out;
  for (const char c : sql)
    if (std::isspace(static_cast<unsigned char>(c)) == 0) out += c;
  return out;
}

}  // namespace

Result<std::vector<std::string>> foreign_objects(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  std::string ours;
  for (const char* tables : {kFirstTables, kReviews, kSeals, kKeyedSeal, kViews})
    ours += without_space(tables);
  constexpr std::string_view kMetered = "meteredTEXT,";
  if (version < 2) ours.erase(ours.find(kMetered), kMetered.size());
  PROCTOR_TRY(auto objects, db.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema "
                                       "ORDER BY type, name"));
  std::vector<std::string> out;
  for (;;) {
    PROCTOR_TRY(const bool more, objects.step());
    if (!more) return out;
    const std::string type(objects.text(0)), name(objects.text(1));
    const std::string sql = without_space(objects.text(2));
    // What SQLite makes for a key; nobody else may use its names.
    if (type == "index" && sql.empty() && name.starts_with("sqlite_autoindex_")) continue;
    // Views of before reviews were others; the next writer makes them anew.
    if (type == "view" && version < 3 && (name == "attempt_story" || name == "balance")) continue;
    // All of one statement, and not its end: a whole one begins so and is one.
    const bool made_by_us = sql.starts_with("CREATE") && sql.find(';') == std::string::npos &&
                            ours.find(sql + ';') != std::string::npos;
    if (made_by_us) continue;
    out.push_back((type == "index" ? "an " : "a ") + type + " " + printable(name, 100) +
                  " that no proctor made: it may rewrite rows, or show others");
  }
}

bool was_never_made(const fs::path& file) {
  fs::path rollback = file;
  rollback += "-journal";
  std::error_code ec;
  return fs::exists(rollback, ec);
}

Result<bool> has_nothing_yet(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t objects, db.integer("SELECT count(*) FROM sqlite_schema"));
  PROCTOR_TRY(const std::int64_t mark, db.integer("PRAGMA application_id"));
  return objects == 0 && mark == 0;
}

Status prepare_for_reading(sqlite::Database& db) {
  PROCTOR_CHECK_OK(check_schema(db));
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  if (version == kSchemaVersion) return ok_status();
  std::string lacks = "PRAGMA temp_store = MEMORY;";
  if (version < 2)
    lacks += "CREATE TEMP VIEW attempts AS SELECT *, NULL AS metered FROM main.attempts;";
  if (version < 3) lacks += kReviews;
  lacks += kKeyedSeal;
  for (std::size_t at = 0; (at = lacks.find("CREATE TABLE", at)) != std::string::npos;)
    lacks.insert(at + std::string_view("CREATE").size(), " TEMP");
  return db.exec(lacks.c_str());
}

Status prepare_for_writing(sqlite::Database& db) {
  PROCTOR_TRY(const bool is_new, has_nothing_yet(db));
  if (!is_new) PROCTOR_CHECK_OK(check_schema(db));
  PROCTOR_TRY(auto mode, db.prepare("PRAGMA journal_mode = WAL"));
  PROCTOR_TRY(const bool row, mode.step());
  if (!row || mode.text(0) != "wal") {
    return Error{Errc::kInvalid, db.filename() + ": this file system cannot hold a WAL journal"};
  }
  mode.reset();
  // FULL: every commit is an fsync of the WAL.  4000 pages: a checkpoint every 16 MiB, not every 4.
  // Rows are written about where the plan has come to, so a larger cache would only hold what is
  // over: 16 MiB.
  PROCTOR_CHECK_OK(db.exec(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000; "
      "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY"));
  return is_new ? create(db) : upgrade(db);
}

}  // namespace proctor::journal
