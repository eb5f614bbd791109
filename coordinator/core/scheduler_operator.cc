// The scheduler's half that deals with the operator's acts (operator.h).  What comes of an act is
// decided here, as a fact; scheduler_apply.cc changes the state by it, and it is noted in the same
// step.  Workers and the ledger hear of it, and the operator is answered, once that is durable.
#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/core/raise_note.h"
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
  cancel_unwanted();
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

// ---------------------------------------------------------------- the campaign

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

// ---------------------------------------------------------------- runs

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

// ---------------------------------------------------------------- workers

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

// ---------------------------------------------------------------- money

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
    if (!charged_to.empty()) charged_to += ", ";
    charged_to += name;
    if (cost <= b.free()) continue;
    wanting.append("\n  ").append(name).append(" is short by ").append(format_usd(cost - b.free()));
    wanting.append(unit).append(": ").append(format_usd(b.spent)).append(" of ");
    wanting.append(format_usd(b.cap)).append(" are spent and ").append(format_usd(b.reserved));
    wanting += " reserved";
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

}  // namespace proctor
