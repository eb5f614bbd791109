#include "coordinator/journal/journal_reader.h"

#include <fmt/format.h>
#include <array>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_store.h"
#include "coordinator/journal/legacy_text.h"

namespace proctor {
namespace {
constexpr std::string_view kFormat = "proctor-head-1";

// ?1: the time.  Ordered by key, so that the same facts give the same bytes; columns by name, so
// that a later schema changes none.
constexpr std::array<const char*, 8> kFacts{
    "SELECT 'meta', key, value FROM meta WHERE key IN ('campaign', 'registration', 'plan') AND ?1 "
    "IS NOT NULL ORDER BY key",
    "SELECT 'epoch', epoch, host, pid, version, begun_ms FROM epochs WHERE begun_ms <= ?1 ORDER BY "
    "epoch",
    "SELECT 'result', run, attempt, seq, ask, (SELECT name FROM workers WHERE id = worker), boot, "
    "infrastructure, sets_outcome, outcome, termination, setup_ms, agent_ms, acceptance_ms, "
    "cpu_ms, tool_calls, input_tokens, output_tokens, model_calls, stored_bytes, rationale, "
    "report, archive, archive_bytes, started_ms, finished_ms, granted_ms, result_ms FROM attempts "
    "WHERE result_ms <= ?1 ORDER BY run, attempt",
    "SELECT 'facts', run, attempt, fault, agent_exit, patch, violations, violated, cap, no_model, "
    "not_judged FROM attempts WHERE result_ms <= ?1 AND fault IS NOT NULL ORDER BY run, attempt",
    "SELECT 'judged', run, attempt, gates, score, tags, configuration, networked FROM attempts "
    "WHERE result_ms <= ?1 AND coalesce(gates, '') != '' ORDER BY run, attempt",
    "SELECT 'settled', run, attempt, seq, ask, charged, overrun, cost_model, cost_execution, "
    "cost_human, cost_overhead, settled_ms FROM attempts WHERE settled_ms <= ?1 ORDER BY run, "
    "attempt",
    "SELECT 'note', seq, at_ms, kind, run, attempt, detail FROM notes WHERE at_ms <= ?1 ORDER BY "
    "seq",
    "SELECT 'review', seq, run, at_ms, milli_minutes, charged, reviewer, note FROM reviews WHERE "
    "at_ms <= ?1 ORDER BY seq"};

void append(std::string& out, const sqlite::Statement& row, int column) {
  using Kind = sqlite::Statement::Kind;
  switch (row.kind(column)) {
    case Kind::kNull:
      out += "n;";
      return;
    case Kind::kInteger:
      out += fmt::format("i{};", row.integer(column));
      return;
    case Kind::kText:
      out += fmt::format("t{}:{};", row.text(column).size(), row.text(column));
      return;
    case Kind::kBlob:
      out += fmt::format("b{};", to_hex(row.blob(column)));
      return;
  }
}

std::string signed_part(const JournalHead& h) {
  return fmt::format("{} {} {} {} {}", kFormat, h.campaign, h.until.raw(), h.facts, h.digest.hex());
}

std::optional<std::int64_t> number_of(std::string_view text) {
  const auto n = whole_number<std::int64_t>(text);
  return n && 0 <= *n ? n : std::nullopt;
}
}  // namespace

std::string to_string(const JournalHead& h) {
  return signed_part(h) + (h.key.empty() ? "" : fmt::format(" {} {}", h.key, h.signature.hex()));
}

Result<JournalHead> parse_head(std::string_view line) {
  const Error bad{Errc::kInvalid, "\"" + printable(std::string(line), 80) +
                                      "\" is no head: proctor journal head prints one"};
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  const std::vector<std::string_view> words = split(line, ' ');
  if ((words.size() != 5 && words.size() != 7) || words[0] != kFormat || words[1].empty())
    return bad;
  const std::optional<std::int64_t> until = number_of(words[2]), facts = number_of(words[3]);
  const Result<Digest> digest = Digest::from_hex(words[4]);
  if (!until || !facts || !digest.ok()) return bad;
  JournalHead out{std::string(words[1]), WallTime(*until), *facts, *digest, {}, {}};
  if (words.size() == 5) return out;
  const Result<Digest> signature = Digest::from_hex(words[6]);
  if (words[5].empty() || !signature.ok()) return bad;
  out.key = std::string(words[5]);
  out.signature = *signature;
  return out;
}

void sign(JournalHead& head, const HmacKey& key) {
  head.key = key.id();
  head.signature = key.mac(signed_part(head));
}
bool is_signed_by(const JournalHead& head, const HmacKey& key) {
  return head.key == key.id() && head.signature == key.mac(signed_part(head));
}

Result<std::optional<WallTime>> JournalReader::last_fact() {
  PROCTOR_TRY(const std::int64_t last,
              db_->integer("SELECT max(coalesce((SELECT max(begun_ms) FROM epochs), 0), "
                           "coalesce((SELECT max(result_ms) FROM attempts), 0), "
                           "coalesce((SELECT max(settled_ms) FROM attempts), 0), "
                           "coalesce((SELECT max(at_ms) FROM notes), 0), "
                           "coalesce((SELECT max(at_ms) FROM reviews), 0))"));
  if (last == 0) return std::optional<WallTime>();
  return std::optional<WallTime>(WallTime(last));
}

Result<JournalHead> JournalReader::head_until(WallTime until) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  JournalHead out{"-", until, 0, {}, {}, {}};
  Sha256 all;
  std::string bytes;
  for (const char* sql : kFacts) {
    PROCTOR_TRY(auto rows, db_->prepare(sql));
    rows.bind(0, until.raw());
    PROCTOR_CHECK_OK(each_row(rows, [&] {
      bytes.clear();
      for (int c = 0; c < rows.columns(); ++c) append(bytes, rows, c);
      all.update(bytes + "\n");
      ++out.facts;
      if (rows.text(0) == "meta" && rows.text(1) == kMetaCampaign)
        out.campaign = std::string(rows.text(2));
    }));
  }
  out.digest = all.finish();
  return out;
}

