// Gates, graded score and failure modes: what a reviewer of safety reads.
#include <set>

#include "common/base/parse.h"
#include "common/contract/campaign.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {
Markup legend(const Context& c) {
  Items items;
  for (const GateWords& gate : kGateWords)
    items.add(element("strong", text(gate.name)) + ": " + text(gate.meaning));
  items.add(rubric_notes(c.report), 1'000);
  return items.list();
}

// "11, 1 fail, 2 error": those that pass, and apart from each other all that do not.
Markup outcomes_cell(const std::array<std::uint64_t, 4>& outcomes) {
  Markup out = number(outcomes.front());
  for (std::size_t i = 1; i < outcomes.size(); ++i)
    if (outcomes[i] != 0)
      out << ", " << number(outcomes[i]) << " " << text(word_of(static_cast<GateOutcome>(i)));
  return out;
}

Markup explained(const Context& c, const std::string& run) {
  return run.empty() ? none() : command(c, "explain", shell_word(run));
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
  DataTable table =
      c.table(strata ? Markup("The same by stratum")
                     : Markup("Runs that pass each gate, beside them those that fail, err (error) "
                              "or were not decided (not_run), and the mean score of the runs that "
                              "pass all four. A judged run has ended and its gates are known"),
              strata ? "stratum|method|#judged" : "method|#judged");
  for (const GateWords& gate : kGateWords) table.numbers(text(gate.name));
  table.heads(strata ? "#all gates|#scored|#mean score|failure modes"
                     : "#all gates|#share (%)|#scored|#mean score|a run that does not pass");
  std::size_t rows = 0;
  for (const GateRow& r : c.report.details->rubric.gates) {
    if (r.key.empty() == strata || (strata && is_only_level(c.report, r.key))) continue;
    if (++rows > kShown && strata) continue;
    std::vector<Markup> cells{name_of(c, r), number(r.judged)};
    if (strata) cells.insert(cells.begin(), text(r.stratum()));
    for (const auto& outcomes : r.outcomes) cells.push_back(outcomes_cell(outcomes));
    cells.push_back(number(r.all.x));
    if (!strata) cells.push_back(share_cell(r.all));
    cells.insert(cells.end(),
                 {number(r.scored), score_cell(r.score),
                  strata ? tags_of(c.report.details->rubric.tags, r) : explained(c, r.first)});
    table.row(cells);
  }
  if (!strata) return table.finish();
  return table.empty() ? Markup() : table.finish() + and_more(rows, kShown, " in report.json");
}

// A row for each failure mode of each method.
Markup tag_table(Context& c) {
  constexpr std::size_t kShown = 200, kSentence = 600;
  std::vector<TagRow> tags = c.report.details->rubric.tags;
  std::erase_if(tags, [](const TagRow& t) { return !t.key.empty(); });
  if (tags.empty()) return paragraph("No judged run has a failure mode.");
  std::ranges::stable_sort(tags, {}, &TagRow::tag);
  std::ranges::stable_sort(tags, std::greater<>(), &TagRow::severity);
  DataTable table = c.table(
      "Failure modes, the most severe first: labels that rules assert by recorded events, never a "
      "score. Runs of each method, and their share of its judged runs",
      "failure mode|severity|method|#runs|#share (%)|laid to|what it means|a run of it");
  std::string_view last;
  for (const TagRow& t : std::span(tags).first(std::min(kShown, tags.size()))) {
    const Markup severity = text(word_of(t.severity));
    table.row({text(t.tag), Severity::kReview < t.severity ? element("strong", severity) : severity,
               name_of(c, t), number(t.runs.x), share_cell(t.runs), text(word_of(t.attribution)),
               t.tag == last ? Markup("as above") : text(t.sentence, kSentence),
               explained(c, t.first)});
    last = t.tag;
  }
  return table.finish() + and_more(tags.size(), kShown, " in report.json");
}

Markup score_contrasts(Context& c) {
  Items items;
  for (const ScoreContrast& s : c.report.details->rubric.contrasts)
    items.add(text(c.name(s.a) + " less " + c.name(s.b)) + ": " + text(difference_words(s)) +
              " over " + text(counted(s.tasks, "task")));
  if (items.empty()) return {};
  return paragraph(
             "Differences of the mean score, exploratory: over tasks on which runs of both pass "
             "all gates, with intervals by resampled tasks.") +
         items.list();
}

// The command that a line of `env` runs, behind variables and options without a value; empty: it is
// another line.
std::string_view run_by_env(std::string_view line) {
  const std::string_view program = take_until(line, ' ');
  if (program != "env" && !program.ends_with("/env")) return {};
  for (std::string_view rest = line; !rest.empty(); line = rest) {
    const std::string_view word = take_until(rest, ' ');
    if (!word.starts_with('-') && word.find('=') == std::string_view::npos) break;
  }
  return line;
}

// May it be the command that `by`, an `env` of the same run, runs?
bool is_run_by_env(const PageFacts::Seen& s, const PageFacts::Seen& by) {
  return s.form == "executed" && s.form == by.form && s.run == by.run &&
         s.violation == by.violation && !s.segment.empty() && run_by_env(by.segment) == s.segment;
}

// A row for each act that the alerts of its evidence tell of, and one for the run where there is
// more than they show.
void add_violations(const Context& c, DataTable& table, const RunRecord& run) {
  using Seen = PageFacts::Seen;
  const Markup ended = run.termination == Termination::kPolicyStop
                           ? Markup("; a monitor stopped it, and the run ended")
                           : Markup();
  std::set<const Seen*> inner;  // each is one act with an env before it, and no other has that env
  std::set<std::string> shown;  // cut as a report cuts its first one
  for (const Seen& s : c.facts.seen) {
    if (s.run != run.name) continue;
    if (s.kind != Seen::Kind::kWords) shown.insert(s.violation.substr(0, kFirstViolationBytes));
    const bool twice = std::ranges::any_of(c.facts.seen, [&](const Seen& of) {
      return &s < &of && is_run_by_env(of, s) && inner.insert(&of).second;
    });
    if (!inner.contains(&s))
      table.row({explained(c, run.name), text(s.violation),
                 s.form.empty() || s.violation.starts_with("call: ")
                     ? none()
                     : text(s.form + (twice ? ", as env and as what it runs" : "")),
                 s.segment.empty() ? none() : element("code", text(s.segment, 160)),
                 text(violation_answer(s.violation, s.form)) +
                     (s.kind == Seen::Kind::kCritical ? ended : Markup())});
    if (s.more != 0)
      table.row({explained(c, run.name), text("and " + counted(s.more, "more alert")), none(),
                 none(), none()});
  }
  if (shown.size() < run.violations || !shown.contains(run.violated))
    table.row(
        {explained(c, run.name), text(run.unmet(), 1'000), none(), none(),
         text(run.violations < 2 ? "" : "the first: ") + text(violation_answer(run.violated, {}))});
}

Markup constraints(Context& c) {
  DataTable table = c.table(
      "Satisfied: acceptance passed, and every gate (number of runs). The outcome looks at "
      "acceptance alone, without checks that only rate; both are shown. Stopped by a monitor: the "
      "run ended there",
      "method|#success|#satisfied|#broke a constraint|#success, not satisfied|#patch refused|"
      "#conflict markers|#patch fitted loosely|#stopped by a monitor");
  DataTable broken = c.table(
      "Violations, and gates that successes did not pass: the segment that a command's pattern met "
      "or the target of a call, its form, and whether it was refused",
      "run|violation|form|segment|answer");
  std::size_t named = 0;
  for (const std::uint32_t at : c.methods) {
    const ReportRow& r = c.report.rows[at];
    std::uint64_t refused = 0, conflicts = 0, loosely = 0, violating = 0, stopped = 0;
    for (const std::uint32_t i : r.runs) {
      const RunRecord& run = c.report.runs[i];
      if (run.state != RunRecord::State::kEnded) continue;
      refused += run.patch.starts_with("refused") ? 1 : 0;
      conflicts += run.patch.find("conflict_markers") != std::string::npos ? 1 : 0;
      loosely += run.patch.starts_with("whitespace") || run.patch.starts_with("three_way") ? 1 : 0;
      using enum Termination;
      stopped += run.termination == kPolicyStop || run.termination == kBreaker ? 1 : 0;
      violating += run.violations == 0 ? 0 : 1;
      const bool unsatisfied = run.outcome == RunOutcome::kSuccess && !run.satisfied();
      if ((run.violations != 0 || unsatisfied) && ++named <= kSeenRuns)
        add_violations(c, broken, run);
    }
    table.row({name_of(c, r), c.count(at, kClassSuccess, r.success),
               c.count(at, kClassSatisfied, r.satisfied), c.count(at, kClassViolating, violating),
               c.count(at, kClassUnsatisfied, r.success - r.satisfied), number(refused),
               number(conflicts), number(loosely), number(stopped)});
  }
  return table.finish() + (broken.empty() ? Markup() : broken.finish()) +
         and_more(named, kSeenRuns,
                  Markup(" runs: ") +
                      command(c, "list", "--where 'violations>0 or outcome=success satisfied=no'"));
}

// "0.50" of 500000.
std::string decimal(std::uint64_t millionths) {
  return format_usd(MicroUsd::from_micros(static_cast<std::int64_t>(millionths)));
}
}  // namespace

Markup gates(Context& c) {
  if (c.report.total.ended() == 0) return paragraph("No run has ended.");
  if (c.report.details->rubric.gates.empty()) return constraints(c);
  Markup out = paragraph(
      "Four gates judge a run, and none makes up for another: a run is satisfied only if it passes "
      "all four, and only then it has a score.");
  out << legend(c)
      << facts_table(c, "Score and stops, registered before the first run", c.facts.judged)
      << gate_table(c, false) << tag_table(c);
  out << paragraph(Markup("The runs behind a number: ") +
                   command(c, "list", "--where gate.g4=fail") + ", " +
                   command(c, "list", "--where tag=safety.sandbox_escape") +
                   ". Commands work where the campaign's folder is: this page has no evidence.");
  out << score_contrasts(c) << gate_table(c, true);
  return out + element("h3", "Constraints and patches") + constraints(c);
}
}  // namespace proctor::page

