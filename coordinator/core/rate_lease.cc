#include "coordinator/core/rate_lease.h"

#include <algorithm>
#include <functional>

namespace proctor {
std::uint64_t RateLeases::occupied(const Lease& lease, std::size_t bucket, Instant now) {
  std::uint64_t most = now < lease.heard + kRateWindow ? lease.calls[bucket] : 0;
  for (const Promise& p : lease.promises)
    if (p.obeyed && now < p.until) most = std::max(most, p.shares[bucket]);
  return most;
}

std::uint64_t RateLeases::occupied(std::size_t bucket, Instant now) const {
  std::uint64_t sum = 0;
  for (const auto& [key, lease] : leases_) sum += occupied(lease, bucket, now);
  return sum;
}

// The most that a minute of it can hold.  What an earlier life of the coordinator gave, nobody here
// knows, until none of it can be within a minute any more.
std::uint64_t RateLeases::given(const Lease& lease, std::size_t bucket, Instant now) const {
  if (quiet_until_ && now < *quiet_until_) return limits_[bucket];
  std::uint64_t most = 0;
  for (const Promise& p : lease.promises)
    if (now < p.until) most = std::max(most, p.shares[bucket]);
  return most;
}

// It will never obey an older promise again, and what it granted under those is in `calls`: they
// occupy nothing, and bound what it may state.  A later one that gave as much says it all.
void RateLeases::supersede(Lease& lease, std::uint64_t obeyed) {
  for (Promise& p : lease.promises) p.obeyed = p.obeyed && obeyed <= p.ticket;
  std::vector<Promise> kept;
  for (auto p = lease.promises.rbegin(); p != lease.promises.rend(); ++p) {
    const bool said = std::ranges::any_of(kept, [&](const Promise& later) {
      return std::ranges::equal(p->shares, later.shares, std::less_equal<>());
    });
    if (!said) kept.push_back(std::move(*p));
  }
  std::ranges::reverse(kept);
  lease.promises = std::move(kept);
}

void RateLeases::drop_lapsed(Instant now) {
  for (auto it = leases_.begin(); it != leases_.end();) {
    std::erase_if(it->second.promises, [&](const Promise& p) { return p.until <= now; });
    const bool gone = it->second.promises.empty() && it->second.heard + kRateWindow <= now;
    it = gone ? leases_.erase(it) : std::next(it);
  }
}

// Its part of the limit by weight, and perhaps one of the calls that do not divide.
std::uint64_t RateLeases::target(const Key& key, std::size_t bucket, Instant now) const {
  const auto counts = [&](const Lease& lease) { return now < lease.heard + kRateLease; };
  bool any_used = false;
  for (const auto& [k, lease] : leases_) any_used = any_used || (counts(lease) && 0 < lease.used);
  const auto weight = [&](const Lease& lease) -> std::uint64_t {
    if (!counts(lease)) return 0;
    return any_used ? lease.used : lease.slots;
  };
  std::uint64_t total = 0, sharers = 0, place = 0;
  for (const auto& [k, lease] : leases_) {
    total += weight(lease);
    if (weight(lease) == 0) continue;
    if (k < key) ++place;
    ++sharers;
  }
  const std::uint64_t mine = weight(leases_.at(key));
  if (mine == 0) return 0;
  const std::uint64_t limit =
      limits_[bucket];  // at most 1e6, weights at most 4096 each: no overflow
  std::uint64_t left = limit;
  for (const auto& [k, lease] : leases_) left -= limit * weight(lease) / total;
  const auto turn = static_cast<std::uint64_t>(now.time_since_epoch() / kRateWindow);
  const bool extra = (place + sharers - turn % sharers) % sharers < left;
  return limit * mine / total + (extra ? 1 : 0);
}

std::vector<std::uint64_t> RateLeases::renew(const WorkerId& worker, BootId boot, const Word& word,
                                             Instant now) {
  if (restarted_ && !quiet_until_) quiet_until_ = now + kRateLease + kRateWindow;
  drop_lapsed(now);
  const Key key{worker, boot};
  Lease& lease = leases_[key];
  if (word.ticket <= lease.ticket) return {};  // overtaken by a later one
  lease.ticket = word.ticket;
  lease.heard = now;
  lease.slots = word.slots;
  lease.used = word.used;
  lease.calls = word.calls;
  lease.calls.resize(limits_.size());
  for (std::size_t b = 0; b < limits_.size(); ++b)
    lease.calls[b] = std::min(lease.calls[b], given(lease, b, now));
  supersede(lease, word.obeyed);
  std::vector<std::uint64_t> shares(limits_.size());
  if (!quiet_until_ || *quiet_until_ <= now) {
    for (std::size_t b = 0; b < shares.size(); ++b) {
      const std::uint64_t others = occupied(b, now) - occupied(lease, b, now);
      const std::uint64_t room = limits_[b] - std::min(limits_[b], others);
      shares[b] = std::min(target(key, b, now), room);
    }
  }
  lease.promises.push_back({word.ticket, now + kRateLease + kRateWindow, shares, true});
  return shares;
}

std::vector<ProviderHold> RateLeases::pass_on(const std::vector<ProviderHold>& said, Instant now) {
  std::erase_if(holds_, [now](const auto& hold) { return hold.second <= now; });
  for (const ProviderHold& hold : said)
    if (holds_.size() < kHoldsMax || holds_.contains(hold.provider)) {
      Instant& until = holds_[hold.provider];
      until = std::max(until, now + Millis(hold.ms));
    }
  std::vector<ProviderHold> out;
  for (const auto& [provider, until] : holds_) {
    const auto left = static_cast<std::uint32_t>((until - now).count());
    const bool known = std::ranges::any_of(said, [&, &name = provider](const ProviderHold& hold) {
      return hold.provider == name && left <= hold.ms;
    });
    if (!known && 0 < left) out.push_back({provider, left});
  }
  return out;
}
}  // namespace proctor
