// The scheduler's half that explains: why a run is where it is, by the predicates that decide.
#include <algorithm>
#include <utility>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/core/unfit.h"

namespace proctor {
namespace {

using Facts = std::vector<std::pair<std::string, Explanation::Value>>;

std::int64_t whole(std::uint64_t n) {
  return static_cast<std::int64_t>(n);
}

// Of what a run needs of a host or of a release, only what somebody who is here lacks is worth a
// word.
std::string describe_needs(std::uint64_t needs, const PlanView& plan, const Roster& roster) {
  std::uint64_t all_have = capability::kAll;
  for (WorkerIndex w = 0; w < roster.size(); ++w)
    if (roster.at(w).present) all_have &= roster.at(w).has;
  constexpr std::uint64_t kCommon = capability::kThings | capability::kOfRelease;
  return capability::describe(needs & ~(all_have & kCommon), plan.things);
}

}  // namespace

Explanation Scheduler::why(RunId run) const {
  const auto live = live_.find(run);
  switch (phases_[run.raw()]) {
    case RunPhase::kEnded:
      return {"ended", "it has ended"};
    case RunPhase::kRemoved:
      return {"removed", "its task was removed from the campaign"};
    case RunPhase::kCancelled:
      if (live != live_.end())
        return {"cancelling", "it was cancelled by the operator, and its attempt " +
                                  to_string(live->second.id) + " is being ended"};
      if (gates_.is_closed(plan_, run)) return {"cancelled", "its stage was closed by an operator"};
      return {"cancelled", "it was cancelled by the operator; requeue puts it in line again"};
    case RunPhase::kHeld:
      return {
          "decision",
          "no attempt is left: it waits for a person (proctor approve tries it once more, proctor "
          "cancel ends it)",
          {{"failures", std::int64_t{failures_[run.raw()]}},
           {"worker_losses", whole(poison_.blames(run).size())}}};
    case RunPhase::kParked:
      if (shut_.contains(run)) return why_shut(run);
      return {"parked",
              "it is parked: an envelope has too little money left and none will come back"};
    case RunPhase::kBackoff: {
      const Backoff& b = backoff_.at(run);
      const bool overload = b.of == RetryClass::kOverload;
      return {"backoff",
              "it is tried again at " + to_rfc3339(b.until_wall) +
                  (overload ? ": a provider of models had no room"
                            : ": its last attempt was lost to infrastructure" + told_fault(run)),
              {{"class", std::string(overload ? "overload" : "infrastructure")},
               {"until_ms", b.until_wall.raw()}}};
    }
    case RunPhase::kActive:
      return why_active(run);
    case RunPhase::kQueued:
      return why_waiting(run);
  }
  return {"", ""};
}

// Why its task or method is parked, and the way out.
Explanation Scheduler::why_shut(RunId run) const {
  const bool task = faults_.is_parked(task_subject(run));
  if (!task && !faults_.is_parked(method_subject(run)))
    return {"parked",
            "its program could not start: it is a failure once an agent of its method is at work, "
            "and invalid if none ever is; requeue lets it try again",
            {{"fault", "method"}}};
  return {"parked",
          describe_fault(task ? task_subject(run) : method_subject(run)) +
              "; requeue puts it in line again",
          {{"fault", std::string(task ? "task" : "method")}}};
}

// What has failed of its task or method since it last worked; empty: nothing.
std::string Scheduler::told_fault(RunId run) const {
  for (const auto& [subject, what] : {std::pair(task_subject(run), "; its task "),
                                      std::pair(method_subject(run), "; its method ")})
    if (faults_.has_row(subject)) return what + faults_.describe(subject);
  return "";
}

Explanation Scheduler::why_active(RunId run) const {
  const auto it = live_.find(run);
  if (it == live_.end()) return {"between", "it is between two attempts"};
  const Attempt& a = it->second;
  Facts facts{{"attempt", std::int64_t{a.id.no.raw()}}};
  std::string where;
  if (a.worker) {
    where = " on worker " + roster_.at(*a.worker).id.raw();
    facts.emplace_back("worker", roster_.at(*a.worker).id.raw());
  }
  if (a.alone) where += ", alone: earlier ones ended with their workers";
  if (suspended_) where += "; it is suspended";
  if (a.worker && roster_.at(*a.worker).suspect)
    where += "; that worker is " + told_standing(*a.worker);
  return {"running", "attempt " + std::to_string(a.id.no.raw()) + " is under way" + where,
          std::move(facts)};
}

// In the order in which it would be held back: see dispatch(), RunQueue::next() and judge().
Explanation Scheduler::why_waiting(RunId run) const {
  if (mode_ != Mode::kRun) return {"draining", "the campaign is stopping: nothing more is started"};
  if (paused_) return {"paused", "the campaign is paused: nothing is started until unpause"};
  if (gates_.shut_from() <= run.raw()) return why_behind_gate();
  const auto waits_at = [&](ScopeId scope, const std::string& text) -> Explanation {
    const ScopeBalance& b = balances_[scope.raw()];
    Facts facts{{"envelope", plan_.scopes[scope.raw()].name},
                {"needs_micro_usd", plan_.task_of(run).ask.micros()},
                {"free_micro_usd", b.free().micros()},
                {"reserved_micro_usd", b.reserved.micros()}};
    if (scope != plan_.shared) return {"envelope", text, std::move(facts)};
    facts.emplace_back("elsewhere_micro_usd", b.elsewhere.held.micros());
    return {"envelope",
            text + "; other campaigns hold " + format_usd(b.elsewhere.held) +
                " of it (proctor budget says who)",
            std::move(facts)};
  };
  const RunQueue::Answer now = judge(run);
  const auto named = [&](ScopeId s) { return plan_.scopes[s.raw()].name; };
  if (const auto scope = queue_.waiting_for(run))
    return waits_at(*scope, "it waits for money in " + named(*scope) +
                                ": what is reserved there may come back");
  if (const auto scope = queue_.waits_behind(run))
    return waits_at(*scope,
                    "an earlier run waits for money in " + named(*scope) + ", which it needs too");
  if (now.verdict == RunQueue::Verdict::kWaitForScope)
    return waits_at(now.scope, "it waits for money in " + named(now.scope) +
                                   ": what is reserved there may come back");
  if (now.verdict == RunQueue::Verdict::kWaitForWorker) return why_no_worker(run);
  const std::uint64_t before = before_in_line(run);
  if (before == 0) return {"order", "it is the next in line", {{"before", std::int64_t{0}}}};
  return {"order",
          "it waits for its turn in the plan's order: " + std::to_string(before) +
              (before == 1 ? " run is before it" : " runs are before it"),
          {{"before", whole(before)}}};
}

Explanation Scheduler::why_no_worker(RunId run) const {
  const std::uint64_t needs = plan_.needs_of(run);
  const std::string what = describe_needs(needs, plan_, roster_);
  Facts facts{{"needs", what}, {"before", whole(before_in_line(run))}};
  if (poison_.is_suspect(run)) {
    facts.emplace_back("worker_losses", whole(poison_.blames(run).size()));
    return {"alone",
            "its worker died under it " + std::to_string(poison_.blames(run).size()) +
                " times: it waits for a worker with " + what + " that has nothing else",
            std::move(facts)};
  }
  if (waits_for_another(run))
    return {"elsewhere", "it waits for another worker with " + what + told_fault(run),
            std::move(facts)};
  const std::string waits = "it waits for a free worker with " + what;
  const bool here = roster_.anyone_has(needs);
  std::string others;  // who could run it, were it not for this
  std::size_t n = 0;
  constexpr std::size_t kShown = 3;
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    if (!roster_.has_place(w) || s.present != here || (here && (needs & ~s.has) != 0)) continue;
    if (s.takes_new()) return {"worker", waits, std::move(facts)};  // it is busy
    facts.emplace_back("worker " + s.id.raw(), standing(s));
    if (++n <= kShown)
      others += (others.empty() ? "" : ", ") + s.id.raw() + " is " + told_standing(w);
  }
  if (kShown < n) others += " and " + std::to_string(n - kShown) + " more likewise";
  if (here) {
    if (n == 1) return {"worker", waits + ": the only one, " + others, std::move(facts)};
    return {"worker", waits + ", and nobody of them takes work: " + others, std::move(facts)};
  }
  const std::string start =
      "; start one with proctor-worker --connect, or stop this and proctor "
      "resume --workers N";
  if (const std::uint64_t present = roster_.present(); 0 < present) {
    std::string refused;  // of those who could, but for their host, its disk or their release
    for (WorkerIndex w = 0; w < roster_.size(); ++w) {
      const WorkerState& s = roster_.at(w);
      if (s.present && (s.has & capability::kFullDisk) != 0) {
        facts.emplace_back("full " + s.id.raw(), "disk");
        refused += "; the disk of " + s.id.raw() + " is full: free space there, and it goes on";
      }
      if (const std::uint64_t lacks = needs & ~s.has & capability::kOfRelease;
          s.present && lacks != 0) {
        const std::string missing = capability::describe(lacks);
        facts.emplace_back("older " + s.id.raw(), missing);
        refused += "; " + s.id.raw() + " is of a release without " + missing +
                   ": start a newer proctor-worker there";
      }
      const std::string unfit = s.present ? capability::describe_unfit(needs, s.has) : "";
      if (unfit.empty()) continue;
      facts.emplace_back("unfit " + s.id.raw(), unfit);
      refused += "; " + s.id.raw() + " does not offer " + unfit +
                 ", which does not isolate there (proctor-worker selftest says what to do)";
    }
    return {"capability",
            waits + ": of " + std::to_string(present) + " here " +
                (present == 1 ? "it has none" : "none has that") + refused + start,
            std::move(facts)};
  }
  if (others.empty() && last_gone_)
    others = last_gone_->first.raw() + " is gone since " + to_rfc3339(last_gone_->second);
  return {"capability",
          waits + ": none is here, and " +
              (others.empty() ? "none has ever joined; this coordinator has run since " +
                                    to_rfc3339(started_at_)
                              : others) +
              start,
          std::move(facts)};
}

