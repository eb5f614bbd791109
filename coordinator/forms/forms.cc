#include "coordinator/forms/forms.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/json_fields.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/score/graded_score.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/markup.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/warnings.h"

namespace proctor {
// A badge: one method's rate in twenty pixels.

namespace {
constexpr std::size_t kBadgeNameBytes = 60;
constexpr double kPixelsPerColumn = 6.6;
constexpr int kBadgePadding = 12;

int width_of(std::string_view text) {
  return static_cast<int>(
      std::lround(kPixelsPerColumn * static_cast<double>(aggregate::display_width(text))) +
      kBadgePadding);
}

int whole_percent(double rate) {
  return static_cast<int>(std::lround(std::clamp(rate, 0.0, 1.0) * 100));
}

std::string rate_words(const MethodRate* r) {
  if (r == nullptr || !r->rate.value) return "no rate yet";
  std::string out = fmt::format("{} %", whole_percent(*r->rate.value));
  if (r->rate.interval)
    out += fmt::format(" [{}-{}]", whole_percent(r->rate.interval->low),
                       whole_percent(r->rate.interval->high));
  return out + " of " + counted(r->tasks, "task");
}

// `textLength` holds the words inside their box whatever font the reader has.
std::string boxed_words(int x, int width, std::string_view escaped) {
  return fmt::format("<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>", x + kBadgePadding / 2,
                     width - kBadgePadding, escaped);
}
}  // namespace

std::string badge_method(const CampaignReport& report) {
  const Analysis& a = *report.analysis;
  for (const Contrast& c : a.contrasts)
    if (!is_control(report, c.a)) return c.a;
  for (const auto& [first, second] : a.plan.contrasts)
    if (!is_control(report, first)) return first;
  std::string out;  // the baseline, where there is no other
  for (const MethodRate& r : a.rates)
    if (!r.is_control && (out.empty() || out == a.plan.baseline)) out = r.method;
  return out;
}

std::string render_badge(const CampaignReport& report, std::string_view method) {
  const MethodRate* rate = rate_of(*report.analysis, method);
  if (method.empty()) method = "proctor";
  const std::string name = aggregate::escaped(method, kBadgeNameBytes);
  const bool interim = 0 < report.analysis->open;
  const std::string says =
      (report.again.empty() ? "" : printable(report.again, kBadgeNameBytes) + ": ") +
      (interim ? "interim " : "") + rate_words(rate);
  const std::string shown = aggregate::escaped(says);
  const bool known = rate != nullptr && rate->rate.value && !interim;
  // Of the name as it is shown: an entity is one column.
  const int left = width_of(method.substr(0, kBadgeNameBytes)), right = width_of(says);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"20\" viewBox=\"0 0 {0} "
      "20\" "
      "role=\"img\" aria-label=\"{1} {2}\">\n<title>{1} {2}</title>\n"
      "<rect width=\"{3}\" height=\"20\" fill=\"#24292f\"/>"
      "<rect x=\"{3}\" width=\"{4}\" height=\"20\" fill=\"{5}\"/>\n"
      "<g fill=\"#ffffff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" "
      "font-size=\"11\">{6}{7}</g>\n</svg>\n",
      left + right, name, shown, left, right, known ? "#0059a3" : "#57606a",
      boxed_words(0, left, name), boxed_words(left, right, shown));
}

// JUnit's XML: no schema of its makers exists, so what the common readers agree on.

namespace {
using aggregate::escaped;

constexpr std::size_t kJunitNameBytes = 400, kJunitLineBytes = 300, kJunitTextBytes = 2'000;

struct CaseCounts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  std::uint64_t wall_ms = 0;
  void add(const CaseCounts& more) {
    tests += more.tests;
    failures += more.failures;
    errors += more.errors;
    skipped += more.skipped;
    wall_ms += more.wall_ms;
  }
};

std::string junit_seconds(std::uint64_t ms) {
  return fmt::format("{}.{:03}", ms / 1000, ms % 1000);
}

