// Gates, graded score and failure modes: what a reviewer of safety reads.
#include <fmt/format.h>
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {
Markup legend() {
  Items items;
  for (const GateWords& gate : kGateWords)
    items.add(element("strong", text(gate.name)) + ": " + text(gate.meaning));
  return items.list();
}

// A share of judged runs with its interval over tasks.
Markup share_cell(const Share& share) {
  return rate(share.rate) + " " + rate_interval(share.interval);
}

Markup score_cell(const Estimate& score) {
  if (!score.value) return none();
  const auto shown = [](double value) {
    return data(value, fmt::format("{:.3f}", std::clamp(value, 0.0, 1.0)));
  };
  return shown(*score.value) + " " + between(score.interval, score.why, shown);
}

// Failure modes in the group of runs of this row.
Markup tags_of(const std::vector<TagRow>& tags, const GateRow& r) {
  Markup out;
  for (const TagRow& t : tags)
    if (t.key == r.key && t.value == r.value && t.method == r.method)
      out << (out.empty() ? Markup() : Markup(", ")) << text(t.tag) << " " << number(t.runs.x);
  return out.empty() ? none() : out;
}

// Over all tasks, or by stratum where there are levels that tell tasks apart.
Markup gate_table(Context& c, bool strata) {
  constexpr std::size_t kShown = 200;
  DataTable table = c.table(
      strata ? Markup("The same by stratum")
             : Markup("Runs that pass each gate, and the graded score beside them: its mean over "
                      "the runs that pass all four. A judged run has ended and its gates are "
                      "known"));
  if (strata) table.words("stratum");
  table.words("method").numbers("judged");
  for (const GateWords& gate : kGateWords) table.numbers(text(gate.name));
  table.numbers("all gates");
  if (!strata) table.numbers("share (%)");
  table.numbers("scored").numbers("mean score");
  if (strata) table.words("failure modes");
  std::size_t rows = 0;
  for (const GateRow& r : c.report.details->rubric.gates) {
    if (r.key.empty() == strata || (strata && is_only_level(c.report, r.key))) continue;
    if (++rows > kShown && strata) continue;
    std::vector<Markup> cells{name_of(r), number(r.judged)};
    if (strata) cells.insert(cells.begin(), text(r.stratum()));
    for (const std::uint64_t passed : r.passed) cells.push_back(number(passed));
    cells.push_back(number(r.all.x));
    if (!strata) cells.push_back(share_cell(r.all));
    cells.insert(cells.end(), {number(r.scored), score_cell(r.score)});
    if (strata) cells.push_back(tags_of(c.report.details->rubric.tags, r));
    table.row(cells);
  }
  if (!strata) return table.finish();
  return table.empty() ? Markup() : table.finish() + and_more(rows, kShown, " in report.json");
}

// A row for each failure mode, a column for each method.
Markup tag_table(Context& c) {
  constexpr std::size_t kShown = 60, kSentence = 600;
  const RubricTables& rubric = c.report.details->rubric;
  std::vector<const TagRow*> tags;
  for (const TagRow& r : rubric.tags)
    if (r.key.empty() && std::ranges::find(tags, r.tag, &TagRow::tag) == tags.end())
      tags.push_back(&r);
  if (tags.empty()) return element("p", "No judged run has a failure mode.");
  std::ranges::stable_sort(tags, std::greater<>(), &TagRow::severity);
  DataTable table = c.table(
      "Failure modes, the most severe first: labels that rules assert by recorded events, never a "
      "score. Runs of each method, and their share of its judged runs (%)");
  table.words("failure mode").words("severity").words("laid to").words("what it means");
  std::vector<std::string_view> methods;
  for (const GateRow& r : rubric.gates)
    if (r.key.empty()) {
      methods.push_back(r.method);
      table.numbers(name_of(r));
    }
  table.words("its runs");
  for (std::size_t i = 0; i < std::min(kShown, tags.size()); ++i) {
    const TagRow& tag = *tags[i];
    const bool grave = tag.severity == Severity::kHigh || tag.severity == Severity::kCritical;
    const Markup severity = text(word_of(tag.severity));
    std::vector<Markup> cells{text(tag.tag), grave ? element("strong", severity) : severity,
                              text(word_of(tag.attribution)), text(tag.sentence, kSentence)};
    for (const std::string_view method : methods) {
      const auto of = std::ranges::find_if(rubric.tags, [&](const TagRow& r) {
        return r.key.empty() && r.method == method && r.tag == tag.tag;
      });
      cells.push_back(of == rubric.tags.end()
                          ? number(0)
                          : number(of->runs.x) + " (" + share_cell(of->runs) + ")");
    }
    cells.push_back(element("code", Markup("tag=") + text(tag.tag)));
    table.row(cells);
  }
  return table.finish() + and_more(tags.size(), kShown, " in report.json");
}

Markup score_contrasts(Context& c) {
  Items items;
  for (const ScoreContrast& s : c.report.details->rubric.contrasts)
    items.add(text(s.a) + " less " + text(s.b) + ": " + text(difference_words(s)) + " over " +
              text(counted(s.tasks, "task")));
  if (items.empty()) return {};
  return element("p",
                 "Differences of the mean score, exploratory: over tasks on which runs of both "
                 "pass all gates, with intervals by resampled tasks.") +
         items.list();
}

Markup constraints(Context& c) {
  DataTable table = c.table(
      "Satisfied: acceptance passed, and every gate (number of runs). "
      "The outcome looks at acceptance alone; both are shown");
  table.words("method").numbers("success").numbers("satisfied").numbers("broke a constraint");
  table.numbers("success, not satisfied").numbers("patch refused").numbers("conflict markers");
  table.numbers("patch fitted loosely").numbers("stopped by a monitor");
  Items items;
  std::size_t named = 0;
  constexpr std::size_t kNamed = 20;
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    std::uint64_t refused = 0, conflicts = 0, loosely = 0, violating = 0, stopped = 0;
    for (const std::uint32_t i : r.runs) {
      const RunRecord& run = c.report.runs[i];
      if (run.state != RunRecord::State::kEnded) continue;
      refused += run.patch.starts_with("refused") ? 1 : 0;
      conflicts += run.patch.find("conflict_markers") != std::string::npos ? 1 : 0;
      loosely += run.patch.starts_with("whitespace") || run.patch.starts_with("three_way") ? 1 : 0;
      const bool monitor =
          run.termination == Termination::kPolicyStop || run.termination == Termination::kBreaker;
      stopped += monitor ? 1 : 0;
      violating += run.violations == 0 ? 0 : 1;
      const bool unsatisfied = run.outcome == RunOutcome::kSuccess && !run.satisfied();
      if ((run.violations == 0 && !unsatisfied) || kNamed < ++named) continue;
      items.add(text(run.name) + ": " + text(run.unmet(), 1'000));
    }
    table.row({name_of(r), c.count(at, kClassSuccess, r.success),
               c.count(at, kClassSatisfied, r.satisfied), c.count(at, kClassViolating, violating),
               c.count(at, kClassUnsatisfied, r.success - r.satisfied), number(refused),
               number(conflicts), number(loosely), number(stopped)});
  }
  Markup out = table.finish();
  if (!items.empty())
    out << element("h3", "Constraints that were broken, gates that successes failed")
        << items.list();
  out << and_more(named, kNamed,
                  Markup(": ") + element("code", "violations>0 or outcome=success satisfied=no"));
  return out + element("p", Markup("The gates of one run (patch, build, functional, safety) stand "
                                   "in its report: ") +
                                element("code", "proctor explain CAMPAIGN RUN") + ".");
}
}  // namespace

Markup gates(Context& c) {
  if (c.report.total.ended() == 0) return element("p", "No run has ended.");
  if (c.report.details->rubric.gates.empty()) return constraints(c);
  Markup out = element("p",
                       "Four gates judge a run in this order. None makes up for another: a run is "
                       "satisfied only if it passes all four, and only then it has a score.");
  out << legend() << gate_table(c, false) << tag_table(c);
  out << element("p", Markup("The runs behind a number: ") +
                          element("code", "proctor list CAMPAIGN --where 'gate.g4=fail,error'") +
                          ", " + element("code", "--where 'tag=policy.network_denied'") +
                          ". Why one of them failed, event by event: " +
                          element("code", "proctor explain CAMPAIGN RUN") + ".");
  out << score_contrasts(c) << gate_table(c, true);
  return out + element("h3", "Constraints and patches") + constraints(c);
}
}  // namespace proctor::page
