#pragma once
// Guards of the coordinator's loop: open files, floods of messages, lateness, durable steps.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace proctor {
// Open files of this process, which bound how many workers may be connected.

// The soft limit becomes the hard one: shells often leave it at 1,024, and each worker takes one.
void raise_open_files();

// As many as it may open at all.
std::size_t open_files_limit();
// Connections that fit beside what is open now and what the coordinator opens in passing: archives
// that are unpacked, clients of the control socket, a new connection to Redis.
std::size_t connections_that_fit();

// DurableSteps: of the scheduler's steps that are durable, those that one turn of the loop tells it
// of.  While the disk stands still they gather, tens of thousands of facts in hundreds of steps;
// told all at once they would be one turn, and whatever else waits for the loop would wait for it.
// Pure; the caller comes again in another turn as long as there is more.
class DurableSteps {
 public:
  // A step with fewer is told whole, and so is the first of a turn however many it has.
  static constexpr std::size_t kFactsPerTurn = 500;

  // In the order of their numbers.
  void asked(std::uint64_t seq, std::size_t facts) { asked_.push_back({seq, facts}); }

  // The last step of this turn, of those up to `durable`; empty: there is none to tell.
  std::optional<std::uint64_t> next(std::uint64_t durable) {
    std::optional<std::uint64_t> last;
    std::size_t facts = 0;
    while (has_more(durable) && (!last || facts + asked_.front().facts <= kFactsPerTurn)) {
      facts += asked_.front().facts;
      last = asked_.front().seq;
      asked_.pop_front();
    }
    return last;
  }
  bool has_more(std::uint64_t durable) const {
    return !asked_.empty() && asked_.front().seq <= durable;
  }

 private:
  struct Step {
    std::uint64_t seq;
    std::size_t facts;
  };
  std::deque<Step> asked_;
};

// Protection of the loop from peers that talk too much.  Pure: somebody else says when a second is
// over.  One thread.

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

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace proctor {
struct LagFigures {
  double p50_ms = 0, p99_ms = 0, max_ms = 0;  // of the last minute
  std::uint64_t stalled_ms = 0;               // in sum, of stops of more than kStall, ever
  friend bool operator==(const LagFigures&, const LagFigures&) = default;
};

// The numbers of LoopLag alone.
class LagBook {
 public:
  static constexpr std::chrono::microseconds kEvery{20'000};
  static constexpr std::chrono::microseconds kStall{10'000};
  static constexpr std::size_t kKept = 3'000;  // a minute's
  void late_by(std::chrono::microseconds late);
  LagFigures figures() const;

 private:
  void keep(std::chrono::microseconds late);
  std::vector<std::uint32_t> last_;  // microseconds; a ring once it is full
  std::size_t next_ = 0;
  std::chrono::microseconds stalled_{0};
};

// LoopLag: how late an Asio loop is.  Every 20 ms it asks to be called and looks how much later it
// was: that long any message, timer or signal would have waited too.
//
// A loop that stood still for a second missed fifty calls.  Each counts with its own lateness, or
// the worst second would weigh as little as one good moment (G. Tene's "coordinated omission").
// All on the loop's thread; the loop outlives it.
class LoopLag {
 public:
  explicit LoopLag(boost::asio::io_context& io);
  ~LoopLag();
  LagFigures figures() const { return book_.figures(); }

 private:
  struct Timer;
  void wait();
  std::unique_ptr<Timer> timer_;
  LagBook book_;
};
}  // namespace proctor
