#include "coordinator/journal/journal_store.h"

#include <fmt/format.h>
#include <array>
#include <cctype>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/owner_lock.h"

namespace proctor::journal {
namespace {
// Columns are never renamed or reused; a new one comes with the next schema version.  $ADDED: those
// of attempts that did.
constexpr std::string_view kFirstTables = R"sql(
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
  intent_ms INTEGER, granted_ms INTEGER, result_ms INTEGER, settled_ms INTEGER, ended_ms INTEGER
  $ADDED,
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

// Schema 4.  See seals.h.
constexpr const char* kSeals = R"sql(
CREATE TABLE seals(part TEXT NOT NULL, block INTEGER NOT NULL, rows INTEGER NOT NULL, sum BLOB NOT NULL,
  PRIMARY KEY(part, block)) STRICT, WITHOUT ROWID;
)sql";

// Schema 5.  See seals.h.
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

// Columns of attempts that came later than its table: those that `schema` has, or those it lacks.
std::vector<Column> added_columns(std::int64_t schema, bool has) {
  std::vector<Column> out;
  const ColumnList all = columns_of<AttemptRow>();
  for (const Column& c : all.list())
    if (c.since != 0 && (c.since <= schema) == has) out.push_back(c);
  return out;
}

std::string first_tables(std::int64_t schema) {
  constexpr std::string_view kAdded = "$ADDED";
  std::string out(kFirstTables), added;
  for (const Column& c : added_columns(schema, true))
    added += fmt::format(", {} {}", c.name, c.type);
  return out.replace(out.find(kAdded), kAdded.size(), added);
}

Status check_schema(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t application, db.integer("PRAGMA application_id"));
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  if (application != kApplicationId) {
    return Error{Errc::kInvalid, db.filename() + " is an SQLite file but not a Proctor journal"};
  }
  if (kSchemaVersion < version) {
    return Error{Errc::kConflict, db.filename() + " has journal schema " + std::to_string(version) +
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
  PROCTOR_CHECK_OK(db.exec(first_tables(kSchemaVersion).c_str()));
  for (const char* more : {kReviews, kSeals, kKeyedSeal, kViews}) PROCTOR_CHECK_OK(db.exec(more));
  const std::string marks = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  PROCTOR_CHECK_OK(db.exec(marks.c_str()));
  return transaction.commit();
}

// Schema 2: what a meter counted.  Schema 3: reviews, and views that know them.  Schema 4: seals,
// over what is there now.  Schema 5: the keyed one, which is made when the journal is written to.
// Schema 6: facts of attempts as columns.  Schema 7: what its gates, score and tags are.
Status upgrade(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t version, db.integer("PRAGMA user_version"));
  if (version == kSchemaVersion) return ok_status();
  PROCTOR_TRY(auto transaction, sqlite::Transaction::begin(db, "BEGIN IMMEDIATE"));
  for (const Column& c : added_columns(version, false))
    PROCTOR_CHECK_OK(
        db.exec(fmt::format("ALTER TABLE attempts ADD COLUMN {} {}", c.name, c.type).c_str()));
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
  if (version < 5) PROCTOR_CHECK_OK(db.exec(kKeyedSeal));
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
  std::string ours = without_space(first_tables(version));
  for (const char* tables : {kReviews, kSeals, kKeyedSeal, kViews}) ours += without_space(tables);
  PROCTOR_TRY(auto objects, db.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema "
                                       "ORDER BY type, name"));
  std::vector<std::string> out;
  PROCTOR_CHECK_OK(each_row(objects, [&] {
    const std::string type(objects.text(0)), name(objects.text(1));
    const std::string sql = without_space(objects.text(2));
    // What SQLite makes for a key; nobody else may use its names.
    if (type == "index" && sql.empty() && name.starts_with("sqlite_autoindex_")) return;
    // Views of before reviews were others; the next writer makes them anew.
    if (type == "view" && version < 3 && (name == "attempt_story" || name == "balance")) return;
    // All of one statement, and not its end: a whole one begins so and is one.
    const bool made_by_us = sql.starts_with("CREATE") && sql.find(';') == std::string::npos &&
                            ours.find(sql + ';') != std::string::npos;
    if (made_by_us) return;
    out.push_back((type == "index" ? "an " : "a ") + type + " " + printable(name, 100) +
                  " that no proctor made: it may rewrite rows, or show others");
  }));
  return out;
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
  std::string columns;
  for (const Column& c : added_columns(version, false))
    columns += fmt::format(", NULL AS {}", c.name);
  if (!columns.empty())
    lacks += "CREATE TEMP VIEW attempts AS SELECT *" + columns + " FROM main.attempts;";
  if (version < 3) lacks += kReviews;
  if (version < 5) lacks += kKeyedSeal;
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

namespace proctor {
using journal::columns_of;
using journal::insertion;
using journal::ReviewRow;
using journal::RowReader;
using journal::RowWriter;

// A run whose invalid result an operator has set aside: rare, so its statements are made when one
// is asked for.

namespace {
constexpr const char* kSetAside =
    "UPDATE attempts SET sets_outcome = 0 WHERE run = ? AND attempt = ? AND sets_outcome = 1 AND "
    "outcome = 'invalid'";
constexpr const char* kReopened =
    "DELETE FROM runs WHERE run = ? AND attempt = ? AND state = 'ended' AND outcome = 'invalid'";
constexpr const char* kStillEnded =
    "SELECT 1 FROM runs WHERE run = ? AND attempt = ? AND state = 'ended'";

// Binds what is given to the question marks and runs: the number of changed rows.
template <class... T>
Result<std::int64_t> run(sqlite::Statement& statement, const T&... values) {
  RowWriter row(statement);
  (row.put(values), ...);
  return statement.run();
}
// The same, the columns of a row first.
template <class Row, class... T>
Result<std::int64_t> run_row(sqlite::Statement& statement, const Row& columns, const T&... values) {
  RowWriter row(statement);
  fields(row, columns);
  (row.put(values), ...);
  return statement.run();
}
}  // namespace

// Told again it finds nothing to do.  What the attempt ended otherwise stands, and contradicts.
Result<std::int64_t> JournalStore::put(const RunReopened& f) {
  for (const char* sql : {kSetAside, kReopened}) {
    PROCTOR_TRY(sqlite::Statement statement, db_.prepare(sql));
    PROCTOR_CHECK_OK(run(statement, f.attempt));
  }
  PROCTOR_TRY(sqlite::Statement left, db_.prepare(kStillEnded));
  RowWriter(left).put(f.attempt);
  PROCTOR_TRY(const bool ended, left.step());
  return ended ? 0 : 1;
}

namespace {
fs::path lock_of(fs::path journal) {
  journal += ".lock";
  return journal;
}

// One coordinator per campaign.  The file stays when it ends: removing it would race with the next.
Result<UniqueFd> take_lock(const fs::path& file) {
  Result<UniqueFd> lock = take_owner_lock(file, "", kJournalPatience);
  if (lock.ok() || lock.error().code != Errc::kConflict) return lock;
  return Error{Errc::kConflict,
               "campaign journal in use by " + lock.error().detail + " (" + file.string() + ")"};
}

std::string describe(const JournalWrite& fact) {
  return std::visit(
      Overload{
          [](const RunParked& f) { return "parking of run " + std::to_string(f.run.raw()); },
          [](const RunUnparked& f) { return "unparking of run " + std::to_string(f.run.raw()); },
          [](const RunReopened& f) { return "reopening by " + to_string(f.attempt); },
          [](const RunEnded& f) { return "end of run " + std::to_string(f.run.raw()); },
          [](const RunReviewed& f) { return "review " + std::to_string(f.seq); },
          [](const Note& f) { return "note " + printable(f.kind); },
          [](const EpochBegun& f) { return "epoch " + std::to_string(f.epoch.raw()); },
          [](const MetaSet& f) { return "meta " + printable(f.key); },
          [](const ScopeDefined& f) { return "scope " + printable(f.name); },
          [](const AttemptIntent& f) { return "intent of " + to_string(f.attempt); },
          [](const AttemptGranted& f) { return "grant of " + to_string(f.attempt); },
          [](const AttemptDenied& f) { return "denial of " + to_string(f.attempt); },
          [](const AttemptResult& f) { return "result of " + to_string(f.attempt); },
          [](const AttemptSettled& f) { return "settlement of " + to_string(f.attempt); },
          [](const AttemptVoided& f) { return "voiding of " + to_string(f.attempt); },
          [](const AttemptLost& f) { return "loss of " + to_string(f.attempt); },
          [](const AttemptCancelled& f) { return "cancellation of " + to_string(f.attempt); }},
      fact);
}

// The WHERE clauses are the rules of contradiction: an UPDATE that finds no row is refused.
constexpr const char* kIntent =
    "INSERT INTO attempts(run, attempt, state, seq, ask, intent_ms) VALUES(?, ?, 'reserving', ?, "
    "?, ?) "
    "ON CONFLICT(run, attempt) DO UPDATE SET state = 'reserving', seq = excluded.seq, "
    "ask = excluded.ask, intent_ms = excluded.intent_ms, denied_scope = NULL, short_by = NULL, "
    "ended_ms = NULL WHERE state IN ('reserving', 'denied') AND seq <= excluded.seq";
constexpr const char* kGranted =
    "UPDATE attempts SET state = 'granted', worker = ?, boot = ?, granted_ms = ? "
    "WHERE run = ? AND attempt = ? AND state IN ('reserving', 'granted')";
constexpr const char* kDenied =
    "UPDATE attempts SET state = 'denied', denied_scope = ?, short_by = ?, ended_ms = ? "
    "WHERE run = ? AND attempt = ? AND seq = ? AND state IN ('reserving', 'denied')";
constexpr const char* kVoided =
    "UPDATE attempts SET state = 'voided', reason = ?, ended_ms = ? WHERE run = ? AND attempt = ? "
    "AND state IN ('reserving', 'granted', 'voided') AND settled_ms IS NULL";
constexpr const char* kLost =
    "UPDATE attempts SET state = 'lost', reason = ?, ended_ms = ? WHERE run = ? AND attempt = ? "
    "AND state IN ('granted', 'lost')";
constexpr const char* kCancelled =
    "UPDATE attempts SET state = 'cancelled', reason = ?, ended_ms = ? "
    "WHERE run = ? AND attempt = ? AND state <> 'voided'";
constexpr const char* kParked =
    "INSERT INTO runs(run, state, scope, short_by, at_ms) VALUES(?, 'parked', ?, ?, ?) "
    "ON CONFLICT(run) DO UPDATE SET scope = excluded.scope, short_by = excluded.short_by, "
    "at_ms = excluded.at_ms WHERE state = 'parked'";
constexpr const char* kUnparked = "DELETE FROM runs WHERE run = ? AND state = 'parked'";
constexpr const char* kEnded =
    "INSERT INTO runs(run, state, outcome, attempt, at_ms) VALUES(?, 'ended', ?, ?, ?) "
    "ON CONFLICT(run) DO UPDATE SET state = 'ended', outcome = excluded.outcome, "
    "attempt = excluded.attempt, scope = NULL, short_by = NULL, "
    "at_ms = CASE state WHEN 'ended' THEN coalesce(at_ms, excluded.at_ms) ELSE excluded.at_ms END "
    "WHERE state = 'parked' OR (outcome = excluded.outcome AND attempt = excluded.attempt)";
constexpr const char* kReviewsHead =
    "INSERT INTO meta(key, value) SELECT ?1, ?2 WHERE (SELECT max(seq) FROM reviews) = ?3 "
    "ON CONFLICT(key) DO UPDATE SET value = excluded.value";
constexpr const char* kEpoch =
    "INSERT INTO epochs(epoch, host, pid, version, begun_ms) SELECT ?1, ?2, ?3, ?4, ?5 "
    "WHERE ?1 > (SELECT coalesce(max(epoch), 0) FROM epochs)";
}  // namespace

std::optional<LockOwner> journal_owner(const fs::path& file, std::chrono::milliseconds patience) {
  return lock_owner(lock_of(file), patience);
}

Result<std::unique_ptr<JournalStore>> JournalStore::open(const fs::path& file) {
  PROCTOR_CHECK_OK(check_journal_kinds(file));
  PROCTOR_TRY(UniqueFd lock, take_lock(lock_of(file)));
  std::error_code ec;
  if (fs::exists(file.string() + ".recovered", ec))
    return Error{Errc::kConflict, "a recovery of " + file.string() +
                                      " was interrupted: proctor journal recover goes on with it"};
  PROCTOR_CHECK_OK(check_journal_files(file));  // before SQLite removes what it does not understand
  PROCTOR_TRY(sqlite::Database db, sqlite::Database::open(file, sqlite::Database::Mode::kCreate));
  PROCTOR_CHECK_OK(journal::prepare_for_writing(db));
  std::unique_ptr<JournalStore> store(new JournalStore(std::move(lock), std::move(db)));
  PROCTOR_CHECK_OK(store->prepare_all());
  // Its maker had a rollback journal for a moment.  One whose removal the power took back would be
  // rolled back, and all that was committed since with it.
  PROCTOR_CHECK_OK(sync_path(file.has_parent_path() ? file.parent_path() : fs::path(".")));
  // Frames of an unfinished transaction would stand behind new ones and look like damage.
  PROCTOR_CHECK_OK(store->checkpoint());
  PROCTOR_TRY(store->seals_, journal::RowSeals::attach(store->db_));
  PROCTOR_CHECK_OK(store->adopt_last_epoch());
  return store;
}

Status JournalStore::prepare_all() {
  const std::string result =
      "UPDATE attempts SET state = CASE state WHEN 'lost' THEN 'lost' ELSE 'finished' END, " +
      columns_of<AttemptResult>().names(" = ?") +
      " WHERE run = ? AND attempt = ? AND state NOT IN ('reserving', 'denied') AND (result_ms IS "
      "NULL OR report IS ?)";
  const std::string settled =
      "UPDATE attempts SET " + columns_of<AttemptSettled>().names(" = ?") +
      " WHERE run = ? AND attempt = ? AND state NOT IN ('reserving', 'denied') "
      "AND (settled_ms IS NULL OR charged = ?)";
  const std::string review = insertion(columns_of<ReviewRow>(), "reviews") +
                             " ON CONFLICT(seq) DO UPDATE SET seal = excluded.seal WHERE seal = "
                             "excluded.seal";
  const std::string note = insertion(columns_of<Note>(), "notes");
  const std::string meta = insertion(columns_of<MetaSet>(), "meta") +
                           " ON CONFLICT(key) DO UPDATE SET value = excluded.value";
  const std::string scope = insertion(columns_of<ScopeDefined>(), "scopes") +
                            " ON CONFLICT(id) DO UPDATE SET cap = excluded.cap WHERE name = "
                            "excluded.name AND cap IN (excluded.cap, ?)";
  const std::array<std::pair<sqlite::Statement*, std::string_view>, 21> all{
      {{&intent_, kIntent},
       {&granted_, kGranted},
       {&denied_, kDenied},
       {&result_, result},
       {&settled_, settled},
       {&voided_, kVoided},
       {&lost_, kLost},
       {&cancelled_, kCancelled},
       {&parked_, kParked},
       {&unparked_, kUnparked},
       {&ended_, kEnded},
       {&review_, review},
       {&review_seal_, "SELECT seal FROM reviews WHERE seq = ?"},
       {&reviews_head_, kReviewsHead},
       {&note_, note},
       {&epoch_new_, kEpoch},
       {&last_epoch_, "SELECT coalesce(max(epoch), 0) FROM epochs"},
       {&meta_, meta},
       {&scope_, scope},
       {&worker_, "SELECT id FROM workers WHERE name = ?"},
       {&worker_new_, "INSERT INTO workers(name) VALUES(?) ON CONFLICT(name) DO NOTHING"}}};
  for (const auto& [statement, sql] : all) {
    PROCTOR_TRY(*statement, db_.prepare(sql));
  }
  return ok_status();
}

Result<sqlite::Transaction> JournalStore::begin() {
  seals_->begin();
  PROCTOR_TRY(sqlite::Transaction transaction, sqlite::Transaction::begin(db_, "BEGIN IMMEDIATE"));
  begins_ = epoch_;
  PROCTOR_TRY(const std::int64_t last, last_epoch());
  if (last != epoch_) return fenced(fmt::format("epoch {} has begun since {}", last, epoch_));
  PROCTOR_CHECK_OK(db_.is_in_place());
  return transaction;
}

Status JournalStore::commit(sqlite::Transaction& transaction) {
  PROCTOR_CHECK_OK(seals_->store());
  PROCTOR_CHECK_OK(transaction.commit());
  epoch_ = begins_;
  return ok_status();
}

Result<std::int64_t> JournalStore::last_epoch() {
  PROCTOR_TRY(const bool row, last_epoch_.step());
  const std::int64_t last = row ? last_epoch_.integer(0) : 0;
  last_epoch_.reset();
  return last;
}

Status JournalStore::expect_nobody_else() {
  PROCTOR_TRY(version_read_, db_.integer("PRAGMA data_version"));
  return ok_status();
}

// Its lock is not ours alone: removed, or of a file system that does not share locks.
Error JournalStore::fenced(const std::string& what) const {
  return {Errc::kConflict, fmt::format("{}: another coordinator writes it ({}). This one stops: "
                                       "what it does from here on would be done twice",
                                       db_.filename(), what)};
}

Status JournalStore::checkpoint() {
  return db_.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

Status JournalStore::write(const JournalWrite& fact) {
  using Changed = Result<std::int64_t>;
  constexpr std::optional<WallTime> kNotTold;
  auto changed = std::visit(
      Overload{
          [&](const AttemptIntent& f) { return run(intent_, f.attempt, f.seq, f.ask, f.at); },
          [&](const AttemptGranted& f) { return put(f); },
          [&](const AttemptDenied& f) {
            return run(denied_, f.scope, f.short_by, f.at, f.attempt, f.seq);
          },
          [&](const AttemptResult& f) -> Changed {
            PROCTOR_TRY(const std::int64_t rows, run_row(result_, f, f.attempt, f.report));
            if (rows == 0 || !f.sets_outcome) return rows;
            const auto ended = f.at == WallTime(0) ? kNotTold : f.at;
            return run(ended_, f.attempt.run, f.outcome, f.attempt.no, ended);
          },
          [&](const AttemptSettled& f) { return run_row(settled_, f, f.attempt, f.charged); },
          [&](const AttemptVoided& f) { return run(voided_, f.reason, f.at, f.attempt); },
          [&](const AttemptLost& f) { return run(lost_, f.reason, f.at, f.attempt); },
          [&](const AttemptCancelled& f) { return run(cancelled_, f.reason, f.at, f.attempt); },
          [&](const RunParked& f) { return run(parked_, f.run, f.scope, f.short_by, f.at); },
          [&](const RunUnparked& f) -> Changed {
            PROCTOR_CHECK_OK(run(unparked_, f.run));
            return 1;  // it may have been parked or not
          },
          [&](const RunReopened& f) { return put(f); },
          [&](const RunEnded& f) { return run(ended_, f.run, f.outcome, f.attempt.no, kNotTold); },
          [&](const RunReviewed& f) { return put(f); },
          [&](const Note& f) { return run_row(note_, f); },
          [&](const EpochBegun& f) { return put(f); },
          [&](const MetaSet& f) { return run_row(meta_, f); },
          [&](const ScopeDefined& f) { return run_row(scope_, f, f.raised_from.value_or(f.cap)); }},
      fact);
  if (!changed.ok()) return in_context(describe(fact), std::move(changed).error());
  if (*changed == 0)
    return Error{Errc::kCorrupt, describe(fact) + " contradicts what the journal holds"};
  return ok_status();
}

Result<std::int64_t> JournalStore::worker_id(const std::string& name) {
  if (const auto it = workers_.find(name); it != workers_.end()) return it->second;
  PROCTOR_CHECK_OK(run(worker_new_, name));
  worker_.bind(0, std::string_view(name));
  PROCTOR_TRY(const bool row, worker_.step());
  if (!row) return Error{Errc::kCorrupt, "worker " + printable(name) + " has no row"};
  const std::int64_t id = worker_.integer(0);
  worker_.reset();
  workers_.emplace(name, id);
  return id;
}

Result<std::int64_t> JournalStore::put(const AttemptGranted& f) {
  std::optional<std::int64_t> worker;
  if (!f.worker.raw().empty()) {
    PROCTOR_TRY(worker, worker_id(f.worker.raw()));
  }
  return run(granted_, worker, f.boot, f.at, f.attempt);
}

// A review that does not follow the one before it contradicts: nothing is changed.
Result<std::int64_t> JournalStore::put(const RunReviewed& f) {
  if (f.seq == 0) return 0;
  Digest before;
  if (1 < f.seq) {
    review_seal_.bind(0, std::int64_t{f.seq} - 1);
    PROCTOR_TRY(const bool there, review_seal_.step());
    RowReader row(review_seal_);
    if (there) row("seal", before);
    review_seal_.reset();
    if (before == Digest()) return 0;
  }
  PROCTOR_TRY(const Digest seal, seal_of(before, f));
  PROCTOR_TRY(const std::int64_t changed, run_row(review_, ReviewRow{f, seal}));
  if (changed == 0) return 0;
  PROCTOR_CHECK_OK(run(reviews_head_, kMetaReviews, reviews_head(f.seq, seal), f.seq));
  return changed;
}

Result<std::int64_t> JournalStore::put(const EpochBegun& f) {
  if (version_read_) {
    PROCTOR_TRY(const std::int64_t now, db_.integer("PRAGMA data_version"));
    if (now != *version_read_) return fenced("it has grown since it was read");
  }
  PROCTOR_TRY(const std::int64_t changed, run_row(epoch_new_, f));
  if (changed != 0) begins_ = static_cast<std::int64_t>(f.epoch.raw());
  return changed;
}
}  // namespace proctor
