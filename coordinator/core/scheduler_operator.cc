// The scheduler's part that deals with the operator's acts (records.h).  What comes of an act is
// decided here, as a fact; scheduler_facts.cc changes the state by it, and it is noted in the same
// step.  Workers and the ledger hear of it, and the operator is answered, once that is durable.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/pilot/stage_check.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
void Scheduler::handle(const OperatorAsked& e) {
  OperatorFact fact{e.act};
  // Each once and in order, as the note has them (ranges_of): who asks may name them as he likes.
  std::vector<RunId>& runs = fact.act.runs;
  std::sort(runs.begin(), runs.end());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  OperatorAnswer answer =
      end_told_ ? OperatorAnswer{Verdict::kRefused, "the campaign has ended"} : decide(fact);
  const bool is_raise = fact.act.kind == OperatorActKind::kRaise;
  // A review has a row of its own as well: the note says that it was booked while the campaign ran.
  if (answer.verdict == Verdict::kDone)
    write(note_of(fact), After{Step::kObey, {}, is_raise ? caps_ : 0, 0});
  answers_.push_back({e.ticket, std::move(answer)});
}

OperatorAnswer Scheduler::decide(OperatorFact& fact) {
  for (const RunId run : fact.act.runs)
    if (plan_.runs.size() <= run.raw())
      return {Verdict::kRefused, "the plan has no run " + std::to_string(run.raw())};
  switch (fact.act.kind) {
    case OperatorActKind::kPause:
      return pause(fact);
    case OperatorActKind::kUnpause:
      if (!paused_) return {Verdict::kUnchanged, "it is not paused"};
      apply(fact);
      return {Verdict::kDone, "going on"};
    case OperatorActKind::kDrain:
      return drain(fact);
    case OperatorActKind::kCancel:
      return cancel(fact);
    case OperatorActKind::kRequeue:
      return requeue(fact);
    case OperatorActKind::kApprove:
      return approve(fact);
    case OperatorActKind::kQuarantine:
      return put_in_quarantine(fact);
    case OperatorActKind::kRelease:
      return release(fact);
    case OperatorActKind::kKick:
      return kick(fact);
    case OperatorActKind::kRaise:
      return raise(fact.act);
    case OperatorActKind::kReview:
      return review(fact.act);
    case OperatorActKind::kApproveStage:
      return approve_stage(fact);
    case OperatorActKind::kWaive:
      return waive(fact);
    case OperatorActKind::kCloseStage:
      return close_stage(fact);
  }
  return {Verdict::kRefused, "no such act"};
}

// Durable: who is concerned hears of it.  Whoever does not is told by the answer to its next Sync.
void Scheduler::obey(std::uint32_t raise) {
  cancel_running(false);
  if (raise != 0) {  // later ones are not durable yet
    for (; !unheard_.empty() && unheard_.front().nth <= raise; unheard_.pop_front())
      heard_caps_[unheard_.front().scope.raw()].cap = unheard_.front().cap;
    raised_ = heard_caps_;
  }
  if (suspension_told_ == suspended_) return;
  suspension_told_ = suspended_;
  for (WorkerIndex w = 0; w < roster_.size(); ++w)
    if (roster_.at(w).present) out_.push_back(ReplySync{roster_.at(w).id, desired(w)});
}

// Acts on the campaign.

OperatorAnswer Scheduler::pause(const OperatorFact& fact) {
  if (paused_ && (suspended_ || !fact.act.now))
    return {Verdict::kUnchanged, suspended_ ? "it is paused already, and what runs is suspended"
                                            : "it is paused already"};
  apply(fact);
  return {Verdict::kDone,
          std::string("paused: nothing is started") +
              (suspended_ ? ", and what runs is suspended" : ", what runs goes on to its end")};
}

OperatorAnswer Scheduler::drain(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  if (!act.worker.raw().empty()) {
    const auto w = roster_.find(act.worker);
    if (!w) return {Verdict::kRefused, "no worker " + act.worker.raw() + " has been here"};
    if (roster_.at(*w).drained)
      return {Verdict::kUnchanged, "worker " + act.worker.raw() + " is drained already"};
    apply(fact);
    return {Verdict::kDone, "worker " + act.worker.raw() + " gets nothing new; " +
                                std::to_string(roster_.at(*w).held) + " attempts there go on"};
  }
  if (mode_ != Mode::kRun) return {Verdict::kUnchanged, "the campaign is stopping already"};
  mode_ = Mode::kDrain;
  return {Verdict::kDone, "what runs is finished, nothing is started, then the coordinator ends"};
}

