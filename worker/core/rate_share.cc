#include "worker/core/rate_share.h"

#include <algorithm>

#include "common/base/limits.h"

namespace proctor {
constexpr std::size_t kAskedMax = 64;  // Syncs that may be unanswered
// One that comes too early for what is kept for others.
constexpr Millis kBehind{500};
constexpr std::size_t kShortMax = 1'000;  // runs

RateShare::Bucket& RateShare::bucket(std::size_t index, Instant now) {
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  Bucket& b = buckets_[index];
  while (!b.granted.empty() && b.granted.front().at + kRateWindow <= now) {
    const auto of = b.of_run.find(b.granted.front().run);
    if (--of->second == 0) b.of_run.erase(of);
    b.granted.pop_front();
  }
  std::erase_if(b.short_of, [&](const auto& run) { return run.second + kRateWindow <= now; });
  return b;
}

std::uint64_t RateShare::Bucket::had(std::uint64_t run) const {
  const auto it = of_run.find(run);
  return it == of_run.end() ? 0 : it->second;
}

std::uint64_t RateShare::Bucket::left_to_others(std::uint64_t run) const {
  const std::uint64_t own = had(run);
  const std::uint64_t equal = share / (short_of.size() + (short_of.contains(run) ? 0 : 1));
  std::uint64_t out = 0;
  for (const auto& [other, when] : short_of) {
    const std::uint64_t has = had(other);
    if (other == run || own <= has) continue;
    const std::uint64_t may = std::min(equal, 2 * has + std::max<std::uint64_t>(1, equal / 2));
    out += may - std::min(may, has);
  }
  return out;
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
                                        const std::vector<std::size_t>& buckets, std::uint64_t run,
                                        Instant now) {
  std::optional<CallWait> wait;
  for (const std::size_t i : buckets) {
    const Bucket& b = bucket(i, now);
    const std::uint64_t share = now < until_ ? b.share : 0;
    const std::uint64_t left = b.left_to_others(run);
    if (b.granted.size() + left < share) continue;
    Millis retry = limits::kSyncInterval;  // the coordinator may give more by then
    // What holds it back may be no more than the share: then it is free when that call is a minute
    // old.
    if (b.granted.size() < share)
      retry = kBehind;
    else if (0 < share)
      retry = b.granted[b.granted.size() - static_cast<std::size_t>(share)].at + kRateWindow - now;
    std::string why = "rates." + all[i].name + ": " + std::to_string(all[i].limit) +
                      " on all workers; this worker's share is " + std::to_string(share) + ", " +
                      std::to_string(b.granted.size()) + " granted in the last minute";
    if (b.granted.size() < share)
      why += ", " + std::to_string(b.had(run)) + " of them to this run, and " +
             std::to_string(share - b.granted.size()) + " are left to others";
    if (!wait || wait->retry_after < retry) wait = CallWait{retry, std::move(why)};
  }
  for (const std::size_t i : buckets) {
    Bucket& b = buckets_[i];
    if (!wait) {
      b.granted.push_back({now, run});
      ++b.of_run[run];
    } else if (b.short_of.contains(run) || b.short_of.size() < kShortMax) {
      b.short_of[run] = now;
    }
  }
  return wait;
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
