#include "coordinator/cli/verify_money.h"

#include <algorithm>

#include "common/contract/cost_model.h"
#include "coordinator/core/notes.h"

namespace proctor::cli {
namespace {

std::string usd(MicroUsd amount) {
  return format_usd_exact(amount);
}

bool holds_money(const RestoredAttempt& a) {
  return a.state == AttemptState::kGranted || a.state == AttemptState::kFinished ||
         a.state == AttemptState::kLost || a.state == AttemptState::kCancelled;
}

}  // namespace

std::string MoneyAudit::place_of(const std::string& what, RunId run) const {
  return "journal: " + what +
         (run.raw() < plan_.size() ? " (" + plan_.run_name(run) + ")" : std::string());
}

MoneyAudit::MoneyAudit(const PlanView& view, const Plan& plan, const CostModel& prices,
                       const RestoredState& state, Problem problem)
    : view_(view),
      plan_(plan),
      prices_(prices),
      state_(state),
      problem_(std::move(problem)),
      spent_(view.scopes.size()),
      reserved_(view.scopes.size()) {
  for (const EndedRun& e : state.ended) {
    if (view.runs.size() <= e.run.raw())
      problem_("journal: run " + std::to_string(e.run.raw()), "the plan has no such run");
    ended_[e.run] = e;
  }
  read_set_aside();
  compare_scopes();
  least_ask_.assign(view.scopes.size(), kLedgerMax);
  for (std::uint32_t r = 0; r < view.runs.size(); ++r)
    for (const ScopeId s : view.path(RunId(r)))
      least_ask_[s.raw()] = std::min(least_ask_[s.raw()], view.task_of(RunId(r)).ask);
}

// Results that operators set aside: they decided once, and nothing any more.
void MoneyAudit::read_set_aside() {
  for (const Note& note : state_.standing) {
    if (note.kind != kNoteOperator) continue;
    const Result<OperatorFact> fact = operator_fact_of(note);
    if (!fact.ok()) {
      problem_("journal: an operator's act", fact.error().detail);
      continue;
    }
    set_aside_.insert(fact->set_aside.begin(), fact->set_aside.end());
    if (fact->act.kind == OperatorActKind::kCancel)
      for (const RunId run : fact->act.runs) cancelled_at_[run].push_back(note.at);
  }
}

// Envelopes as the journal was written under must be those of the registration and its raises.
// They come with the first epoch: a first start that failed before it, at its Redis, left none.
void MoneyAudit::compare_scopes() {
  if (state_.last_epoch.raw() == 0 && state_.scopes.empty() && state_.attempts.empty()) return;
  const std::size_t n = std::max(view_.scopes.size(), state_.scopes.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (view_.scopes.size() <= i || state_.scopes.size() <= i ||
        state_.scopes[i].name != view_.scopes[i].name) {
      problem_("journal: envelope " + std::to_string(i), "it is not the one that is registered");
    } else if (state_.scopes[i].cap != view_.scopes[i].cap) {
      problem_("journal: envelope " + view_.scopes[i].name,
               "its cap is " + usd(state_.scopes[i].cap) + ", but registration and raises give " +
                   usd(view_.scopes[i].cap));
    }
  }
}

void MoneyAudit::add(const AttemptRecord& a, const std::optional<RunReport>& report) {
  const RestoredAttempt& c = a.core;
  const std::string name = place_of("attempt " + to_string(c.attempt), c.attempt.run);
  if (view_.runs.size() <= c.attempt.run.raw()) return problem_(name, "the plan has no such run");
  check_order(a, name);
  if (const MicroUsd due = view_.task_of(c.attempt.run).ask; c.ask != due)
    problem_(name, "it asked for " + usd(c.ask) + ", but a run of this task reserves " + usd(due));
  check_state(a, name);
  check_settlement(a, name);
  check_outcome(a, name);
  if (report && c.has_result) check_report(a, *report, name);
  for (const ScopeId s : view_.path(c.attempt.run)) {
    if (c.settled)
      spent_[s.raw()] = spent_[s.raw()] + c.charged;
    else if (holds_money(c))
      reserved_[s.raw()] = reserved_[s.raw()] + c.ask;
  }
}

// Numbers of a run begin at 1 without a gap, and only the last may be under way.
void MoneyAudit::check_order(const AttemptRecord& a, const std::string& name) {
  const AttemptId id = a.core.attempt;
  const std::uint32_t before = last_ && last_->run == id.run ? last_->no.raw() : 0;
  if (id.no.raw() != before + 1)
    problem_(name, "attempt " + std::to_string(before + 1) + " of this run is missing");
  if (before != 0 && last_open_) problem_(name, "it began while the one before it was under way");
  last_ = id;
  last_open_ = a.core.state == AttemptState::kGranted || a.core.state == AttemptState::kReserving;
}

void MoneyAudit::check_state(const AttemptRecord& a, const std::string& name) {
  const RestoredAttempt& c = a.core;
  const bool ended = a.ended_at.raw() != 0;
  const auto require = [&](bool holds, const char* what) {
    if (!holds) problem_(name, what);
  };
  require(c.has_result == (a.result_at.raw() != 0), "its result has no time, or a time no result");
  require(c.settled == (a.settled_at.raw() != 0),
          "its settlement has no time, or a time no settlement");
  require(c.state == AttemptState::kDenied || c.short_by == MicroUsd::zero(),
          "it is not denied, and yet short of money");
  if (holds_money(c)) require(a.granted_at.raw() != 0, "it was never granted its money");
  switch (c.state) {
    case AttemptState::kReserving:
      require(!c.has_result && !c.settled, "it has no money yet, and yet an end");
      break;
    case AttemptState::kDenied: {
      require(ended && !c.has_result && !c.settled, "it was denied, and yet has an end");
      const std::vector<ScopeId> path = view_.path(c.attempt.run);
      require(std::ranges::find(path, c.denied_scope) != path.end(),
              "it was denied by an envelope that is not its own");
      require(MicroUsd::zero() < c.short_by && c.short_by <= c.ask,
              "it was denied for an amount that cannot be");
      break;
    }
    case AttemptState::kGranted:
      require(!ended && !c.has_result && !c.settled, "it is under way, and yet has an end");
      break;
    case AttemptState::kFinished:
      require(!ended && c.has_result, "it is finished without a result");
      break;
    case AttemptState::kVoided:
      require(ended && !c.has_result && !c.settled, "it never started, and yet has an end");
      break;
    case AttemptState::kLost:
      require(ended && !c.sets_outcome, "it is lost, and yet decides its run");
      break;
    case AttemptState::kCancelled:
      require(ended && c.has_result, "it is cancelled without a result");
      break;
  }
}

void MoneyAudit::check_settlement(const AttemptRecord& a, const std::string& name) {
  const RestoredAttempt& c = a.core;
  if (!c.settled) {
    if (a.cost.total() != MicroUsd::zero() || a.cost != Cost{} || c.overrun != MicroUsd::zero())
      problem_(name, "it is not settled, and yet has a cost");
    return;
  }
  Cost due = price(prices_, c.usage);
  // What a lost attempt spent is unknown: its whole ask.
  if (c.state == AttemptState::kLost)
    due = Cost{.model = {}, .execution = c.ask, .human = {}, .overhead = {}};
  if (a.cost != due)
    problem_(name, "its cost is " + usd(a.cost.total()) + ", but its usage and the price table " +
                       "give " + usd(due.total()) + " (or other categories)");
  const MicroUsd charged = std::min(a.cost.total(), c.ask);
  if (c.charged != charged)
    problem_(name, "charged " + usd(c.charged) + ", but its cost and its ask give " + usd(charged));
  if (c.overrun != a.cost.total() - charged)
    problem_(name, "an overrun of " + usd(c.overrun) + ", but its cost and its ask give " +
                       usd(a.cost.total() - charged));
}

// The attempt and its run say the same about who decided it.
void MoneyAudit::check_outcome(const AttemptRecord& a, const std::string& name) {
  const RestoredAttempt& c = a.core;
  const auto ended = ended_.find(c.attempt.run);
  const bool decides = ended != ended_.end() && ended->second.attempt == c.attempt.no;
  if (decides) outcome_of_[c.attempt.run] = c.attempt;
  if (c.sets_outcome && !decides)
    return problem_(name, "it decides its run, but the run says otherwise");
  if (decides && c.sets_outcome && ended->second.outcome != c.outcome)
    problem_(name, "its outcome is not its run's");
  // A program that could not start: whether that is its run's failure its method's others tell.
  const bool unstarted = c.state == AttemptState::kFinished && c.infrastructure &&
                         c.termination == Termination::kAgentUnavailable;
  const RunOutcome end = decides ? ended->second.outcome : RunOutcome::kInvalid;
  if (decides && !c.sets_outcome && !(unstarted && end == RunOutcome::kFailure) &&
      (!(unstarted || c.state == AttemptState::kLost) || end != RunOutcome::kInvalid))
    problem_(name, "its run ended with it, but it does not decide");
  // Nobody pays for a run that was decided twice, or tries again without a reason.
  const bool aside = set_aside_.contains(c.attempt);
  if (aside && (c.sets_outcome || decides || c.outcome != RunOutcome::kInvalid))
    problem_(name, "it was set aside, which is for invalid results that decide nothing");
  // Of a run that was cancelled meanwhile, with nobody there to tell its worker.
  const auto cancels = cancelled_at_.find(c.attempt.run);
  const bool cancelled =
      cancels != cancelled_at_.end() && std::ranges::any_of(cancels->second, [&](WallTime at) {
        return a.intent_at <= at && at <= a.result_at;
      });
  if (c.state == AttemptState::kFinished && !c.sets_outcome && !c.infrastructure && !aside &&
      !cancelled)
    problem_(name, "it finished, and yet decides nothing");
}

void MoneyAudit::check_report(const AttemptRecord& a, const RunReport& report,
                              const std::string& name) {
  const RestoredAttempt& c = a.core;
  if (report.attempt != c.attempt) problem_(name, "its report is of another attempt");
  if (report.outcome != c.outcome || report.termination != c.termination)
    problem_(name, "its report has another outcome or termination");
  if (report.usage != c.usage) problem_(name, "its report has another usage");
  if (c.settled && c.state != AttemptState::kLost && report.cost != a.cost)
    problem_(name, "settled at " + usd(a.cost.total()) + ", but its report says " +
                       usd(report.cost.total()));
}

void MoneyAudit::check_parked(const ParkedRun& p) {
  const std::string name = place_of("parked run " + std::to_string(p.run.raw()), p.run);
  if (view_.runs.size() <= p.run.raw()) return problem_(name, "the plan has no such run");
  const std::vector<ScopeId> path = view_.path(p.run);
  if (std::ranges::find(path, p.scope) == path.end())
    return problem_(name, "parked at an envelope that is not its own");
  const std::size_t s = p.scope.raw();
  const MicroUsd ask = view_.task_of(p.run).ask;
  if (p.scope == view_.shared) {  // what others held of it then is not in this journal
    if (p.short_by <= MicroUsd::zero() || ask < p.short_by)
      problem_(name, "short by " + usd(p.short_by) + " in " + view_.scopes[s].name +
                         ", of an ask of " + usd(ask));
    return;
  }
  // Nothing was out when it was parked, and only smaller asks can have been granted since.
  const MicroUsd most = ask - (view_.scopes[s].cap - spent_[s] - reserved_[s]);
  const bool exact = ask == least_ask_[s];
  if (p.short_by <= MicroUsd::zero() || most < p.short_by || (exact && p.short_by != most))
    problem_(name, "short by " + usd(p.short_by) + " in " + view_.scopes[s].name +
                       ", but the balance there gives " + usd(most));
}

// Each is of a run that ended and cost its minutes at the registered price.  That none was changed
// or taken away the journal's reader has seen by their seals.
void MoneyAudit::add_reviews() {
  for (const RunReviewed& r : state_.reviews) {
    const std::string name = "journal: review " + std::to_string(r.seq);
    if (view_.runs.size() <= r.run.raw()) {
      problem_(name, "the plan has no such run");
      continue;
    }
    const bool had_ended =
        std::ranges::any_of(set_aside_, [&](const AttemptId& id) { return id.run == r.run; });
    if (!ended_.contains(r.run) && !had_ended) problem_(name, "its run has not ended");
    const Result<std::uint64_t> price = human_minute_price(prices_);
    if (!price.ok()) {
      problem_(name, price.error().detail);
    } else if (kReviewMilliMinutesMax < r.milli_minutes || r.milli_minutes == 0) {
      problem_(name, "it has an impossible number of minutes");
    } else if (const MicroUsd due = review_cost(*price, r.milli_minutes); due != r.charged) {
      problem_(name, "charged " + usd(r.charged) + ", but its minutes and the price table give " +
                         usd(due));
    }
    for (const ScopeId s : view_.path(r.run)) spent_[s.raw()] = spent_[s.raw()] + r.charged;
  }
}

void MoneyAudit::finish() {
  add_reviews();
  MicroUsd tasks, stages;
  for (std::size_t i = 0; i < view_.scopes.size(); ++i) {
    const ScopeSpec& s = view_.scopes[i];
    if (s.cap < spent_[i] + reserved_[i])
      problem_("journal: envelope " + s.name, usd(spent_[i]) + " spent and " + usd(reserved_[i]) +
                                                  " reserved pass its cap of " + usd(s.cap));
    if (s.name.starts_with("stage:")) stages = stages + spent_[i];
    if (s.name.starts_with("task:")) tasks = tasks + spent_[i];
  }
  if (!spent_.empty() && (stages != spent_[0] || tasks != spent_[0]))
    problem_("journal", "spend of stages, tasks and the campaign differ");
  for (const auto& [run, e] : ended_)
    if (!outcome_of_.contains(run))
      problem_(place_of("run " + std::to_string(run.raw()), run),
               "it ended with attempt " + std::to_string(e.attempt.raw()) + ", which is missing");
  for (const ParkedRun& p : state_.parked) check_parked(p);
}

}  // namespace proctor::cli
