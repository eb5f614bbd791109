#include "coordinator/cli/verify_money.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/shell/campaign_view.h"

namespace proctor::cli {
namespace {
std::string usd(MicroUsd amount) {
  return format_usd_exact(amount);
}

std::string part_text(const OwnPart& part) {
  return fmt::format("{} spent and {} reserved", usd(part.spent), usd(part.reserved));
}
}  // namespace

OwnPart own_part(const RestoredState& state) {
  OwnPart out;
  for (const RestoredAttempt& a : state.attempts) {
    if (a.settled) out.spent = out.spent + a.charged;
    if (is_reserved(a)) out.reserved = out.reserved + a.ask;
  }
  return out;
}

std::string compare_part(const std::string& self, const std::string& envelope,
                         const RedisLedger::Fields& fields, const std::optional<OwnPart>& exact,
                         const RestoredState& after, const ProblemHandler& problem) {
  const std::string where = "redis: this campaign's part of " + envelope;
  // Nobody can reserve from an envelope that is not there, so nothing false is counted on.
  if (fields.empty()) return envelope + " is not there: its part is not compared";
  const Result<SharedView> view = read_shared(fields);
  const Result<SharedBook> book = shared_book_of(self, after.shared);
  if (!view.ok() || !book.ok()) {
    problem(where, (view.ok() ? book.error() : view.error()).detail);
    return "its part of " + envelope + " is not compared";
  }
  const OwnPart part = own_part(after);
  const std::string done = "its part of " + envelope + " compared";
  const SharedMember* me = view->find(self);
  if (me == nullptr) {
    if (MicroUsd::zero() < part.held() || MicroUsd::zero() < book->limit())
      problem(where,
              "is not there, so the others count on it; the journal says " + part_text(part));
    return done;
  }
  switch (me->state) {
    case SharedMember::State::kUnheard:
      // Others brought the envelope back: until this one comes again its ceiling stands for it.
      if (me->ceiling < part.held())
        problem(where, fmt::format("counts as {} at most until it is heard of, the journal says {}",
                                   usd(me->ceiling), part_text(part)));
      return done;
    case SharedMember::State::kLeft:
      if (me->spent + me->reserved != part.held())
        problem(where, fmt::format("has left with {}, the journal says {}",
                                   usd(me->spent + me->reserved), part_text(part)));
      return done;
    case SharedMember::State::kHeard:
      break;
  }
  if (!exact) return "its part of " + envelope + " is of an earlier life: not compared";
  if (me->spent != exact->spent || me->reserved != exact->reserved)
    problem(where, fmt::format("holds {}, the journal says {}",
                               part_text({me->spent, me->reserved}), part_text(*exact)));
  // A limit is in the journal before Redis has it; none: it is about to leave.
  if (MicroUsd::zero() < book->limit() && book->limit() < me->limit)
    problem(where,
            fmt::format("may grow to {}, the journal says {}", usd(me->limit), usd(book->limit())));
  return done;
}

namespace {
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
                       const RestoredState& state, ProblemHandler problem)
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
    if (note.kind != OperatorFact::kNote) continue;
    const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
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
      return require(!c.has_result && !c.settled, "it has no money yet, and yet an end");
    case AttemptState::kDenied: {
      require(ended && !c.has_result && !c.settled, "it was denied, and yet has an end");
      const std::vector<ScopeId> path = view_.path(c.attempt.run);
      require(std::ranges::find(path, c.denied_scope) != path.end(),
              "it was denied by an envelope that is not its own");
      return require(MicroUsd::zero() < c.short_by && c.short_by <= c.ask,
                     "it was denied for an amount that cannot be");
    }
    case AttemptState::kGranted:
      return require(!ended && !c.has_result && !c.settled, "it is under way, and yet has an end");
    case AttemptState::kFinished:
      return require(!ended && c.has_result, "it is finished without a result");
    case AttemptState::kVoided:
      return require(ended && !c.has_result && !c.settled, "it never started, and yet has an end");
    case AttemptState::kLost:
      return require(ended && !c.sets_outcome, "it is lost, and yet decides its run");
    case AttemptState::kCancelled:
      return require(ended && c.has_result, "it is cancelled without a result");
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

// `proctor verify`: what was told about money is what had to be told.

namespace {
std::string place(const std::string& envelope, std::uint32_t percent) {
  return "journal: alert of " + envelope + " at " + std::to_string(percent) + " %";
}
}  // namespace

void MoneyAudit::check_alert(const BudgetWatch& watch, const BudgetAlert& a) {
  const std::string where = place(a.name, a.percent);
  const std::size_t s = a.scope.raw();
  if (view_.scopes.size() <= s || view_.scopes[s].name != a.name)
    return problem_(where, "there is no such envelope");
  if (std::ranges::find(watch.alerts, a.percent) == watch.alerts.end())
    problem_(where, "that level is not registered");
  if (!has_reached(a.spent, a.cap, a.percent))
    problem_(where, usd(a.spent) + " of " + usd(a.cap) + " are less than that");
  if (spent_[s] < a.spent)
    problem_(where, usd(a.spent) + " were spent then, " + usd(spent_[s]) + " now");
  bool known = a.cap == view_.scopes[s].cap;
  for (const BudgetRaised& r : state_.raises)
    known = known || (r.scope == a.scope && (r.from == a.cap || r.to == a.cap));
  if (!known) problem_(where, "it never had a cap of " + usd(a.cap));
}

void MoneyAudit::check_told(const BudgetWatch& watch) {
  std::set<std::pair<ScopeId, std::uint32_t>> told;
  std::set<std::tuple<ScopeId, std::uint32_t, MicroUsd>> told_of_cap;
  for (const BudgetAlert& a : state_.alerts) {
    check_alert(watch, a);
    told.emplace(a.scope, a.percent);
    if (!told_of_cap.emplace(a.scope, a.percent, a.cap).second)
      problem_(place(a.name, a.percent), "it was told twice");
  }
  for (std::uint32_t s = 0; s < view_.scopes.size(); ++s) {
    if (view_.follows_global(ScopeId(s))) continue;
    for (const std::uint32_t percent : watch.alerts)
      if (has_reached(spent_[s], view_.scopes[s].cap, percent) &&
          !told.contains({ScopeId(s), percent}))
        problem_(
            place(view_.scopes[s].name, percent),
            usd(spent_[s]) + " of " + usd(view_.scopes[s].cap) + " are spent, and it was not told");
  }
  std::set<AttemptId> dominant;
  for (const RunDominates& d : state_.dominant) {
    const std::string where = place_of("attempt " + to_string(d.attempt), d.attempt.run);
    if (!dominant.insert(d.attempt).second) problem_(where, "that it dominates was told twice");
    if (view_.runs.size() <= d.attempt.run.raw()) {
      problem_(where, "the plan has no such run");
    } else if (d.ask != view_.task_of(d.attempt.run).ask ||
               !dominates(watch.dominance, d.cost, d.ask, d.milestones)) {
      problem_(where, "that it dominates was told, but its figures do not say so");
    }
  }
}

namespace {
using Attempts = std::map<AskId, const RestoredAttempt*>;

Attempts by_ask(const RestoredState& state) {
  Attempts out;
  for (const RestoredAttempt& a : state.attempts) out.emplace(AskId{a.attempt, a.seq}, &a);
  return out;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t n = 0;
  return read_number(text, &n) ? std::optional(n) : std::nullopt;
}

std::string field_of(const RedisLedger::Fields& fields, std::string_view name) {
  for (const auto& [key, text] : fields)
    if (key == name) return text;
  return "";
}

// One stored reservation, read from "state ask scopes[ more]".
struct Row {
  char state = '?';
  MicroUsd ask, charged;
  std::string scopes;
};
std::optional<Row> row_of(const std::string& text) {
  const std::vector<std::string_view> words = split(text, ' ');
  if (words.size() < 3 || words[0].size() != 1) return std::nullopt;
  const std::optional<std::int64_t> ask = number_of(words[1]);
  if (!ask) return std::nullopt;
  Row row{words[0][0], MicroUsd::from_micros(*ask), MicroUsd::zero(), std::string(words[2])};
  if (row.state == 's') {
    const auto actual = words.size() == 4 ? number_of(words[3]) : std::nullopt;
    if (!actual) return std::nullopt;
    row.charged = std::min(MicroUsd::from_micros(*actual), row.ask);
  }
  const bool known = row.state == 'p' || row.state == 'd' || row.state == 's' || row.state == 'v';
  return known ? std::optional<Row>(row) : std::nullopt;
}

class Comparison {
 public:
  Comparison(const PlanView& view, const RestoredState& before, const RedisLedger::Stored& redis,
             const RestoredState& after, const ProblemHandler& problem)
      : view_(view),
        redis_(redis),
        before_(by_ask(before)),
        after_(by_ask(after)),
        reviews_(after.reviews),
        problem_(problem),
        spent_(view.scopes.size()),
        reserved_(view.scopes.size()) {}