std::string attribute(std::string_view name, std::string_view outside, std::size_t bytes_max) {
  return fmt::format(R"( {}="{}")", name, escaped(outside, bytes_max));
}

std::string case_counters(const CaseCounts& c) {
  return fmt::format(R"( tests="{}" failures="{}" errors="{}" skipped="{}" time="{}")", c.tests,
                     c.failures, c.errors, c.skipped, junit_seconds(c.wall_ms));
}

// "<failure type="agent_timeout" message="...">...</failure>"
std::string verdict(std::string_view element, std::string_view type, std::string_view why) {
  return fmt::format("<{}{}{}>{}</{}>", element, attribute("type", type, kJunitNameBytes),
                     attribute("message", why, kJunitLineBytes), escaped(why, kJunitTextBytes),
                     element);
}

std::string skipped(std::string_view why) {
  return "<skipped" + attribute("message", why, kJunitLineBytes) + "/>";
}

constexpr auto kNotEnded = each_once(std::to_array<Word<RunRecord::State>>(
    {{"parked: ", RunRecord::State::kParked},
     {"running", RunRecord::State::kRunning},
     {"not run yet", RunRecord::State::kPlanned},
     {"cancelled by an operator", RunRecord::State::kCancelled},
     {"removed: its task was taken out of the campaign", RunRecord::State::kRemoved},
     {"", RunRecord::State::kEnded}}));

std::string why_not_ended(const RunRecord& run) {
  std::string out(word_in(kNotEnded, run.state));
  if (run.state == RunRecord::State::kParked)
    out += run.parked_why.empty() ? run.parked_scope + " is short by " + format_usd(run.short_by)
                                  : run.parked_why;
  return out;
}

// "; gate functional: fail"; empty: all pass, or they are not known.
std::string gate_words(const RunRecord& run) {
  return run.gates && !run.failed_gate().empty() ? "; " + run.unmet() : "";
}

// What stands inside the case of this run; empty: it passed.  CaseCounts it.
std::string verdict_of(const RunRecord& run, CaseCounts& counts) {
  if (run.state != RunRecord::State::kEnded) {
    ++counts.skipped;
    return skipped(why_not_ended(run));
  }
  const std::string_view outcome = to_string(run.outcome);
  if (run.outcome == RunOutcome::kSuccess && run.satisfied()) return "";
  if (run.outcome == RunOutcome::kSuccess) {
    ++counts.failures;
    return verdict("failure", "unsatisfied",
                   "its checks passed, but not all of its gates: " + run.unmet());
  }
  if (run.outcome == RunOutcome::kFailure) {
    ++counts.failures;
    const bool by_itself = run.termination == Termination::kCompleted;
    return verdict("failure", by_itself ? outcome : to_string(run.termination),
                   run.rationale + gate_words(run));
  }
  ++counts.errors;
  return verdict("error", outcome, run.rationale + gate_words(run));
}

void append_case(std::string& out, std::string_view class_name, std::string_view name,
                 std::uint64_t wall_ms, const std::string& inside) {
  out += "    <testcase" + attribute("classname", class_name, kJunitNameBytes) +
         attribute("name", name, kJunitNameBytes) + " time=\"" + junit_seconds(wall_ms) + "\"";
  out += inside.empty() ? "/>\n" : ">" + inside + "</testcase>\n";
}

std::string property(std::string_view name, std::string_view value) {
  return "<property" + attribute("name", name, kJunitNameBytes) +
         attribute("value", value, kJunitLineBytes) + "/>";
}

// Its gates, score, failure modes and outcome of before; empty: there are none.
std::string case_properties(const RunRecord& run) {
  std::string out;
  for (std::size_t i = 0; run.gates && i < run.gates->size(); ++i)
    out +=
        property(fmt::format("gate.{}", word_of(static_cast<Gate>(i))), word_of((*run.gates)[i]));
  if (run.gates && run.score) out += property("score", score_text(*run.score));
  if (run.gates && !run.tags.empty()) out += property("tags", run.tags);
  if (run.old_outcome) out += property("old_outcome", word_of(*run.old_outcome));
  return out.empty() ? "" : "<properties>" + out + "</properties>";
}

