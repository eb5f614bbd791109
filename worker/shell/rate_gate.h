#pragma once
// RateGate: the RateShare of one campaign behind a lock: the loop asks and obeys, the attempts'
// meters take.  Thread-safe.
#include <mutex>

#include "worker/core/rate_share.h"

namespace proctor {

class RateGate {
 public:
  explicit RateGate(std::uint64_t first) : share_(first) {}

  struct Word {
    std::uint64_t ticket = 0, obeyed = 0;
    std::vector<std::uint64_t> calls;
  };
  // Of a Sync that goes out now.
  Word ask(Instant now) {
    const std::lock_guard lock(mutex_);
    return {share_.ask(now), share_.obeyed(), share_.calls(now)};
  }
  void obey(std::uint64_t ticket, const std::vector<std::uint64_t>& shares) {
    const std::lock_guard lock(mutex_);
    share_.obey(ticket, shares);
  }
  std::optional<CallWait> take(const Rates& rates, const ActionName& action, std::uint64_t run,
                               Instant now) {
    if (rates.empty()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return share_.take(rates.buckets(), buckets_of(rates, action), run, now);
  }

 private:
  std::mutex mutex_;
  RateShare share_;
};

}  // namespace proctor
