#include "coordinator/journal/journal_rows.h"

#include <algorithm>
#include <cstring>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/legacy_text.h"
#include "coordinator/journal/seals.h"

namespace proctor::journal {
void RowWriter::count(std::uint64_t n) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  number(static_cast<std::int64_t>(std::min(n, kMost)));
}

void RowReader::wrong(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}
Status RowReader::finish(std::string_view what, int keys) const {
  if (ok()) return ok_status();
  std::string name(what);
  for (int i = 0; i < keys; ++i) name += (i == 0 ? " " : ".") + printable(row_.text(i), 100);
  return Error{Errc::kCorrupt, "journal: " + name + " holds " + error_};
}
std::int64_t RowReader::number(int c, std::int64_t least, std::int64_t most) {
  const std::int64_t n = row_.integer(c);
  if (n < least || most < n) wrong("a number out of range");
  return n;
}
bool RowReader::blob(int c, void* out, std::size_t size) {
  const std::string_view bytes = row_.blob(c);
  if (bytes.size() == size)
    std::memcpy(out, bytes.data(), size);
  else if (!bytes.empty())
    wrong("bytes that are not " + std::to_string(size));
  return bytes.size() == size;
}
void RowReader::worker(int c, WorkerId& out) {
  if (row_.is_null(c)) return;
  const auto known = workers_->find(row_.integer(c));
  if (known == workers_->end()) return wrong("an unknown worker");
  out = known->second;
}
void RowReader::wrong_word(int c) {
  wrong("the word \"" + printable(row_.text(c), 40) + "\"");
}

std::string ColumnList::names(std::string_view behind) const {
  std::string out;
  for (const Column& c : list_) out.append(out.empty() ? "" : ", ").append(c.name).append(behind);
  return out;
}
std::string insertion(const ColumnList& columns, std::string_view table, std::string_view verb) {
  std::string marks = "?";
  for (std::size_t i = 1; i < columns.list().size(); ++i) marks += ", ?";
  return std::string(verb).append(" INTO ").append(table).append("(") + columns.names() +
         ") VALUES(" + marks + ")";
}

std::string metered_text(const Usage& usage) {
  std::string out;
  const std::size_t said = metered_said(usage);
  for (std::size_t i = 0; i < said; ++i)
    out += (i == 0 ? "" : " ") + std::to_string(usage.*kMeteredCounters[i].member);
  return out;
}

bool read_metered(std::string_view text, Usage& out) {
  for (std::size_t i = 0; i < kMeteredCounters.size(); ++i) {
    if (0 < i && text.empty() && is_metered_size(i)) return true;
    if (0 < i && !take_word(text, " ")) return false;
    if (!take_number(text, out.*kMeteredCounters[i].member)) return false;
  }
  return text.empty();
}

