#include "coordinator/journal/journal_head.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/core/records.h"

namespace proctor {
namespace {

constexpr std::string_view kFormat = "proctor-head-1";

// ?1: the time.  Ordered by key, so that the same facts give the same bytes; columns by name, so
// that a later schema changes none.
constexpr std::array<const char*, 6> kFacts{
    "SELECT 'meta', key, value FROM meta WHERE key IN ('campaign', 'registration', 'plan') AND ?1 "
    "IS NOT NULL ORDER BY key",
    "SELECT 'epoch', epoch, host, pid, version, begun_ms FROM epochs WHERE begun_ms <= ?1 ORDER BY "
    "epoch",
    "SELECT 'result', run, attempt, seq, ask, (SELECT name FROM workers WHERE id = worker), boot, "
    "infrastructure, sets_outcome, outcome, termination, setup_ms, agent_ms, acceptance_ms, "
    "cpu_ms, tool_calls, input_tokens, output_tokens, model_calls, stored_bytes, rationale, "
    "report, archive, archive_bytes, started_ms, finished_ms, granted_ms, result_ms FROM attempts "
    "WHERE result_ms <= ?1 ORDER BY run, attempt",
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

namespace journal {

Result<std::optional<WallTime>> last_fact(sqlite::Database& db) {
  PROCTOR_TRY(const std::int64_t last,
              db.integer("SELECT max(coalesce((SELECT max(begun_ms) FROM epochs), 0), "
                         "coalesce((SELECT max(result_ms) FROM attempts), 0), "
                         "coalesce((SELECT max(settled_ms) FROM attempts), 0), "
                         "coalesce((SELECT max(at_ms) FROM notes), 0), "
                         "coalesce((SELECT max(at_ms) FROM reviews), 0))"));
  if (last == 0) return std::optional<WallTime>();
  return std::optional<WallTime>(WallTime(last));
}

Result<JournalHead> head_until(sqlite::Database& db, WallTime until) {
  PROCTOR_TRY(const auto snapshot, sqlite::Snapshot::of(db));
  JournalHead out{"-", until, 0, {}, {}, {}};
  Sha256 all;
  std::string bytes;
  for (const char* sql : kFacts) {
    PROCTOR_TRY(auto rows, db.prepare(sql));
    rows.bind(0, until.raw());
    while (true) {
      PROCTOR_TRY(const bool row, rows.step());
      if (!row) break;
      bytes.clear();
      for (int c = 0; c < rows.columns(); ++c) append(bytes, rows, c);
      all.update(bytes + "\n");
      ++out.facts;
      if (rows.text(0) == "meta" && rows.text(1) == kMetaCampaign)
        out.campaign = std::string(rows.text(2));
    }
  }
  out.digest = all.finish();
  return out;
}

}  // namespace journal
}  // namespace proctor
