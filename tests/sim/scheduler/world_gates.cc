// Stages that wait for one another, the people who open them, and the oracle of both: from durable
// notes alone.
#include <algorithm>

#include "coordinator/core/notes.h"
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {

// Three stages over the runs that were drawn, with a gate before the second and the third.
void World::add_stages() {
  constexpr std::uint64_t kStages = 3, kMethods = 3;
  plan_.stages.clear();
  for (const char* name : {"one", "two", "three"}) {
    StageRules rules;
    const bool first = plan_.stages.empty();
    if (!first) rules.entry = {{StagePredicate::kCompleteOrStopped, "", 0}};
    if (!first) rules.people = static_cast<std::uint32_t>(below(3));
    if (below(2) == 0) rules.exit = {{StagePredicate::kCompleteOrStopped, "", 0}};
    if (below(2) == 0) rules.exit.push_back({StagePredicate::kEndpointComputable, "", 0});
    if (!first) {
      plan_.scopes.push_back({"stage:" + std::string(name), plan_.scopes[1].cap});
      plan_.stage_scopes.emplace_back(static_cast<std::uint32_t>(plan_.scopes.size() - 1));
    }
    plan_.stages.push_back({name, rules, plan_.scopes[1].cap});
  }
  for (std::uint64_t m = 0; m < kMethods; ++m) plan_.method_names.push_back(std::to_string(m));
  for (std::size_t r = 0; r < plan_.runs.size(); ++r)
    plan_.runs[r].stage = static_cast<std::uint16_t>(r * kStages / plan_.runs.size());
  plan_.follows.resize(plan_.scopes.size(), false);
  for (std::uint32_t s = 0; s < plan_.scopes.size(); ++s)
    scope_named_[plan_.scopes[s].name] = ScopeId(s);
  settings_.stays_at_gate = below(2) == 0;
}

// One of three people says that the next stage may begin, whether or not that can be said now.
void World::approve_next_stage() {
  const std::optional<GateView> gate = core_ ? core_->gate() : std::nullopt;
  if (!gate) return;
  OperatorAct a;
  a.kind = OperatorActKind::kApproveStage;
  a.stage = gate->stage;
  a.digest = below(4) == 0 ? "" : gate->digest;
  a.by = "person " + std::to_string(below(3));
  act(std::move(a));
}

// A stage is closed before its time, or what keeps the next one shut is waived, whether or not that
// can be said now.
void World::act_on_stage() {
  if (plan_.stages.empty()) return;
  const std::optional<GateView> gate = core_->gate();
  OperatorAct a;
  a.stage = plan_.stages[below(plan_.stages.size())].name;
  a.kind = OperatorActKind::kCloseStage;
  if (gate && gate->waits_for == "criteria") {
    a.kind = OperatorActKind::kWaive;
    a.criterion = "endpoint_computable";
    const auto at = std::ranges::find(plan_.stages, gate->stage, &PlanView::Stage::name);
    a.stage = std::prev(at)->name;
  } else if (below(4) != 0) {
    return;
  }
  act(std::move(a));
}

void World::check_gate(const Note& note) {
  if (note.kind == OperatorFact::kNote) {
    const auto fact = fact_of<OperatorFact>(note);
    if (!fact.ok() || fact->act.kind != OperatorActKind::kApproveStage) return;
    ++seen_.stages_approved;
    approved_[fact->act.stage + fact->act.digest].insert(fact->act.by);
  }
  if (note.kind == StageChecked::kNote) {
    const auto fact = fact_of<StageChecked>(note);
    if (!fact.ok()) return fail(fact.error().detail);
    if (fact->holds) held_checks_.insert(fact->stage + fact->digest.hex());
  }
  if (note.kind != StageOpened::kNote) return;
  ++seen_.stages_opened;
  const auto fact = fact_of<StageOpened>(note);
  if (!fact.ok()) return fail(fact.error().detail);
  const std::string what = "stage " + fact->stage + " opened ";
  const std::string key = fact->stage + fact->digest.hex();
  ++stages_open_;
  if (plan_.stages.size() <= stages_open_ || plan_.stages[stages_open_].name != fact->stage)
    return fail(what + "out of its order");
  if (!held_checks_.contains(key)) fail(what + "by no check that held");
  if (approved_[key].size() < plan_.stages[stages_open_].rules.approvals())
    fail(what + "and too few people had said so");
  for (const auto& [id, trail] : durable_) {
    const bool out = !trail.at.settled && trail.at.state != AttemptState::kVoided &&
                     trail.at.state != AttemptState::kDenied;
    if (out) fail(what + "while an attempt was out: " + to_string(id));
  }
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r) {
    const RunId run(r);
    if (stages_open_ <= plan_.runs[r].stage) continue;
    if (!outcome_of_.contains(run) && !parked_.contains(run) && !is_parked_for_fault(run) &&
        !durable_standing_.cancelled.contains(run))
      fail(what + "before run " + std::to_string(r) + " was over");
  }
}

void World::check_begun(RunId run) const {
  if (stages_open_ < plan_.runs[run.raw()].stage && !plan_.stages.empty())
    fail("run " + std::to_string(run.raw()) + " begins before its stage is open");
}

}  // namespace proctor::sim