  bool run() {
    std::map<AskId, Row> rows;
    for (const auto& [id, text] : redis_.rows) read_row(id, text, rows);
    if (!count(rows)) return false;
    for (const auto& [where, what] : found_in_envelopes()) problem_(where, what);
    for (const auto& [where, what] : found_in_rows_) problem_(where, what);
    return true;
  }
  // After run(), of the envelope that is shared.
  std::optional<OwnPart> part() const {
    if (!view_.shared) return std::nullopt;
    return OwnPart{spent_[view_.shared->raw()], reserved_[view_.shared->raw()]};
  }

 private:
  void wrong_row(const std::string& id, const std::string& what) {
    found_in_rows_.emplace_back("redis: reservation " + printable(id, 60), what);
  }
  static const RestoredAttempt* find(const Attempts& attempts, const AskId& id) {
    const auto it = attempts.find(id);
    return it == attempts.end() ? nullptr : it->second;
  }

  void read_row(const std::string& id, const std::string& text, std::map<AskId, Row>& rows) {
    const std::optional<Row> row = row_of(text);
    const std::vector<std::string_view> parts = split(id, '.');
    std::vector<std::uint32_t> n;
    for (const std::string_view p : parts)
      if (const auto value = whole_number<std::uint32_t>(p)) n.push_back(*value);
    if (!row || parts.size() != 3 || n.size() != 3)
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", which no ledger writes");
    const AskId ask{{RunId(n[0]), AttemptNo(n[1])}, n[2]};
    rows.emplace(ask, *row);
    if (row->state == 'd') return;  // moved no money; a later ask of the same attempt may have
    const RestoredAttempt* was = find(before_, ask);
    const RestoredAttempt* is = find(after_, ask);
    if (is == nullptr || view_.runs.size() <= n[0])
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", the journal has no such ask");
    if (row->ask != is->ask || row->scopes != scope_list(view_.path(ask.attempt.run)))
      return wrong_row(id, "holds \"" + printable(text, 100) + "\", the journal says an ask of " +
                               std::to_string(is->ask.micros()) + " from " +
                               scope_list(view_.path(ask.attempt.run)));
    if (row->state == 's' && is->settled && row->charged != is->charged)
      wrong_row(id, "was charged " + usd(row->charged) + ", the journal says " + usd(is->charged));
    if (row->state == 'p' && was != nullptr && was->settled)
      wrong_row(id, "is pending, the journal has settled it");
  }