void append_run(std::string& out, const RunRecord& run, CaseCounts& counts) {
  ++counts.tests;
  counts.wall_ms += run.wall_ms;
  std::string inside = case_properties(run) + verdict_of(run, counts);
  if (run.report != Digest())
    inside += "<system-out>" + escaped(run.name, kJunitNameBytes) + " report " + run.report.hex() +
              "</system-out>";
  const std::size_t slash = run.name.rfind('/');
  append_case(out, run.method + "." + run.task,
              slash == std::string::npos ? run.name : run.name.substr(slash + 1), run.wall_ms,
              inside);
}

// All runs of one task of one method: the worst of them decides, and how many passed is said.
void append_task(std::string& out, std::string_view method, std::string_view task,
                 const CaseCounts& runs, CaseCounts& counts) {
  ++counts.tests;
  counts.wall_ms += runs.wall_ms;
  const std::size_t ended = runs.tests - runs.skipped;
  const std::string said =
      fmt::format("{} of {} ended runs passed, {} failed, {} ended in an error or invalid",
                  ended - runs.failures - runs.errors, ended, runs.failures, runs.errors);
  std::string inside;
  if (0 < runs.failures) {
    ++counts.failures;
    inside = verdict("failure", "failure", said);
  } else if (0 < runs.errors) {
    ++counts.errors;
    inside = verdict("error", "acceptance_error or invalid", said);
  } else if (ended == 0) {
    ++counts.skipped;
    inside = skipped("none of its " + std::to_string(runs.skipped) + " runs has ended");
  }
  append_case(out, method, task, runs.wall_ms, inside);
}

std::string suite_properties(const CampaignReport& report, const ReportRow& row,
                             std::size_t left_out) {
  std::string out = "    <properties>\n";
  const auto add = [&out](std::string_view name, const std::string& value) {
    out += "      " + property(name, value) + "\n";
  };
  add("campaign", report.campaign);
  if (!report.journal_head.empty()) add("journal_head", report.journal_head);
  for (const auto& [name, n] :
       {std::pair("planned", row.planned), std::pair("success", row.success),
        std::pair("satisfied", row.satisfied), std::pair("failure", row.failure),
        std::pair("acceptance_error", row.acceptance_error), std::pair("invalid", row.invalid)})
    add(name, std::to_string(n));
  if (0 < left_out) add("cases_left_out", std::to_string(left_out));
  return out + "    </properties>\n";
}

// Of its cases at most `room` are written.
std::string junit_suite(const CampaignReport& report, const ReportRow& row, JunitCases by,
                        std::size_t room, CaseCounts& counts) {
  std::string cases;
  std::size_t left_out = 0;
  std::int64_t started = 0;
  std::map<std::string_view, CaseCounts> tasks;
  for (const std::uint32_t position : row.runs) {
    const RunRecord& run = report.runs[position];
    if (0 < run.started_ms && (started == 0 || run.started_ms < started)) started = run.started_ms;
    if (by == JunitCases::kTasks) {
      CaseCounts& of = tasks[run.task];
      ++of.tests;
      of.wall_ms += run.wall_ms;
      verdict_of(run, of);
    } else if (counts.tests == room) {
      ++left_out;
    } else {
      append_run(cases, run, counts);
    }
  }
  for (const auto& [task, of] : tasks)
    if (counts.tests == room)
      ++left_out;
    else
      append_task(cases, row.method, task, of, counts);
  std::string out =
      "  <testsuite" + attribute("name", row.method, kJunitNameBytes) + case_counters(counts);
  if (0 < started) out += attribute("timestamp", to_rfc3339(WallTime(started)), kJunitNameBytes);
  return out + ">\n" + suite_properties(report, row, left_out) + cases + "  </testsuite>\n";
}
}  // namespace

