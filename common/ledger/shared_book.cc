#include "common/ledger/shared_book.h"

#include <algorithm>
#include <utility>

namespace proctor {
namespace {

// So many looks without a sign, some five seconds, and a member counts as killed: nobody waits for
// it to write anything down.
constexpr int kLooksWithoutSign = 20;

}  // namespace

std::string_view to_string(SharedMember::State state) {
  switch (state) {
    case SharedMember::State::kHeard:
      return "here";
    case SharedMember::State::kUnheard:
      return "unheard";
    case SharedMember::State::kLeft:
      break;
  }
  return "left";
}

const SharedMember* SharedView::find(std::string_view id) const {
  const auto it = std::ranges::find(members, id, &SharedMember::id);
  return it == members.end() ? nullptr : &*it;
}

Elsewhere SharedView::elsewhere_of(std::string_view id) const {
  Elsewhere out;
  for (const SharedMember& m : members) {
    if (m.id == id) continue;
    out.held = std::min(kLedgerMax, out.held + m.held());
    out.may_return =
        out.may_return || m.state == SharedMember::State::kUnheard || MicroUsd::zero() < m.reserved;
  }
  return out;
}

void SharedBook::apply(const SharedFact& fact) {
  if (const auto* own = std::get_if<SharedLimit>(&fact)) {
    limit_ = own->limit;
    return;
  }
  const auto& other = std::get<SharedMember>(fact);
  if (other.id != self_) known_.insert_or_assign(other.id, other);
}

std::vector<SharedMember> SharedBook::news(const SharedView& view) const {
  std::vector<SharedMember> out;
  for (const SharedMember& m : view.members) {
    if (m.id == self_) continue;
    const auto it = known_.find(m.id);
    const bool left = m.state == SharedMember::State::kLeft;
    const bool same = it != known_.end() && it->second.ceiling == m.ceiling &&
                      (it->second.state == SharedMember::State::kLeft) == left &&
                      (!left || it->second.spent == m.spent);
    if (!same) out.push_back(m);
  }
  return out;
}

bool SharedBook::may_enter(const SharedView& view) const {
  const SharedMember* me = view.find(self_);
  if (me == nullptr || me->state != SharedMember::State::kHeard || me->ceiling <= limit_)
    return false;
  if (!news(view).empty()) return false;
  return std::ranges::all_of(view.members, [&](const SharedMember& m) {
    if (m.id == self_ || m.state == SharedMember::State::kLeft) return true;
    if (m.state == SharedMember::State::kUnheard) return false;
    // Of two that come at once the later one waits for the other's journal.
    const bool counts = MicroUsd::zero() < m.limit || m.since < me->since;
    return !counts || me->since <= m.noted;
  });
}

std::vector<SharedFact> SharedBook::to_note(const SharedView& view) const {
  std::vector<SharedFact> out;
  for (SharedMember& m : news(view)) out.emplace_back(std::move(m));
  if (out.empty() && may_enter(view)) out.emplace_back(SharedLimit{view.find(self_)->ceiling});
  return out;
}

Farewell::Step Farewell::next(const SharedView& view) {
  const SharedMember* me = view.find(self_);
  if (me == nullptr || me->state != SharedMember::State::kLeft) {
    awaited_.clear();
    return Step::kSay;
  }
  bool all_know = true;
  for (const SharedMember& m : view.members) {
    // One that is not heard of reads at its next start what Redis has then.
    if (m.id == self_ || m.state != SharedMember::State::kHeard || me->since <= m.noted) continue;
    Sign& sign = awaited_[m.id];
    if (sign.seen_ms != m.seen_ms) sign = {m.seen_ms, 0};
    if (++sign.looks <= kLooksWithoutSign) all_know = false;
  }
  return all_know ? Step::kDone : Step::kWait;
}

}  // namespace proctor
