#include <fmt/format.h>
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"

namespace proctor {
std::string aggregate::contrast_words(const Analysis& analysis) {
  const bool joint = analysis.adjustment.used == AnalysisPlan::Multiplicity::kMaxT;
  return fmt::format("verdict|difference|interval|{}p|adjusted p|tasks|better|worse|bounds",
                     joint ? "holding together|" : "");
}

using namespace aggregate;

std::string turned_words(const Contrast& c) {
  if (!c.tipping || c.tipping->unknown == 0) return "-";
  const Tipping& t = *c.tipping;
  if (!t.tried) return "not tried: it would take minutes";
  if (!t.turned) return fmt::format("none of {}", t.unknown);
  return fmt::format("{} of {} for {}: {}", *t.turned, t.unknown, printable(t.for_a ? c.a : c.b),
                     word_of(t.becomes));
}

// Comparisons on a terminal and as CSV.

namespace {
// "[+20.3, +98.3]", or why there is none.
std::string points_interval(const std::optional<Interval>& interval, Why why) {
  if (!interval) return std::string(word_of(why));
  return points_between(*interval);
}

std::string p_value(const std::optional<double>& p) {
  return p ? p_words(*p) : "-";
}

void rates(std::string& out, const Analysis& analysis) {
  out += fmt::format(
      "\nPrimary endpoint ({}; tasks solved always, sometimes, never;\npoints by which 95 of 100 "
      "pairs of reruns on the same tasks would differ at most)\n\n",
      analysis.plan.estimand == AnalysisPlan::Estimand::kTaskMean ? "every task counts equally"
                                                                  : "every run counts equally");
  table_of(
      rate_columns(analysis.plan),
      fmt::format("method|success rate {}=rate|tasks|runs|always|sometimes|never|rerun differs by",
                  over_words(analysis.plan)),
      analysis.rates, controls_apart<MethodRate>, 1)
      .append_to(out);
}

void append_notes(std::string& out, const std::vector<Contrast>& contrasts,
                  const AnalysisPlan& plan) {
  for (const Contrast& c : contrasts)
    if (const std::string note = contrast_sentence(c, plan); !note.empty())
      out += "  * " + note + "\n";
}

// Their title, and why none is shown.  True: there are some.
bool begin_contrasts(std::string& out, const Analysis& analysis) {
  out += fmt::format(
      "\nComparisons ({}, {} intervals of points, exact p of sign flips over {})\n\n",
      analysis.of_part ? "of a part of the campaign, so exploratory"
      : analysis.registered && 0 < analysis.removed_tasks
          ? "as registered, but for " + counted(analysis.removed_tasks, "task") + " taken out since"
      : analysis.registered ? "as registered"
                            : "no plan of analysis was registered: the defaults",
      confidence(analysis.plan.alpha.real()), unit_words(analysis.plan));
  if (0 < analysis.open)
    out += fmt::format("  not shown while {} {} {}{}: no\n  looks before the end are registered\n",
                       counted(analysis.open, "run"), analysis.open == 1 ? "is" : "are",
                       awaited_words(analysis.open, analysis.for_money, analysis.again),
                       analysis.for_money == 0 ? "" : " (raise the budget, or cancel)");
  else if (analysis.contrasts.empty())
    out += "  one method only: there is nothing to compare it with\n";
  return analysis.open == 0 && !analysis.contrasts.empty();
}

void contrasts(std::string& out, const Analysis& analysis) {
  if (!begin_contrasts(out, analysis)) return;
  table_of(contrast_columns(), "comparison|" + contrast_words(analysis), analysis.contrasts,
           controls_apart<Contrast>)
      .append_to(out);
  out += "  adjusted by " + words(analysis.adjustment) + "\n";
  append_notes(out, analysis.contrasts, analysis.plan);
}

// Who takes a task out after seeing its runs may have taken out what did not please.
void contrasts_with_removed(std::string& out, const Analysis& analysis) {
  if (analysis.with_removed.empty()) return;
  out += fmt::format("\nThe same comparisons with the {} taken out after runs had ended\n\n",
                     counted(analysis.removed_tasks, "task"));
  table_of(contrast_columns(), "comparison|" + std::string(kRemovedWords), analysis.with_removed,
           controls_apart<Contrast>)
      .append_to(out);
  append_notes(out, analysis.with_removed, analysis.plan);
}

// Chance alone, repositories, outcomes that are not known.
void footing(std::string& out, const Analysis& analysis) {
  if (analysis.contrasts.empty()) return;
  out +=
      "\nWhat the comparisons rest on (points; what two equal methods differ by; repositories as "
      "units;\nhow many acceptance errors and invalid runs would turn the verdict)\n\n";
  table_of(contrast_columns(),
           "comparison|difference|chance alone (95 %)|tie|repositories|interval over them|p=p over "
           "them|verdict is turned by unknown outcomes=turned by",
           analysis.contrasts, controls_apart<Contrast>, 1)
      .append_to(out);
}
}  // namespace

std::string one_sided_words(const Contrast& c, double alpha, double margin) {
  return fmt::format(
      "not inferior by its lower bound {} at one-sided {}, which is above the margin {} (the "
      "interval in the table is two-sided)",
      points(c.equivalence->interval.low), alpha, points(-margin));
}

std::string verdict_note(const Contrast& c, const AnalysisPlan& plan) {
  const double alpha = plan.alpha.real();
  std::string out;
  if (c.verdict == ContrastVerdict::kNotInferior && c.equivalence)
    out = one_sided_words(c, alpha, plan.non_inferiority.real());
  if (c.verdict == ContrastVerdict::kEquivalent && c.equivalence)
    out = fmt::format(
        "equivalent by two one-sided tests at {}: their interval {} lies within {:.1f} points (the "
        "interval in the table is two-sided)",
        alpha, points_between(c.equivalence->interval), plan.min_effect.real() * 100);
  const bool by_p = c.verdict == ContrastVerdict::kBetter || c.verdict == ContrastVerdict::kWorse;
  if (plan.is_over_repositories() && !by_p && 0 < c.units && c.units < c.fewest_units) {
    out += out.empty() ? "" : "; ";
    out += fmt::format(
        "repositories are the units, and of fewer than {} no outcome is better or worse, here are "
        "{}: \"unit: task\" in the plan of analysis, before the freeze, takes tasks for "
        "independent",
        c.fewest_units, c.units);
  }
  const std::optional<Interval>& t = c.difference.estimate.interval;
  if (!t || !c.adjusted || by_p == (0 < t->low || t->high < 0)) return out;
  out += out.empty() ? "" : "; ";
  return out +
         fmt::format(
             "its interval, Student's t for this comparison alone, {} 0; whether it is better "
             "or worse is by the adjusted p of sign flips, {}",
             by_p ? "holds" : "leaves out", p_value(c.adjusted));
}

// What has to be known beside the numbers; empty: nothing.
std::string contrast_sentence(const Contrast& c, const AnalysisPlan& plan) {
  std::string out;
  const std::string who = printable(c.a) + " - " + printable(c.b) + ": ";
  if (0 < c.dropped_a + c.dropped_b)
    out += fmt::format("left out: {} without a scorable run of {}, {} without one of {}; ",
                       counted(c.dropped_a, "task"), printable(c.a), c.dropped_b, printable(c.b));
  if (0 < c.never_a + c.never_b)
    out += fmt::format(
        "{} of {} and {} of {} never came to an end (cancelled or parked): no rate and no "
        "bound counts them; ",
        counted(c.never_a, "run"), printable(c.a), c.never_b, printable(c.b));
  if (c.loss_p && *c.loss_p < plan.alpha.real())
    out += fmt::format(
        "unequal loss: the shares of invalid runs differ by {} points (p {}), so read the bounds; ",
        points(c.loss), p_value(c.loss_p));
  if (const std::string note = verdict_note(c, plan); !note.empty()) out += note + "; ";
  if (out.empty()) return out;
  out.resize(out.size() - 2);
  return who + out;
}

void append_asked(std::string& out, const Analysis& analysis, std::size_t most) {
  if (!begin_contrasts(out, analysis)) return;
  const std::span<const Contrast> asked = of_agents(analysis.contrasts);
  for (const Contrast& c : asked.first(std::min(most, asked.size()))) {
    const Estimate& d = c.difference.estimate;
    out += fmt::format("  {} - {}: {}", printable(c.a), printable(c.b), verdict_words(c));
    if (d.value) out += ", " + points(*d.value) + " " + points_interval(d.interval, d.why);
    out += fmt::format(", adjusted p {}, {}\n", p_value(c.adjusted), counted(c.tasks, "task"));
  }
  if (asked.empty()) out += "  none of an agent; proctor report has those of noop and reference\n";
  if (most < asked.size()) out += fmt::format("  and {} more\n", asked.size() - most);
}

void append_analysis(std::string& out, const Analysis& analysis) {
  rates(out, analysis);
  contrasts(out, analysis);
  contrasts_with_removed(out, analysis);
  footing(out, analysis);
  append_weighted(out, analysis);
}

std::string render_contrasts_csv(const Analysis& analysis) {
  return csv_of(contrast_columns(), analysis.contrasts);
}
}  // namespace proctor
