#include "coordinator/core/gate_book.h"

#include <algorithm>

#include "common/base/result.h"

namespace proctor {

GateBook::GateBook(const PlanView& plan) : runs_(static_cast<std::uint32_t>(plan.runs.size())) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StageRules& rules = plan.stages[s].rules;
    const bool before_asks = 0 < s && !plan.stages[s - 1].rules.exit.empty();
    if (rules.entry.empty() && rules.approvals() == 0 && !before_asks) continue;
    const auto first =
        std::ranges::find_if(plan.runs, [s](const PlanView::Run& r) { return s <= r.stage; });
    Gate gate{plan.stages[s].name, static_cast<std::uint16_t>(s),
              static_cast<std::uint32_t>(first - plan.runs.begin()), rules.approvals()};
    // Whatever stands behind it in the plan is of this stage or of a later one.
    PROCTOR_ASSERT(
        std::all_of(first, plan.runs.end(), [s](const PlanView::Run& r) { return s <= r.stage; }));
    gates_.push_back(std::move(gate));
  }
}

const GateBook::Gate* GateBook::next() const {
  const auto it = std::ranges::find(gates_, false, &Gate::open);
  return it == gates_.end() ? nullptr : &*it;
}

std::uint32_t GateBook::shut_from() const {
  const Gate* gate = next();
  return gate == nullptr ? runs_ : gate->first_run;
}

const GateBook::Gate* GateBook::find(std::string_view stage) const {
  const auto it = std::ranges::find(gates_, stage, &Gate::stage);
  return it == gates_.end() ? nullptr : &*it;
}

GateBook::Gate* GateBook::mine(std::string_view stage) {
  const auto it = std::ranges::find(gates_, stage, &Gate::stage);
  return it == gates_.end() ? nullptr : &*it;
}

std::vector<std::string> GateBook::approvers(const Gate& gate, const Digest& digest) {
  std::vector<std::string> out;
  for (const auto& [by, what] : gate.approved)
    if (what == digest) out.push_back(by);
  return out;
}

Status GateBook::fits(const StageChecked& fact) const {
  const Gate* gate = next();
  if (gate != nullptr && gate->stage == fact.stage) return ok_status();
  return Error{Errc::kCorrupt, "journal: a check of stage " + fact.stage +
                                   ", which is not the next that waits to be opened"};
}

Status GateBook::fits(const StageOpened& fact) const {
  const std::string what = "journal: stage " + fact.stage + " was opened ";
  const Gate* gate = next();
  if (gate == nullptr || gate->stage != fact.stage)
    return Error{Errc::kCorrupt, what + "out of its order"};
  if (gate->checked != fact.digest || !gate->held)
    return Error{Errc::kCorrupt, what + "by a check that was not made, or did not hold"};
  if (approvers(*gate, fact.digest).size() < gate->people)
    return Error{Errc::kCorrupt, what + "and too few people had approved it"};
  return ok_status();
}

void GateBook::take(const StageChecked& fact) {
  Gate* gate = mine(fact.stage);
  PROCTOR_ASSERT(gate != nullptr);
  gate->checked = fact.digest;
  gate->held = fact.holds;
}

void GateBook::take(const StageOpened& fact) {
  Gate* gate = mine(fact.stage);
  PROCTOR_ASSERT(gate != nullptr);
  gate->open = true;
}

void GateBook::approve(std::string_view stage, const Digest& digest, const std::string& by) {
  if (Gate* gate = mine(stage)) gate->approved[by] = digest;
}

}  // namespace proctor
