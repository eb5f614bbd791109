#include "coordinator/cli/run_story.h"

#include <algorithm>

#include "coordinator/cli/verify_removals.h"
#include "coordinator/core/fault_book.h"
#include "coordinator/core/operator_note.h"
#include "coordinator/core/raise_note.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

Note note_of(const StoryFact& fact) {
  return {fact.at, fact.fact, fact.run, fact.attempt, fact.detail};
}

}  // namespace

RunStory::RunStory(const FrozenCampaign& frozen, RunId run)
    : run_(run),
      task_(frozen.plan.task(run).id),
      task_index_(frozen.plan.row(run).task),
      method_index_(frozen.plan.row(run).method) {
  const PlanView view = make_plan_view(frozen.campaign, frozen.plan);
  for (const ScopeId scope : view.path(run)) envelopes_.insert(view.scopes[scope.raw()].name);
}

bool RunStory::has(const StoryFact& fact) const {
  if (fact.run == run_) return true;
  if (fact.fact == kNoteFault) return is_at_fault(fact);
  if (fact.run) return false;
  if (fact.fact == kNoteOperator) return is_among(fact);
  if (fact.fact == kNoteBudgetRaised) return is_raised(fact);
  return fact.fact == kNoteTaskRemoved && fact.detail.starts_with(removal_note(task_, ""));
}

bool RunStory::is_among(const StoryFact& act) const {
  const Result<OperatorFact> fact = operator_fact_of(note_of(act));
  return fact.ok() && std::ranges::find(fact->act.runs, run_) != fact->act.runs.end();
}

bool RunStory::is_raised(const StoryFact& raise) const {
  const Result<BudgetRaised> fact = raise_of(raise.detail, raise.at);
  return fact.ok() && envelopes_.contains(fact->name);
}

// That another run failed is that one's story; that none of them is started is theirs all.
bool RunStory::is_at_fault(const StoryFact& fault) const {
  const Result<FaultFact> fact = fault_of(note_of(fault));
  if (!fact.ok() || fact->verdict == FaultFact::Verdict::kFailed) return false;
  const bool task = fact->subject.kind == FaultSubject::Kind::kTask;
  return fact->subject.index == (task ? task_index_ : method_index_);
}

}  // namespace proctor::cli
