#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

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
  const auto columns = row_columns().named(words);
  Table table(titles_of(columns));
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    table.group(row_group(r));
    table.add(cells_of(columns, r));
  }
  table.append_to(out);
}

std::string with_self_reported(const CampaignReport& report, std::string_view words) {
  return std::string(words) + (shows_self_reported(report) ? "|self_reported" : "");
}
}  // namespace

void append_cost_tables(std::string& out, const CampaignReport& report) {
  out += "\nWhere the money went (" + report.unit + "; one run with all its attempts)\n\n";
  const auto columns = cost_columns().named(with_self_reported(report, kCostWords));
  Table spread(titles_of(columns));
  for (const CostRow& r : report.costs) {
    if (r.by == "stratum" && is_only_level(report, r.name.substr(0, r.name.find('=')))) continue;
    spread.group(r.by);
    spread.add(cells_of(columns, r));
  }
  spread.append_to(out);
  const CostRow& all = report.costs.front();
  out += "\n  By category: model " + format_usd(all.cost.model) + ", execution " +
         format_usd(all.cost.execution) + ", human " + format_usd(all.cost.human) + ", overhead " +
         format_usd(all.cost.overhead) + ".\n";
  if (all.self_reported.any())
    out += "  self_reported (the agents' word alone): " + format_usd(all.self_reported.usd) + " " +
           report.unit + " in " + counted(all.self_reported.calls, "call") + " and " +
           counted(all.self_reported.tokens, "token") + ".\n";
  if (0 < all.reviews)
    out += "  Reviews (human): " + format_usd(all.reviewed) + " " + report.unit + " in " +
           counted(all.reviews, "booking") + ".\n";
  out += "  Wasted by infrastructure: " + format_usd(all.wasted) + " " + report.unit + " in " +
         counted(all.wasted_attempts, "attempt") + ".\n";
  if (MicroUsd::zero() < all.overrun)
    out += "  Metered above what was reserved, charged to no envelope: " + format_usd(all.overrun) +
           " " + report.unit + ".\n";
}

// The tables of the report by task, on a terminal.

namespace {
constexpr std::size_t kTasksShown = 200;

struct Tally {
  std::uint64_t planned = 0, success = 0, failure = 0, acceptance_error = 0, invalid = 0;
  MicroUsd cost, self_reported;
  std::uint64_t scorable() const { return success + failure + acceptance_error; }
};

void add_outcome(Tally& tally, RunOutcome outcome) {
  tally.success += outcome == RunOutcome::kSuccess ? 1 : 0;
  tally.failure += outcome == RunOutcome::kFailure ? 1 : 0;
  tally.acceptance_error += outcome == RunOutcome::kAcceptanceError ? 1 : 0;
  tally.invalid += outcome == RunOutcome::kInvalid ? 1 : 0;
}

// "2/3": of scorable runs, those that succeeded.
std::string part(const Tally& tally) {
  if (tally.scorable() == 0) return "-";
  return std::to_string(tally.success) + "/" + std::to_string(tally.scorable());
}

void and_more(std::string& out, std::size_t all, std::size_t most) {
  if (most < all) out += "  and " + std::to_string(all - most) + " more tasks: runs.csv has all\n";
}

// What was counted of removed tasks before they left: their money is spent, their outcomes are in
// no rate.
void removed(std::string& out, const CampaignReport& report) {
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  for (const RunRecord& run : report.runs) {
    if (!run.ended_before_removal) continue;
    Tally& tally = tallies[{run.task, run.method}];
    add_outcome(tally, run.outcome);
    tally.cost = tally.cost + run.cost.total();
  }
  if (tallies.empty()) return;
  Table table({"task", "method", "success", "failure", "acceptance error", "invalid", "total"});
  for (const auto& [names, t] : tallies)
    table.add({printable(names.first), printable(names.second), std::to_string(t.success),
               std::to_string(t.failure), std::to_string(t.acceptance_error),
               std::to_string(t.invalid), format_usd(t.cost)});
  out += "\nEnded runs of removed tasks (in no rate; their cost is in the totals)\n\n";
  table.append_to(out);
}
}  // namespace

