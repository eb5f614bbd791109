#include "coordinator/journal/journal_rows.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/seals.h"

namespace proctor::journal {
std::string metered_text(const Usage& usage) {
  std::string out;
  const std::size_t said = metered_said(usage);
  for (std::size_t i = 0; i < said; ++i)
    out += (i == 0 ? "" : " ") + std::to_string(usage.*kMeteredCounters[i].second);
  return out;
}

bool read_metered(std::string_view text, Usage& out) {
  for (std::size_t i = 0; i < kMeteredCounters.size(); ++i) {
    if (0 < i && text.empty() && std::ranges::find(kMeteredSizes, i) != kMeteredSizes.end())
      return true;
    if (0 < i && !take_word(text, " ")) return false;
    if (!take_number(text, out.*kMeteredCounters[i].second)) return false;
  }
  return text.empty();
}

namespace {
// The columns of RestoredAttempt first, in the order of core_of(), then those of AttemptRecord.
#define PROCTOR_CORE_COLUMNS                                                                    \
  "SELECT run, attempt, state, seq, ask, worker, denied_scope, short_by, infrastructure, "      \
  "sets_outcome, outcome, termination, charged, overrun, setup_ms, agent_ms, acceptance_ms, "   \
  "cpu_ms, tool_calls, input_tokens, output_tokens, model_calls, stored_bytes, boot, metered, " \
  "granted_ms"
constexpr const char* kCore = PROCTOR_CORE_COLUMNS " FROM attempts ORDER BY run, attempt";
#define PROCTOR_RECORD_COLUMNS                                                                 \
  PROCTOR_CORE_COLUMNS                                                                         \
  ", rationale, reason, report, archive, archive_bytes, started_ms, finished_ms, cost_model, " \
  "cost_execution, cost_human, cost_overhead, intent_ms, result_ms, settled_ms, "              \
  "ended_ms FROM attempts"
constexpr const char* kRecords = PROCTOR_RECORD_COLUMNS " ORDER BY run, attempt";
constexpr const char* kRecordsOfRun = PROCTOR_RECORD_COLUMNS " WHERE run = ? ORDER BY attempt";

enum Column {
  kRun,
  kAttempt,
  kState,
  kSeq,
  kAsk,
  kWorker,
  kDeniedScope,
  kShortBy,
  kInfrastructure,
  kSetsOutcome,
  kOutcome,
  kTermination,
  kCharged,
  kOverrun,
  kUsage,  // and eight more of usage
  kBoot = kUsage + 9,
  kMetered,
  kGrantedMs,
  kRationale,
  kReason,
  kReport,
  kArchive,
  kArchiveBytes,
  kStartedMs,
  kFinishedMs,
  kCost,
  kIntentMs = kCost + 4,
  kResultMs,
  kSettledMs,
  kEndedMs
};

using Workers = std::unordered_map<std::int64_t, WorkerId>;  // by id; looked up, never iterated

// Collects the first thing that is wrong with a row.
class RowReader {
 public:
  RowReader(const sqlite::Statement& row, std::string what) : row_(row), what_(std::move(what)) {}
  std::uint32_t u32(int column) {
    const std::int64_t n = row_.integer(column);
    if (n < 0 || std::numeric_limits<std::uint32_t>::max() < n) wrong("a number out of range");
    return static_cast<std::uint32_t>(n);
  }
  std::uint64_t count(int column) {
    const std::int64_t n = row_.integer(column);
    if (n < 0) wrong("a negative count");
    return static_cast<std::uint64_t>(n);
  }
  MicroUsd money(int column) { return MicroUsd::from_micros(row_.integer(column)); }
  WallTime time(int column) { return WallTime(row_.integer(column)); }
  Digest digest(int column) {
    const std::string_view bytes = row_.blob(column);
    Digest::Bytes out{};
    if (bytes.empty()) return Digest();
    if (bytes.size() != out.size()) {
      wrong("a digest that is not 32 bytes");
      return Digest();
    }
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return Digest(out);
  }
  template <class E>
  E word(int column) {
    const auto value = from_word<E>(row_.text(column));
    if (!value) wrong("the word \"" + printable(row_.text(column), 40) + "\"");
    return value.value_or(E{});
  }
  void wrong(const std::string& why) {
    if (error_.empty()) error_ = why;
  }
  Status finish() const {
    if (error_.empty()) return ok_status();
    return Error{Errc::kCorrupt, "journal: " + what_ + " holds " + error_};
  }

