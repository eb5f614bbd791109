#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/stats/power.h"
#include "coordinator/aggregate/canvas.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor {
// power_analysis.json, and what every number in it was computed from.  Numbers are texts of twelve
// digits: a reader compares what was written, not what its floating point made of it.

namespace {
using aggregate::filled;
using aggregate::listed;
using aggregate::Ordered;

std::string_view spend_word(Spending rule) {
  return rule == Spending::kPocock ? "pocock" : "obrien_fleming";
}

std::string looks_json(const PowerStudy& s) {
  if (!s.input.looks) return "null";
  Ordered t = Ordered::array(), z = Ordered::array();
  for (std::size_t i = 0; i < s.looks_at.size(); ++i) {
    // A look too early to spend anything has no bound, and is none.
    if (!s.bounds[i]) continue;
    t.push_back(twelve_digits(s.looks_at[i]));
    z.push_back(twelve_digits(*s.bounds[i]));
  }
  return filled(R"({"spend":$,"t":$,"z":$})", {spend_word(s.input.looks->spend), t, z});
}

std::string point_json(const PowerPoint& p, const PowerInput& input) {
  std::string out = filled(R"({"p":[#,#])", {input.p + input.effect, input.p});
  out += p.design ? filled(R"(,"rho":#,"r":#)", {p.design->icc, p.design->correlation})
                  : R"(,"rho":null,"r":null)";
  out += filled(R"(,"v":#,"power_normal":#,"power_t":#)", {p.variance, p.power_normal, p.power});
  if (p.flips) out += filled(R"(,"power_flips":#)", {*p.flips});
  return out + filled(R"(,"source":$})", {p.design ? "assumed" : "pilot"});
}

std::string decision_json(const PowerStudy& s) {
  return filled(R"({"supported":$,"worst":$,"needs":@})",
                {s.supported, s.worst,
                 s.needs_tasks && s.needs_difference
                     ? filled(R"({"tasks":$,"effect":#})", {*s.needs_tasks, *s.needs_difference})
                     : "null"});
}

// Numbers with the formula and the inputs they come from.
class Values {
 public:
  explicit Values(const PowerStudy& study) : study_(study) {}

  void add(const std::string& id, const char* formula, const std::string& inputs,
           const std::optional<double>& value) {
    if (value)
      out_.push_back(
          filled(R"({"id":$,"formula":$,"inputs":@,"value":#})", {id, formula, inputs, *value}));
  }

  void add_point(std::size_t i) {
    const PowerPoint& p = study_.points[i];
    const PowerInput& input = study_.input;
    const auto id = [&](const char* of) { return of + ("[" + std::to_string(i) + "]"); };
    std::string v = filled(R"({"k":"$",)", {input.runs});
    v += p.design ? filled(R"("pA":#,"pB":#,"rho":#,"r":#)",
                           {p.design->p_a, p.design->p_b, p.design->icc, p.design->correlation})
                  : filled(R"("V_up":#,"pilot_k":"$","pilot_n":"$")",
                           {input.pilot->upper, input.pilot->runs, input.pilot->tasks});
    if (input.repositories)
      v += filled(R"(,"repository_tasks":#,"repository_spread":#)",
                  {input.repositories->tasks, input.repositories->spread});
    const char* formula = p.design ? "paired_v" : "v_up";
    add(id("v"), input.repositories ? "repository_v" : formula, v + "}", p.variance);
    const std::string at = filled(R"({"alpha":#,"effect":#,"n":"$","v":#})",
                                  {input.level(), input.effect, study_.tasks, p.variance});
    const std::string wanted = filled(R"({"alpha":#,"effect":#,"v":#,"power":#})",
                                      {input.level(), input.effect, p.variance, input.power});
    const bool mcnemar = input.test == PowerInput::Test::kMcNemar;
    add(id("power_normal"), "power_normal", at, p.power_normal);
    add(id("power"), mcnemar ? "mcnemar_exact" : "power_t", at, p.power);
    add(id("power_mid_p"), "mcnemar_midp", at, p.mid_p);
    add(id("power_exact"), "power_exact_t", at, p.exact);
    add(id("power_flips"), "power_flips", at, p.flips);
    add(id("power_sequential"), "power_sequential", at, p.sequential);
    add(id("n_normal"), "n_normal", wanted,
        tasks_by_variance(input.effect, p.variance, input.level(), input.power));
    if (p.tasks) add(id("n"), mcnemar ? "mcnemar_n" : "n_t", wanted, static_cast<double>(*p.tasks));
    add(id("mde"), "mde",
        filled(R"({"alpha":#,"n":"$","v":#,"power":#})",
               {input.level(), study_.tasks, p.variance, input.power}),
        p.difference);
  }

  void add_bounds() {
    for (std::size_t i = 0; i < study_.bounds.size(); ++i)
      add("bound[" + std::to_string(i) + "]", "boundary",
          filled(R"({"alpha":#,"spend":$,"t":#})",
                 {study_.input.level(), spend_word(study_.input.looks->spend), study_.looks_at[i]}),
          study_.bounds[i]);
  }

  std::string text() const { return listed(out_); }

 private:
  const PowerStudy& study_;
  std::vector<std::string> out_;
};
}  // namespace

