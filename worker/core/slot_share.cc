#include "worker/core/slot_share.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace proctor {
constexpr std::int64_t kWhole = 1'000;  // thousandths of a slot
// A slot that runs one campaign's work goes to another that is behind by more than this.
constexpr std::int64_t kStays = kWhole * 1'000;
// Credit is a memory of a minute: who had nothing to do for an hour is not owed an hour.
constexpr std::int64_t kCreditMost = kWhole * 60'000;
constexpr Millis kPatience{4'000}, kPatienceMost{60'000};
constexpr std::uint32_t kPassesMost = 4;
constexpr std::size_t kSaidMost = 32;
// Of a worker with so many slots each campaign that has work has one, whatever its priority.
constexpr std::uint32_t kOneOf = 16;

SlotShare::Index SlotShare::add(Terms terms) {
  parties_.push_back({});
  parties_.back().terms = std::move(terms);
  return parties_.size() - 1;
}

void SlotShare::held(Index i, std::uint32_t attempts, Instant now) {
  Party& p = parties_[i];
  if (p.held < attempts) {
    if (p.demand) *p.demand -= std::min(*p.demand, attempts - p.held);
    p.passes = 0;
    p.idle_since = now;
  }
  if (p.says <= p.held && attempts < p.says) p.idle_since = now;
  p.held = attempts;
}

void SlotShare::told(Index i, std::uint64_t ticket) {
  Party& p = parties_[i];
  if (!p.said.empty() && p.said.back().slots == p.says) return;  // the first that said it counts
  p.said.push_back({ticket, p.says});
  if (p.said.size() <= kSaidMost) return;
  p.said[1].slots = std::max(p.said[0].slots, p.said[1].slots);
  p.said.pop_front();
}

void SlotShare::heard(Index i, std::uint64_t ticket, std::optional<std::uint32_t> demand,
                      Millis interval) {
  Party& p = parties_[i];
  while (1 < p.said.size() && p.said[1].ticket <= ticket) p.said.pop_front();
  p.demand = demand;
  p.interval = interval;
}

void SlotShare::link_down(Index i) {
  Party& p = parties_[i];
  p.open = false;
  p.said.clear();
  p.says = 0;
  p.demand = 0;
}

std::uint32_t SlotShare::promised(Index i) const {
  const Party& p = parties_[i];
  std::uint32_t most = std::max(p.held, p.says);
  for (const Said& said : p.said) most = std::max(most, said.slots);
  return most;
}

// It did not fill what it asked for: it is not asked again for a while, and is given longer then.
void SlotShare::pass_over(Party& p, Instant now) const {
  const Millis patience =
      std::min(std::max(kPatience, 2 * p.interval) * (1 << p.passes), kPatienceMost);
  if (p.says <= p.held || now < p.idle_since + patience) return;
  p.passes = std::min(p.passes + 1, kPassesMost);
  p.passed_until = now + patience;
}

// By weight, none more than it wants, in parts of slots.
void SlotShare::pour(const std::vector<Index>& level, std::uint32_t slots,
                     std::vector<Part>& parts) const {
  std::vector<Index> thirsty = level;
  std::int64_t left = std::int64_t{slots} * kWhole;
  for (bool again = true; again && !thirsty.empty();) {
    again = false;
    std::int64_t weights = 0;
    for (const Index i : thirsty) weights += parties_[i].terms.weight;
    const std::int64_t have = left;
    std::erase_if(thirsty, [&](Index i) {
      const std::int64_t most = std::int64_t{parts[i].wants} * kWhole;
      if (have * parties_[i].terms.weight / weights < most) return false;
      parts[i].fluid = most;
      left -= most;
      again = true;
      return true;
    });
    if (again) continue;
    for (const Index i : thirsty) parts[i].fluid = have * parties_[i].terms.weight / weights;
  }
}

void SlotShare::divide_level(const std::vector<Index>& level, std::uint32_t& left,
                             std::vector<Part>& parts) {
  pour(level, left, parts);
  std::uint64_t wanted = 0;
  for (const Index i : level) wanted += parts[i].wants;
  auto give = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, wanted));
  for (const Index i : level) {
    parts[i].slots = static_cast<std::uint32_t>(parts[i].fluid / kWhole);
    give -= parts[i].slots;
    left -= parts[i].slots;
  }
  // What is left of it goes whole to who is owed most.
  std::vector<Index> order;
  for (const Index i : level)
    if (parts[i].slots < parts[i].wants) order.push_back(i);
  const auto owed = [&](Index i) {
    return parties_[i].credit + (parts[i].slots < parties_[i].says ? kStays : 0);
  };
  std::ranges::sort(order, [&](Index a, Index b) {
    if (owed(a) != owed(b)) return owed(a) > owed(b);
    const std::int64_t over_a = parts[a].fluid % kWhole, over_b = parts[b].fluid % kWhole;
    if (over_a != over_b) return over_a > over_b;
    return parties_[a].terms.name < parties_[b].terms.name;
  });
  for (const Index i : order) {
    if (give == 0) break;
    ++parts[i].slots;
    --give;
    --left;
  }
}