void append_task_matrix(std::string& out, const CampaignReport& report, std::size_t most) {
  std::map<std::string, std::map<std::string, Tally>> tasks;
  for (const RunRecord& run : report.runs) {
    if (run.state == RunRecord::State::kRemoved) continue;
    Tally& tally = tasks[run.task][run.method];
    if (run.state == RunRecord::State::kEnded) add_outcome(tally, run.outcome);
  }
  if (tasks.empty()) return;
  const std::vector<MethodRate>& rates = report.analysis->rates;
  std::vector<std::string> header{"task"},
      all{"all, " + std::string(over_words(report.analysis->plan))};
  for (const MethodRate& r : rates) {
    header.push_back(printable(r.method));
    all.push_back(r.rate.value ? percent(*r.rate.value) + " %" : "-");
  }
  Table matrix(std::move(header), 1);
  std::size_t n = 0;
  for (auto& [name, cells] : tasks) {
    if (most < ++n) break;
    std::vector<std::string> row{printable(name)};
    for (const MethodRate& r : rates) row.push_back(part(cells[r.method]));
    matrix.add(std::move(row));
  }
  matrix.group("all");
  matrix.add(std::move(all));
  out += "\nTasks by methods (success of scorable runs)\n\n";
  matrix.append_to(out);
  and_more(out, tasks.size(), most);
}

void append_task_tables(std::string& out, const CampaignReport& report) {
  std::map<std::string, Tally> tasks;
  for (const RunRecord& run : report.runs) {
    if (run.state == RunRecord::State::kRemoved) continue;
    Tally& task = tasks[run.task];
    ++task.planned;
    task.cost = task.cost + run.cost.total();
    task.self_reported = task.self_reported + run.self_reported.usd;
    if (run.state == RunRecord::State::kEnded) add_outcome(task, run.outcome);
  }
  if (!tasks.empty()) {
    const bool told = shows_self_reported(report);
    std::vector<std::string> columns = {"task",    "planned",          "scorable", "success",
                                        "failure", "acceptance error", "invalid",  "total"};
    if (told) columns.emplace_back("self_reported");
    Table table(std::move(columns), 1);
    std::size_t n = 0;
    for (const auto& [name, t] : tasks) {
      if (kTasksShown < ++n) break;
      std::vector<std::string> line = {
          printable(name),           std::to_string(t.planned), std::to_string(t.scorable()),
          std::to_string(t.success), std::to_string(t.failure), std::to_string(t.acceptance_error),
          std::to_string(t.invalid), format_usd(t.cost)};
      if (told) line.push_back(format_usd(t.self_reported));
      table.add(std::move(line));
    }
    out += "\nTasks (number of runs; cost in " + report.unit + ")\n\n";
    table.append_to(out);
    and_more(out, tasks.size(), kTasksShown);
    append_task_matrix(out, report, kTasksShown);
  }
  removed(out, report);
}

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

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