std::string render_power_json(const PowerStudy& s) {
  Ordered comparisons = Ordered::array();
  for (const auto& [a, b] : s.input.comparisons) comparisons.push_back(Ordered::array({a, b}));
  std::string out = filled(
      R"({"format":"proctor-power-1","label":"proposed protocol, not a result","campaign":$,)"
      R"("comparisons":$,"test":$,"alpha":#,"family":$,"fewest_tasks":$,"effect":#,"target":#,)"
      R"("tasks":$)",
      {s.input.campaign, comparisons,
       s.input.test == PowerInput::Test::kMcNemar ? "mcnemar" : "paired_t", s.input.alpha,
       s.input.family, s.fewest_tasks, s.input.effect, s.input.power, s.tasks});
  if (const auto& repositories = s.input.repositories)
    out += filled(R"(,"repositories":{"tasks_of_each":#,"spread":#})",
                  {repositories->tasks, repositories->spread});
  return out +
         filled(R"(,"analysed_replicates":$,"looks":@,"points":@,"decision":@})",
                {s.input.runs, looks_json(s),
                 listed(s.points, [&](const PowerPoint& p) { return point_json(p, s.input); }),
                 decision_json(s)}) +
         "\n";
}

std::string render_power_values_json(const PowerStudy& s, const std::string& of) {
  Values values(s);
  for (std::size_t i = 0; i < s.points.size(); ++i) values.add_point(i);
  values.add_bounds();
  return filled(R"({"format":"proctor-compute-report-1","of":$,"tool_version":$,"values":@})",
                {of, kVersion, values.text()}) +
         "\n";
}

std::string render_power_curve_json(const PowerStudy& s) {
  const Design worst = assumed_worst(s);
  const auto point = [](const BudgetPoint& p) {
    return filled(R"({"budget_micros":$,"cost_micros":$,"n":$,"k":$,"mde":#,"half_width":#})",
                  {p.budget, p.cost, p.tasks, p.runs, p.difference, p.half_width});
  };
  return filled(
             R"({"format":"proctor-cost-precision-1","label":"projection, not a result",)"
             R"("assume":{"p":#,"r":#,"rho":#},"costs_micros":{"task":$,"a":$,"b":$},"points":@})",
             {worst.p_b, worst.correlation, worst.icc, s.input.costs.task, s.input.costs.a,
              s.input.costs.b, listed(s.curve, point)}) +
         "\n";
}

// The words of `proctor power` on a terminal.

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

// The smallest difference that each budget shows, best spent: money to the right, difference
// upward, the numbers of tasks and runs at each point, the difference that matters as a dashed
// line.

namespace {
using namespace aggregate;

constexpr double kLeft = 90, kRight = 650, kTop = 70, kBase = 370;
constexpr int kWidth = 740, kHeight = 430;
}  // namespace

std::string render_power_curve_svg(const PowerStudy& s) {
  PROCTOR_ASSERT(!s.curve.empty());
  const Design worst = assumed_worst(s);
  std::vector<BudgetPoint> points = s.curve;
  std::ranges::sort(points, {}, &BudgetPoint::budget);
  const double dear = std::max(1.0, static_cast<double>(points.back().budget));
  const double most =
      1.1 *
      std::max(s.input.effect, std::ranges::max(points, {}, &BudgetPoint::difference).difference);
  // Whole pixels.
  const auto x = [&](const BudgetPoint& p) {
    return kLeft + std::trunc(static_cast<double>(p.budget) / dear * (kRight - kLeft - 30));
  };
  const auto y = [&](double difference) {
    return kBase - std::trunc(difference / most * (kBase - kTop));
  };
  Canvas canvas(kWidth, kHeight, Canvas::For::kFile);
  canvas.words("title", {16, 26}, "Smallest difference that a budget shows, best spent");
  canvas.words(
      "quiet", {16, 46},
      text(fmt::format("projection, not a result; power {}, rate {}, rho {}, r {}; numbers "
                       "are tasks x runs of each method",
                       twelve_digits(s.input.power), twelve_digits(worst.p_b),
                       twelve_digits(worst.icc), twelve_digits(worst.correlation))));
  constexpr int kSteps = 5;
  for (int i = 0; i <= kSteps; ++i) {
    const double level = most * i / kSteps;
    canvas.line("grid", {kLeft, y(level)}, {kRight, y(level)});
    canvas.words("quiet", {kLeft - 50, y(level) + 4}, text(fmt::format("{:.3f}", level)));
  }
  canvas.line("axis", {kLeft, kBase}, {kRight, kBase});
  canvas.line("axis", {kLeft, kTop}, {kLeft, kBase});
  const double matters = y(s.input.effect);
  canvas.line("matters", {kLeft, matters}, {kRight, matters});
  canvas.words("number", {kRight + 6, matters + 4}, "what matters");
  std::string path;
  for (const BudgetPoint& p : points)
    path += fmt::format("{}{} {}", path.empty() ? "M" : " L", x(p), y(p.difference));
  canvas.path("curve", path);
  for (const BudgetPoint& p : points) {
    const Point at{x(p), y(p.difference)};
    canvas.circle("mark", at, 4);
    canvas.words("number", {at.x - 20, at.y - 10}, text(fmt::format("{} x {}", p.tasks, p.runs)));
    canvas.words("quiet", {at.x - 16, kBase + 18},
                 text(format_usd(MicroUsd::from_micros(p.budget))));
  }
  return canvas.file("Smallest difference that a budget shows",
                     ".quiet{fill:#57606a;font-size:12px}.number{font-size:12px}"
                     ".grid{stroke:#d0d7de}.axis{stroke:#57606a}"
                     ".curve{stroke:#2f5d8c;stroke-width:2;fill:none}.mark{fill:#2f5d8c}"
                     ".matters{stroke:#1b1f24;stroke-width:1.5;stroke-dasharray:6 3}");
}
}  // namespace proctor
