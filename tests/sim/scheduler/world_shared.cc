// Two worlds with one envelope around both, each with a coordinator, workers and a journal of its
// own.  The ledger of one knows what the other's holds, as Redis does: also while the other is
// dead.  What both may have cost together is added up from their durable facts alone.
#include "tests/sim/scheduler/world.h"

namespace proctor::sim {
namespace {
constexpr const char* kSharedName = "shared:x";
}

bool World::run_both(World& one, World& other) {
  const std::uint64_t usd = 10 + one.below(50);
  const MicroUsd cap = MicroUsd::from_micros(static_cast<std::int64_t>(usd * 1'000'000));
  one.share(other, cap);
  other.share(one, cap);
  one.begin();
  other.begin();
  while (one.goes_on() || other.goes_on()) {
    const bool first =
        one.goes_on() && (!other.goes_on() || one.agenda_.top().at <= other.agenda_.top().at);
    (first ? one : other).step();
    if (!one.why_.empty() || !other.why_.empty()) break;
  }
  for (World* w : {&one, &other}) {
    if (w->why_.empty()) w->check_end();
    if (!w->why_.empty()) one.why_ = w->why_;
  }
  return one.why_.empty();
}

void World::share(World& other, MicroUsd cap) {
  other_ = &other;
  const ScopeId scope(static_cast<std::uint32_t>(plan_.scopes.size()));
  plan_.scopes.push_back({kSharedName, cap});
  plan_.follows.push_back(false);
  plan_.shared = scope_named_[kSharedName] = scope;
}

// Of the other's part, as Redis has it.
Elsewhere World::elsewhere() const {
  if (!other_->ledger_) return {};
  const ScopeBalance part = other_->ledger_->balance(*other_->plan_.shared);
  return {part.spent + part.reserved, MicroUsd::zero() < part.reserved};
}

// As the ledger's thread does it several times a second, when Redis answers.
void World::tend() {
  at(Millis(250), [this] { tend(); });
  if (!core_ || chance(ranges_.ledger_slow)) return;
  const Elsewhere now = elsewhere();
  if (told_elsewhere_ == now) return;
  told_elsewhere_ = now;
  ++came_back_;
  ++seen_.told_elsewhere;
  feed(ElsewhereHeld{now});
}

// What attempts of this campaign may have cost so far: their asks until how they ended is durable.
MicroUsd World::held_for_certain() const {
  using S = AttemptState;
  MicroUsd sum;
  for (const auto& [id, trail] : durable_) {
    const S s = trail.at.state;
    const bool holds = s == S::kGranted || s == S::kFinished || s == S::kLost || s == S::kCancelled;
    if (!holds) continue;
    const MicroUsd metered =
        MicroUsd::from_micros(static_cast<std::int64_t>(trail.at.usage.tool_calls));
    const bool known = trail.at.has_result && !trail.lost;
    sum = sum + (trail.at.settled ? trail.at.charged
                 : known          ? std::min(metered, trail.at.ask)
                                  : trail.at.ask);
  }
  return sum;
}

void World::check_shared() const {
  if (other_ == nullptr) return;
  const MicroUsd cap = std::max(plan_.scopes[plan_.shared->raw()].cap,
                                other_->plan_.scopes[other_->plan_.shared->raw()].cap);
  if (cap < held_for_certain() + other_->held_for_certain())
    fail("two campaigns together passed what they share");
}

}  // namespace proctor::sim
