#pragma once
// RateLeases: how the campaign's rates (contract/call_limits.h) are divided among workers, so that
// no schedule of losses, delays and restarts lets more than `limit` calls through in any 60
// seconds.
//
// A worker's share of a bucket is the number of calls that it may grant in any 60 seconds, until
// kRateLease after it sent the Sync that is answered with it.  The coordinator counts for each life
// of a worker what it may have let through in a minute at most: `occupied`, and
//
//   the sum of `occupied` over all lives of all workers <= limit, at every instant.
//
// occupied = max(the shares of its promises, the calls it stated), where
//   - a promise counts until kRateLease + 60 s after it was given (nothing granted under it can be
//     within a minute any more), or until the worker states that it obeyed a later one;
//   - stated calls count for 60 s, or until it states fewer; never more than the largest share that
//     it may have granted them under, so that nobody takes from others what it was not given.
// A share shrinks at once and grows only into what nobody occupies: nothing is given twice.  Who is
// silent keeps what it has until that lapses; who is restarted is somebody new.  A coordinator that
// was restarted knows no promise of its earlier life, so it gives nothing for kRateLease + 60 s.
//
// Shares are in proportion to the slots in use, while none is to the slots there are; what does not
// divide goes round, one turn a minute.  Pure; owned by the scheduler; not thread-safe.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/contract/call_limits.h"

namespace proctor {
class RateLeases {
 public:
  // What a Sync says.  The ticket grows within one life of a worker.
  struct Word {
    std::uint64_t ticket = 0, obeyed = 0;
    std::vector<std::uint64_t> calls;  // by bucket; missing ones are 0
    std::uint32_t slots = 0, used = 0;
  };
  // `restarted`: an earlier life of this coordinator may have given shares.
  RateLeases(std::vector<std::uint64_t> limits, bool restarted)
      : limits_(std::move(limits)), restarted_(restarted) {}

  bool none() const { return limits_.empty(); }
  // The shares to answer with, by bucket; nothing for a word that came late.
  std::vector<std::uint64_t> renew(const WorkerId& worker, BootId boot, const Word& word,
                                   Instant now);
  // A provider without room for one worker has none for the others: what this one `said` of such
  // providers is kept for them, and what others said and it did not is answered.  Not journalled,
  // for no such wait outlives a coordinator.
  std::vector<ProviderHold> pass_on(const std::vector<ProviderHold>& said, Instant now);
  // What all lives together may have let through in the last minute, at most.
  std::uint64_t occupied(std::size_t bucket, Instant now) const;
  std::uint64_t limit(std::size_t bucket) const { return limits_[bucket]; }

 private:
  struct Promise {
    std::uint64_t ticket = 0;
    Instant until{};  // when nothing of it can be within a minute any more
    std::vector<std::uint64_t> shares;
    bool obeyed = true;  // false: by its own word it obeys a later one
  };
  struct Lease {
    std::uint64_t ticket = 0;  // the latest heard
    Instant heard{};
    std::uint32_t slots = 0, used = 0;
    std::vector<std::uint64_t> calls;  // stated then
    std::vector<Promise> promises;
  };
  using Key = std::pair<WorkerId, BootId>;

  std::uint64_t given(const Lease& lease, std::size_t bucket, Instant now) const;
  static void supersede(Lease& lease, std::uint64_t obeyed);
  static std::uint64_t occupied(const Lease& lease, std::size_t bucket, Instant now);
  void drop_lapsed(Instant now);
  std::uint64_t target(const Key& key, std::size_t bucket, Instant now) const;

  std::vector<std::uint64_t> limits_;
  bool restarted_;
  std::optional<Instant> quiet_until_;  // from the first word on
  std::map<Key, Lease> leases_;
  std::map<std::string, Instant> holds_;  // by the provider's name: until when
};
}  // namespace proctor
