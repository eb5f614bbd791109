#pragma once
// Rows of the journal.  The columns of each are described once, by fields() (common/base/fields.h),
// and written, read and listed from that.  Names of columns and words of enumerations are part of
// the file's format.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/fields.h"
#include "common/base/json_fields.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/score/outcome.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::journal {
// Binds values to a statement's question marks, in order.  NULL are an empty digest, an empty
// std::optional, and a text without bytes whose rule is optional.
class RowWriter {
 public:
  explicit RowWriter(sqlite::Statement& statement) : statement_(statement) {}
  template <class T>
  void operator()(const char*, const T& value, const Rule& rule = {}) {
    put(value, rule.optional);
  }
  template <class T>
  void put(const T& value, bool or_null = false) {
    if constexpr (std::same_as<T, AttemptId>) {
      put(value.run);
      put(value.no);
    } else if constexpr (std::same_as<T, BootId>) {
      number(static_cast<std::int64_t>(value.raw()));  // 64 random bits: nothing is lost
    } else if constexpr (std::same_as<T, MicroUsd>) {
      number(value.micros());
    } else if constexpr (json_detail::kIsStrong<T>) {
      put(value.raw());
    } else if constexpr (json_detail::kIsOptional<T>) {
      value ? put(*value) : null();
    } else if constexpr (std::unsigned_integral<T>) {
      count(value);
    } else if constexpr (std::signed_integral<T>) {
      number(value);
    } else if constexpr (HasWords<T>) {
      text(word_of(value), false);
    } else if constexpr (HasText<T>) {
      text(value.to_text(), or_null);
    } else if constexpr (std::same_as<T, Digest>) {
      value == Digest() ? null() : bytes(value.bytes().data(), Digest::kBytes);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      text(value, or_null);
    } else {
      bytes(value.data(), sizeof value);
    }
  }
  static void require(bool holds, const char*, std::string_view) { PROCTOR_ASSERT(holds); }
  static constexpr bool wants(bool) { return true; }
  static void from_schema(std::uint32_t) {}

 private:
  void number(std::int64_t n) { statement_.bind(at_++, n); }
  void count(std::uint64_t n);  // SQLite's integers have a sign: at most their largest
  void text(std::string_view text, bool or_null) {
    or_null&& text.empty() ? null() : statement_.bind(at_++, text);
  }
  void bytes(const void* data, std::size_t size) {
    statement_.bind_blob(at_++, {static_cast<const char*>(data), size});
  }
  void null() { statement_.bind_null(at_++); }

  sqlite::Statement& statement_;
  int at_ = 0;
};

using Workers = std::unordered_map<std::int64_t, WorkerId>;  // by id; looked up, never iterated

// Reads the columns of a row, in order.  Stored bytes are judged here: the first that is wrong (an
// unknown word, a number out of its range, bytes of another length) is the row's error.  A NULL
// leaves its member as it was, or is 0.
class RowReader {
 public:
  explicit RowReader(const sqlite::Statement& row, const Workers* workers = nullptr)
      : row_(row), workers_(workers) {}
  template <class T>
  void operator()(const char*, T&& out, const Rule& rule = {}) {
    read(at_++, out, rule.optional);
  }
  // Is the next column there?
  void presence(bool& there) const { there = !row_.is_null(at_); }
  // Are the last columns to be read?
  static constexpr bool wants(bool wanted) { return wanted; }
  static void from_schema(std::uint32_t) {}

  void require(bool holds, const char* name, std::string_view why) {
    if (!holds) wrong(std::string(name) + " " + std::string(why));
  }
  void wrong(std::string why);
  bool ok() const { return error_.empty(); }
  // kCorrupt: "journal: WHAT KEY holds ...", the key being that many columns.
  Status finish(std::string_view what, int keys = 1) const;

 private:
  template <class T>
  void read(int c, T& out, bool optional) {
    if constexpr (std::same_as<T, WorkerId>) {
      worker(c, out);
    } else if constexpr (std::same_as<T, BootId>) {
      out = BootId(static_cast<std::uint64_t>(row_.integer(c)));
    } else if constexpr (std::same_as<T, MicroUsd>) {
      out = MicroUsd::from_micros(row_.integer(c));
    } else if constexpr (json_detail::kIsStrong<T>) {
      typename T::rep raw{};
      read(c, raw, optional);
      out = T(std::move(raw));
    } else if constexpr (json_detail::kIsOptional<T>) {
      if (!row_.is_null(c)) read(c, out.emplace(), optional);
    } else if constexpr (std::same_as<T, bool>) {
      out = row_.integer(c) != 0;
    } else if constexpr (std::integral<T>) {
      out = static_cast<T>(number(c, std::unsigned_integral<T> ? 0 : kLeast<T>, kMost<T>));
    } else if constexpr (HasWords<T>) {
      if (const auto value = from_word<T>(row_.text(c)))
        out = *value;
      else if (!optional || !row_.is_null(c))
        wrong_word(c);
    } else if constexpr (HasText<T>) {
      if (!row_.is_null(c) && !out.from_text(row_.text(c))) wrong_word(c);
    } else if constexpr (std::same_as<T, Digest>) {
      Digest::Bytes bytes{};
      if (blob(c, bytes.data(), bytes.size())) out = Digest(bytes);
    } else if constexpr (std::same_as<T, std::string>) {
      out = row_.text(c);
    } else {
      (void)blob(c, out.data(), sizeof out);
    }
  }
  template <class T>
  static constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<T>::min());
  template <class T>
  static constexpr auto kMost = static_cast<std::int64_t>(std::numeric_limits<T>::max() >>
                                                          (std::same_as<T, std::uint64_t> ? 1 : 0));

  std::int64_t number(int c, std::int64_t least, std::int64_t most);
  bool blob(int c, void* out, std::size_t size);  // false: it is empty or wrong
  void worker(int c, WorkerId& out);
  void wrong_word(int c);

  const sqlite::Statement& row_;
  const Workers* workers_;
  int at_ = 0;
  std::string error_;
};

