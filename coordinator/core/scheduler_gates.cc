// The scheduler's half that deals with gates between stages: when the stages before one are over,
// how they are judged, and when it opens.  Nothing of a stage is granted before that: its runs wait
// in the queue behind the gate (run_queue.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/pilot/stage_check.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

// Where a scope is named after what it is of.
std::string after_colon(const std::string& scope) {
  return scope.substr(scope.find(':') + 1);
}

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
    const PlanView::Task& task = plan_.tasks[c / out.methods.size()];
    out.without_verdict.push_back(after_colon(plan_.scopes[task.scope.raw()].name) + " under " +
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
