// What `proctor power` says on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/money.h"
#include "common/base/text.h"
#include "common/stats/power.h"
#include "coordinator/aggregate/power_study.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using aggregate::Table;

std::string three(double value) {
  return fmt::format("{:.3f}", value);
}
std::string three(const std::optional<double>& value) {
  return value ? three(*value) : "-";
}

std::string place(const PowerPoint& point, const PowerInput& input) {
  if (!point.design)
    return input.pilot_from.empty() ? "the earlier stage" : "variance of " + input.pilot_from;
  return fmt::format("rho {}, r {}", twelve_digits(point.design->icc),
                     twelve_digits(point.design->correlation));
}

std::string test_words(const PowerStudy& s) {
  if (s.input.test == PowerInput::Test::kMcNemar) return "McNemar's exact test";
  const PowerPoint& worst = s.points[s.worst];
  return worst.flips && *worst.flips < worst.power ? "exact sign flips" : "paired t test";
}

// "two-sided 0.05", or a share of it where comparisons are several.
std::string level_words(const PowerInput& input) {
  std::string out = "two-sided " + twelve_digits(input.alpha);
  if (1 < input.family) out += fmt::format(" over {} comparisons", input.family);
  return out;
}

// Why it is 0: what no outcome can come to.
std::string hopeless_text(const PowerStudy& s) {
  if (!s.is_hopeless()) return "";
  const double least = std::min(1.0, least_flip_p(s.tasks) * s.input.family);
  return fmt::format(
      "  With {} no outcome whatever is called a difference: the report's exact p is {} or more{}. "
      "{} are the fewest{}.\n",
      s.input.counted_units(s.tasks), twelve_digits(least),
      1 < s.input.family ? ", adjusted for all comparisons" : "",
      s.input.counted_units(s.fewest_tasks),
      s.input.repositories ? "; \"analysis: {unit: task}\" in campaign.yaml takes tasks instead"
                           : "");
}

Table table_of(const PowerStudy& s) {
  const PowerInput& input = s.input;
  std::vector<std::string> header{"point", "power"};
  if (input.looks) header.emplace_back("with looks");
  const bool flips =
      std::ranges::any_of(s.points, [](const auto& p) { return p.flips.has_value(); });
  if (flips) header.emplace_back("sign flips");
  header.emplace_back("normal");
  header.emplace_back(input.test == PowerInput::Test::kMcNemar ? "mid-p" : "exact");
  header.emplace_back("smallest difference");
  header.push_back((input.repositories ? "repositories for " : "tasks for ") +
                   twelve_digits(input.power));
  header.emplace_back("");
  Table table(header, 1);
  for (std::size_t i = 0; i < s.points.size(); ++i) {
    const PowerPoint& p = s.points[i];
    std::vector<std::string> cells{place(p, input), three(p.power)};
    if (input.looks) cells.push_back(three(p.sequential));
    if (flips) cells.push_back(three(p.flips));
    cells.push_back(three(p.power_normal));
    cells.push_back(three(input.test == PowerInput::Test::kMcNemar ? p.mid_p : p.exact));
    cells.push_back(three(p.difference));
    cells.push_back(p.tasks ? std::to_string(*p.tasks) : "over a million");
    cells.emplace_back(i == s.worst && 1 < s.points.size() ? "<- least favourable" : "");
    table.add(std::move(cells));
  }
  return table;
}

// Twice as many runs of each task, which is what people think of first.  With them another point
// may be the least favourable one.
std::string more_runs(const PowerStudy& s) {
  if (s.input.test == PowerInput::Test::kMcNemar || s.input.looks || !s.needs_tasks) return "";
  PowerInput twice = s.input;
  twice.runs = 2 * s.input.runs;
  twice.tasks = s.tasks;
  twice.exact = false;
  twice.budgets.clear();
  const Result<PowerStudy> other = study_power(twice);
  if (!other.ok()) return "";
  const std::uint64_t now = *s.needs_tasks;
  std::uint64_t then = 0;
  for (const PowerPoint& p : other->points) then = std::max(then, p.tasks.value_or(UINT64_MAX));
  if (then == UINT64_MAX) return "";
  constexpr std::uint64_t kLittle = 5;  // below a fifth fewer tasks
  const bool little = (now - std::min(now, then)) * kLittle < now;
  return fmt::format("  Twice the runs ({} of each method a task) {}: {}.\n", twice.runs,
                     little ? "help little" : "help", s.input.counted_units(then));
}