  // What the envelopes must hold, from the rows and the journal.
  bool count(const std::map<AskId, Row>& rows) {
    for (const auto& [id, row] : rows)
      if (row.state == 'p') add(reserved_, id.attempt.run, row.ask);
    for (const RunReviewed& r : reviews_) add(spent_, r.run, r.charged);
    for (const auto& [id, is] : after_) {
      if (view_.runs.size() <= id.attempt.run.raw()) continue;  // told by the journal's own audit
      const RestoredAttempt* was = find(before_, id);
      const auto row = rows.find(id);
      if (was != nullptr && was->settled) {
        add(spent_, id.attempt.run, was->charged);
      } else if (row != rows.end()) {
        if (row->second.state == 's') add(spent_, id.attempt.run, row->second.charged);
      } else if (is->settled) {
        if (was == nullptr || !is_reserved(*was)) return false;  // before Redis was read, or after?
        add(spent_, id.attempt.run, is->charged);
      } else if (was != nullptr && is_reserved(*was) && is_reserved(*is)) {
        wrong_row(to_string(id), "is not there, the journal says it holds " + usd(is->ask));
      }
    }
    return true;
  }
  void add(std::vector<MicroUsd>& sums, RunId run, MicroUsd amount) const {
    if (view_.runs.size() <= run.raw()) return;
    for (const ScopeId s : view_.path(run)) sums[s.raw()] = sums[s.raw()] + amount;
  }