// Lists the columns of a row.
struct Column {
  const char* name;
  const char* type;     // INTEGER, TEXT, BLOB
  std::uint32_t since;  // the first schema that has it; 0: as its table
};
class ColumnList {
 public:
  void from_schema(std::uint32_t schema) { since_ = schema; }  // for later columns
  template <class T>
  void operator()(const char* name, const T&, const Rule& rule = {}) {
    constexpr bool kText =
        HasWords<T> || HasText<T> || std::convertible_to<const T&, std::string_view>;
    constexpr bool kNumber = std::integral<T> || std::same_as<T, MicroUsd> ||
                             json_detail::kIsOptional<T> || json_detail::kIsStrong<T>;
    list_.push_back({name,
                     kText     ? "TEXT"
                     : kNumber ? "INTEGER"
                               : "BLOB",
                     std::max(rule.since, since_)});
  }
  void presence(bool) const {}
  static void require(bool, const char*, std::string_view) {}
  static constexpr bool wants(bool) { return true; }
  const std::vector<Column>& list() const { return list_; }
  // "a, b"; with " = ?" behind each "a = ?, b = ?".
  std::string names(std::string_view behind = "") const;

 private:
  std::vector<Column> list_;
  std::uint32_t since_ = 0;
};
template <class Row>
ColumnList columns_of() {
  ColumnList out;
  Row row{};
  fields(out, row);
  return out;
}
// Reads rows: `rest` is what follows "SELECT columns FROM".  `what` and the first `keys` columns
// name a row in errors.  `visit` takes the row and its reader: it may find more that is wrong.
template <class Row, class Visit>
Status each(sqlite::Database& db, std::string_view rest, std::string_view what, const Visit& visit,
            int keys = 1, const Workers* workers = nullptr) {
  PROCTOR_TRY(auto rows,
              db.prepare("SELECT " + columns_of<Row>().names() + " FROM " + std::string(rest)));
  while (true) {
    PROCTOR_TRY(const bool there, rows.step());
    if (!there) return ok_status();
    Row row{};
    RowReader r(rows, workers);
    fields(r, row);
    if (r.ok()) visit(row, r);
    PROCTOR_CHECK_OK(r.finish(what, keys));
  }
}

// "INSERT INTO TABLE(a, b) VALUES(?, ?)", with `verb` for INSERT.
std::string insertion(const ColumnList& columns, std::string_view table,
                      std::string_view verb = "INSERT");

void fields(auto& v, Is<MetaSet> auto& m) {
  v("key", m.key);
  v("value", m.value);
}
void fields(auto& v, Is<ScopeDefined> auto& s) {
  v("id", s.scope);
  v("name", s.name);
  v("cap", s.cap);
}
void fields(auto& v, Is<EpochBegun> auto& e) {
  v("epoch", e.epoch);
  v("host", e.host);
  v("pid", e.pid);
  v("version", e.version);
  v("begun_ms", e.at);
}
void fields(auto& v, Is<Note> auto& n) {
  v("at_ms", n.at);
  v("kind", n.kind);
  v("run", n.run);
  v("attempt", n.attempt);
  v("detail", n.detail);
}
void fields(auto& v, Is<NoteRecord> auto& n) {
  v("seq", n.seq);
  fields(v, n.note);
}
struct ReviewRow {
  RunReviewed review;
  Digest seal;
};
void fields(auto& v, Is<ReviewRow> auto& r) {
  v("seq", r.review.seq);
  v("run", r.review.run);
  v("at_ms", r.review.at);
  v("milli_minutes", r.review.milli_minutes);
  v("charged", r.review.charged);
  v("reviewer", r.review.by);
  v("note", r.review.note);
  v("seal", r.seal);
}