// Acts on runs.

OperatorAnswer Scheduler::cancel(OperatorFact& fact) {
  std::size_t stopped = 0;
  std::vector<RunId> changed;
  for (const RunId run : fact.act.runs) {
    const RunPhase phase = phases_[run.raw()];
    if (phase == RunPhase::kEnded || phase == RunPhase::kRemoved || phase == RunPhase::kCancelled)
      continue;
    if (parked_rows_[run.raw()]) record(RunUnparked{run});
    if (phase == RunPhase::kActive) ++stopped;
    changed.push_back(run);
  }
  const std::size_t asked = fact.act.runs.size();
  fact.act.runs = std::move(changed);
  if (fact.act.runs.empty())
    return {Verdict::kUnchanged, "nothing to cancel: " + counted(asked, "run") +
                                     (asked == 1 ? " has" : " have") + " ended or " +
                                     (asked == 1 ? "is" : "are") + " cancelled already"};
  apply(fact);
  return {Verdict::kDone, "cancelled " + counted(fact.act.runs.size(), "run") + ", " +
                              std::to_string(stopped) + " of them under way"};
}

OperatorAnswer Scheduler::requeue(OperatorFact& fact) {
  const std::size_t closed =
      std::erase_if(fact.act.runs, [&](RunId run) { return gates_.is_closed(plan_, run); });
  if (0 < closed && fact.act.runs.empty()) return {Verdict::kUnchanged, kStageClosed};
  if (0 < closed) {
    OperatorAnswer others = requeue(fact);
    others.text.insert(
        0, counted(closed, "run") + " left out, for " + kStageClosed + "; the others: ");
    return others;
  }
  if (fact.act.invalid) return reopen(fact);
  std::vector<RunId> changed;
  const std::set<RunId> was_shut = shut_;
  std::size_t invalid = 0, for_money = 0;
  for (const RunId run : fact.act.runs) {
    const RunPhase phase = phases_[run.raw()];
    invalid += invalid_.contains(run) ? 1 : 0;
    for_money += phase == RunPhase::kQueued && parked_rows_[run.raw()] ? 1 : 0;
    if (phase != RunPhase::kCancelled && phase != RunPhase::kParked && phase != RunPhase::kBackoff)
      continue;
    // One that is parked because its task or method is has no row; with it go all the others there.
    if (parked_rows_[run.raw()]) record(RunUnparked{run});
    // Something of it counts that an operator's word forgives.
    const bool failed =
        failures_[run.raw()] != 0 || overloads_.contains(run) || poison_.is_over(run);
    if ((phase == RunPhase::kCancelled && failed) || waits_for_start(run))
      fact.forgiven.push_back({run, last_judged(run)});
    changed.push_back(run);
  }
  fact.act.runs = std::move(changed);
  if (!fact.act.runs.empty()) apply(fact);
  const auto beside = static_cast<std::uint64_t>(std::ranges::count_if(was_shut, [&](RunId run) {
    return !shut_.contains(run) && std::ranges::find(fact.act.runs, run) == fact.act.runs.end();
  }));
  if (fact.act.runs.empty()) {
    std::string why = "none of them is cancelled, parked or in back-off";
    // Parked by an earlier life, and in line for this one as far as the money reaches.
    if (0 < for_money)
      why = counted(for_money, "run") + (for_money == 1 ? " waits" : " wait") +
            " for money that an envelope has too little of: a requeue brings none, a raise does";
    if (0 < invalid)
      why += "; " + counted(invalid, "run") + " ended invalid: --invalid runs those again";
    return {Verdict::kUnchanged, std::move(why)};
  }
  return {Verdict::kDone,
          counted(fact.act.runs.size(), "run") + " in line again" +
              (beside == 0 ? "" : ", and " + counted(beside, "run") + " parked with them")};
}

