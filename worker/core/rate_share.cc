#include "worker/core/rate_share.h"

#include <algorithm>

#include "common/base/limits.h"

namespace proctor {
namespace {

constexpr std::size_t kAskedMax = 64;  // Syncs that may be unanswered

}  // namespace

RateShare::Bucket& RateShare::bucket(std::size_t index, Instant now) {
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  Bucket& b = buckets_[index];
  while (!b.granted.empty() && b.granted.front() + kRateWindow <= now) b.granted.pop_front();
  return b;
}

std::uint64_t RateShare::ask(Instant now) {
  asked_.emplace(++next_, now);
  if (kAskedMax < asked_.size()) asked_.erase(asked_.begin());
  return next_;
}

std::vector<std::uint64_t> RateShare::calls(Instant now) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < buckets_.size(); ++i) out.push_back(bucket(i, now).granted.size());
  return out;
}

void RateShare::obey(std::uint64_t ticket, const std::vector<std::uint64_t>& shares) {
  const auto asked = asked_.find(ticket);
  if (asked == asked_.end() || shares.empty()) return;
  obeyed_ = ticket;
  until_ = asked->second + kRateLease;
  asked_.erase(asked_.begin(), std::next(asked));  // older answers must not come in again
  if (buckets_.size() < shares.size()) buckets_.resize(shares.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    buckets_[i].share = i < shares.size() ? shares[i] : 0;
}

std::optional<CallWait> RateShare::take(const std::vector<RateBucket>& all,
                                        const std::vector<std::size_t>& buckets, Instant now) {
  std::optional<CallWait> wait;
  for (const std::size_t i : buckets) {
    const Bucket& b = bucket(i, now);
    const std::uint64_t share = now < until_ ? b.share : 0;
    if (b.granted.size() < share) continue;
    Millis retry = limits::kSyncInterval;  // the coordinator may give more by then
    // What holds it back may be no more than the share: then it is free when that call is a minute
    // old.
    if (0 < share)
      retry = b.granted[b.granted.size() - static_cast<std::size_t>(share)] + kRateWindow - now;
    const std::string why = "rates." + all[i].name + ": " + std::to_string(all[i].limit) +
                            " on all workers; this worker's share is " + std::to_string(share) +
                            ", " + std::to_string(b.granted.size()) + " granted in the last minute";
    if (!wait || wait->retry_after < retry) wait = CallWait{retry, why};
  }
  if (wait) return wait;
  for (const std::size_t i : buckets) buckets_[i].granted.push_back(now);
  return std::nullopt;
}

std::vector<std::size_t> buckets_of(const Rates& rates, const ActionName& action) {
  std::vector<std::size_t> out;
  std::size_t next = 0;
  if (rates.calls_per_minute) out.push_back(next++);
  for (const auto& [name, limit] : rates.providers) {
    const bool model = action.type == "llm_request";
    if (model && (action.provider.empty() || action.provider == name)) out.push_back(next);
    ++next;
  }
  return out;
}

}  // namespace proctor