// A run that is neither queued nor under way has a row.
enum class RunState : std::uint8_t { kEnded, kParked };
constexpr auto words(RunState) {
  return std::to_array<Word<RunState>>(
      {{"ended", RunState::kEnded}, {"parked", RunState::kParked}});
}
struct RunRow {
  RunId run;
  RunState state = RunState::kEnded;
  RunOutcome outcome = RunOutcome::kInvalid;  // kEnded
  AttemptNo attempt;                          // kEnded
  ScopeId scope;                              // kParked
  MicroUsd short_by;                          // kParked
};
void fields(auto& v, Is<RunRow> auto& r) {
  v("run", r.run);
  v("state", r.state);
  v("outcome", r.outcome, {.optional = r.state != RunState::kEnded});
  v("attempt", r.attempt);
  v("scope", r.scope);
  v("short_by", r.short_by);
}

// The counters of a meter as one text, "" when all are zero.
std::string metered_text(const Usage& usage);
bool read_metered(std::string_view text, Usage& out);  // false: not such a text
template <class U>
struct Metered {
  U& usage;
  std::string to_text() const { return metered_text(usage); }
  bool from_text(std::string_view text) { return read_metered(text, usage); }
};

// An attempt's row is written fact by fact.
void usage_columns(auto& v, Is<Usage> auto& usage) {
  for (std::size_t i = 0; i < kUnmetered; ++i)
    v(kUsageCounters[i].name, usage.*kUsageCounters[i].member);
  v("metered", Metered<std::remove_reference_t<decltype(usage)>>{usage},
    {.since = 2, .optional = true});
}
// `a`: a RestoredAttempt or an AttemptResult.
void verdict_columns(auto& v, auto& a, bool there) {
  v("outcome", a.outcome, {.optional = !there});
  v("termination", a.termination, {.optional = !there});
  v("sets_outcome", a.sets_outcome);
  std::uint32_t infrastructure = a.infrastructure ? (a.overload ? 2 : 1) : 0;
  v("infrastructure", infrastructure);
  if constexpr (requires { a.infrastructure = true; }) {
    a.infrastructure = infrastructure != 0;
    a.overload = infrastructure == 2;
  }
}
// `a`: an AttemptRecord or an AttemptResult.
void evidence_columns(auto& v, auto& a) {
  v("rationale", a.rationale, kOptional);
  v("report", a.report);
  v("archive", a.archive);
  v("archive_bytes", a.archive_bytes);
  v("started_ms", a.started_ms);
  v("finished_ms", a.finished_ms);
}
void cost_columns(auto& v, Is<Cost> auto& cost) {
  v("cost_model", cost.model);
  v("cost_execution", cost.execution);
  v("cost_human", cost.human);
  v("cost_overhead", cost.overhead);
}
void fields(auto& v, Is<AttemptResult> auto& f) {
  verdict_columns(v, f, true);
  evidence_columns(v, f);
  usage_columns(v, f.usage);
  v("result_ms", f.at);
  v.from_schema(6);
  fields(v, f.facts);
  v.from_schema(7);
  judged_fields(v, f.facts);
}
void fields(auto& v, Is<AttemptSettled> auto& f) {
  v("charged", f.charged);
  v("overrun", f.overrun);
  cost_columns(v, f.cost);
  v("settled_ms", f.at);
}
void core_columns(auto& v, Is<RestoredAttempt> auto& a) {
  v("run", a.attempt.run);
  v("attempt", a.attempt.no);
  v("state", a.state);
  v("seq", a.seq);
  v("ask", a.ask);
  v("worker", a.worker);
  v("boot", a.boot);
  v("granted_ms", a.granted_at);
  v("denied_scope", a.denied_scope);
  v("short_by", a.short_by);
  v.presence(a.has_result);
  verdict_columns(v, a, a.has_result);
  v.presence(a.settled);
  v("charged", a.charged);
  v("overrun", a.overrun);
}
void fields(auto& v, Is<RestoredAttempt> auto& a) {
  core_columns(v, a);
  if (v.wants(!a.settled)) usage_columns(v, a.usage);
}
struct AttemptRow : AttemptRecord {
  bool has_facts = false;
};
void fields(auto& v, Is<AttemptRow> auto& a) {
  core_columns(v, a.core);
  usage_columns(v, a.core.usage);
  evidence_columns(v, a);
  v("reason", a.reason);
  cost_columns(v, a.cost);
  v("intent_ms", a.intent_at);
  v("result_ms", a.result_at);
  v("settled_ms", a.settled_at);
  v("ended_ms", a.ended_at);
  v.from_schema(6);
  v.presence(a.has_facts);
  fields(v, a.facts);
  v.from_schema(7);
  judged_fields(v, a.facts);
}

// Reading rows back into records.  kCorrupt names the row.

// All of it from one snapshot (the caller may hold a transaction; otherwise one is opened).
Result<RestoredState> load_state(sqlite::Database& db);
Result<std::optional<std::string>> load_meta(sqlite::Database& db, const std::string& key);
Result<std::vector<EpochBegun>> load_epochs(sqlite::Database& db);

// `only`: this run, else all of them in order.
Status each_attempt(sqlite::Database& db, std::optional<RunId> only,
                    const std::function<void(const AttemptRecord&)>& visit);
Result<std::vector<NoteRecord>> load_notes(sqlite::Database& db, std::int64_t after,
                                           std::size_t count_max);
}  // namespace proctor::journal