Scheduler::Reopens Scheduler::reopens(RunId run) const {
  const auto it = invalid_.find(run);
  if (it == invalid_.end() || phases_[run.raw()] != RunPhase::kEnded ||
      removed_later_.contains(run))
    return Reopens::kNotInvalid;
  const Invalid how = it->second.how;
  if (how == Invalid::kOfTheAgent) return Reopens::kOfTheAgent;
  const std::uint32_t failed =
      failures_of(run, RetryClass::kInfrastructure) + (how == Invalid::kUncounted ? 1 : 0);
  return how == Invalid::kOverloaded || settings_.infrastructure_retries < failed ? Reopens::kUsedUp
                                                                                  : Reopens::kYes;
}

// Only what was not the agent's doing.  A result that is set aside is one failed attempt: nobody
// gets more tries than were registered, whoever asks, and however often.
OperatorAnswer Scheduler::reopen(OperatorFact& fact) {
  std::vector<RunId> changed;
  std::size_t used_up = 0, of_the_agent = 0;
  for (const RunId run : fact.act.runs) {
    const Reopens may = reopens(run);
    of_the_agent += may == Reopens::kOfTheAgent ? 1 : 0;
    used_up += may == Reopens::kUsedUp ? 1 : 0;
    if (may != Reopens::kYes) continue;
    fact.set_aside.push_back({run, invalid_.at(run).by});
    write(RunReopened{fact.set_aside.back()});
    changed.push_back(run);
  }
  fact.act.runs = std::move(changed);
  apply(fact);
  std::string left;
  if (0 < used_up)
    left = counted(used_up, "run") + (used_up == 1 ? " has" : " have") +
           " no attempt left of those that were registered";
  if (0 < of_the_agent)
    left += (left.empty() ? "" : "; ") + counted(of_the_agent, "run") +
            " ended so by what the agent did, or could not judge what it left: it is paid for, "
            "which is no reason for another try";
  if (fact.act.runs.empty())
    return {Verdict::kUnchanged, left.empty()
                                     ? "none of them ended invalid in a task that still counts"
                                     : left + "; proctor copy begins a fresh campaign"};
  return {Verdict::kDone, counted(fact.act.runs.size(), "run") +
                              " in line again, the first result kept" +
                              (left.empty() ? "" : "; " + left)};
}

std::vector<JournalWrite> Scheduler::reopen_after_the_end(const OperatorAct& act,
                                                          OperatorAnswer& answer) {
  OperatorFact fact{act};
  answer = requeue(fact);
  if (answer.verdict == Verdict::kDone) write(note_of(fact));
  return std::exchange(writes_, {});
}

OperatorAnswer Scheduler::approve(OperatorFact& fact) {
  std::vector<RunId> changed;
  for (const RunId run : fact.act.runs) {
    if (phases_[run.raw()] != RunPhase::kHeld) continue;
    fact.forgiven.push_back({run, last_judged(run)});
    changed.push_back(run);
  }
  fact.act.runs = std::move(changed);
  if (fact.act.runs.empty()) return {Verdict::kUnchanged, "none of them waits for a decision"};
  apply(fact);
  return {Verdict::kDone, counted(fact.act.runs.size(), "run") + " approved: in line again"};
}

// The last attempt of which it is known how it ended.  One that is out, or was denied and asks
// again under its number, may fail after it was forgiven: that counts.
AttemptNo Scheduler::last_judged(RunId run) const {
  const std::uint32_t made = attempts_made_[run.raw()];
  const auto it = live_.find(run);
  const bool out = it != live_.end() && it->second.state < State::kFinishing;
  return AttemptNo(out || denied_.contains(run) ? made - 1 : made);
}

// Acts on workers.

OperatorAnswer Scheduler::put_in_quarantine(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  const auto w = roster_.find(act.worker);
  if (!w) return {Verdict::kRefused, "no worker " + act.worker.raw() + " has been here"};
  if (roster_.at(*w).quarantine == WorkerState::Quarantine::kOperator)
    return {Verdict::kUnchanged, "worker " + act.worker.raw() + " is in quarantine already"};
  apply(fact);
  return {Verdict::kDone, "worker " + act.worker.raw() + " gets nothing new until it is released"};
}