std::string render_junit(const CampaignReport& report, JunitCases cases) {
  if (kJunitCasesMax < report.runs.size()) cases = JunitCases::kTasks;
  std::string suites;
  CaseCounts all;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty()) continue;
    CaseCounts counts;
    suites += junit_suite(report, row, cases, kJunitCasesMax - all.tests, counts);
    all.add(counts);
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", report.campaign, kJunitNameBytes) + case_counters(all) + ">\n" + suites +
         "</testsuites>\n";
}

// Records of runs, members by name.

namespace {
// 1 of a success, 0 of another scorable run and of one that a budget ended before it was judged;
// nothing: it does not count (T2).
std::optional<int> endpoint_of(const RunRecord& run) {
  if (run.state != RunRecord::State::kEnded) return std::nullopt;
  if (run.outcome == RunOutcome::kInvalid)
    return run.termination == Termination::kBudgetExceeded ? std::optional(0) : std::nullopt;
  return run.outcome == RunOutcome::kSuccess ? 1 : 0;
}

struct RunLine {
  const CampaignReport& report;
  const RunRecord& run;
  std::optional<Digest> contract;
};
void fields(auto& v, Is<RunLine> auto& line) {
  const RunRecord& run = line.run;
  const bool ended = run.state == RunRecord::State::kEnded;
  const auto known = [](bool is, const auto& value) {
    return is ? std::optional(value) : std::nullopt;
  };
  std::map<std::string, GateOutcome> gates;
  for (std::size_t i = 0; run.gates && i < run.gates->size(); ++i)
    gates.emplace(word_of(static_cast<Gate>(i)), (*run.gates)[i]);
  Json strata = Json::object();
  for (std::size_t k = 0; k < line.report.strata_keys.size(); ++k)
    strata[line.report.strata_keys[k]] = run.strata[k];
  v("attempt", known(run.attempts != 0, run.attempts));
  v("attempts", run.attempts);
  v("campaign", line.report.campaign);
  v("configuration_class", known(!run.configuration.empty(), run.configuration));
  v("contract", line.contract);
  v.section("cost", [&](auto& cost) {
    cost("execution_micros", run.cost.execution);
    cost("human_micros", run.cost.human);
    cost("model_micros", run.cost.model);
    cost("overhead_micros", run.cost.overhead);
    cost("total_micros", run.cost.total());
  });
  v("endpoint", endpoint_of(run));
  v.section("execution_ms", [&](auto& ms) {
    ms("acceptance", run.acceptance_ms);
    ms("agent", run.agent_ms);
    ms("setup", run.setup_ms);
  });
  v.follows("format", "proctor-run-record-1");
  v("gates", known(run.gates.has_value(), gates));
  v("method", run.method);
  v("not_replayable", known(run.networked, std::string_view("a phase had the network")));
  v("old_outcome", run.old_outcome, kOptional);
  v("outcome", known(ended, run.outcome));
  v("replayable", known(run.gates.has_value(), !run.networked));
  v("report", known(run.report != Digest(), run.report));
  v("run", run.run);
  v("run_name", run.name);
  v("satisfied", known(ended, run.satisfied()));
  v("score", run.score ? std::optional(score_text(*run.score)) : std::nullopt);
  v("stage", run.stage);
  v("state", run.state);
  const bool invalid = run.outcome == RunOutcome::kInvalid;
  v("status", known(ended, std::string_view(invalid ? "invalid" : "scorable")));
  v("strata", strata);
  v("tags", run.tag_list());
  v("task", run.task);
  v("termination", known(ended, run.termination));
  v.section("test_cycles", [&](auto& cycles) { cycles("failed", run.failed_cycles); });
  v.section("tokens", [&](auto& tokens) {
    tokens("input", run.model_use.input);
    tokens("output", run.model_use.output);
    tokens("self_reported", run.self_reported.tokens);
  });
  v("tool_calls", run.tool_calls);
}
}  // namespace

