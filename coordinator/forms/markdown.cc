// A summary for the page of a change, in GitHub's Markdown.  Whatever others wrote stands in code
// spans: there no markup, mention, number of an issue or address means anything.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/forms/forms.h"

namespace proctor {
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

std::string rate_cell(const MethodRate& r) {
  if (!r.rate.value) return "-";
  return percent(*r.rate.value) + " %";
}

std::string interval_cell(const MethodRate& r) {
  if (!r.rate.value) return "-";
  return r.rate.interval ? percent_interval(r.rate.interval) : std::string(words(r.rate.why));
}

void append_head(std::string& out, const CampaignReport& report) {
  const ReportRow& t = report.total;
  out += "### Campaign " + code(report.campaign) + "\n\n";
  if (t.planned == 0) {
    out += "It has no runs.\n";
    return;
  }
  for (const std::string& warning : report.warnings)
    out += "**Warning:** " + code(warning, At::kText, 2'000) + "\n\n";
  if (const std::uint64_t open = report.analysis->open; 0 < open)
    out += fmt::format(
        "**Interim: {} of {} runs are {}.** Rates may still move, and nothing is compared until "
        "they have ended.\n\n",
        open, t.planned, awaited_words(open, report.analysis->for_money));
  out += fmt::format("{} planned, {} ended, {} parked, {} open", counted(t.planned, "run"),
                     t.ended(), t.parked, t.open);
  if (0 < t.cancelled) out += fmt::format(", {} cancelled", t.cancelled);
  if (0 < t.removed) out += fmt::format(", {} removed", t.removed);
  out += fmt::format("; spent {} {}.\n", format_usd(t.cost.total()), report.unit);
}

std::string contrast_line(const Contrast& c) {
  const Estimate& d = c.difference.estimate;
  std::string out = "- " + code(c.a) + " less " + code(c.b) + ": **" + verdict_words(c) + "**";
  if (d.value) out += ", " + aggregate::points(*d.value);
  if (d.interval) out += " " + aggregate::points_between(*d.interval);
  if (c.adjusted) out += ", p " + md_p(*c.adjusted);
  return out + ", " + counted(c.tasks, "task");
}

void append_contrasts(std::string& out, const Analysis& analysis) {
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
    out += contrast_line(c);
    out += fmt::format(" ({} better, {} worse)\n", c.a_better, c.b_better);
    if (const std::string note = verdict_note(c, analysis.plan); !note.empty())
      out += "  - " + note + "\n";
    if (c.loss_p && *c.loss_p < analysis.plan.alpha.real())
      out += "  - one of the two lost more runs than the other: read the bounds in the report\n";
  }
}

void append_removed(std::string& out, const Analysis& analysis) {
  const std::span<const Contrast> contrasts = of_agents(analysis.with_removed);
  if (contrasts.empty()) return;
  out += fmt::format("\nWith the {} taken out after runs had ended:\n\n",
                     counted(analysis.removed_tasks, "task"));
  for (const Contrast& c : contrasts.first(std::min(kRowsShown, contrasts.size())))
    out += contrast_line(c) + "\n";
}

void append_methods(std::string& out, const CampaignReport& report) {
  out +=
      "\n| method | solved | interval | tasks | runs | satisfied | errors | invalid | cost of a "
      "run "
      "| of a success |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|\n";
  std::size_t shown = 0, all = 0;
  for (const ReportRow& row : report.rows) {
    if (!row.key.empty() || kRowsShown < ++all) continue;
    ++shown;
    const auto& rates = report.analysis->rates;
    const auto rate = std::ranges::find(rates, row.method, &MethodRate::method);
    const MethodRate none{};
    const MethodRate& r = rate == rates.end() ? none : *rate;
    std::string of_run = "-";
    if (report.details)
      for (const MethodPrice& p : report.details->prices)
        if (p.method == row.method && p.of_run.value)
          of_run = fmt::format("{:.4f}", *p.of_run.value);
    const std::string name = code(row.method, At::kTable);
    out += "| " + (row.is_control ? "<sub>" + name + " (control)</sub>" : name) + " | " +
           rate_cell(r) + " | " + interval_cell(r);
    out += fmt::format(" | {} | {} | {} | {} | {} | {} | {} |\n", r.tasks, r.runs, row.satisfied,
                       row.acceptance_error, row.invalid, of_run,
                       row.cost_per_success ? format_usd(*row.cost_per_success) : "-");
  }
  if (shown < all) out += fmt::format("\n{} more methods: see the report.\n", all - shown);
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
  append_contrasts(out, *report.analysis);
  append_removed(out, *report.analysis);
  append_methods(out, report);
  append_sentences(out, "To distrust", unsatisfied_methods(report));
  append_sentences(out, "Deviations from what was registered", report.deviations);
  append_sentences(out, "Approvals of stages", report.approvals);
  append_sentences(out, "Alerts about money", report.alerts);
  out += "\nThe whole report: `reports/report.html`";
  if (!report.journal_head.empty())
    out += "; journal head " + code(std::string_view(report.journal_head).substr(0, 12));
  return out + ".\n";
}

}  // namespace proctor