OperatorAnswer Scheduler::release(const OperatorFact& fact) {
  const OperatorAct& act = fact.act;
  const auto w = roster_.find(act.worker);
  if (!w) return {Verdict::kRefused, "no worker " + act.worker.raw() + " has been here"};
  const WorkerState& s = roster_.at(*w);
  if (s.quarantine == WorkerState::Quarantine::kNone && !s.drained)
    return {Verdict::kUnchanged,
            "worker " + act.worker.raw() + " is neither drained nor in quarantine"};
  apply(fact);
  wake(*w);
  return {Verdict::kDone, "worker " + act.worker.raw() + " gets work again"};
}

OperatorAnswer Scheduler::kick(OperatorFact& fact) {
  const std::string& name = fact.act.worker.raw();
  const auto w = roster_.find(fact.act.worker);
  if (!w) return {Verdict::kRefused, "no worker " + name + " has been here"};
  const WorkerState& s = roster_.at(*w);
  if (!s.present || s.kicked == s.boot)
    return {Verdict::kUnchanged, "worker " + name + " is not here"};
  fact.boot = s.boot;
  apply(fact);
  const std::uint32_t held = s.held;
  worker_gone(*w, Loss::kKicked, "worker " + name + " was kicked by " + fact.act.by);
  return {Verdict::kDone, "worker " + name + " is told to leave; " + std::to_string(held) +
                              " attempts there are lost and made again elsewhere"};
}

// Acts on money.

OperatorAnswer Scheduler::raise(const OperatorAct& act) {
  if (plan_.scopes.size() <= act.scope.raw()) return {Verdict::kRefused, "no such envelope"};
  const ScopeSpec& scope = plan_.scopes[act.scope.raw()];
  if (act.reason.empty()) return {Verdict::kRefused, "a deviation needs a reason"};
  const std::string unit = " " + std::string(money_word(settings_.cost_model));
  if (act.to == scope.cap)
    return {Verdict::kUnchanged,
            "the cap of " + scope.name + " is " + format_usd(act.to) + unit + " already"};
  if (act.to < scope.cap || kLedgerMax < act.to)
    return {Verdict::kRefused, "the cap of " + scope.name + " is " + format_usd(scope.cap) + unit +
                                   ": it can only be raised, to " + format_usd(kLedgerMax) +
                                   " at most"};
  if (const ScopeSpec& global = plan_.scopes[0];
      act.scope != ScopeId(0) && act.scope != plan_.shared && global.cap < act.to)
    return {Verdict::kRefused, "the envelope around " + scope.name + ", global, holds only " +
                                   format_usd(global.cap) + unit + "; raise that first"};
  std::vector<ScopeId> raised;
  if (heard_caps_.empty()) heard_caps_ = plan_.scopes;
  ++caps_;
  for (std::uint32_t s = 0; s < plan_.scopes.size(); ++s) {
    const bool follows =
        act.scope == ScopeId(0) && plan_.follows_global(ScopeId(s)) && plan_.scopes[s].cap < act.to;
    if (ScopeId(s) != act.scope && !follows) continue;
    raise_one(ScopeId(s), act, follows ? "follows global: " + act.reason : act.reason);
    raised.emplace_back(s);
  }
  unpark(raised, true);
  return {Verdict::kDone, scope.name + " may now hold " + format_usd(act.to) + unit};
}

// Nothing is asked under the new cap before it is durable: an ask follows the commit of its intent,
// which comes after this one.  So does what the ledger hears (see finish_step).
void Scheduler::raise_one(ScopeId id, const OperatorAct& act, const std::string& reason) {
  const ScopeSpec& scope = plan_.scopes[id.raw()];
  write(ScopeDefined{id, scope.name, act.to, scope.cap});
  record(BudgetRaised{id, scope.name, scope.cap, act.to, reason, act.by, act.at});
  unheard_.push_back({caps_, id, act.to});
  known_short_.erase(id);
  money_back(id);
}