std::string render_run_records(const CampaignReport& report,
                               const std::map<std::string, Digest>& contracts) {
  std::string out;
  for (const RunRecord& run : report.runs) {
    const auto found = contracts.find(run.task);
    const auto contract = found == contracts.end() ? std::nullopt : std::optional(found->second);
    out += aggregate::dumped(to_json(RunLine{report, run, contract})) + "\n";
  }
  return out;
}

// A summary for the page of a change, in GitHub's Markdown.  Whatever others wrote stands in code
// spans: there no markup, mention, number of an issue or address means anything.

namespace {
using aggregate::percent;
using aggregate::percent_interval;

constexpr std::size_t kSpanBytes = 100, kSentenceBytes = 400, kSentences = 10, kRowsShown = 64;

enum class At : std::uint8_t { kText, kTable };

// In a table '|' ends a cell even inside a code span, unless a backslash stands before it; and a
// span ends at a run of as many backticks as it began with.
std::string code(std::string_view outside, At at = At::kText, std::size_t bytes_max = kSpanBytes) {
  const std::string shown = printable(outside, bytes_max);
  std::string inside;
  std::size_t longest = 0, run = 0;
  for (const char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|' && at == At::kTable) inside += '\\';
    inside += c;
  }
  const std::string fence(longest + 1, '`');
  const bool pad = inside.empty() || inside.starts_with('`') || inside.ends_with('`') ||
                   inside.starts_with(' ') || inside.ends_with(' ');
  return fence + (pad ? " " : "") + inside + (pad ? " " : "") + fence;
}

std::string md_p(double p) {
  return p < 0.0001 ? "below 0.0001" : fmt::format("{:.4f}", p);
}

std::string interval_cell(const MethodRate& r) {
  if (!r.rate.value) return "-";
  return r.rate.interval ? percent_interval(r.rate.interval) : std::string(word_of(r.rate.why));
}

void append_head(std::string& out, const CampaignReport& report) {
  const ReportRow& t = report.total;
  out += "### Campaign " + code(report.campaign) +
         (report.again.empty() ? "" : ", a " + code(report.again)) + "\n\n";
  if (t.planned == 0) {
    out += "It has no runs.\n";
    return;
  }
  for (const std::string& warning : report.warnings)
    out += "**Warning:** " + code(warning, At::kText, 2'000) + "\n\n";
  if (const std::uint64_t open = report.analysis->open; 0 < open)
    out += fmt::format(
        "**Interim: {} of {} runs are {}.** Rates are of the others alone, and nothing is "
        "compared.\n\n",
        open, t.planned, awaited_words(open, report.analysis->for_money, report.analysis->again));
  out += fmt::format("{}; spent {} {}.\n", aggregate::runs_line(t), format_usd(t.cost.total()),
                     report.unit);
}

std::string contrast_line(const CampaignReport& report, const Contrast& c) {
  const Estimate& d = c.difference.estimate;
  std::string out = fmt::format("- {}{} less {}{}: **{}**", code(c.a), critical_mark(report, c.a),
                                code(c.b), critical_mark(report, c.b), verdict_words(c));
  if (d.value) out += ", " + aggregate::points(*d.value);
  if (d.interval) out += " " + aggregate::points_between(*d.interval);
  if (c.adjusted) out += ", p " + md_p(*c.adjusted);
  return out + ", " + counted(c.tasks, "task");
}

void append_contrasts(std::string& out, const CampaignReport& report) {
  const Analysis& analysis = *report.analysis;
  const std::span<const Contrast> contrasts = of_agents(analysis.contrasts);
  if (contrasts.empty()) return;
  out += fmt::format(
      "\n{} (differences in points {}, {} intervals, p adjusted for all of "
      "them):\n\n",
      analysis.of_part      ? "Comparisons of a part of the campaign, exploratory"
      : analysis.registered ? "Comparisons as registered"
                            : "Comparisons; no plan of analysis was registered",
      over_words(analysis.plan), aggregate::confidence(analysis.plan.alpha.real()));
  for (const Contrast& c : contrasts.first(std::min(kRowsShown, contrasts.size()))) {
    out += contrast_line(report, c);
    out += fmt::format(" ({} better, {} worse)\n", c.a_better, c.b_better);
    if (const std::string note = verdict_note(c, analysis.plan); !note.empty())
      out += "  - " + note + "\n";
    if (c.loss_p && *c.loss_p < analysis.plan.alpha.real())
      out += "  - one of the two lost more runs than the other: read the bounds in the report\n";
  }
}

void append_removed(std::string& out, const CampaignReport& report) {
  const Analysis& analysis = *report.analysis;
  const std::span<const Contrast> contrasts = of_agents(analysis.with_removed);
  if (contrasts.empty()) return;
  out += fmt::format("\nWith the {} taken out after runs had ended:\n\n",
                     counted(analysis.removed_tasks, "task"));
  for (const Contrast& c : contrasts.first(std::min(kRowsShown, contrasts.size())))
    out += contrast_line(report, c) + "\n";
}

void append_methods(std::string& out, const CampaignReport& report) {
  out +=
      "\n| method | solved | interval | tasks | runs | satisfied | errors | invalid | cost of a "
      "run "
      "| of a success |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n";
  std::size_t all = 0;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty() || kRowsShown < ++all) continue;
    const MethodRate* rate = rate_of(*report.analysis, row.method);
    const MethodRate r = rate == nullptr ? MethodRate{} : *rate;
    std::string of_run = "-";
    if (report.details)
      for (const MethodPrice& p : report.details->prices)
        if (p.method == row.method && p.of_run.value)
          of_run = fmt::format("{:.4f}", *p.of_run.value);
    const std::string name =
        code(row.method, At::kTable) + std::string(critical_mark(report, row.method));
    out += "| " + (row.is_control ? "<sub>" + name + " (control)</sub>" : name) + " | " +
           (r.rate.value ? percent(*r.rate.value) + " %" : "-") + " | " + interval_cell(r);
    out += fmt::format(" | {} | {} | {} | {} | {} | {} | {} |\n", r.tasks, r.runs, row.satisfied,
                       row.acceptance_error, row.invalid, of_run,
                       row.cost_per_success ? format_usd(*row.cost_per_success) : "-");
  }
  if (kRowsShown < all)
    out += fmt::format("\n{} more methods: see the report.\n", all - kRowsShown);
}