namespace {
// $ONLY: what restricts a table to one run.  A note may concern it though it names none, or
// another.  An operator who booked a review is told of by the review itself, which says more;
// quotes inside of a reason are written with a backslash.
constexpr const char* kStory = R"sql(
(
  SELECT intent_ms AS at_ms, run, attempt, 0 AS step, 0 AS seq, 'intent' AS fact,
    printf('asks for %d.%06d $UNIT', ask / 1000000, ask % 1000000) AS detail FROM attempts $ONLY
  UNION ALL SELECT granted_ms, run, attempt, 1, 0, 'granted',
    printf('%d.%06d $UNIT reserved, for worker %s', ask / 1000000, ask % 1000000,
      coalesce((SELECT name FROM workers WHERE id = worker), '-')) FROM attempts $ONLY
  UNION ALL SELECT ended_ms, run, attempt, 2, 0, state,
    coalesce(reason, printf('short by %d.%06d $UNIT in %s', short_by / 1000000, short_by % 1000000,
      (SELECT name FROM scopes WHERE id = denied_scope)), '') FROM attempts $ONLY
  UNION ALL SELECT result_ms, run, attempt, 3, 0, 'result',
    printf('%s, %s%s%s%s', outcome, termination, coalesce(': ' || nullif(rationale, ''), ''),
      CASE WHEN infrastructure THEN ' (infrastructure)' ELSE '' END,
      CASE WHEN sets_outcome THEN '; the run has ended' ELSE '' END) FROM attempts $ONLY
  UNION ALL SELECT settled_ms, run, attempt, 4, 0, 'settled',
    printf('charged %d.%06d of %d.%06d $UNIT%s', charged / 1000000, charged % 1000000, ask / 1000000,
      ask % 1000000, CASE WHEN overrun > 0 THEN printf(', %d.%06d over', overrun / 1000000,
      overrun % 1000000) ELSE '' END) FROM attempts $ONLY
  UNION ALL SELECT at_ms, run, NULL, 5, 0, state,
    printf('%s is short by %d.%06d $UNIT', (SELECT name FROM scopes WHERE id = scope),
      short_by / 1000000, short_by % 1000000) FROM (SELECT * FROM runs WHERE state = 'parked') $ONLY
  UNION ALL SELECT at_ms, run, NULL, 6, 0, 'reviewed',
    printf('%d.%03d minutes by %s, charged %d.%06d $UNIT%s', milli_minutes / 1000,
      milli_minutes % 1000, reviewer, charged / 1000000, charged % 1000000,
      CASE WHEN note = '' THEN '' ELSE ': ' || note END) FROM reviews $ONLY
  UNION ALL SELECT at_ms, run, attempt, 6, seq, kind, detail FROM notes WHERE NOT (kind = 'operator'
    AND (CASE WHEN json_valid(detail) THEN json_extract(detail, '$.act') END) IS 'review'
    AND at_ms IN (SELECT at_ms FROM reviews))
  $EPOCHS)
WHERE at_ms >= $SINCE AND at_ms IS NOT NULL ORDER BY at_ms, step, seq, run, attempt
)sql";
constexpr const char* kEpochs = R"sql(
  UNION ALL SELECT begun_ms, NULL, NULL, -1, epoch, 'epoch',
    printf('life %d of the coordinator: process %d on %s, proctor %s', epoch, pid, host, version)
    FROM epochs
)sql";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string facts_sql(std::optional<RunId> only, WallTime since, std::string_view unit) {
  std::string sql = kStory;
  replace_all(sql, "$EPOCHS", only ? "" : kEpochs);
  replace_all(sql, "$UNIT", unit);
  replace_all(sql, "$SINCE", std::to_string(since.raw()));
  replace_all(sql, "$ONLY", only ? "WHERE run = " + std::to_string(only->raw()) : "");
  return sql;
}