// What our books call reserved holds for every ask that is on its way, so the ledger can grant none
// of them beyond what this leaves; and no later one is asked before the review is durable.
OperatorAnswer Scheduler::review(const OperatorAct& act) {
  if (act.runs.size() != 1) return {Verdict::kRefused, "a review is of one run"};
  const RunId run = act.runs.front();
  if (phases_[run.raw()] != RunPhase::kEnded)
    return {Verdict::kRefused,
            "the run has not ended: there is nothing to review yet (proctor explain says where it "
            "is)"};
  if (plan_.shared)
    return {Verdict::kRefused, "this campaign shares " + plan_.scopes[plan_.shared->raw()].name +
                                   " with others: only runs are charged to it, so a review cannot "
                                   "be booked here"};
  const Result<std::uint64_t> price = human_minute_price(settings_.cost_model);
  if (!price.ok()) return {Verdict::kRefused, price.error().detail + ", so a review has no price"};
  if (act.milli_minutes == 0 || kReviewMilliMinutesMax < act.milli_minutes)
    return {Verdict::kRefused, "an impossible number of minutes"};
  const MicroUsd cost = review_cost(*price, act.milli_minutes);
  const std::string unit = " " + std::string(money_word(settings_.cost_model));
  const std::string what = format_minutes(act.milli_minutes) + " minutes";
  std::string wanting, charged_to;
  const std::vector<ScopeId> path = plan_.path(run);
  for (const ScopeId s : path) {
    const ScopeBalance& b = balances_[s.raw()];
    const std::string& name = plan_.scopes[s.raw()].name;
    charged_to += (charged_to.empty() ? "" : ", ") + name;
    if (b.free() < cost)
      wanting += fmt::format("\n  {} is short by {}{}: {} of {} are spent and {} reserved", name,
                             format_usd(cost - b.free()), unit, format_usd(b.spent),
                             format_usd(b.cap), format_usd(b.reserved));
  }
  if (!wanting.empty())
    return {Verdict::kRefused,
            what + " of review cost " + format_usd(cost) + unit +
                ", and they do not fit:" + wanting +
                "\nNothing was charged or written down; a raise comes first (proctor "
                "budget raise)",
            true};
  ++caps_;  // what was denied before it was short by another amount
  reviewing_.push_back({run, cost});
  record(RunReviewed{reviews_ + 1, run, act.milli_minutes, cost, act.by, act.reason, act.at},
         After{Step::kReviewed, {}, 0, 0});
  for (const ScopeId s : path) {
    known_short_.erase(s);
    tell_spent(s);
  }
  unpark(path, false);  // short by that much more: asked again, the ledger says it
  return {Verdict::kDone, what + " by " + act.by + ", " + format_usd(cost) + unit + " charged to " +
                              charged_to + " (review " + std::to_string(reviews_) +
                              " of the campaign)"};
}

// As after a resume: what was parked at one of them is asked once more, in the plan's order.  What
// a resume has put in line already is short no more.  `fits`: only what the new caps hold.
void Scheduler::unpark(const std::vector<ScopeId>& scopes, bool fits) {
  for (std::uint32_t r = 0; 0 < rows_parked_ && r < phases_.size(); ++r) {
    if (!parked_rows_[r] || (!fits && phases_[r] != RunPhase::kParked)) continue;
    const std::vector<ScopeId> path = plan_.path(RunId(r));
    const MicroUsd ask = plan_.task_of(RunId(r)).ask;
    const bool there = std::ranges::any_of(
        path, [&](ScopeId s) { return std::ranges::find(scopes, s) != scopes.end(); });
    if (there && (!fits || std::ranges::all_of(path, [&](ScopeId s) {
          return ask <= balances_[s.raw()].cap - balances_[s.raw()].spent;
        })))
      unpark(RunId(r));
  }
}

// The scheduler's part that deals with gates between stages: when the stages before one are over,
// how they are judged, and when it opens.  Nothing of a stage is granted before that: its runs wait
// in the queue behind the gate (run_queue.h).

namespace {
// The answers that do not hold.
std::string told_failing(const StageCheck& check) {
  std::string out;
  for (const StageAnswer& a : check.predicates) {
    if (a.holds()) continue;
    if (!out.empty()) out += "; ";
    out += a.label() + ": " + std::string(to_string(a.value)) + ", " + a.text;
  }
  return out;
}
}  // namespace