namespace {
struct WorkerRow {
  std::int64_t id = 0;
  std::string name;
};
void fields(auto& v, Is<WorkerRow> auto& w) {
  v("id", w.id);
  v("name", w.name);
}
Result<Workers> load_workers(sqlite::Database& db) {
  Workers workers;
  PROCTOR_CHECK_OK(each<WorkerRow>(db, "workers", "worker", [&](WorkerRow& w, RowReader&) {
    workers.emplace(w.id, std::move(w.name));
  }));
  return workers;
}

// Each sealed with the one before, as they were written, and none missing.
Status load_reviews(sqlite::Database& db, RestoredState& state) {
  Digest last;
  const auto take = [&](ReviewRow& row, RowReader& r) {
    if (row.review.seq != state.reviews.size() + 1) r.wrong("a gap before it");
    if (row.review.charged < MicroUsd::zero()) r.wrong("a negative charge");
    const Result<Digest> due = seal_of(last, row.review);
    if (!due.ok() || *due != row.seal) r.wrong("something else than what was sealed");
    last = row.seal;
    state.reviews.push_back(std::move(row.review));
  };
  PROCTOR_CHECK_OK(each<ReviewRow>(db, "reviews ORDER BY seq", "review", take));
  std::string head;
  for (const MetaSet& m : state.meta)
    if (m.key == kMetaReviews) head = m.value;
  const auto count = static_cast<std::uint32_t>(state.reviews.size());
  if (head == (count == 0 ? "" : reviews_head(count, last))) return ok_status();
  return Error{Errc::kCorrupt, "journal: " + std::to_string(count) +
                                   " reviews are there, but meta says otherwise: some are missing"};
}

// Notes about money, the scheduler's own for its next life, and those of a shared envelope.
Status load_facts(sqlite::Database& db, RestoredState& state) {
  std::string kinds;
  for (const char* kind :
       {BudgetRaised::kNote, BudgetAlert::kNote, RunDominates::kNote, kNoteShared})
    kinds.append("'").append(kind).append("', ");
  for (const char* kind : kSchedulerNotes) kinds.append("'").append(kind).append("', ");
  kinds.resize(kinds.size() - 2);
  Status read = ok_status();
  const auto keep = [&](const NoteRecord& n, auto fact, auto& to) {
    if (fact.ok())
      to.push_back(std::move(fact).value());
    else if (read.ok())
      read = in_context("journal: note " + std::to_string(n.seq), std::move(fact).error());
  };
  const auto take = [&](NoteRecord& row, RowReader&) {
    Note& note = row.note;
    if (note.kind == BudgetRaised::kNote)
      return keep(row, fact_of<BudgetRaised>(note), state.raises);
    if (note.kind == BudgetAlert::kNote) return keep(row, fact_of<BudgetAlert>(note), state.alerts);
    if (note.kind == RunDominates::kNote)
      return keep(row, fact_of<RunDominates>(note), state.dominant);
    if (note.kind == FaultFact::kNote) complete_fault(note);
    (note.kind == kNoteShared ? state.shared : state.standing).push_back(std::move(note));
  };
  PROCTOR_CHECK_OK(
      each<NoteRecord>(db, "notes WHERE kind IN (" + kinds + ") ORDER BY seq", "note", take));
  return read;
}

Status load_campaign(sqlite::Database& db, RestoredState& state) {
  PROCTOR_CHECK_OK(each<MetaSet>(db, "meta ORDER BY key", "meta", [&](MetaSet& m, RowReader&) {
    state.meta.push_back(std::move(m));
  }));
  PROCTOR_CHECK_OK(
      each<ScopeDefined>(db, "scopes ORDER BY id", "scope", [&](ScopeDefined& s, RowReader& r) {
        if (s.scope.raw() != state.scopes.size()) r.wrong("a gap before it");
        state.scopes.push_back({std::move(s.name), s.cap});
      }));
  PROCTOR_CHECK_OK(load_facts(db, state));
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
  PROCTOR_CHECK_OK(each<RunRow>(db, "runs ORDER BY run", "run", [&](const RunRow& r, RowReader&) {
    if (r.state == RunState::kEnded)
      state.ended.push_back({r.run, r.attempt, r.outcome});
    else
      state.parked.push_back({r.run, r.scope, r.short_by});
  }));
  state.attempts.reserve(state.ended.size());
  PROCTOR_CHECK_OK(each<RestoredAttempt>(
      db, "attempts ORDER BY run, attempt", "attempt",
      [&](RestoredAttempt& a, RowReader&) { state.attempts.push_back(std::move(a)); }, 2,
      &workers));
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
  PROCTOR_CHECK_OK(
      each<EpochBegun>(db, "epochs ORDER BY epoch", "epoch",
                       [&](EpochBegun& e, RowReader&) { out.push_back(std::move(e)); }));
  return out;
}

Status each_attempt(sqlite::Database& db, std::optional<RunId> only,
                    const std::function<void(const AttemptRecord&)>& visit) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  PROCTOR_TRY(const Workers workers, load_workers(db));
  const std::string where = only ? "WHERE run = " + std::to_string(only->raw()) : "";
  return each<AttemptRow>(
      db, "attempts " + where + " ORDER BY run, attempt", "attempt",
      [&](AttemptRow& a, RowReader&) {
        a.granted_at = a.core.granted_at;
        if (a.core.has_result && !a.has_facts)
          a.facts = facts_in(a.core.outcome, a.core.termination, a.rationale);
        visit(a);
      },
      2, &workers);
}

Result<std::vector<NoteRecord>> load_notes(sqlite::Database& db, std::int64_t after,
                                           std::size_t count_max) {
  std::vector<NoteRecord> out;
  const std::string rest = "notes WHERE " + std::to_string(after) + " < seq ORDER BY seq LIMIT " +
                           std::to_string(count_max);
  PROCTOR_CHECK_OK(each<NoteRecord>(db, rest, "note", [&](NoteRecord& n, RowReader&) {
    complete_joined(n.note.kind, n.note.detail);
    out.push_back(std::move(n));
  }));
  return out;
}
}  // namespace proctor::journal