// standing(), since when, until when, and what ends it.
std::string Scheduler::told_standing(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  const std::string since = s.since.raw() == 0 ? "" : " since " + to_rfc3339(s.since);
  if (!s.present) return "gone" + since;
  const std::string release = ", until proctor release CAMPAIGN " + s.id.raw();
  if (s.quarantine == WorkerState::Quarantine::kFailures)
    return "quarantined" + since + " until " + to_rfc3339(s.back_at_wall) + ": " + s.reason +
           " (proctor release CAMPAIGN " + s.id.raw() + " ends it now)";
  if (s.quarantine == WorkerState::Quarantine::kOperator)
    return "quarantined" + since + release + ": " + s.reason;
  if (s.drained) return "drained" + since + release;
  if (!s.suspect) return standing(s) + since;
  return "suspect" + since + ": it has not been heard of, and is given up at " +
         to_rfc3339(*given_up_at(w)) + " unless it is";
}

// When its runs are taken for lost, if it stays as silent.  Nothing: it is no suspect.
std::optional<WallTime> Scheduler::given_up_at(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  if (!s.present || !s.suspect) return std::nullopt;
  return WallTime(now_.wall.raw() + (s.last_sync + lease_of(w) - now_.mono).count());
}

// Until when it stands as it does, where that is known.
std::optional<WallTime> Scheduler::stands_until(WorkerIndex w) const {
  const WorkerState& s = roster_.at(w);
  if (s.present && s.quarantine == WorkerState::Quarantine::kFailures) return s.back_at_wall;
  return given_up_at(w);
}