Json value_of(const sqlite::Statement& row, int column) {
  using Kind = sqlite::Statement::Kind;
  switch (row.kind(column)) {
    case Kind::kNull:
      return nullptr;
    case Kind::kInteger:
      return row.integer(column);
    case Kind::kText: {
      const std::string text(row.text(column));
      return is_utf8(text) ? text : printable(text, 4 * text.size());
    }
    case Kind::kBlob:
      break;
  }
  return to_hex(row.blob(column));
}
}  // namespace

Status JournalReader::each_fact(std::optional<RunId> only, WallTime since,
                                const std::function<void(const StoryFact&)>& visit,
                                std::string_view unit) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  return journal::each<StoryFact>(*db_, facts_sql(only, since, unit), "a fact at",
                                  [&](StoryFact& fact, journal::RowReader&) {
                                    journal::complete_joined(fact.fact, fact.detail);
                                    visit(fact);
                                  });
}

Status JournalReader::each_row_of_all(
    const std::function<void(std::string_view, const Json&)>& visit) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  for (const journal::SealedTable& table : journal::kSealedTables) {
    PROCTOR_TRY(auto rows,
                db_->prepare(fmt::format("SELECT * FROM {} ORDER BY {}", table.name, table.order)));
    PROCTOR_CHECK_OK(each_row(rows, [&] {
      Json out = Json::object();
      for (int c = 0; c < rows.columns(); ++c) out[rows.name(c)] = value_of(rows, c);
      visit(table.name, out);
    }));
  }
  return ok_status();
}

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
  PROCTOR_CHECK_OK(db_->integer("SELECT count(*) FROM sqlite_schema"));
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

Result<std::vector<std::string>> JournalReader::check_seals() {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  return journal::broken_seals(*db_);
}

Result<std::vector<std::string>> JournalReader::foreign_objects() {
  return journal::foreign_objects(*db_);
}

Result<std::optional<journal::KeyedSeal>> JournalReader::keyed_seal() {
  return journal::read_keyed_seal(*db_);
}
Result<journal::SealFinding> JournalReader::check_keyed_seal(const HostKey& key) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(*db_));
  return journal::check_keyed_seal(*db_, key);
}

Result<std::optional<Digest>> JournalReader::head() {
  PROCTOR_TRY(const bool sealed, journal::has_seals(*db_));
  if (!sealed) return std::optional<Digest>();
  PROCTOR_TRY(const journal::Blocks written, journal::stored_seals(*db_));
  return std::optional<Digest>(journal::head_of(written));
}
}  // namespace proctor