std::string decision_text(const PowerStudy& s) {
  const PowerInput& input = s.input;
  const double least = s.points[s.worst].least();
  std::string out = fmt::format(
      "Power {} to show a difference of {} ({} against {}; {}, {}): {}.\n"
      "  {}{}, {} of each method a task{}.\n",
      three(least), twelve_digits(input.effect), twelve_digits(input.p + input.effect),
      twelve_digits(input.p), test_words(s), level_words(input),
      s.supported ? fmt::format("enough, {} was asked", twelve_digits(input.power))
                  : fmt::format("not enough, {} was asked", twelve_digits(input.power)),
      input.counted_units(s.tasks),
      input.repositories
          ? fmt::format(" of {:.3g} tasks, between which the difference varies by {}",
                        input.repositories->tasks, twelve_digits(input.repositories->spread))
          : "",
      counted(input.runs, "run"),
      input.looks ? fmt::format(", {}", counted(input.looks->after.size(), "look")) : "");
  out += hopeless_text(s);
  if (!input.tasks) out += "  So many tasks are needed; --n says how many there are.\n";
  return out;
}

std::string needs_text(const PowerStudy& s) {
  if (s.supported) return "";
  std::string out = "\nWhat would do at the least favourable point:\n";
  if (s.needs_tasks)
    out += fmt::format("  {} instead of {}.\n", s.input.counted_units(*s.needs_tasks), s.tasks);
  if (s.needs_difference)
    out += fmt::format("  A difference of {} instead of {}, if that is what matters.\n",
                       three(*s.needs_difference), twelve_digits(s.input.effect));
  if (!s.needs_tasks && !s.needs_difference)
    out += "  Nothing: no difference and no million tasks.\n";
  return out + more_runs(s);
}

std::string looks_text(const PowerStudy& s) {
  if (!s.input.looks) return "";
  std::string out = "\nLooks: stop for a difference beyond\n";
  for (std::size_t i = 0; i < s.looks_at.size(); ++i)
    out += fmt::format("  after {}: {}\n", counted(s.input.looks->after[i], "run"),
                       s.bounds[i] ? fmt::format("|z| {:.4f}", *s.bounds[i])
                                   : std::string("no bound, too early to spend anything"));
  return out;
}

std::string curve_text(const PowerStudy& s) {
  if (s.input.budgets.empty()) return "";
  std::string out =
      fmt::format("\nWhat a budget shows, best spent (rho {}, r {}; power {}):\n",
                  twelve_digits(assumed_worst(s).icc), twelve_digits(assumed_worst(s).correlation),
                  twelve_digits(s.input.power));
  Table table({"budget", "tasks", "runs", "cost", "smallest difference", "half width"}, 0);
  for (const std::int64_t budget : s.input.budgets) {
    const auto at = std::ranges::find(s.curve, budget, &BudgetPoint::budget);
    const std::string name = format_usd(MicroUsd::from_micros(budget));
    if (at == s.curve.end()) {
      table.add({name, "-", "-", "-", "none", "-"});
      continue;
    }
    table.add({name, std::to_string(at->tasks), std::to_string(at->runs),
               format_usd(MicroUsd::from_micros(at->cost)), three(at->difference),
               three(at->half_width)});
  }
  table.append_to(out);
  return out;
}

}  // namespace

std::string render_power_text(const PowerStudy& s) {
  std::string out = decision_text(s) + "\n";
  table_of(s).append_to(out);
  return out + needs_text(s) + looks_text(s) + curve_text(s);
}

}  // namespace proctor