std::vector<Scheduler::UnderWay> Scheduler::under_way(std::size_t most) const {
  std::vector<UnderWay> out;
  for (const auto& [run, a] : live_) {
    if (out.size() == most) break;
    out.push_back({run, a.worker ? roster_.at(*a.worker).id : WorkerId("")});
  }
  return out;
}

std::uint64_t Scheduler::before_in_line(RunId run) const {
  const auto end = phases_.begin() + run.raw();
  return static_cast<std::uint64_t>(std::count(phases_.begin(), end, RunPhase::kQueued));
}

std::string Scheduler::waiting_for_workers() const {
  std::map<std::uint64_t, std::size_t> by_needs;
  for (const auto& [needs, runs] : queue_.waiting_for_workers())
    by_needs[needs & ~(capability::kAlone | capability::kElsewhere)] += runs;
  std::string out;
  for (const auto& [needs, runs] : by_needs) {
    if (roster_.anyone_has(needs)) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(runs) +
           (runs == 1 ? " run waits" : " runs wait") + " for a worker with " +
           describe_needs(needs, plan_, roster_);
  }
  if (out.empty()) return out;
  for (WorkerIndex w = 0; w < roster_.size(); ++w)
    if (roster_.at(w).present && (roster_.at(w).has & capability::kFullDisk) != 0)
      return out + ", for the disk of " + roster_.at(w).id.raw() + " is full: free space there";
  return out;
}

}  // namespace proctor
