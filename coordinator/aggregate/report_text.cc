#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/canvas.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/warnings.h"

namespace proctor {
// The cost tables of the report on a terminal.

namespace {
using namespace aggregate;

// The rows in these columns, beside the strata of one level.
void append_rows(std::string& out, const CampaignReport& report, std::string_view words) {
  table_of(row_columns(), words, report.rows, [&](const ReportRow& r) {
    return is_only_level(report, r.key) ? std::nullopt : std::optional(row_group(r));
  }).append_to(out);
}

std::string with_self_reported(const CampaignReport& report, std::string_view words) {
  return std::string(words) + (shows_self_reported(report) ? "|self_reported" : "");
}

void append_cost_tables(std::string& out, const CampaignReport& report) {
  out += "\nWhere the money went (" + report.unit + "; one run with all its attempts)\n\n";
  table_of(cost_columns(), with_self_reported(report, kCostWords), report.costs,
           [&](const CostRow& r) {
             const bool repeats =
                 r.by == "stratum" && is_only_level(report, r.name.substr(0, r.name.find('=')));
             return repeats ? std::nullopt : std::optional(r.by);
           })
      .append_to(out);
  const CostRow& all = report.costs.front();
  const std::string& unit = report.unit;
  out += fmt::format("\n  By category: model {}, execution {}, human {}, overhead {}.\n",
                     format_usd(all.cost.model), format_usd(all.cost.execution),
                     format_usd(all.cost.human), format_usd(all.cost.overhead));
  if (all.self_reported.any())
    out += fmt::format("  self_reported (the agents' word alone): {} {} in {} and {}.\n",
                       format_usd(all.self_reported.usd), unit,
                       counted(all.self_reported.calls, "call"),
                       counted(all.self_reported.tokens, "token"));
  if (0 < all.reviews)
    out += fmt::format("  Reviews (human): {} {} in {}.\n", format_usd(all.reviewed), unit,
                       counted(all.reviews, "booking"));
  out += fmt::format("  Wasted by infrastructure: {} {} in {}.\n", format_usd(all.wasted), unit,
                     counted(all.wasted_attempts, "attempt"));
  if (MicroUsd::zero() < all.overrun)
    out += fmt::format("  Metered above what was reserved, charged to no envelope: {} {}.\n",
                       format_usd(all.overrun), unit);
}

// The tables of the report by task, on a terminal.

constexpr std::size_t kTasksShown = 200;
constexpr const char* kTaskWords =
    "task=method|planned|scorable|success|failure|acceptance error|invalid|total";

// "2/3": of scorable runs, those that succeeded.
std::string part(const TaskCell& cell) {
  return cell.scorable == 0 ? "-" : fmt::format("{}/{}", cell.success, cell.scorable);
}

void and_more(std::string& out, std::size_t all, std::size_t most) {
  if (most < all) out += "  and " + std::to_string(all - most) + " more tasks: runs.csv has all\n";
}

// What was counted of removed tasks before they left: their money is spent, their outcomes are in
// no rate.
void removed(std::string& out, const CampaignReport& report) {
  std::map<std::pair<std::string, std::string>, ReportRow> rows;  // by task and method
  for (const RunRecord& run : report.runs) {
    if (!run.ended_before_removal) continue;
    ReportRow& row = rows[{run.task, run.method}];
    row.method = run.method;
    row.cost = row.cost + run.cost;
    add_outcome(row, run.outcome);
  }
  if (rows.empty()) return;
  const auto columns = row_columns().named("method|success|failure|acceptance error|invalid|total");
  std::vector<std::string> head = titles_of(columns);
  head.insert(head.begin(), "task");
  Table table(head);
  for (const auto& [names, row] : rows) {
    std::vector<std::string> cells = cells_of(columns, row);
    cells.insert(cells.begin(), printable(names.first));
    table.add(std::move(cells));
  }
  out += "\nEnded runs of removed tasks (in no rate; their cost is in the totals)\n\n";
  table.append_to(out);
}

// The matrix task by method, of so many tasks at most.
void append_task_matrix(std::string& out, const CampaignReport& report, std::size_t most) {
  std::set<std::string_view> tasks;
  for (const RunRecord& run : report.runs)
    if (run.state != RunRecord::State::kRemoved) tasks.insert(run.task);
  if (tasks.empty()) return;
  const TaskCells cells = task_cells(report.runs);
  const std::vector<MethodRate>& rates = report.analysis->rates;
  std::vector<std::string> header{"task"},
      all{"all, " + std::string(over_words(report.analysis->plan))};
  for (const MethodRate& r : rates) {
    header.push_back(printable(r.method));
    all.push_back(r.rate.value ? percent(*r.rate.value) + " %" : "-");
  }
  Table matrix(std::move(header), 1);
  std::size_t n = 0;
  for (const std::string_view task : tasks) {
    if (most < ++n) break;
    std::vector<std::string> row{printable(task)};
    const std::size_t at = cells.place(std::string(task));
    for (const MethodRate& r : rates) row.push_back(part(cells.at(at, cells.method(r.method))));
    matrix.add(std::move(row));
  }
  matrix.group("all");
  matrix.add(std::move(all));
  out += "\nTasks by methods (success of scorable runs)\n\n";
  matrix.append_to(out);
  and_more(out, tasks.size(), most);
}

// The tables by task, that matrix, and what ended of removed tasks.
void append_task_tables(std::string& out, const CampaignReport& report) {
  std::map<std::string_view, ReportRow> tasks;
  for (const RunRecord& run : report.runs) {
    if (run.state == RunRecord::State::kRemoved) continue;
    ReportRow& task = tasks[run.task];
    if (++task.planned == 1) task.method = run.task;
    task.cost = task.cost + run.cost;
    task.self_reported = task.self_reported + run.self_reported;
    if (run.state == RunRecord::State::kEnded) add_outcome(task, run.outcome);
  }
  if (!tasks.empty()) {
    out += "\nTasks (number of runs; cost in " + report.unit + ")\n\n";
    table_of(row_columns(), with_self_reported(report, kTaskWords),
             tasks | std::views::values | std::views::take(kTasksShown), ungrouped<ReportRow>, 1)
        .append_to(out);
    and_more(out, tasks.size(), kTasksShown);
    append_task_matrix(out, report, kTasksShown);
  }
  removed(out, report);
}
}  // namespace

// How far a campaign is, by method and stratum.

std::string render_progress_text(const CampaignReport& report) {
  std::string out;
  append_rows(out, report, kProgressWords);
  constexpr std::size_t kMethodBytes = 600;
  for (const std::string& method : unmetered_methods(report))
    out += "\n" + printable(method, kMethodBytes) + "\n";
  append_broken_tasks(out, report);
  append_end_causes(out, report);
  return out;
}

std::string render_progress_json(const CampaignReport& report) {
  Ordered out = Ordered::array();
  for (const ReportRow& r : report.rows) {
    const Ordered all = row_columns().json(r);
    Ordered& row = out.emplace_back(Ordered::object());
    for (const char* name :
         {"method", "stratum", "value", "planned", "running", "parked", "success", "satisfied",
          "failure", "acceptance_error", "invalid", "unmetered"})
      row[name] = all.contains(name) ? all[name] : Ordered(r.running);
  }
  return dumped(out);
}

// The report on a terminal.

namespace {
constexpr std::size_t kParkedShown = 20, kReasonBytes = 2'000;

std::string head_line(const CampaignReport& report) {
  return fmt::format("Campaign {}{}: {}. Spent {} {}.\n", printable(report.campaign),
                     report.again.empty() ? "" : ", a " + printable(report.again),
                     runs_line(report.total), format_usd(report.total.cost.total()), report.unit);
}

// What all tasks have in common is said once: it has no rows of its own in any table.
void common_levels(std::string& out, const CampaignReport& report) {
  std::string line;
  for (std::size_t k = 0; k < report.strata_keys.size(); ++k) {
    const std::string& key = report.strata_keys[k];
    if (is_only_level(report, key))
      line += (line.empty() ? "" : ", ") + printable(key) + "=" +
              printable(report.runs.front().strata[k]);
  }
  if (!line.empty()) append_wrapped(out, "Every task: ", line);
}

// What of the campaign it is, what its numbers pool, and what is to be known before any of them.
void preface(std::string& out, const CampaignReport& report) {
  if (!report.part.empty()) append_wrapped(out, "", printable(report.part, kReasonBytes));
  for (const std::string& warning : report.warnings)
    append_wrapped(out, "Warning: ", printable(warning, kReasonBytes));
  const std::string pooled = pooled_stages(report);
  if (!pooled.empty())
    append_wrapped(out, "Stages: ",
                   pooled +
                       ". Rates over all tasks, the endpoint and comparisons pool their runs; "
                       "proctor report --stage NAME is of one alone.");
}

void results(std::string& out, const CampaignReport& report) {
  out += "\nOutcomes (number of runs)\n\n";
  append_rows(out, report,
              std::string(kOutcomeWords) + (0 < report.total.cancelled ? "|cancelled" : "") +
                  (0 < report.total.removed ? "|removed" : ""));
  out += "\nRates (with " + confidence(report.alpha) + " intervals)\n\n";
  append_rows(out, report, kRateWords);
  out += "\nCost (" + report.unit + ") and time (seconds)\n\n";
  append_rows(out, report, with_self_reported(report, kPriceWords) + "|" + std::string(kTimeWords));
}

// " (agents: 3 exit 0, 1 exit 2)"; empty: none of them says one.
std::string exits(const ReportRow& row, Termination termination) {
  const auto it = row.agent_exits.find(termination);
  if (it == row.agent_exits.end()) return "";
  std::string out;
  for (const auto& [code, n] : it->second)
    out += fmt::format("{}{} exit {}", out.empty() ? " (agents: " : ", ", n, code);
  return out + ")";
}

void endings(std::string& out, const CampaignReport& report) {
  if (report.total.ended() == 0) return;
  out += "\nWhy runs ended\n\n";
  for (const ReportRow& r : report.rows) {
    if (!r.key.empty() || r.terminations.empty()) continue;
    out += "  " + printable(r.method) + ":";
    const char* comma = " ";
    for (const auto& [termination, n] : r.terminations) {
      out += fmt::format("{}{} {}{}", comma, n, to_string(termination), exits(r, termination));
      comma = ", ";
    }
    out += "\n";
  }
}

// They are in no rate, so both are told: the rate without them, and what it would be had they
// failed.
void unavailable(std::string& out, const CampaignReport& report) {
  if (report.total.without_agent() == 0) return;
  out +=
      "\nAgents that could not start or had no model, or none with room (invalid; success "
      "rate without these runs, "
      "and with them as failures)\n\n";
  for (const ReportRow& r : report.rows) {
    if (!r.key.empty() || r.without_agent() == 0) continue;
    const auto some = [](std::uint64_t n, const char* why) {
      return n == 0 ? "" : fmt::format(" ({} {})", n, why);
    };
    out += fmt::format(
        "  {}: {} of {}{}{}; {} without, {} with\n", printable(r.method), r.without_agent(),
        counted(r.ended(), "run"), some(r.model_unavailable, "for want of a model"),
        some(r.model_overloaded, "whose provider had no room"),
        percent_with_interval(r.success_rate.rate, r.success_rate.interval),
        percent_with_interval(r.success_rate_started.rate, r.success_rate_started.interval));
    for (const std::uint32_t position : r.runs) {
      const RunRecord& run = report.runs[position];
      if (run.state != RunRecord::State::kEnded ||
          (run.termination != Termination::kAgentUnavailable &&
           run.termination != Termination::kModelOverloaded))
        continue;
      append_wrapped(out, "    ", printable(run.name + ": " + run.rationale, kReasonBytes));
      break;  // the others say the like
    }
  }
}

// The first few of what a section lists, a sentence each.
class FirstFew {
 public:
  FirstFew(std::string& out, const char* title) : out_(out), title_(title) {}
  void add(const auto& sentence, bool wrap = true) {
    if (++n_ == 1) out_ += "\n" + std::string(title_) + "\n\n";
    if (kParkedShown < n_) return;
    const std::string line = printable(sentence(), kReasonBytes);
    if (wrap)
      append_wrapped(out_, "  ", line);
    else
      out_ += "  " + line + "\n";
  }
  void end(const char* where) {
    if (kParkedShown < n_) out_ += fmt::format("  and {} more{}\n", n_ - kParkedShown, where);
  }