void SlotShare::offer_rest(std::uint32_t left, std::vector<Part>& parts) const {
  for (; 0 < left; --left) {
    std::optional<Index> next;
    for (Index i = 0; i < parties_.size(); ++i) {
      if (!parties_[i].open) continue;
      const auto after = [&](Index k) {
        return (std::uint64_t{parts[k].slots} + 1) * kWhole / parties_[k].terms.weight;
      };
      if (!next || after(i) < after(*next)) next = i;
    }
    if (!next) return;
    ++parts[*next].slots;
  }
}

std::vector<SlotShare::Part> SlotShare::divide(Instant now) {
  std::vector<Part> parts(parties_.size());
  std::uint64_t wanted = 0;
  for (Index i = 0; i < parties_.size(); ++i) {
    const Party& p = parties_[i];
    const std::uint64_t more = !p.open ? 0 : p.demand ? *p.demand : slots_;
    parts[i].wants = static_cast<std::uint32_t>(std::min<std::uint64_t>(p.held + more, slots_));
    wanted += parts[i].wants;
  }
  const std::uint32_t all = slots_ - std::min(slots_, stray_);
  // Who lets slots lie is passed over only where somebody else would take them.
  if (all < wanted) {
    for (Index i = 0; i < parties_.size(); ++i) {
      Party& p = parties_[i];
      if (parts[i].wants <= p.held) continue;
      if (p.passed_until <= now) pass_over(p, now);
      if (now < p.passed_until) parts[i].wants = std::min(p.held, slots_);
    }
  }
  std::uint32_t left = all;
  std::map<std::uint32_t, std::vector<Index>, std::greater<>> levels;
  for (Index i = 0; i < parties_.size(); ++i) levels[parties_[i].terms.priority].push_back(i);
  for (auto it = levels.begin(); it != levels.end(); ++it) {
    // Kept for those below.
    std::uint32_t kept = 0;
    if (kOneOf <= all)
      for (auto below = std::next(it); below != levels.end(); ++below)
        for (const Index i : below->second) kept += 0 < parts[i].wants ? 1 : 0;
    kept = std::min(kept, all / kOneOf);
    std::uint32_t mine = left - std::min(left, kept);
    const std::uint32_t before = mine;
    divide_level(it->second, mine, parts);
    left -= before - mine;
  }
  // An earlier division's credit: what each should have had, less what it was given.
  const Millis passed = last_ ? std::max(now - *last_, Millis(0)) : Millis(0);
  last_ = now;
  for (Index i = 0; i < parties_.size(); ++i) {
    Party& p = parties_[i];
    if (parts[i].wants == 0 || wanted <= all) {
      p.credit = 0;  // nobody waits for anybody
      continue;
    }
    const std::int64_t taken = std::int64_t{promised(i)} * kWhole;
    p.credit =
        std::clamp(p.credit + (parts[i].fluid - taken) * passed.count(), -kCreditMost, kCreditMost);
  }
  offer_rest(left, parts);
  return parts;
}

std::vector<SlotShare::Index> SlotShare::share(Instant now) {
  const std::vector<Part> parts = divide(now);
  std::vector<Index> changed;
  std::uint64_t out = stray_;
  for (Index i = 0; i < parties_.size(); ++i) out += promised(i);
  const auto set = [&](Index i, std::uint32_t slots) {
    if (std::exchange(parties_[i].says, slots) != slots) changed.push_back(i);
  };
  for (Index i = 0; i < parties_.size(); ++i) {
    Party& p = parties_[i];
    if (!p.open) {
      set(i, 0);
      continue;
    }
    // What it was given a moment ago and has not filled yet stays.
    const std::uint32_t least = now < p.fresh_until ? p.says : 0;
    if (std::max(parts[i].slots, least) < p.says) set(i, std::max(parts[i].slots, least));
  }
  for (Index i = 0; i < parties_.size(); ++i) {
    Party& p = parties_[i];
    if (!p.open || parts[i].slots <= p.says) continue;
    // Up to what it was promised already costs nothing.
    const std::uint32_t had = promised(i);
    const std::uint64_t free = slots_ - std::min<std::uint64_t>(slots_, out);
    const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(had + free, slots_));
    const std::uint32_t says = std::min(parts[i].slots, most);
    if (says <= p.says) continue;
    out += had < says ? says - had : 0;
    if (p.says <= p.held) p.idle_since = now;
    p.fresh_until = now + std::max(kPatience, 2 * p.interval) / 2;
    set(i, says);
  }
  return changed;
}
}  // namespace proctor
