#include "coordinator/shell/plan_view.h"

#include <algorithm>

#include "common/base/result.h"
#include "common/contract/host_things.h"
#include "common/images/image_store.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/roster.h"

namespace proctor {
namespace {
std::uint64_t needs_things(PlanView& view, const std::vector<HostThing>& things) {
  std::uint64_t out = 0;
  for (const HostThing& thing : things) {
    const std::string feature = thing.feature();
    auto at = std::ranges::find(view.things, feature);
    if (at == view.things.end()) at = view.things.insert(at, feature);
    out |= capability::thing_bit(static_cast<std::size_t>(at - view.things.begin()));
  }
  return out;
}

std::uint64_t needs_image(PlanView& view, const std::string& image) {
  const std::string feature = image_feature(image);
  auto at = std::ranges::find(view.images, feature);
  if (at == view.images.end()) at = view.images.insert(at, feature);
  return capability::image_bit(static_cast<std::size_t>(at - view.images.begin()));
}

PlanView::Method needs_of(PlanView& view, const Method& method) {
  PlanView::Method out;
  out.in_environment = (method.kind == Method::Kind::kCommand && !method.container) ||
                       method.kind == Method::Kind::kToolLoop;
  out.needs = needs_things(view, things_of(method));
  if (method.kind == Method::Kind::kToolLoop) out.needs |= capability::kToolLoop;
  if (method.gateway && method.gateway->tools) out.needs |= capability::kAgentTools;
  if (!method.environment.image.empty()) out.needs |= needs_image(view, method.environment.image);
  if (method.container && !method.container->image.empty())
    out.needs |= needs_image(view, method.container->image);
  return out;
}

std::uint64_t needs_of(PlanView& view, const Contract& contract, Isolation isolation) {
  const std::string& image = contract.environment.image;
  // Who builds it has an Engine; no store has one before.
  if (contract.environment.build) return capability::kDocker | needs_image(view, image);
  // Who offers it need not have an Engine.
  if (isolation == Isolation::kUserspace) return capability::kUserspace | needs_image(view, image);
  switch (wanted_sandbox(contract.environment)) {
    case Environment::Sandbox::kDocker:
      return needs_image(view, image);
    case Environment::Sandbox::kNull:
      return capability::kNull;
    case Environment::Sandbox::kBubblewrap:
    case Environment::Sandbox::kAuto:
      break;
  }
  return capability::kBubblewrap;
}

MicroUsd task_cap(const Campaign& campaign, const std::string& id) {
  const Envelopes& e = campaign.envelopes;
  if (const auto it = e.tasks.find(id); it != e.tasks.end()) return it->second;
  return e.task.value_or(e.global);
}

MicroUsd stage_cap(const Campaign& campaign, const std::string& name) {
  const auto it = campaign.envelopes.stage.find(name);
  return it == campaign.envelopes.stage.end() ? campaign.envelopes.global : it->second;
}

void add_stratum(PlanView& view, const PlanShape& shape, const std::string& key,
                 const std::string& level, ScopeId scope) {
  const auto at = std::ranges::find(shape.strata_keys, key);
  if (at == shape.strata_keys.end()) return;  // check_campaign refuses it
  const auto k = static_cast<std::size_t>(at - shape.strata_keys.begin());
  for (std::size_t t = 0; t < shape.tasks.size(); ++t)
    if (shape.tasks[t].strata[k] == level) view.tasks[t].strata.push_back(scope);
}

// Nothing where no stage asks for anything: then it is as it was before there were gates.
void add_gates(PlanView& view, const Campaign& campaign, const PlanShape& shape) {
  if (std::ranges::all_of(campaign.stages, [](const Stage& s) { return s.rules.empty(); })) return;
  for (std::size_t s = 0; s < campaign.stages.size(); ++s)
    view.stages.push_back({campaign.stages[s].name, campaign.stages[s].rules,
                           view.scopes[view.stage_scopes[s].raw()].cap});
  view.method_names = shape.methods;
}
}  // namespace

PlanView make_plan_view(const Campaign& campaign, const Plan& plan) {
  PlanView view;
  const auto add_scope = [&](std::string name, MicroUsd cap) {
    view.scopes.push_back({std::move(name), cap});
    return ScopeId(static_cast<std::uint32_t>(view.scopes.size() - 1));
  };
  static_assert(kEnvelopesOfRunMax == kScopesPerReservation);
  add_scope("global", campaign.envelopes.global);
  for (const PlanStage& stage : plan.shape().stages)
    view.stage_scopes.push_back(add_scope("stage:" + stage.name, stage_cap(campaign, stage.name)));
  for (const PlanTask& task : plan.shape().tasks) {
    const Contract* contract = campaign.find_contract(task.id);
    PROCTOR_ASSERT(contract != nullptr);
    view.tasks.push_back({add_scope("task:" + task.id, task_cap(campaign, task.id)),
                          campaign.run_cap(*contract),
                          needs_of(view, *contract, campaign.isolation_of(*contract)) |
                              needs_things(view, things_of(*contract))});
    // Nobody of before can read it, whoever works on it.
    if (!contract->suites.empty()) view.tasks.back().needs |= capability::kAgentTools;
    view.tasks.back().agent_needs = needs_things(view, agent_things_of(*contract));
  }
  const Envelopes& e = campaign.envelopes;
  for (const std::string& method : plan.shape().methods) {
    const Method* known = campaign.find_method(method);
    PROCTOR_ASSERT(known != nullptr);
    view.methods.push_back(needs_of(view, *known));
    const auto it = e.methods.find(method);
    view.method_scopes.push_back(it == e.methods.end() ? ScopeId(0)
                                                       : add_scope("method:" + method, it->second));
  }
  for (const auto& [key, levels] : e.strata)
    for (const auto& [level, cap] : levels)
      add_stratum(view, plan.shape(), key, level, add_scope("stratum:" + key + "=" + level, cap));
  if (e.shared) view.shared = add_scope(e.shared->scope(), e.shared->cap);
  for (std::size_t i = 0; i < view.scopes.size(); ++i)
    view.follows.push_back(follows_global(campaign, view.scopes[i].name));
  add_gates(view, campaign, plan.shape());
  view.runs.reserve(plan.size());
  view.seeds.reserve(plan.size());
  for (const PlanRow& row : plan.rows()) {
    view.runs.push_back({row.task, row.stage, row.method});
    view.seeds.push_back(row.seed);
  }
  return view;
}

bool follows_global(const Campaign& campaign, const std::string& scope) {
  const Envelopes& e = campaign.envelopes;
  const std::string name = scope.substr(scope.find(':') + 1);
  if (scope.starts_with("stage:")) return !e.stage.contains(name);
  if (scope.starts_with("task:")) return !e.task && !e.tasks.contains(name);
  return false;
}

Status apply_raises(PlanView& view, const std::vector<BudgetRaised>& raises) {
  std::vector<ScopeSpec> scopes = view.scopes;
  for (const BudgetRaised& r : raises) PROCTOR_CHECK_OK(raise_cap(scopes, r));
  view.scopes = std::move(scopes);
  return ok_status();
}
}  // namespace proctor