  std::vector<std::pair<std::string, std::string>> found_in_envelopes() const {
    std::vector<std::pair<std::string, std::string>> out;
    std::map<std::string, std::string> held(redis_.scopes.begin(), redis_.scopes.end());
    for (std::size_t i = 0; i < view_.scopes.size(); ++i) {
      const std::string want = std::to_string(view_.scopes[i].cap.micros()) + " " +
                               std::to_string(spent_[i].micros()) + " " +
                               std::to_string(reserved_[i].micros());
      const auto text = held.extract(std::to_string(i));
      if (text && text.mapped() == want) continue;
      out.emplace_back("redis: envelope " + view_.scopes[i].name,
                       "holds " + (text ? printable(text.mapped(), 100) : std::string("nothing")) +
                           ", the journal says " + want + " (cap spent reserved, micro-dollars)");
    }
    for (const auto& [index, text] : held)
      out.emplace_back("redis: envelope " + printable(index, 40),
                       "holds " + printable(text, 100) + ", the plan has no such envelope");
    return out;
  }

  const PlanView& view_;
  const RedisLedger::Stored& redis_;
  const Attempts before_, after_;
  const std::vector<RunReviewed>& reviews_;
  const ProblemHandler& problem_;
  std::vector<MicroUsd> spent_, reserved_;
  std::vector<std::pair<std::string, std::string>> found_in_rows_;
};

// Redis hears of a raise that a coordinator was asked for; of others only from the next one.
bool any_act(const RestoredState& state, const std::function<bool(const OperatorAct&)>& is) {
  return std::ranges::any_of(state.standing, [&](const Note& note) {
    if (note.kind != OperatorFact::kNote) return false;
    const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
    return fact.ok() && is(fact->act);
  });
}
bool was_asked_live(const RestoredState& state, const BudgetRaised& raise) {
  return any_act(state, [&](const OperatorAct& act) {
    return act.kind == OperatorActKind::kRaise && act.at == raise.at && raise.to == act.to;
  });
}
bool was_asked_live(const RestoredState& state, const RunReviewed& review) {
  return any_act(state, [&](const OperatorAct& act) {
    return act.kind == OperatorActKind::kReview && act.at == review.at &&
           act.runs == std::vector<RunId>{review.run};
  });
}

// A raise or a review is durable first, then told.
bool may_be_on_its_way(const RestoredState& state, WallTime begun) {
  const auto live = [&](const auto& r) { return begun < r.at && was_asked_live(state, r); };
  return std::ranges::any_of(state.raises, live) || std::ranges::any_of(state.reviews, live);
}

// What was raised or reviewed after the last coordinator ended is not in its Redis.
void go_back_to(WallTime begun, PlanView& view, RestoredState& state) {
  for (auto r = state.raises.rbegin(); r != state.raises.rend(); ++r)
    if (begun < r->at && !was_asked_live(state, *r) && r->scope.raw() < view.scopes.size())
      view.scopes[r->scope.raw()].cap = r->from;
  std::erase_if(state.reviews,
                [&](const RunReviewed& r) { return begun < r.at && !was_asked_live(state, r); });
}