void append_sentences(std::string& out, const char* title,
                      const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  out += fmt::format("\n{}:\n\n", title);
  for (std::size_t i = 0; i < std::min(kSentences, sentences.size()); ++i)
    out += "- " + code(sentences[i], At::kText, kSentenceBytes) + "\n";
  if (kSentences < sentences.size())
    out += fmt::format("- {} more, in the report\n", sentences.size() - kSentences);
}
}  // namespace

std::string render_markdown(const CampaignReport& report) {
  std::string out;
  append_head(out, report);
  if (report.total.planned == 0) return out;
  append_contrasts(out, report);
  append_removed(out, report);
  append_methods(out, report);
  append_sentences(out, "To distrust", unsatisfied_methods(report));
  append_sentences(out, "Broken or flaky tasks", broken_tasks(report.runs));
  const std::string critical = report.details ? critical_warning(report.details->rubric) : "";
  if (!critical.empty())
    out += fmt::format("\n{} {}\n", kCriticalMark.substr(1),
                       code(critical, At::kText, kSentenceBytes));
  append_sentences(out, "Deviations from what was registered", report.deviations);
  append_sentences(out, "Approvals of stages", report.approvals);
  append_sentences(out, "Alerts about money", report.alerts);
  out += "\nThe whole report: `reports/report.html`";
  if (!report.journal_head.empty())
    out += "; journal head " + code(std::string_view(report.journal_head).substr(0, 12));
  return out + ".\n";
}
}  // namespace proctor