 private:
  const sqlite::Statement& row_;
  std::string what_;
  std::string error_;
};

enum class WithUsage { kAlways, kUnlessSettled };

RestoredAttempt core_of(RowReader& r, const sqlite::Statement& row, const Workers& workers,
                        WithUsage with_usage) {
  RestoredAttempt a;
  a.attempt = {RunId(r.u32(kRun)), AttemptNo(r.u32(kAttempt))};
  a.state = r.word<AttemptState>(kState);
  a.seq = r.u32(kSeq);
  a.ask = r.money(kAsk);
  if (!row.is_null(kWorker)) {
    const auto worker = workers.find(row.integer(kWorker));
    if (worker == workers.end()) {
      r.wrong("an unknown worker");
    } else {
      a.worker = worker->second;
      a.boot = BootId(static_cast<std::uint64_t>(row.integer(kBoot)));
    }
  }
  if (!row.is_null(kDeniedScope)) {
    a.denied_scope = ScopeId(r.u32(kDeniedScope));
    a.short_by = r.money(kShortBy);
  }
  a.granted_at = r.time(kGrantedMs);
  a.has_result = !row.is_null(kOutcome);
  if (a.has_result) {
    a.infrastructure = row.integer(kInfrastructure) != 0;
    a.overload = row.integer(kInfrastructure) == 2;
    a.sets_outcome = row.integer(kSetsOutcome) != 0;
    a.outcome = r.word<RunOutcome>(kOutcome);
    a.termination = r.word<Termination>(kTermination);
  }
  a.settled = !row.is_null(kCharged);
  if (a.settled) {
    a.charged = r.money(kCharged);
    a.overrun = r.money(kOverrun);
  }
  if (a.has_result && (with_usage == WithUsage::kAlways || !a.settled)) {
    Usage& u = a.usage;
    int at = kUsage;
    for (std::uint64_t* n : {&u.setup_ms, &u.agent_ms, &u.acceptance_ms, &u.cpu_ms, &u.tool_calls,
                             &u.input_tokens, &u.output_tokens, &u.model_calls, &u.stored_bytes}) {
      *n = r.count(at++);
    }
    if (!row.is_null(kMetered) && !read_metered(row.text(kMetered), u)) r.wrong("a broken meter");
  }
  return a;
}

AttemptRecord record_of(RowReader& r, const sqlite::Statement& row, const Workers& workers) {
  AttemptRecord a;
  a.core = core_of(r, row, workers, WithUsage::kAlways);
  a.rationale = row.text(kRationale);
  a.reason = row.text(kReason);
  a.report = r.digest(kReport);
  a.archive = r.digest(kArchive);
  a.archive_bytes = r.count(kArchiveBytes);
  a.started_ms = row.integer(kStartedMs);
  a.finished_ms = row.integer(kFinishedMs);
  a.cost = {r.money(kCost), r.money(kCost + 1), r.money(kCost + 2), r.money(kCost + 3)};
  a.intent_at = r.time(kIntentMs);
  a.granted_at = a.core.granted_at;
  a.result_at = r.time(kResultMs);
  a.settled_at = r.time(kSettledMs);
  a.ended_at = r.time(kEndedMs);
  return a;
}

std::string name_of_row(const sqlite::Statement& row) {
  return "attempt " + std::to_string(row.integer(kRun)) + "." +
         std::to_string(row.integer(kAttempt));
}

Status each_row(sqlite::Database& db, const char* sql,
                const std::function<Status(sqlite::Statement&)>& visit) {
  PROCTOR_TRY(auto rows, db.prepare(sql));
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) return ok_status();
    PROCTOR_CHECK_OK(visit(rows));
  }
}

Result<Workers> load_workers(sqlite::Database& db) {
  Workers workers;
  PROCTOR_CHECK_OK(each_row(db, "SELECT id, name FROM workers", [&](sqlite::Statement& row) {
    workers.emplace(row.integer(0), WorkerId(std::string(row.text(1))));
    return ok_status();
  }));
  return workers;
}

Status load_runs(sqlite::Database& db, RestoredState& state) {
  const char* sql = "SELECT run, state, outcome, attempt, scope, short_by FROM runs ORDER BY run";
  return each_row(db, sql, [&](sqlite::Statement& row) {
    RowReader r(row, "run " + std::to_string(row.integer(0)));
    const RunId run(r.u32(0));
    if (row.text(1) == "ended") {
      state.ended.push_back({run, AttemptNo(r.u32(3)), r.word<RunOutcome>(2)});
    } else if (row.text(1) == "parked") {
      state.parked.push_back({run, ScopeId(r.u32(4)), r.money(5)});
    } else {
      r.wrong("the state \"" + printable(row.text(1), 40) + "\"");
    }
    return r.finish();
  });
}

