#include "coordinator/page/leaderboard_page.h"

#include <algorithm>

#include "coordinator/page/context.h"
#include "coordinator/page/style.h"

namespace proctor {
namespace {

using namespace page;

constexpr std::size_t kTasksOnBoard = 2'000;

Markup ranks_of(const std::optional<RankSet>& r) {
  if (!r) return "control";
  return r->best == r->worst ? number(r->best) : number(r->best) + Markup("-") + number(r->worst);
}

Markup amount(const std::optional<double>& dollars) {
  return dollars ? usd(*dollars) : none();
}

Markup board_rows(std::uint64_t id, const BoardTable& t) {
  DataTable table(id, number(t.rows.size()) + Markup(" methods on ") + number(t.tasks.size()) +
                          Markup(" tasks"));
  table.words("method").words("campaign").numbers("rank").numbers("success").words("interval");
  table.words("bounds").numbers("tasks").numbers("runs").numbers("satisfied").numbers("errors");
  table.numbers("invalid").numbers("cost of a run").numbers("of a success").words("price table");
  table.words("caps").words("proctor").words("evidence");
  for (const BoardRow& r : t.rows) {
    const std::optional<Interval> bounds =
        r.bounds ? std::optional(r.bounds->identified) : std::nullopt;
    table.group(r.ranks ? "agents" : "controls");
    table.row({small_if(!r.ranks, text(r.method)), text(r.campaign), ranks_of(r.ranks),
               rate(r.rate.value), rate_interval(r.rate.interval, r.rate.why),
               bounds ? rate_interval(bounds) : none(), number(r.tasks), number(r.runs),
               number(r.satisfied), number(r.acceptance_error), number(r.invalid),
               amount(r.cost_of_run), amount(r.cost_of_success), text(r.prices), text(r.caps),
               text(r.tool_version),
               r.verified() ? element("code", text(r.journal_head.substr(0, 12)))
                            : element("strong", "unverified")});
  }
  return table.finish();
}

Markup sentences(const std::vector<std::string>& all) {
  Markup items;
  for (const std::string& s : all) items << element("li", text(s)) << line_end();
  return items.empty() ? Markup() : element("ul", line_end() + items);
}

Markup board_table(std::uint64_t id, const BoardTable& t) {
  Markup out = element(
      "h2", {{"id", numbered("table-", id)}},
      Markup("Table ") + number(id) + Markup(": tasks ") + text(t.tasks_digest.short_hex()));
  out << line_end() << board_rows(id, t) << line_end();
  out << element("p", {{"class", "quiet"}},
                 Markup("Ranks are sets: ") + text(t.rank_rule) +
                     Markup(". Rows of one set are not told apart by these data. Bounds: the rate "
                            "if every error and invalid run had failed, or succeeded."));
  out << sentences(t.differences);
  Markup tasks;
  for (std::size_t i = 0; i < std::min(kTasksOnBoard, t.tasks.size()); ++i)
    tasks << (i == 0 ? Markup() : Markup(", ")) << text(t.tasks[i]);
  if (kTasksOnBoard < t.tasks.size())
    tasks << Markup(" and ") << number(t.tasks.size() - kTasksOnBoard) << Markup(" more");
  out << element("p", {{"class", "quiet"}}, Markup("Its tasks: ") + tasks + Markup("."));
  return element("section", {{"aria-labelledby", numbered("table-", id)}}, line_end() + out);
}

}  // namespace

std::string render_leaderboard_html(const Leaderboard& board) {
  Markup main;
  if (board.tables.empty()) main << element("p", "There is no campaign with these tasks.");
  if (1 < board.tables.size())
    main << element("p",
                    "Campaigns share a table only where the contracts of their tasks are equal, "
                    "byte for byte: rates of different tables do not compare.");
  for (std::size_t i = 0; i < board.tables.size(); ++i)
    main << board_table(i + 1, board.tables[i]) << line_end();
  const Markup body =
      element("a", {{"class", "skip"}, {"href", "#main"}}, "To the tables") + line_end() +
      element("header", element("h1", "Leaderboard")) + line_end() +
      element("main", {{"id", "main"}}, line_end() + main) + line_end() +
      element("footer", element("p",
                                "Made by proctor leaderboard from the campaigns' journals alone. "
                                "This file runs nothing and asks nothing of any network."));
  return document("Leaderboard", body);
}

}  // namespace proctor
