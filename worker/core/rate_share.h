#pragma once
// RateShare: a worker's part of the campaign's rates (contract/call_limits.h), by bucket: at most
// `share` calls in any 60 seconds, as long as the coordinator's word holds.  Its word is an answer
// to a Sync and holds for kRateLease after that Sync went out, by the worker's own clock: whatever
// is delayed, the worker stops before the coordinator counts on it (coordinator/core/rate_lease.h).
// Without a word, or with one that ran out, nothing is granted.
// To a run that was refused in the last minute those that have had more leave something: half of an
// equal part and twice what it has had, up to an equal part.  A run that is alone may have all.
// Pure; not thread-safe (RateGate).
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/call_limits.h"
#include "common/contract/cost_model.h"

namespace proctor {
// Why a call must wait.
struct CallWait {
  Millis retry_after{0};
  std::string reason;
};

class RateShare {
 public:
  // Tickets of one life must not be those of another: `first` is random.
  explicit RateShare(std::uint64_t first) : next_(first) {}

  // A Sync goes out: its ticket.
  std::uint64_t ask(Instant now);
  std::uint64_t obeyed() const { return obeyed_; }
  // Granted in the last minute, by bucket.
  std::vector<std::uint64_t> calls(Instant now);
  // The answer to the Sync of this ticket.  One that was overtaken, or that nobody asked for, says
  // nothing.
  void obey(std::uint64_t ticket, const std::vector<std::uint64_t>& shares);

  // Grants one call of this run in all of these buckets, or in none.
  std::optional<CallWait> take(const std::vector<RateBucket>& all,
                               const std::vector<std::size_t>& buckets, std::uint64_t run,
                               Instant now);

 private:
  struct Grant {
    Instant at{};
    std::uint64_t run = 0;
  };
  struct Bucket {
    std::uint64_t share = 0;
    std::deque<Grant> granted;                      // of the last minute
    std::map<std::uint64_t, std::uint64_t> of_run;  // how many of these
    std::map<std::uint64_t, Instant> short_of;      // runs that were refused, and when at last
    std::uint64_t had(std::uint64_t run) const;
    // Calls that are left to others than this run.
    std::uint64_t left_to_others(std::uint64_t run) const;
  };
  Bucket& bucket(std::size_t index, Instant now);

  std::uint64_t next_, obeyed_ = 0;
  std::map<std::uint64_t, Instant> asked_;  // when each ticket went out; the latest ones
  Instant until_{};                         // the shares hold before it
  std::vector<Bucket> buckets_;
};

// The buckets that an action counts in.  Model calls count for their provider too; one that names
// none counts for each of them.
std::vector<std::size_t> buckets_of(const Rates& rates, const ActionName& action);
}  // namespace proctor
