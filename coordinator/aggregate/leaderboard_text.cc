// A leaderboard on a terminal, as JSON and as CSV.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/csv.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis_json.h"
#include "coordinator/aggregate/leaderboard.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr std::size_t kTasksNamed = 5;

std::string rank_cell(const std::optional<RankSet>& r) {
  if (!r) return "control";
  return r->best == r->worst ? std::to_string(r->best) : fmt::format("{}-{}", r->best, r->worst);
}

std::string dollars_cell(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.4f}", *usd) : "-";
}

Ordered row_of_board(const BoardRow& r) {
  Ordered out = {
      {"campaign", r.campaign},
      {"method", r.method},
      {"ranks", r.ranks ? Ordered::array({r.ranks->best, r.ranks->worst}) : Ordered(nullptr)},
      {"rate", estimate_json(r.rate)},
      {"bounds", r.bounds ? interval_json(r.bounds->identified) : Ordered(nullptr)},
      {"tasks", r.tasks},
      {"runs", r.runs},
      {"satisfied", r.satisfied},
      {"acceptance_error", r.acceptance_error},
      {"invalid", r.invalid},
      {"open", r.open},
      {"not_run", r.not_run}};
  out["cost_of_run"] = or_null(r.cost_of_run);
  out["cost_of_success"] = or_null(r.cost_of_success);
  out["prices"] = r.prices;
  out["caps"] = r.caps;
  out["tool_version"] = r.tool_version;
  out["registered_ms"] = r.registered_ms;
  out["journal_head"] = r.journal_head.empty() ? Ordered(nullptr) : Ordered(r.journal_head);
  out["verified"] = r.verified();
  return out;
}

}  // namespace

std::string render_leaderboard_text(const Leaderboard& board) {
  std::string out;
  for (const BoardTable& t : board.tables) {
    out += fmt::format("{}{} with equal contracts ({}):", out.empty() ? "" : "\n",
                       counted(t.tasks.size(), "task"), t.tasks_digest.short_hex());
    for (std::size_t i = 0; i < std::min(kTasksNamed, t.tasks.size()); ++i)
      out += " " + printable(t.tasks[i]);
    out += kTasksNamed < t.tasks.size() ? " ...\n\n" : "\n\n";
    Table table({"method", "campaign", "rank", "success over tasks", "tasks", "runs", "satisfied",
                 "errors", "invalid", "of a run", "of a success"},
                2);
    std::vector<std::string> unverified;
    for (const BoardRow& r : t.rows) {
      const auto n = [](std::uint64_t v) { return std::to_string(v); };
      table.group(r.ranks ? "agents" : "controls");
      table.add({printable(r.method) + (r.verified() ? "" : " *"), printable(r.campaign),
                 rank_cell(r.ranks), percent_with_interval(r.rate.value, r.rate.interval),
                 n(r.tasks), n(r.runs), n(r.satisfied), n(r.acceptance_error), n(r.invalid),
                 dollars_cell(r.cost_of_run), dollars_cell(r.cost_of_success)});
      if (!r.verified()) unverified.push_back(printable(r.method) + " of " + printable(r.campaign));
    }
    table.append_to(out);
    out += "  Ranks are sets: " + t.rank_rule + ".\n";
    for (const std::string& d : t.differences) out += "  ! " + d + "\n";
    for (const std::string& u : unverified)
      out += "  * unverified, for reports of its runs are missing: " + u + "\n";
  }
  if (1 < board.tables.size())
    out +=
        "\nTables are apart because the contracts of their tasks differ: what was asked is not "
        "the same.\nTasks that they share may be chosen with --tasks.\n";
  return out;
}

std::string render_leaderboard_json(const Leaderboard& board) {
  Ordered tables = Ordered::array();
  for (const BoardTable& t : board.tables) {
    Ordered rows = Ordered::array();
    for (const BoardRow& r : t.rows) rows.push_back(row_of_board(r));
    tables.push_back({{"tasks_sha256", t.tasks_digest.hex()},
                      {"tasks", t.tasks},
                      {"rank_rule", t.rank_rule},
                      {"differences", t.differences},
                      {"rows", std::move(rows)}});
  }
  return dumped(Ordered{{"schema_version", 1}, {"alpha", board.alpha}, {"tables", tables}}) + "\n";
}

std::string render_leaderboard_csv(const Leaderboard& board) {
  std::string out =
      "table,campaign,method,rank_best,rank_worst,rate,rate_low,rate_high,bound_low,bound_high,"
      "tasks,runs,satisfied,acceptance_error,invalid,open,not_run,run_usd,success_usd,prices,caps,"
      "tool_version,journal_head,verified\n";
  for (const BoardTable& t : board.tables)
    for (const BoardRow& r : t.rows) {
      const auto low = [](const auto& i) { return i ? std::optional(i->low) : std::nullopt; };
      const auto high = [](const auto& i) { return i ? std::optional(i->high) : std::nullopt; };
      std::optional<Interval> bounds;
      if (r.bounds) bounds = r.bounds->identified;
      std::vector<std::string> record = {t.tasks_digest.short_hex(), r.campaign, r.method,
                                         r.ranks ? std::to_string(r.ranks->best) : "",
                                         r.ranks ? std::to_string(r.ranks->worst) : ""};
      for (const std::optional<double>& v :
           {r.rate.value, low(r.rate.interval), high(r.rate.interval), low(bounds), high(bounds)})
        record.push_back(number_or_empty(v));
      for (const std::uint64_t v :
           {r.tasks, r.runs, r.satisfied, r.acceptance_error, r.invalid, r.open, r.not_run})
        record.push_back(std::to_string(v));
      record.push_back(number_or_empty(r.cost_of_run));
      record.push_back(number_or_empty(r.cost_of_success));
      for (const std::string& s : {r.prices, r.caps, r.tool_version, r.journal_head})
        record.push_back(s);
      record.emplace_back(r.verified() ? "yes" : "no");
      csv_append_record(out, record);
    }
  return out;
}

}  // namespace proctor
