#pragma once
// What protects the coordinator's loop from peers that talk too much.  Pure: somebody else says
// when a second is over.  One thread.
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/base/ids.h"

namespace proctor {

// Decides before a message is decoded.  What a worker repeats anyway may be dropped when it comes
// too often: the next Sync states everything again.  Results, pieces of archives and goodbyes are
// taken however many there are: their number is bounded by the slots a worker was given.
class FloodGuard {
 public:
  // Of one speaker in a second.  A worker Syncs every two seconds, and 20 times a second at most
  // (coordinator_link.cc); it tells of progress every three.
  static constexpr std::uint32_t kSyncs = 40, kProgress = 4, kWants = 40;
  static constexpr std::uint32_t kGarbage = 4;  // frames that look like none of ours
  // Of one worker's name in a minute: each costs rows in the journal.  Who comes more often is not
  // heard until the minute is over; a worker that was restarted, or whose network fails, is.
  static constexpr std::uint32_t kArrivals = 120;

  // `speaker`: whose key it is, which may have many connections; without keys, the connection.
  // `kind` as wire::peek_kind() says.
  bool takes(std::size_t port, const std::string& speaker, std::uint64_t kind);
  // The worker came anew: another life of it, or another connection.
  bool takes_arrival(const WorkerId& worker);
  void next_second();
  std::uint64_t refused() const { return refused_; }  // ever

 private:
  struct Heard {
    std::uint32_t syncs = 0, progress = 0, wants = 0, garbage = 0;
  };
  std::map<std::pair<std::size_t, std::string>, Heard> heard_;  // in this second
  std::map<WorkerId, std::uint32_t> arrivals_;                  // in this minute
  std::uint32_t seconds_ = 0;                                   // of this minute
  std::uint64_t refused_ = 0;
};

// So many a second, and how many more there would have been.
class Throttle {
 public:
  explicit Throttle(std::uint32_t per_second) : per_second_(per_second) {}
  bool allows() { return seen_++ < per_second_; }
  std::uint64_t next_second() {
    const std::uint64_t seen = std::exchange(seen_, 0);
    return per_second_ < seen ? seen - per_second_ : 0;
  }

 private:
  std::uint32_t per_second_;
  std::uint64_t seen_ = 0;
};

}  // namespace proctor