// Nothing before the next gate is queued, tried again, waits for a person or is still being paid
// for.  A run that an earlier life parked for money is in line for this one to ask once more, and
// over all the same: its parking stands.
bool Scheduler::is_over_before_gate() const {
  if (!live_.empty() || !backoff_.empty() || held_ != 0) return false;
  const std::size_t open = queue_.size() - queue_.held_back();
  if (open == 0) return true;
  if (rows_parked_ < open) return false;
  for (std::uint32_t r = 0; r < gates_.shut_from(); ++r)
    if (phases_[r] == RunPhase::kQueued && !parked_rows_[r]) return false;
  return true;
}

StageFacts Scheduler::facts_of(std::uint16_t stage) const {
  StageFacts out;
  out.rules = plan_.stages[stage].rules;
  out.registered = plan_.stages[stage].registered;
  const ScopeBalance& b = balances_[plan_.stage_scopes[stage].raw()];
  out.spent = b.spent;
  out.cap = b.cap;
  for (const std::string& method : plan_.method_names) out.methods.push_back({method});
  const std::string& name = plan_.stages[stage].name;
  if (gates_.waived.contains(name)) out.waived = gates_.waived.at(name);
  out.closed = gates_.closed.contains("stage:" + name);
  constexpr std::uint8_t kNone = 0, kWanted = 1, kEnded = 2, kDecided = 3;
  std::vector<std::uint8_t> cells(plan_.tasks.size() * out.methods.size(), kNone);
  std::vector<bool> has_runs(out.methods.size(), false);
  for (std::uint32_t r = 0; r < phases_.size(); ++r) {
    if (plan_.runs[r].stage != stage) continue;
    const RunId run(r);
    const std::size_t method = plan_.runs[r].method;
    has_runs[method] = true;
    out.attempts += attempts_made_[r];
    out.infrastructure += failures_[r] + failures_of(run, RetryClass::kOverload);
    const RunPhase phase = phases_[r];
    const bool waits = phase == RunPhase::kParked && waits_for_start(run);
    const bool invalid = waits || invalid_.contains(run);
    // That its program did not start was its failure, and no host's.
    if (const auto it = unavailable_.find(run); phase == RunPhase::kEnded && !invalid &&
                                                it != unavailable_.end() &&
                                                it->second.raw() == attempts_made_[r])
      --out.infrastructure;
    if (phase == RunPhase::kRemoved || removed_later_.contains(run)) {
      ++out.removed;
      continue;
    }
    std::uint8_t& cell = cells[plan_.runs[r].task * out.methods.size() + method];
    cell = std::max(cell, kWanted);
    if (phase == RunPhase::kEnded || waits) {
      ++out.methods[method].ended;
      if (invalid) ++out.methods[method].invalid;
      cell = std::max(cell, invalid ? kEnded : kDecided);
    } else if (phase == RunPhase::kCancelled && !live_.contains(run)) {
      ++out.cancelled;
    } else if (phase == RunPhase::kParked || (phase == RunPhase::kQueued && parked_rows_[r])) {
      ++out.parked;
    } else {
      ++out.open;
    }
  }
  out.no_task = true;
  constexpr std::size_t kShown = 3;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::size_t row = c - c % out.methods.size();
    if (out.closed && std::count(&cells[row], &cells[row] + out.methods.size(), kWanted) != 0)
      continue;
    if (cells[c] != kNone) out.no_task = false;
    if (cells[c] == kNone || cells[c] == kDecided || ++out.without_verdict_total > kShown) continue;
    const std::string& task = plan_.scopes[plan_.tasks[c / out.methods.size()].scope.raw()].name;
    out.without_verdict.push_back(task.substr(task.find(':') + 1) + " under " +
                                  out.methods[c % out.methods.size()].name);
  }
  for (std::size_t m = has_runs.size(); 0 < m--;)
    if (!has_runs[m]) out.methods.erase(out.methods.begin() + static_cast<std::ptrdiff_t>(m));
  return out;
}

StageCheck Scheduler::check_stage(std::uint16_t stage) const {
  const std::vector<StageCriterion>& entry = plan_.stages[stage].rules.entry;
  StagesBefore before;
  const std::string previous = stage == 0 ? "" : plan_.stages[stage - 1U].name;
  for (std::uint16_t s = 0; s < stage; ++s) {
    const std::string& name = plan_.stages[s].name;
    const bool named =
        std::ranges::any_of(entry, [&](const StageCriterion& c) { return c.stage == name; });
    if (named || name == previous) before.emplace(name, facts_of(s));
  }
  const std::string& name = plan_.stages[stage].name;
  return check_entry(
      settings_.campaign, name, entry, previous, before,
      gates_.waived.contains(name) ? gates_.waived.at(name) : std::set<std::string>());
}

