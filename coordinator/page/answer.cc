// The head of a page: the answer that somebody with ten seconds takes away.
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {

Markup paragraph(const Markup& words) {
  return element("p", words);
}

// "64.3 points better than noop [20.3, 108.3], p 0.0117: better".
Markup against(const Contrast& c, const AnalysisPlan& plan) {
  const Estimate& d = c.difference.estimate;
  Markup out = element("span", {{"class", "verdict"}}, text(verdict_words(c)));
  if (c.verdict == ContrastVerdict::kBetter || c.verdict == ContrastVerdict::kWorse)
    out << Markup(" than ");
  else if (c.verdict == ContrastVerdict::kNotInferior)
    out << Markup(" to ");
  else
    out << Markup(" against ");
  out << text(c.b);
  if (!d.value) return out;
  out << Markup(": ") << points(d.value) << Markup(" points ")
      << points_interval(d.interval, d.why);
  if (c.adjusted) out << Markup(", p ") << p_value(c.adjusted);
  if (const std::string note = verdict_note(c, plan); !note.empty())
    out << Markup("; ") << text(note, 1'000);
  return out;
}

Markup card(Context& c, std::uint32_t position) {
  const ReportRow& row = c.report.rows[position];
  const MethodRate* r = c.rate_of(row.method);
  const MethodPrice* price = c.price_of(row.method);
  Markup name = text(row.method);
  if (row.is_control) name << element("span", {{"class", "quiet"}}, " (control)");
  Markup out = element("span", {{"class", "name"}}, name);
  if (r == nullptr || !r->rate.value) {
    out << element("span", {{"class", "big"}}, "no rate");
    out << paragraph(Markup("none of its ") + number(row.planned) + Markup(" runs is scorable"));
  } else {
    out << element("span", {{"class", "big"}},
                   c.linked(position, kClassScorable, rate(r->rate.value)));
    Markup sure = c.analysis.plan.estimand == AnalysisPlan::Estimand::kTaskMean
                      ? Markup("solved, the mean over its tasks; ")
                      : Markup("of its runs solved; ");
    if (r->rate.interval)
      sure << text(aggregate::confidence(c.analysis.plan.alpha.real())) << Markup(" interval ");
    sure << rate_interval(r->rate.interval, r->rate.why);
    out << paragraph(sure);
    out << element("p", {{"class", "quiet"}},
                   number(r->tasks) + (r->tasks == 1 ? Markup(" task, ") : Markup(" tasks, ")) +
                       number(r->runs) + (r->runs == 1 ? Markup(" run") : Markup(" runs")));
  }
  for (const Contrast& contrast : of_agents(c.analysis.contrasts))
    if (contrast.a == row.method) out << paragraph(against(contrast, c.analysis.plan));
  if (row.satisfied < row.success)
    out << element(
        "p", element("strong", c.count(position, kClassUnsatisfied, row.success - row.satisfied) +
                                   Markup(" of ") + number(row.success) + Markup(" successes")) +
                 Markup(" failed a gate beside their checks (section 10)"));
  if (row.ended() == 0) return element("li", out);
  Markup cost;
  if (price != nullptr && price->of_run.value)
    cost << usd(*price->of_run.value) << Markup(" ") << text(c.report.unit) << Markup(" a run");
  if (price != nullptr && price->of_success.estimate.value)
    cost << (cost.empty() ? Markup() : Markup("; ")) << per_success(price->of_success)
         << Markup(" a success");
  if (row.unmetered()) cost << Markup(" (model use unmetered)");
  if (!cost.empty()) out << paragraph(cost);
  return element("li", out);
}

Markup banner(const Markup& words) {
  return element("p", {{"class", "banner"}}, words);
}

Markup banners(const Context& c) {
  Markup out;
  const ReportRow& total = c.report.total;
  if (total.planned == 0) return banner("This campaign has no runs: there is nothing to report.");
  if (c.is_interim())
    out << banner(element("strong", "Interim. ") + number(c.analysis.open) + Markup(" of ") +
                  number(total.planned) + Markup(" runs are ") +
                  text(awaited_words(c.analysis.open, c.analysis.for_money)) +
                  Markup(": rates may still move, and no "
                         "comparison is shown until they have ended or are cancelled."));
  if (!c.facts.provisional.empty())
    out << banner(element("strong", "Provisional. ") + text(c.facts.provisional));
  for (const std::string& warning : c.report.warnings)
    out << banner(element("strong", "Warning. ") + text(warning, 2'000));
  if (0 < total.parked)
    out << banner(number(total.parked) +
                  Markup(" runs are parked (section 2): what they would have shown is in no "
                         "rate."));
  for (const Contrast& contrast : of_agents(c.analysis.contrasts))
    if (contrast.loss_p && *contrast.loss_p < c.analysis.plan.alpha.real())
      out << banner(Markup("One of ") + text(contrast.a) + Markup(" and ") + text(contrast.b) +
                    Markup(" lost more runs than the other (p ") + p_value(contrast.loss_p) +
                    Markup("): read the bounds of their comparison in section 4."));
  return out;
}

}  // namespace

Markup answer(Context& c) {
  Markup out = banners(c);
  // Controls are context: the question is about the others.
  Markup cards, controls;
  for (const std::uint32_t row : c.methods)
    (c.report.rows[row].is_control ? controls : cards) << card(c, row) << line_end();
  if (c.methods.empty()) return out;
  out << element("p", {{"class", "quiet"}},
                 "Differences are in points of the success rate, p is adjusted for all comparisons "
                 "of the plan, prices are means with intervals over tasks. A number that is a "
                 "link leads to its runs.");
  if (const std::string pooled = pooled_stages(c.report); !pooled.empty())
    out << element("p", {{"class", "quiet"}},
                   Markup("Stages ") + text(pooled) +
                       Markup(" are pooled here and in the comparisons; section 6 has each."));
  if (!cards.empty()) out << element("ul", {{"class", "answer"}}, line_end() + cards);
  if (!controls.empty())
    out << element("ul", {{"class", "answer controls"}}, line_end() + controls);
  return out;
}

}  // namespace proctor::page
