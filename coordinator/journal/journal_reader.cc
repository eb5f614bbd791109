#include "coordinator/journal/journal_reader.h"

#include <utility>

#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/journal_wal.h"
#include "coordinator/journal/row_seals.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {

namespace {

Result<sqlite::Database> open_checked(const fs::path& file, sqlite::Database::Mode mode) {
  PROCTOR_TRY(sqlite::Database db, sqlite::Database::open(file, mode));
  PROCTOR_TRY(const bool blank, journal::has_nothing_yet(db));
  if (blank) return Error{Errc::kNotFound, db.filename() + " has nothing in it yet"};
  PROCTOR_CHECK_OK(journal::prepare_for_reading(db));
  // The schema check reads the header only; this one needs the WAL.
  PROCTOR_TRY(const std::int64_t tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  if (tables == 0) return Error{Errc::kCorrupt, db.filename() + " has no tables"};
  return db;
}

}  // namespace

JournalReader::JournalReader(std::unique_ptr<sqlite::Database> db) : db_(std::move(db)) {}
JournalReader::JournalReader(JournalReader&&) noexcept = default;
JournalReader& JournalReader::operator=(JournalReader&&) noexcept = default;
JournalReader::~JournalReader() = default;

Result<JournalReader> JournalReader::open(const fs::path& file) {
  PROCTOR_CHECK_OK(check_journal_kinds(file));
  std::error_code ec;
  if (!fs::exists(file, ec)) {
    return Error{Errc::kNotFound, "read journal: no file " + file.string()};
  }
  if (journal::was_never_made(file))  // the next writer rolls it back
    return Error{Errc::kNotFound, "read journal: " + file.string() + " has nothing in it yet"};
  // Who writes has looked at the log, and changes it now.
  if (!journal_owner(file)) PROCTOR_CHECK_OK(check_journal_files(file));
  auto db = open_checked(file, sqlite::Database::Mode::kReadOnly);
  fs::path wal = file;
  wal += "-wal";
  if (!db.ok() && db.error().code == Errc::kInvalid && !fs::exists(wal, ec)) {
    // An orderly closed journal in a folder we may not write to: SQLite cannot make its shared
    // memory file there, and does not need one.
    auto still = open_checked(file, sqlite::Database::Mode::kImmutable);
    if (still.ok()) db = std::move(still);
  }
  if (!db.ok()) return in_context("read journal", std::move(db).error());
  return JournalReader(std::make_unique<sqlite::Database>(std::move(db).value()));
}

Status JournalReader::hold() {
  PROCTOR_CHECK_OK(db_->exec("BEGIN"));
  // SQLite takes the snapshot at the first read, not at BEGIN.
  PROCTOR_TRY(const std::int64_t tables, db_->integer("SELECT count(*) FROM sqlite_schema"));
  (void)tables;
  return ok_status();
}

Result<RestoredState> JournalReader::load() {
  return journal::load_state(*db_);
}
Result<std::optional<std::string>> JournalReader::meta(const std::string& key) {
  return journal::load_meta(*db_, key);
}
Result<std::vector<EpochBegun>> JournalReader::epochs() {
  return journal::load_epochs(*db_);
}
Status JournalReader::each_attempt(const std::function<void(const AttemptRecord&)>& visit) {
  return journal::each_attempt(*db_, std::nullopt, visit);
}
Result<std::vector<AttemptRecord>> JournalReader::attempts_of(RunId run) {
  std::vector<AttemptRecord> out;
  PROCTOR_CHECK_OK(
      journal::each_attempt(*db_, run, [&](const AttemptRecord& a) { out.push_back(a); }));
  return out;
}
Result<std::vector<NoteRecord>> JournalReader::notes(std::int64_t after, std::size_t count_max) {
  return journal::load_notes(*db_, after, count_max);
}
Status JournalReader::each_fact(std::optional<RunId> only, WallTime since,
                                const std::function<void(const StoryFact&)>& visit) {
  return journal::each_fact(*db_, only, since, visit);
}
Status JournalReader::each_row_of_all(
    const std::function<void(std::string_view, const Json&)>& visit) {
  return journal::each_row_of_all(*db_, visit);
}

Result<std::vector<std::string>> JournalReader::check_seals() {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  PROCTOR_TRY(auto broken, journal::broken_seals(*db_));
  return broken;
}

Result<std::vector<std::string>> JournalReader::foreign_objects() {
  return journal::foreign_objects(*db_);
}

Result<std::optional<journal::KeyedSeal>> JournalReader::keyed_seal() {
  return journal::read_keyed_seal(*db_);
}
Result<journal::SealFinding> JournalReader::check_keyed_seal(const HostKey& key) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  PROCTOR_TRY(auto found, journal::check_keyed_seal(*db_, key));
  return found;
}
Result<std::optional<WallTime>> JournalReader::last_fact() {
  return journal::last_fact(*db_);
}
Result<JournalHead> JournalReader::head_until(WallTime until) {
  return journal::head_until(*db_, until);
}

Result<std::optional<Digest>> JournalReader::head() {
  PROCTOR_TRY(const bool sealed, journal::has_seals(*db_));
  if (!sealed) return std::optional<Digest>();
  PROCTOR_TRY(const journal::Blocks written, journal::stored_seals(*db_));
  return std::optional<Digest>(journal::head_of(written));
}

}  // namespace proctor