// Judged anew whenever something was written since: who approved what was so before has approved
// nothing of what is so now.
void Scheduler::look_at_gates() {
  for (const GateBook::Gate* gate = gates_.next(); gate != nullptr; gate = gates_.next()) {
    if (!is_over_before_gate()) {
      gate_check_.reset();
      return;
    }
    if (gate_check_ && !std::exchange(gates_stale_, false)) return;
    gates_stale_ = false;
    gate_check_ = check_stage(gate->index);
    const Digest digest = gate_check_->digest();
    const bool holds = gate_check_->holds();
    if (gate->checked != digest)
      record(StageChecked{gate->stage, parse_json(gate_check_->canonical()).value(), digest, holds,
                          now_.wall});
    std::vector<std::string> by = GateBook::approvers(*gate, digest);
    if (!holds || by.size() < gate->people) {
      gates_stale_ = false;  // its own note changes nothing that it is judged by
      return;
    }
    out_.push_back(Alert{"stage " + gate->stage + " is open", true, {}});
    record(StageOpened{gate->stage, digest, std::move(by), now_.wall});
    gate_check_.reset();
  }
}

std::optional<GateView> Scheduler::gate() const {
  const GateBook::Gate* gate = gates_.next();
  if (gate == nullptr) return std::nullopt;
  GateView out;
  out.stage = gate->stage;
  out.people = gate->people;
  out.behind = queue_.held_back();
  if (!gate_check_) {
    out.waits_for = "runs";
    const std::size_t open = queue_.size() - queue_.held_back() + backoff_.size() + held_;
    const std::size_t left = std::max(open, live_.size());
    out.text = left == 0 ? std::string("is looked at next")
                         : "waits for the stages before it: " + std::to_string(left) +
                               (left == 1 ? " run is not over" : " runs are not over");
    return out;
  }
  const Digest digest = gate_check_->digest();
  out.digest = digest.hex();
  out.approved = GateBook::approvers(*gate, digest);
  if (!gate_check_->holds()) {
    out.waits_for = "criteria";
    out.text = "is not opened, for what it asks for does not hold: " + told_failing(*gate_check_) +
               " (to go on all the same: proctor pilot waive CAMPAIGN STAGE CRITERION --by NAME "
               "--reason WHY)";
    return out;
  }
  out.waits_for = "approval";
  const std::uint32_t left = gate->people - static_cast<std::uint32_t>(out.approved.size());
  out.text =
      "waits for " + std::to_string(left) + (out.approved.empty() ? "" : " more") +
      (left == 1 ? " person" : " people") + " to approve what the stages before it came to" +
      (out.approved.empty() ? ""
                            : " (" + fmt::format("{}", fmt::join(out.approved, ", ")) + " did)") +
      ": proctor pilot approve CAMPAIGN " + gate->stage + " --by NAME --reason WHY";
  return out;
}

Explanation Scheduler::why_behind_gate() const {
  const std::optional<GateView> g = gate();
  PROCTOR_ASSERT(g.has_value());
  Explanation out{"gate",
                  "its stage is not open yet: stage " + g->stage + " " + g->text,
                  {{"stage", g->stage}, {"waits_for", g->waits_for}}};
  if (!g->digest.empty()) out.facts.emplace_back("digest", g->digest);
  return out;
}