// Each sealed with the one before, as they were written, and none missing.
Status load_reviews(sqlite::Database& db, RestoredState& state) {
  Digest last;
  const char* sql =
      "SELECT seq, run, at_ms, milli_minutes, charged, reviewer, note, seal FROM reviews ORDER BY "
      "seq";
  PROCTOR_CHECK_OK(each_row(db, sql, [&](sqlite::Statement& row) {
    RowReader r(row, "review " + std::to_string(row.integer(0)));
    RunReviewed review;
    review.seq = r.u32(0);
    review.run = RunId(r.u32(1));
    review.at = r.time(2);
    review.milli_minutes = r.count(3);
    review.charged = r.money(4);
    review.by = row.text(5);
    review.note = row.text(6);
    const Digest seal = r.digest(7);
    if (review.seq != state.reviews.size() + 1) r.wrong("a gap before it");
    if (review.charged < MicroUsd::zero()) r.wrong("a negative charge");
    const Result<Digest> due = seal_of(last, review);
    if (!due.ok() || *due != seal) r.wrong("something else than what was sealed");
    last = seal;
    state.reviews.push_back(std::move(review));
    return r.finish();
  }));
  std::string head;
  for (const MetaSet& m : state.meta)
    if (m.key == kMetaReviews) head = m.value;
  const auto count = static_cast<std::uint32_t>(state.reviews.size());
  if (head == (count == 0 ? "" : reviews_head(count, last))) return ok_status();
  return Error{Errc::kCorrupt, "journal: " + std::to_string(count) +
                                   " reviews are there, but meta says otherwise: some are missing"};
}

// What the scheduler noted for its next life, and what is known of a shared envelope.
Status load_standing(sqlite::Database& db, RestoredState& state) {
  std::string kinds = "'" + std::string(kNoteShared) + "'";
  for (const char* kind : kSchedulerNotes) kinds += ", '" + std::string(kind) + "'";
  const std::string sql =
      "SELECT seq, at_ms, kind, run, attempt, detail FROM notes WHERE kind IN (" + kinds +
      ") ORDER BY seq";
  return each_row(db, sql.c_str(), [&](sqlite::Statement& row) -> Status {
    RowReader r(row, "note " + std::to_string(row.integer(0)));
    Note note{r.time(1), std::string(row.text(2)), {}, {}, std::string(row.text(5))};
    if (!row.is_null(3)) note.run = RunId(r.u32(3));
    if (!row.is_null(4)) note.attempt = AttemptNo(r.u32(4));
    (note.kind == kNoteShared ? state.shared : state.standing).push_back(std::move(note));
    return r.finish();
  });
}

// What was told about money.
Status load_told(sqlite::Database& db, RestoredState& state) {
  const char* told =
      "SELECT seq, at_ms, kind, run, attempt, detail FROM notes "
      "WHERE kind IN ('budget_raised', 'budget_alert', 'dominance') ORDER BY seq";
  return each_row(db, told, [&](sqlite::Statement& row) -> Status {
    const std::string name = "note " + std::to_string(row.integer(0));
    RowReader r(row, name);
    Note note{r.time(1), std::string(row.text(2)), {}, {}, std::string(row.text(5))};
    if (!row.is_null(3)) note.run = RunId(r.u32(3));
    if (!row.is_null(4)) note.attempt = AttemptNo(r.u32(4));
    PROCTOR_CHECK_OK(r.finish());
    const auto take = [&]<class Fact>(std::vector<Fact>& facts) -> Status {
      Result<Fact> fact = fact_of<Fact>(note);
      if (!fact.ok()) return in_context("journal: " + name, std::move(fact).error());
      facts.push_back(std::move(fact).value());
      return ok_status();
    };
    if (note.kind == BudgetRaised::kNote) return take(state.raises);
    return note.kind == BudgetAlert::kNote ? take(state.alerts) : take(state.dominant);
  });
}