std::string head_line(const CampaignReport& report) {
  const ReportRow& t = report.total;
  std::string line = "Campaign " + printable(report.campaign) + ": " + counted(t.planned, "run") +
                     " planned, " + number(t.ended()) + " ended, " + number(t.parked) +
                     " parked, " + number(t.open) + " open";
  if (0 < t.cancelled) line += ", " + number(t.cancelled) + " cancelled";
  if (0 < t.removed) line += ", " + number(t.removed) + " removed";
  return line + ". Spent " + format_usd(t.cost.total()) + " " + report.unit + ".\n";
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

void outcomes(std::string& out, const CampaignReport& report) {
  std::string words(kOutcomeWords);
  if (0 < report.total.cancelled) words += "|cancelled";
  if (0 < report.total.removed) words += "|removed";
  out += "\nOutcomes (number of runs)\n\n";
  append_rows(out, report, words);
}

void rates(std::string& out, const CampaignReport& report) {
  out += "\nRates (with " + confidence(report.alpha) + " intervals)\n\n";
  append_rows(out, report, kRateWords);
}

void costs(std::string& out, const CampaignReport& report) {
  out += "\nCost (" + report.unit + ") and time (seconds)\n\n";
  append_rows(out, report, with_self_reported(report, kPriceWords) + "|" + std::string(kTimeWords));
}

void models(std::string& out, const CampaignReport& report) {
  if (!report.total.model_use.any()) return;
  out += "\nCalls of models (tokens; cached of the input, reasoning of the output)\n\n";
  append_rows(out, report, kModelWords);
}

// " (agents: 3 exit 0, 1 exit 2)"; empty: none of them says one.
std::string exits(const ReportRow& row, Termination termination) {
  const auto it = row.agent_exits.find(termination);
  if (it == row.agent_exits.end()) return "";
  std::string out;
  for (const auto& [code, n] : it->second)
    out += (out.empty() ? " (agents: " : ", ") + number(n) + " exit " + std::to_string(code);
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
      out += comma + number(n) + " " + std::string(to_string(termination)) + exits(r, termination);
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
    out +=
        "  " + printable(r.method) + ": " + number(r.without_agent()) + " of " +
        counted(r.ended(), "run") +
        (r.model_unavailable == 0 ? ""
                                  : " (" + number(r.model_unavailable) + " for want of a model)") +
        (r.model_overloaded == 0
             ? ""
             : " (" + number(r.model_overloaded) + " whose provider had no room)") +
        "; " + percent_with_interval(r.success_rate.rate, r.success_rate.interval) + " without, " +
        percent_with_interval(r.success_rate_started.rate, r.success_rate_started.interval) +
        " with\n";
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

// What the run stands at now: "success", "parked".
std::string stand_of(const RunRecord& run) {
  return std::string(run.state == RunRecord::State::kEnded ? to_string(run.outcome)
                                                           : to_string(run.state));
}

void set_aside(std::string& out, const CampaignReport& report) {
  std::size_t shown = 0;
  for (const RunRecord& run : report.runs)
    for (const SetAside& s : run.set_aside) {
      if (++shown == 1)
        out +=
            "\nInvalid results that were set aside (kept as evidence, in no rate; their runs were "
            "run again)\n\n";
      if (kParkedShown < shown) continue;
      append_wrapped(
          out, "  ",
          printable(run.name + ": attempt " + std::to_string(s.attempt) + " invalid, " +
                        std::string(to_string(s.termination)) + ": " + s.why + "; again by " +
                        s.by + (s.reason.empty() ? "" : " (" + s.reason + ")") + ": now " +
                        stand_of(run),
                    kReasonBytes));
    }
  if (kParkedShown < shown) out += "  and " + number(shown - kParkedShown) + " more in runs.csv\n";
}

void unmetered(std::string& out, const CampaignReport& report) {
  const std::vector<std::string> methods = unmetered_methods(report);
  if (methods.empty()) return;
  out += "\nUnmetered methods\n\n";
  for (const std::string& m : methods) append_wrapped(out, "  ", printable(m, kReasonBytes));
}

// Successes that do not satisfy their contract: each method's, and the first few by name.
void violations(std::string& out, const CampaignReport& report) {
  std::size_t shown = 0;
  for (const RunRecord& run : report.runs) {
    const bool unsatisfied = run.outcome == RunOutcome::kSuccess && !run.satisfied();
    if (run.state != RunRecord::State::kEnded || (run.violations == 0 && !unsatisfied)) continue;
    if (++shown == 1)
      out +=
          "\nConstraints that were broken, gates that successes failed (they are not "
          "satisfied)\n\n";
    if (kParkedShown < shown) continue;
    append_wrapped(
        out, "  ",
        printable(run.name + ": " + std::string(to_string(run.outcome)) + ", " + run.unmet(),
                  kReasonBytes));
  }
  if (kParkedShown < shown)
    out += "  and " + number(shown - kParkedShown) +
           " more: proctor list --where 'violations>0 or outcome=success satisfied=no'\n";
}

void parked_line(std::string& out, const RunRecord& run, const std::string& unit) {
  if (!run.parked_why.empty())
    return append_wrapped(out, "  ", printable(run.name + ": " + run.parked_why, kReasonBytes));
  out += "  " + printable(run.name) + ": " + printable(run.parked_scope) + " short by " +
         format_usd(run.short_by) + " " + unit + "\n";
}

void parked(std::string& out, const CampaignReport& report) {
  if (report.total.parked == 0) return;
  out += "\nParked runs (the budget that was short, and by how much; or what is broken)\n\n";
  std::size_t shown = 0;
  for (const RunRecord& run : report.runs) {
    if (run.state != RunRecord::State::kParked) continue;
    if (++shown > kParkedShown) continue;
    parked_line(out, run, report.unit);
  }
  if (kParkedShown < shown) out += "  and " + number(shown - kParkedShown) + " more\n";
}

void listed(std::string& out, const char* title, const std::vector<std::string>& sentences,
            std::size_t most = std::string::npos) {
  if (sentences.empty()) return;
  out += "\n" + std::string(title) + "\n\n";
  for (std::size_t i = 0; i < std::min(most, sentences.size()); ++i)
    append_wrapped(out, "  * ", printable(sentences[i], kReasonBytes));
  if (most < sentences.size())
    out += "  and " + number(sentences.size() - most) + " more in report.json\n";
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
  outcomes(out, report);
  rates(out, report);
  costs(out, report);
  if (report.details) append_price_contrasts(out, report.details->price_contrasts, report);
  if (report.details) append_drift(out, report.details->drift);
  append_task_tables(out, report);
  append_cost_tables(out, report);
  models(out, report);
  if (report.projection) append_comparison(out, *report.projection);
  endings(out, report);
  append_end_causes(out, report);
  unavailable(out, report);
  unmetered(out, report);
  set_aside(out, report);
  violations(out, report);
  parked(out, report);
  listed(out, "Deviations from what was registered", report.deviations);
  listed(out, "Approvals of stages", report.approvals);
  listed(out, "Alerts about money", report.alerts, 40);
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
