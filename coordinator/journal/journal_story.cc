#include "coordinator/journal/journal_story.h"

#include <array>
#include <limits>

#include "common/base/text.h"

namespace proctor::journal {
namespace {

// $ONLY: what restricts a table to one run.  A note may concern it though it names none, or
// another.  An operator who booked a review is told of by the review itself, which says more;
// quotes inside of a reason are written with a backslash.
constexpr const char* kFacts = R"sql(
SELECT at_ms, run, attempt, fact, detail FROM (
  SELECT intent_ms AS at_ms, run, attempt, 0 AS step, 0 AS seq, 'intent' AS fact,
    printf('asks for %d.%06d USD', ask / 1000000, ask % 1000000) AS detail FROM attempts $ONLY
  UNION ALL SELECT granted_ms, run, attempt, 1, 0, 'granted',
    printf('%d.%06d USD reserved, for worker %s', ask / 1000000, ask % 1000000,
      coalesce((SELECT name FROM workers WHERE id = worker), '-')) FROM attempts $ONLY
  UNION ALL SELECT ended_ms, run, attempt, 2, 0, state,
    coalesce(reason, printf('short by %d.%06d USD in %s', short_by / 1000000, short_by % 1000000,
      (SELECT name FROM scopes WHERE id = denied_scope)), '') FROM attempts $ONLY
  UNION ALL SELECT result_ms, run, attempt, 3, 0, 'result',
    printf('%s, %s%s%s%s', outcome, termination, coalesce(': ' || nullif(rationale, ''), ''),
      CASE WHEN infrastructure THEN ' (infrastructure)' ELSE '' END,
      CASE WHEN sets_outcome THEN '; the run has ended' ELSE '' END) FROM attempts $ONLY
  UNION ALL SELECT settled_ms, run, attempt, 4, 0, 'settled',
    printf('charged %d.%06d of %d.%06d USD%s', charged / 1000000, charged % 1000000, ask / 1000000,
      ask % 1000000, CASE WHEN overrun > 0 THEN printf(', %d.%06d over', overrun / 1000000,
      overrun % 1000000) ELSE '' END) FROM attempts $ONLY
  UNION ALL SELECT at_ms, run, NULL, 5, 0, state,
    printf('%s is short by %d.%06d USD', (SELECT name FROM scopes WHERE id = scope),
      short_by / 1000000, short_by % 1000000) FROM (SELECT * FROM runs WHERE state = 'parked') $ONLY
  UNION ALL SELECT at_ms, run, NULL, 6, 0, 'reviewed',
    printf('%d.%03d minutes by %s, charged %d.%06d USD%s', milli_minutes / 1000,
      milli_minutes % 1000, reviewer, charged / 1000000, charged % 1000000,
      CASE WHEN note = '' THEN '' ELSE ': ' || note END) FROM reviews $ONLY
  UNION ALL SELECT at_ms, run, attempt, 6, seq, kind, detail FROM notes WHERE NOT (kind = 'operator'
    AND detail LIKE '%"act":"review"%' AND at_ms IN (SELECT at_ms FROM reviews))
  $EPOCHS)
WHERE at_ms >= ? AND at_ms IS NOT NULL ORDER BY at_ms, step, seq, run, attempt
)sql";
constexpr const char* kEpochFacts = R"sql(
  UNION ALL SELECT begun_ms, NULL, NULL, -1, epoch, 'epoch',
    printf('life %d of the coordinator: process %d on %s, proctor %s', epoch, pid, host, version)
    FROM epochs
)sql";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string facts_sql(std::optional<RunId> only) {
  std::string sql = kFacts;
  replace_all(sql, "$EPOCHS", only ? "" : kEpochFacts);
  replace_all(sql, "$ONLY", only ? "WHERE run = " + std::to_string(only->raw()) : "");
  return sql;
}

template <class Id>
Status read_id(const sqlite::Statement& row, int column, std::optional<Id>& out) {
  if (row.is_null(column)) return ok_status();
  const std::int64_t id = row.integer(column);
  if (id < 0 || std::numeric_limits<std::uint32_t>::max() < id)
    return Error{Errc::kCorrupt, "journal: a fact of run or attempt " + std::to_string(id)};
  out = Id(static_cast<std::uint32_t>(id));
  return ok_status();
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
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : row.blob(column)) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4U]);
    hex.push_back(kDigits[byte & 0xFU]);
  }
  return hex;
}

}  // namespace

Status each_fact(sqlite::Database& db, std::optional<RunId> only, WallTime since,
                 const std::function<void(const StoryFact&)>& visit) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  PROCTOR_TRY(auto rows, db.prepare(facts_sql(only)));
  rows.bind(0, since.raw());
  while (true) {
    PROCTOR_TRY(const bool row, rows.step());
    if (!row) return ok_status();
    StoryFact fact;
    fact.at = WallTime(rows.integer(0));
    PROCTOR_CHECK_OK(read_id(rows, 1, fact.run));
    PROCTOR_CHECK_OK(read_id(rows, 2, fact.attempt));
    fact.fact = rows.text(3);
    fact.detail = rows.text(4);
    visit(fact);
  }
}

Status each_row_of_all(sqlite::Database& db,
                       const std::function<void(std::string_view, const Json&)>& visit) {
  // In an order in which nothing refers to what comes later.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTables{
      {{"meta", "key"},
       {"scopes", "id"},
       {"epochs", "epoch"},
       {"workers", "id"},
       {"attempts", "run, attempt"},
       {"runs", "run"},
       {"reviews", "seq"},
       {"notes", "seq"}}};
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  for (const auto& [table, order] : kTables) {
    PROCTOR_TRY(auto rows, db.prepare("SELECT * FROM " + std::string(table) + " ORDER BY " +
                                      std::string(order)));
    while (true) {
      PROCTOR_TRY(const bool row, rows.step());
      if (!row) break;
      Json out = Json::object();
      for (int c = 0; c < rows.columns(); ++c) out[rows.name(c)] = value_of(rows, c);
      visit(table, out);
    }
  }
  return ok_status();
}

}  // namespace proctor::journal
