#include "coordinator/core/run_queue.h"

#include <algorithm>
#include <iterator>

namespace proctor {
RunQueue::RunQueue(const PlanView& plan)
    : plan_(plan),
      skipped_(plan.runs.size(), false),
      pending_(plan.runs.size()),
      shut_from_(static_cast<std::uint32_t>(plan.runs.size())) {}

void RunQueue::shut_from(std::uint32_t run) {
  shut_from_ = run;
  held_back_ =
      static_cast<std::size_t>(std::distance(ready_.lower_bound(RunId(run)), ready_.end()));
  for (std::size_t r = std::max(run, cursor_); r < skipped_.size(); ++r)
    if (!skipped_[r]) ++held_back_;
}

void RunQueue::skip(RunId run) {
  PROCTOR_ASSERT(!skipped_[run.raw()]);
  PROCTOR_ASSERT(cursor_ <= run.raw());
  skipped_[run.raw()] = true;
  --pending_;
  if (shut_from_ <= run.raw()) --held_back_;
}

void RunQueue::remove(RunId run) {
  if (cursor_ <= run.raw() && !skipped_[run.raw()]) return skip(run);
  detach(run);
  --pending_;
  if (shut_from_ <= run.raw()) --held_back_;
}

void RunQueue::put_back(RunId run) {
  PROCTOR_ASSERT(run.raw() < cursor_ || skipped_[run.raw()]);
  PROCTOR_ASSERT(ready_.insert(run).second);
  ++pending_;
  if (shut_from_ <= run.raw()) ++held_back_;
}

void RunQueue::wake_scope(ScopeId scope) {
  if (by_scope_.contains(scope)) woken_scopes_.insert(scope);
}

void RunQueue::wake_workers(std::uint64_t has) {
  for (const auto& [needs, waiting] : by_needs_)
    if ((needs & ~has) == 0) woken_needs_.insert(needs);
}

std::optional<RunId> RunQueue::first() {
  while (cursor_ < skipped_.size() && skipped_[cursor_]) ++cursor_;
  std::optional<RunId> least;
  const auto offer = [&](RunId run) { least = least ? std::min(*least, run) : run; };
  if (!ready_.empty()) offer(*ready_.begin());
  for (const ScopeId scope : woken_scopes_) offer(*by_scope_.at(scope).begin());
  for (const std::uint64_t needs : woken_needs_) offer(*by_needs_.at(needs).begin());
  if (cursor_ < skipped_.size()) offer(RunId(cursor_));
  // Whoever is behind the gate is behind everybody before it: the least says it of all.
  if (least && shut_from_ <= least->raw()) return std::nullopt;
  return least;
}

std::optional<ScopeId> RunQueue::waits_behind(RunId run) const {
  for (const ScopeId scope : plan_.path(run)) {
    const auto it = by_scope_.find(scope);
    if (it == by_scope_.end() || woken_scopes_.contains(scope)) continue;
    if (*it->second.begin() < run) return scope;
  }
  return std::nullopt;
}

template <class Key>
bool RunQueue::remove_from(std::map<Key, std::set<RunId>>& waiting, std::set<Key>& woken,
                           RunId run) {
  for (auto it = waiting.begin(); it != waiting.end(); ++it) {
    if (it->second.erase(run) == 0) continue;
    if (it->second.empty()) {
      woken.erase(it->first);
      waiting.erase(it);
    }
    return true;
  }
  return false;
}

void RunQueue::detach(RunId run) {
  if (ready_.erase(run) == 1) return;
  if (run.raw() == cursor_) {
    ++cursor_;
    return;
  }
  if (remove_from(by_scope_, woken_scopes_, run))
    --at_scopes_;
  else
    remove_from(by_needs_, woken_needs_, run);
}

std::optional<RunId> RunQueue::next(const std::function<Answer(RunId)>& judge,
                                    std::size_t scan_max) {
  for (std::size_t i = 0; i < scan_max; ++i) {
    const std::optional<RunId> run = first();
    if (!run) return std::nullopt;
    if (const auto scope = waits_behind(*run)) {
      // A wait at the campaign's or a stage's envelope stops the line where it is; one at a task's,
      // or at one across the tree, holds back those alone that need it too.
      if (plan_.holds_all(*scope, *run)) return std::nullopt;
      detach(*run);
      at_scopes_ += by_scope_[*scope].insert(*run).second ? 1 : 0;
      continue;
    }
    const Answer answer = judge(*run);
    detach(*run);
    switch (answer.verdict) {
      case Verdict::kTake:
        --pending_;
        return run;
      case Verdict::kWaitForScope:
        at_scopes_ += by_scope_[answer.scope].insert(*run).second ? 1 : 0;
        woken_scopes_.erase(answer.scope);
        break;
      case Verdict::kWaitForWorker:
        by_needs_[answer.needs].insert(*run);
        woken_needs_.erase(answer.needs);
        break;
    }
  }
  return std::nullopt;
}

std::optional<ScopeId> RunQueue::waiting_for(RunId run) const {
  for (const auto& [scope, waiting] : by_scope_)
    if (waiting.contains(run)) return scope;
  return std::nullopt;
}

std::size_t RunQueue::wanting(std::uint64_t has) const {
  std::size_t other = 0;
  for (const auto& [needs, waiting] : by_needs_)
    if ((needs & ~has) != 0) other += waiting.size();
  return pending_ - held_back_ - at_scopes_ - other;
}

std::map<std::uint64_t, std::size_t> RunQueue::waiting_for_workers() const {
  std::map<std::uint64_t, std::size_t> out;
  for (const auto& [needs, waiting] : by_needs_) out[needs] = waiting.size();
  return out;
}

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
