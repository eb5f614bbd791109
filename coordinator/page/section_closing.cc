// What has to be known before the numbers are used: gates, graders, rules, where it comes from,
// what is not claimed.
#include "coordinator/page/sections.h"

namespace proctor::page {
Markup gates(Context& c) {
  if (c.report.total.ended() == 0) return element("p", "No run has ended.");
  struct Counts {
    std::uint64_t refused = 0, conflicts = 0, loosely = 0, violating = 0, stopped = 0;
  };
  DataTable table = c.table(
      "Satisfied: acceptance passed, and every gate (number of runs). "
      "The outcome looks at acceptance alone; both are shown");
  table.words("method").numbers("success").numbers("satisfied").numbers("broke a constraint");
  table.numbers("success, not satisfied").numbers("patch refused").numbers("conflict markers");
  table.numbers("patch fitted loosely").numbers("stopped by a monitor");
  Markup items;
  std::size_t named = 0;
  constexpr std::size_t kNamed = 20;
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    Counts n;
    for (const std::uint32_t i : r.runs) {
      const RunRecord& run = c.report.runs[i];
      if (run.state != RunRecord::State::kEnded) continue;
      n.refused += run.patch.starts_with("refused") ? 1 : 0;
      n.conflicts += run.patch.find("conflict_markers") != std::string::npos ? 1 : 0;
      n.loosely +=
          run.patch.starts_with("whitespace") || run.patch.starts_with("three_way") ? 1 : 0;
      const bool monitor =
          run.termination == Termination::kPolicyStop || run.termination == Termination::kBreaker;
      n.stopped += monitor ? 1 : 0;
      n.violating += run.violations == 0 ? 0 : 1;
      const bool unsatisfied = run.outcome == RunOutcome::kSuccess && !run.satisfied();
      if ((run.violations == 0 && !unsatisfied) || kNamed < ++named) continue;
      items << element("li", text(run.name) + Markup(": ") + text(run.unmet(), 1'000))
            << line_end();
    }
    table.row({name_of(r), c.count(at, kClassSuccess, r.success),
               c.count(at, kClassSatisfied, r.satisfied), c.count(at, kClassViolating, n.violating),
               c.count(at, kClassUnsatisfied, r.success - r.satisfied), number(n.refused),
               number(n.conflicts), number(n.loosely), number(n.stopped)});
  }
  Markup out = table.finish();
  if (!items.empty())
    out << element("h3", "Constraints that were broken, gates that successes failed")
        << element("ul", items);
  if (kNamed < named)
    out << element("p", Markup("and ") + number(named - kNamed) + Markup(" more: ") +
                            element("code", "violations>0 or outcome=success satisfied=no"));
  return out + element("p", Markup("The gates of one run (patch, build, functional, safety) stand "
                                   "in its report: ") +
                                element("code", "proctor explain CAMPAIGN RUN") + Markup("."));
}

Markup graders(Context&) {
  return element("p",
                 "No verdicts of reviewers about outcomes are recorded: how often the checks "
                 "reject a correct change (FP) or accept a wrong one (FN) is not measured, "
                 "and no rate is corrected for it.");
}

Markup rules(Context& c) {
  return facts_table(c, "Caps, and the envelopes that money comes from", c.facts.caps) +
         element("p",
                 "An acceptance error stays in the denominator and counts as not successful; "
                 "an invalid run leaves it. No result was scored again under other rules, so "
                 "there is no counterfactual table.");
}

Markup reproducibility(Context& c) {
  std::vector<PageFacts::Fact> facts = c.facts.origins;
  facts.push_back({"journal head", c.report.journal_head.empty() ? "none" : c.report.journal_head});
  return facts_table(c, "What was run, to the byte", facts) +
         element("p", Markup("The same journal gives this page again, byte for byte. All of the "
                             "evidence is recomputed by ") +
                          element("code", "proctor verify CAMPAIGN") + Markup("."));
}

Markup limits_section(Context&) {
  Markup items;
  for (const Literal note :
       {Literal("A success says that the acceptance checks passed under the caps of this campaign, "
                "not that the change is right: weak checks pass wrong changes."),
        Literal("Monitors may miss behaviour, and no list of failures is exhaustive."),
        Literal("No row is ranked by a single number, and no order of methods is claimed beyond "
                "the comparisons above."),
        Literal("Runs of one task are alike: intervals over runs are too narrow, and stand in "
                "section 5 and the appendix only."),
        Literal("Where many tasks come from few repositories, intervals over tasks are too narrow: "
                "section 4 has the comparisons over repositories."),
        Literal("What agents said of themselves is marked as such and was measured by nobody."),
        Literal("Public tasks age: a model may have seen them.")})
    items << element("li", note) << line_end();
  return element("ul", items);
}

}  // namespace proctor::page