 private:
  std::string& out_;
  const char* title_;
  std::size_t n_ = 0;
};

void set_aside(std::string& out, const CampaignReport& report) {
  FirstFew few(out,
               "Invalid results that were set aside (kept as evidence, in no rate; their runs were "
               "run again)");
  for (const RunRecord& run : report.runs)
    for (const SetAside& s : run.set_aside)
      few.add([&] {
        return fmt::format("{}: attempt {} invalid, {}: {}; again by {}{}: now {}", run.name,
                           s.attempt, to_string(s.termination), s.why, s.by,
                           s.reason.empty() ? "" : " (" + s.reason + ")", stand_of(run));
      });
  few.end(" in runs.csv");
}

// Successes that do not satisfy their contract: each method's, and the first few by name.
void violations(std::string& out, const CampaignReport& report) {
  FirstFew few(out,
               "Constraints that were broken, gates that successes did not pass (not satisfied)");
  for (const RunRecord& run : report.runs) {
    const bool unsatisfied = run.outcome == RunOutcome::kSuccess && !run.satisfied();
    if (run.state != RunRecord::State::kEnded || (run.violations == 0 && !unsatisfied)) continue;
    few.add([&] {
      return fmt::format(
          "{}: {}, {} ({}{})", run.name, to_string(run.outcome), run.unmet(),
          run.violations < 2 ? "" : "the first: ", violation_answer(run.violated, {}));
    });
  }
  few.end(": proctor list --where 'violations>0 or outcome=success satisfied=no'");
}

void judged_again(std::string& out, const CampaignReport& report) {
  if (report.moves.empty()) return;
  out +=
      "\nRecorded patches that were judged again: the outcome then, and here (number of runs)\n\n";
  table_of(transition_columns(), "method|old|new|runs", report.moves, ungrouped<Transition>, 3)
      .append_to(out);
  FirstFew few(out, "Patches whose outcome is another one");
  for (const RunRecord& run : report.runs)
    if (run.old_outcome && word_of(*run.old_outcome) != stand_of(run))
      few.add([&] {
        return fmt::format("{}: {} -> {}", run.name, word_of(*run.old_outcome), stand_of(run));
      });
  few.end(": runs.csv has all");
}

void parked(std::string& out, const CampaignReport& report) {
  FirstFew few(out, "Parked runs (the budget that was short, and by how much; or what is broken)");
  for (const RunRecord& run : report.runs)
    if (run.state == RunRecord::State::kParked)
      few.add(
          [&] {
            return run.name + ": " +
                   (run.parked_why.empty() ? fmt::format("{} short by {} {}", run.parked_scope,
                                                         format_usd(run.short_by), report.unit)
                                           : run.parked_why);
          },
          !run.parked_why.empty());
  few.end("");
}

void listed(std::string& out, const char* title, const std::vector<std::string>& sentences,
            const char* first = "  * ", std::size_t most = std::string::npos) {
  if (sentences.empty()) return;
  out += "\n" + std::string(title) + "\n\n";
  for (std::size_t i = 0; i < std::min(most, sentences.size()); ++i)
    append_wrapped(out, first, printable(sentences[i], kReasonBytes));
  if (most < sentences.size())
    out += fmt::format("  and {} more in report.json\n", sentences.size() - most);
}

void definitions(std::string& out) {
  out += "\nWhat the words mean\n\n";
  std::size_t width = 0;
  for (const Definition& d : report_definitions()) width = std::max(width, d.word.size());
  for (const Definition& d : report_definitions())
    append_wrapped(out, "  " + std::string(d.word) + std::string(width - d.word.size() + 2, ' '),
                   d.meaning);
}
}  // namespace

std::string render_tables(const CampaignReport& report) {
  std::string out = head_line(report);
  preface(out, report);
  common_levels(out, report);
  append_broken_tasks(out, report);
  append_early_ends(out, report);
  append_analysis(out, *report.analysis);
  results(out, report);
  if (report.details) append_rubric(out, report.details->rubric, report);
  if (report.details) append_price_contrasts(out, report.details->price_contrasts, report);
  if (report.details) append_drift(out, report.details->drift);
  append_task_tables(out, report);
  judged_again(out, report);
  append_cost_tables(out, report);
  if (report.total.model_use.any()) {
    out += "\nCalls of models (tokens; cached of the input, reasoning of the output)\n\n";
    append_rows(out, report, kModelWords);
  }
  if (report.projection) append_comparison(out, *report.projection);
  endings(out, report);
  append_end_causes(out, report);
  unavailable(out, report);
  listed(out, "Unmetered methods", unmetered_methods(report), "  ");
  set_aside(out, report);
  violations(out, report);
  parked(out, report);
  listed(out, "Deviations from what was registered", report.deviations);
  listed(out, "Approvals of stages", report.approvals);
  listed(out, "Alerts about money", report.alerts, "  * ", 40);
  listed(out, "Limits of this report", report_limits(report));
  return out;
}

std::string render_end(const CampaignReport& report) {
  constexpr std::size_t kTasks = 12, kAsked = 6;
  std::string out = head_line(report);
  append_task_matrix(out, report, kTasks);
  append_asked(out, *report.analysis, kAsked);
  return out;
}

std::string with_words(std::string out, Words words) {
  if (words == Words::kShown) definitions(out);
  out += "\nHow to read it\n\n";
  for (const std::string_view note : report_notes()) append_wrapped(out, "  * ", note);
  return out;
}

std::string render_text(const CampaignReport& report, Words words) {
  return with_words(render_tables(report), words);
}

std::vector<Definition> report_definitions() {
  std::vector<Definition> out;
  const auto add = [&](const auto& columns) {
    for (const auto& c : columns) out.push_back({c.word, c.meaning});
  };
  add(aggregate::row_columns().named(
      "method|stratum|planned|scorable|success|satisfied|failure|acceptance error|invalid|agent "
      "unavailable|set aside|parked|open|cancelled|removed|success rate|bounds|error rate|invalid "
      "rate|over tasks|model|execution|human|overhead|total|self_reported|cached|refused|at "
      "ceiling|waited|billed more|clamped|replayed|unmetered|per success"));
  add(aggregate::cost_columns().named("median, 90 %, most=median|reserved|wasted"));
  add(aggregate::row_columns().named("median, longest=median"));
  return out;
}

// The picture: one line per row of the table, a bar for the success rate and a whisker for its
// interval, groups by stratum.

namespace {
constexpr double kLeft = 16;
constexpr double kBarsAt = 300;  // where 0 % is
constexpr double kScale = 400;   // pixels of 100 %
constexpr double kTextAt = kBarsAt + kScale + 16;
constexpr int kWidth = 936;
constexpr double kLine = 22;
constexpr double kTop = 86;
constexpr std::size_t kLabelBytes = 36;
constexpr std::size_t kRowsMax = 500;  // more is no picture any more; the table has them all

// Whole ones.
double pixel(double rate) {
  return kBarsAt + std::trunc(rate * kScale + 0.5);
}

void draw_row(Canvas& canvas, const ReportRow& row, double y) {
  const double middle = y - 5;
  const Literal style = row.is_control ? Literal("quiet") : Literal("number");
  canvas.words(row.is_control ? style : Literal("label"), {kLeft + 16, y},
               text(row.method, kLabelBytes));
  const auto& share = row.success_rate;
  if (!share.rate) return canvas.words("quiet", {kBarsAt + 6, y}, "no scorable run");
  canvas.words(style, {kTextAt, y},
               text(fmt::format("{}  {}/{}", percent_with_interval(share.rate, share.interval),
                                share.x, share.n)));
  if (row.is_control) return;  // context: it has no bar
  canvas.rect("bar", {kBarsAt, middle - 7}, pixel(*share.rate) - kBarsAt, 14);
  if (const auto& interval = share.interval)
    canvas.whisker("whisker", pixel(interval->low), pixel(interval->high), middle, 5);
}
}  // namespace

std::string render_svg(const CampaignReport& report) {
  Canvas rows(kWidth, 0, Canvas::For::kFile);
  double y = kTop;
  std::string group = "\n";  // no stratum has this name
  const std::size_t shown = std::min(report.rows.size(), kRowsMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const ReportRow& row = report.rows[i];
    const std::string name = row.key.empty() ? "all tasks" : stratum_name(row);
    if (name != group) {
      if (i != 0) y += 10;
      rows.words("group", {kLeft, y}, text(name, kLabelBytes));
      y += kLine;
      group = name;
    }
    draw_row(rows, row, y);
    y += kLine;
  }
  if (shown < report.rows.size()) {
    rows.words("quiet", {kLeft, y},
               aggregate::number(report.rows.size() - shown) + " more rows: see the table");
    y += kLine;
  }
  Canvas canvas(kWidth, static_cast<int>(y) + 24, Canvas::For::kFile);
  canvas.words("title", {kLeft, 26}, "Success rate over scorable runs");
  canvas.words("quiet", {kLeft, 44},
               text(report.campaign, 120) + "; lines are " + text(confidence(report.alpha)) +
                   " Wilson intervals; numbers are success/scorable");
  for (const std::uint64_t p : {0, 25, 50, 75, 100}) {
    const double x = pixel(static_cast<double>(p) / kPercent);
    canvas.line("grid", {x, kTop - 20}, {x, y - 10});
    canvas.words("quiet", {x - 12, kTop - 26}, aggregate::number(p) + " %");
  }
  canvas.add(rows);
  return canvas.file(Markup("Success rates of campaign ") + text(report.campaign, 200),
                     ".group{font-weight:bold}.quiet{fill:#57606a;font-size:12px}"
                     ".number{font-size:12px}.bar{fill:#7aa6d8}"
                     ".whisker{stroke:#1b1f24;stroke-width:1.5}.grid{stroke:#d0d7de}");
}
}  // namespace proctor