Status load_campaign(sqlite::Database& db, RestoredState& state) {
  PROCTOR_CHECK_OK(
      each_row(db, "SELECT key, value FROM meta ORDER BY key", [&](sqlite::Statement& row) {
        state.meta.push_back({std::string(row.text(0)), std::string(row.text(1))});
        return ok_status();
      }));
  PROCTOR_CHECK_OK(
      each_row(db, "SELECT id, name, cap FROM scopes ORDER BY id", [&](sqlite::Statement& row) {
        RowReader r(row, "scope " + printable(row.text(1), 100));
        if (row.integer(0) != static_cast<std::int64_t>(state.scopes.size())) r.wrong("a gap");
        state.scopes.push_back({std::string(row.text(1)), r.money(2)});
        return r.finish();
      }));
  PROCTOR_CHECK_OK(load_told(db, state));
  PROCTOR_CHECK_OK(load_standing(db, state));
  PROCTOR_TRY(const std::int64_t epoch, db.integer("SELECT coalesce(max(epoch), 0) FROM epochs"));
  if (epoch < 0) return Error{Errc::kCorrupt, "journal: a negative epoch"};
  state.last_epoch = Epoch(static_cast<std::uint64_t>(epoch));
  return ok_status();
}
}  // namespace

Result<RestoredState> load_state(sqlite::Database& db) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  RestoredState state;
  PROCTOR_CHECK_OK(load_campaign(db, state));
  PROCTOR_CHECK_OK(load_reviews(db, state));
  PROCTOR_TRY(const Workers workers, load_workers(db));
  PROCTOR_CHECK_OK(load_runs(db, state));
  state.attempts.reserve(state.ended.size());
  PROCTOR_TRY(auto rows, db.prepare(kCore));
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) break;
    RowReader r(rows, "");
    state.attempts.push_back(core_of(r, rows, workers, WithUsage::kUnlessSettled));
    if (auto s = r.finish(); !s.ok()) return in_context(name_of_row(rows), std::move(s).error());
  }
  return state;
}

Result<std::optional<std::string>> load_meta(sqlite::Database& db, const std::string& key) {
  PROCTOR_TRY(auto rows, db.prepare("SELECT value FROM meta WHERE key = ?"));
  rows.bind(0, std::string_view(key));
  PROCTOR_TRY(const bool row, rows.step());
  if (!row) return std::optional<std::string>();
  return std::optional<std::string>(std::string(rows.text(0)));
}

Result<std::vector<EpochBegun>> load_epochs(sqlite::Database& db) {
  std::vector<EpochBegun> out;
  const char* sql = "SELECT epoch, host, pid, version, begun_ms FROM epochs ORDER BY epoch";
  PROCTOR_CHECK_OK(each_row(db, sql, [&](sqlite::Statement& row) {
    RowReader r(row, "epochs");
    out.push_back({Epoch(r.count(0)), std::string(row.text(1)), row.integer(2),
                   std::string(row.text(3)), r.time(4)});
    return r.finish();
  }));
  return out;
}

Status each_attempt(sqlite::Database& db, std::optional<RunId> only,
                    const std::function<void(const AttemptRecord&)>& visit) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  PROCTOR_TRY(const Workers workers, load_workers(db));
  PROCTOR_TRY(auto rows, db.prepare(only ? kRecordsOfRun : kRecords));
  if (only) rows.bind(0, std::int64_t{only->raw()});
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) return ok_status();
    RowReader r(rows, name_of_row(rows));
    const AttemptRecord record = record_of(r, rows, workers);
    PROCTOR_CHECK_OK(r.finish());
    visit(record);
  }
}

Result<std::vector<NoteRecord>> load_notes(sqlite::Database& db, std::int64_t after,
                                           std::size_t count_max) {
  PROCTOR_TRY(auto rows, db.prepare("SELECT seq, at_ms, kind, run, attempt, detail FROM notes "
                                    "WHERE seq > ? ORDER BY seq"));
  rows.bind(0, after);
  std::vector<NoteRecord> out;
  while (out.size() < count_max) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) break;
    NoteRecord record;
    record.seq = rows.integer(0);
    RowReader r(rows, "note " + std::to_string(record.seq));
    Note& note = record.note;
    note.at = r.time(1);
    note.kind = rows.text(2);
    if (!rows.is_null(3)) note.run = RunId(r.u32(3));
    if (!rows.is_null(4)) note.attempt = AttemptNo(r.u32(4));
    note.detail = rows.text(5);
    PROCTOR_CHECK_OK(r.finish());
    out.push_back(std::move(record));
  }
  return out;
}
}  // namespace proctor::journal
