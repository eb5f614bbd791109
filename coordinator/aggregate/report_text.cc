// The report on a terminal.
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/end_causes.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

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
  std::vector<std::string> header = {"method",  "stratum",   "planned", "scorable",
                                     "success", "satisfied", "failure", "acceptance error",
                                     "invalid", "parked",    "open"};
  if (0 < report.total.cancelled) header.emplace_back("cancelled");
  if (0 < report.total.removed) header.emplace_back("removed");
  Table table(std::move(header));
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    table.group(row_group(r));
    std::vector<std::string> cells = {
        printable(r.method), stratum_name(r),     number(r.planned), number(r.scorable()),
        number(r.success),   number(r.satisfied), number(r.failure), number(r.acceptance_error),
        number(r.invalid),   number(r.parked),    number(r.open)};
    if (0 < report.total.cancelled) cells.push_back(number(r.cancelled));
    if (0 < report.total.removed) cells.push_back(number(r.removed));
    table.add(std::move(cells));
  }
  out += "\nOutcomes (number of runs)\n\n";
  table.append_to(out);
}

void rates(std::string& out, const CampaignReport& report) {
  Table table(
      {"method", "stratum", "success rate", "bounds", "error rate", "invalid rate", "over tasks"});
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    const auto& tasks = r.by_task;
    table.group(row_group(r));
    table.add(
        {printable(r.method), stratum_name(r),
         percent_with_interval(r.success_rate.rate, r.success_rate.interval),
         percent_interval(r.bounds),
         percent_with_interval(r.acceptance_error_rate.rate, r.acceptance_error_rate.interval),
         percent_with_interval(r.invalid_rate.rate, r.invalid_rate.interval),
         tasks ? percent_with_interval(tasks->mean, r.interval) : "-"});
  }
  out += "\nRates (with " + confidence(report.alpha) + " intervals)\n\n";
  table.append_to(out);
}

void costs(std::string& out, const CampaignReport& report) {
  const bool told = shows_self_reported(report);
  std::vector<std::string> header = {"method", "stratum",  "model", "execution",
                                     "human",  "overhead", "total"};
  if (told) header.emplace_back("self_reported");
  for (const char* column : {"per success", "median", "longest"}) header.emplace_back(column);
  Table table(std::move(header));
  for (const ReportRow& r : report.rows) {
    if (is_only_level(report, r.key)) continue;
    const auto& longest = r.time.longest_ms;
    table.group(row_group(r));
    std::vector<std::string> cells = {printable(r.method),       stratum_name(r),
                                      format_usd(r.cost.model),  format_usd(r.cost.execution),
                                      format_usd(r.cost.human),  format_usd(r.cost.overhead),
                                      format_usd(r.cost.total())};
    if (told) cells.push_back(self_reported_cell(r));
    cells.push_back(r.cost_per_success ? format_usd(*r.cost_per_success) : "-");
    cells.push_back(seconds(r.time.median_ms));
    cells.push_back(
        seconds(longest ? std::optional<double>(static_cast<double>(*longest)) : std::nullopt));
    table.add(std::move(cells));
  }
  out += "\nCost (" + report.unit + ") and time (seconds)\n\n";
  table.append_to(out);
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
  append_model_table(out, report);
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

}  // namespace proctor