// Compares, or says in one line why not.
Result<std::string> compare_with(const FrozenCampaign& frozen, RedisLedger& ledger,
                                 JournalReader& journal, const ProblemHandler& problem) {
  const PlanView registered = make_plan_view(frozen.campaign, frozen.plan);
  constexpr int kReadings = 20;
  constexpr std::chrono::milliseconds kUntilTold(100);
  for (int i = 0; i < kReadings; ++i) {
    PROCTOR_TRY(const RestoredState before, journal.load());
    PROCTOR_TRY(const RedisLedger::Stored redis, ledger.read_all());
    PROCTOR_TRY(RestoredState after, journal.load());
    // With `line`, what there is to say of a shared envelope.
    const auto with_part = [&](std::string line, const std::optional<OwnPart>& exact,
                               const ProblemHandler& tell) {
      const auto& shared = frozen.campaign.envelopes.shared;
      if (!shared) return line;
      return line + "; " +
             compare_part(frozen.id, shared->scope(), redis.shared, exact, after, tell);
    };
    if (redis.head.empty() && redis.scopes.empty() && redis.rows.empty())
      return with_part("holds nothing of this campaign: not compared", std::nullopt, problem);
    const std::string epoch = field_of(redis.head, "epoch");
    const std::optional<std::int64_t> held = number_of(epoch);
    const auto known = static_cast<std::int64_t>(after.last_epoch.raw());
    if (!held || known < *held) {
      problem("redis: head", "holds the epoch \"" + printable(epoch, 40) +
                                 "\", the journal's last is " + std::to_string(known));
      return std::string("not compared");
    }
    if (*held < known || before.last_epoch != after.last_epoch ||
        field_of(redis.head, "state") != "open") {
      if (field_of(redis.head, "state") == "building" || before.last_epoch != after.last_epoch)
        continue;
      return with_part("holds epoch " + epoch + " of an earlier life, the journal's is " +
                           std::to_string(known) + ": not compared",
                       std::nullopt, problem);
    }
    PlanView then = registered;
    PROCTOR_CHECK_OK(apply_raises(then, after.raises));
    PROCTOR_TRY(const std::vector<EpochBegun> epochs, journal.epochs());
    const WallTime begun = epochs.empty() ? WallTime(0) : epochs.back().at;
    const bool moves = may_be_on_its_way(after, begun);
    go_back_to(begun, then, after);
    std::vector<std::pair<std::string, std::string>> found;
    const auto note = [&](const std::string& at, const std::string& it) {
      found.emplace_back(at, it);
    };
    std::optional<OwnPart> part;
    const bool clear = compare_redis(then, before, redis, after, note, part);
    std::string line = std::to_string(redis.scopes.size()) + " envelopes and " +
                       std::to_string(redis.rows.size()) + " reservations compared";
    if (clear) line = with_part(std::move(line), part, note);
    if (clear && !found.empty() && moves && i + 1 < kReadings) {
      std::this_thread::sleep_for(kUntilTold);
      continue;
    }
    for (const auto& [where, what] : found) problem(where, what);
    if (clear) return line;
  }
  return std::string("the campaign moves too fast to be compared now: verify again");
}
}  // namespace

bool compare_redis(const PlanView& view, const RestoredState& before,
                   const RedisLedger::Stored& redis, const RestoredState& after,
                   const ProblemHandler& problem, std::optional<OwnPart>& part) {
  Comparison comparison(view, before, redis, after, problem);
  if (!comparison.run()) return false;
  part = comparison.part();
  return true;
}

std::string verify_redis(const FrozenCampaign& frozen, JournalReader& journal,
                         const ProblemHandler& problem) {
  if (frozen.campaign.ledger == Campaign::LedgerKind::kJournal)
    return "none (budget.ledger: journal)";
  const std::optional<std::string> address = redis_address(frozen);
  if (!address) return "none runs: not compared";
  const auto compared = [&]() -> Result<std::string> {
    PROCTOR_TRY(RedisLedger ledger, configured_ledger(frozen.campaign, frozen.id, *address));
    return compare_with(frozen, ledger, journal, problem);
  }();
  if (compared.ok()) return *compared;
  if (compared.error().code == Errc::kUnavailable)
    return "does not answer: not compared (" + compared.error().detail + ")";
  problem("redis", compared.error().detail);
  return "not compared";
}
}  // namespace proctor::cli