namespace proctor {
std::vector<PageFacts::Fact> judging_facts(const Campaign& campaign) {
  const auto& [minimal, trace, maint] = campaign.weights;
  std::vector<PageFacts::Fact> out{
      {"safety.stop_run",
       campaign.safety.stop_run ? "on: a critical violation ends its run" : "off"},
      {"safety.stop_after", campaign.safety.stop_after == 0
                                ? "off"
                                : "the same one in " + counted(campaign.safety.stop_after, "task") +
                                      " stops the campaign"},
      {"weights of the score", fmt::format("minimal {}, trace {}, maint {}", page::decimal(minimal),
                                           page::decimal(trace), page::decimal(maint))}};
  std::map<std::string, std::uint64_t> rules;
  for (const Contract& contract : campaign.contracts)
    ++rules[contract.rubric ? fmt::format("lambda {}, envelope {} lines, {} files",
                                          page::decimal(contract.rubric->lambda),
                                          contract.rubric->lines, contract.rubric->files)
                            : "no score"];
  const std::size_t all = out.size() + rules.size();
  for (const auto& [rule, tasks] : rules)
    if (out.size() < kSeenRuns) out.push_back({"score of " + counted(tasks, "task"), rule});
  if (out.size() < all) out.push_back({"score of others", counted(all - out.size(), "rule")});
  return out;
}

std::vector<PageFacts::Fact> cap_facts(const Campaign& campaign) {
  const CapRules rules = campaign.cap_rules();
  std::map<Cap, std::set<std::optional<std::uint64_t>>> held;
  for (const Contract& contract : campaign.contracts)
    for (const Stage& stage : campaign.stages) {
      const std::vector<std::string>& tasks = stage.draw.tasks;
      if (!tasks.empty() && !std::ranges::binary_search(tasks, contract.id)) continue;
      const Caps caps = effective_caps(rules, stage.name, contract).caps;
      for (const Cap cap : kCaps) held[cap].insert(cap_value(caps, cap));
    }
  std::vector<PageFacts::Fact> out;
  for (auto& [cap, values] : held) {
    const std::size_t all = values.size(), without = values.erase(std::nullopt);
    if (values.empty()) continue;
    const auto said = [&](std::uint64_t value) {
      return cap == Cap::kUsd ? page::decimal(value) + " " + money_word(campaign.cost_model)
                              : format_cap(cap, value);
    };
    std::string shown = said(**values.begin());
    if (1 < values.size()) shown += " to " + said(**values.rbegin());
    if (without != 0) shown += ", or none";
    const bool staged = std::ranges::any_of(
        rules.stages, [&](const auto& of) { return cap_value(of.second, cap).has_value(); });
    if (1 < all) shown += staged ? ", by task and stage" : ", by task";
    out.push_back({"cap of a run that holds: " + std::string(to_string(cap)), shown});
  }
  return out;
}
}  // namespace proctor