OperatorAnswer Scheduler::approve_stage(OperatorFact& fact) {
  OperatorAct& act = fact.act;
  look_at_gates();  // the last step may have changed what is approved
  const GateBook::Gate* gate = gates_.find(act.stage);
  if (gate == nullptr)
    return {Verdict::kRefused, "there is no gate before a stage " + act.stage + " to approve"};
  if (gate->open) return {Verdict::kUnchanged, "stage " + act.stage + " is open already"};
  if (gates_.next() != gate)
    return {Verdict::kRefused,
            "stage " + gates_.next()->stage + " before it is not open yet: that one comes first"};
  if (!gate_check_)
    return {Verdict::kRefused, "stage " + act.stage + " cannot be approved yet: it " +
                                   this->gate()->text +
                                   ", and what is approved is what they "
                                   "came to"};
  if (!gate_check_->holds())
    return {Verdict::kRefused, "stage " + act.stage + " " + this->gate()->text};
  const Digest digest = gate_check_->digest();
  if (!digest.hex().starts_with(act.digest))
    return {Verdict::kRefused, "what the stages before " + act.stage +
                                   " came to is another by now, with the digest " + digest.hex() +
                                   ": look at it (proctor pilot status), and approve that"};
  const auto mine = gate->approved.find(act.by);
  if (mine != gate->approved.end() && mine->second == digest)
    return {Verdict::kUnchanged,
            act.by + " has approved this already; stage " + act.stage + " " + this->gate()->text};
  act.digest = digest.hex();
  apply(fact);
  gates_stale_ = true;
  const std::size_t there = GateBook::approvers(*gate, digest).size();
  if (gate->people <= there) return {Verdict::kDone, "stage " + act.stage + " is open"};
  return {Verdict::kDone, "approved; stage " + act.stage + " " + this->gate()->text};
}

// Only of what the next gate is held shut by: of a stage that is not over nobody knows yet what it
// comes to.
OperatorAnswer Scheduler::waive(OperatorFact& fact) {
  OperatorAct& act = fact.act;
  look_at_gates();
  const GateBook::Gate* gate = gates_.next();
  if (gate == nullptr) return {Verdict::kRefused, "no stage waits to be opened by its criteria"};
  const auto at = std::ranges::find(plan_.stages, act.stage, &PlanView::Stage::name);
  const auto stage = static_cast<std::uint16_t>(at - plan_.stages.begin());
  if (gate->index < stage || !gate_check_)
    return {Verdict::kRefused, "not yet: stage " + gate->stage + " " + this->gate()->text};
  const bool entry = stage == gate->index;
  const std::string side = entry ? "entry " : "exit ";
  if (act.criterion.starts_with(side)) act.criterion.erase(0, side.size());
  std::vector<StageAnswer> all = entry ? gate_check_->predicates : check_exit(facts_of(stage));
  std::erase_if(all, [](const StageAnswer& a) { return a.name == "closed"; });  // by its exit
  const auto meant = std::ranges::find_if(all, [&](const StageAnswer& a) {
    return act.criterion == a.name || act.criterion == a.label();
  });
  if (meant == all.end())  // a criterion of its other side
    return {Verdict::kRefused, "stage " + act.stage + (entry ? " is not open yet" : " is open") +
                                   ": it has no " + side + act.criterion};
  act.criterion = side + meant->label();
  const std::string what = act.criterion + " of stage " + act.stage;
  if (meant->value == StageAnswer::Value::kWaived)
    return {Verdict::kRefused, what + " is waived already"};
  if (meant->holds()) return {Verdict::kRefused, what + " holds: " + meant->text};
  apply(fact);
  gates_stale_ = true;
  return {Verdict::kDone, what + " is waived, a deviation that every report lists"};
}

OperatorAnswer Scheduler::close_stage(OperatorFact& fact) {
  const std::string stage = "stage " + fact.act.stage;
  bool over = true;
  for (std::uint32_t r = 0; r < phases_.size(); ++r) {
    if (plan_.stage_scope_of(RunId(r)) != "stage:" + fact.act.stage) continue;
    if (gates_.is_closed(plan_, RunId(r))) return {Verdict::kRefused, stage + " is closed already"};
    if (gates_.shut_from() <= r) return {Verdict::kRefused, stage + " is not open yet"};
    over = over && (phases_[r] == RunPhase::kEnded || phases_[r] == RunPhase::kRemoved);
    fact.act.runs.emplace_back(r);
  }
  if (over) return {Verdict::kRefused, stage + " is over: all its runs have ended"};
  const OperatorAnswer cancelled = cancel(fact);
  fact.act.selected = stage + " was closed";
  if (fact.act.runs.empty()) apply(fact);
  gates_stale_ = true;
  return {Verdict::kDone, stage + " is closed, its exit is of what was run; " + cancelled.text};
}
}  // namespace proctor
