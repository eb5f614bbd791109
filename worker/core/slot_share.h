#pragma once
// SlotShare: how a worker of several campaigns gives out its slots.  Each campaign's coordinator is
// told of a number of slots, in each Sync, and fills them by itself; no slot is promised to two.
// What a coordinator was told once it may still fill, so a smaller number frees a slot only when
// the answer to a Sync that said it has come, for one connection keeps the order, or when the
// connection is gone; and a larger one is told only when the slots are free.
// Nothing that runs is ever ended for it: a campaign with too many is told fewer slots than it
// holds, and loses them as its attempts end.
//
// Who has work gets slots by priority, and among equals by weight.  Parts of a slot are kept as
// credit: one slot changes hands between runs so that in time the weights hold.  A coordinator that
// does not fill what it asked for, while others want it, is passed over for a while.  Slots that
// nobody wants are offered all the same: who gets work next can begin it at once.
// Pure; on the loop's thread.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace proctor {
class SlotShare {
 public:
  explicit SlotShare(std::uint32_t slots) : slots_(slots) {}

  struct Terms {
    std::string name;
    std::uint32_t weight = 1, priority = 5;  // higher first
  };
  using Index = std::size_t;
  Index add(Terms terms);
  void change(Index i, const Terms& terms) { parties_[i].terms = terms; }

  // Attempts of it that are here.
  void held(Index i, std::uint32_t attempts, Instant now);
  // Attempts of nobody who is connected: they take slots all the same.
  void held_by_nobody(std::uint32_t attempts) { stray_ = attempts; }
  // May it be given work?  Not while it drains, stands still or is not connected.
  void open(Index i, bool is_open) { parties_[i].open = is_open; }
  // A Sync with this ticket tells it of says(i).
  void told(Index i, std::uint64_t ticket);
  // It has answered the Sync of this ticket (0: of none), and has so much more work than it was
  // assigned (nothing: it does not say).
  void heard(Index i, std::uint64_t ticket, std::optional<std::uint32_t> demand, Millis interval);
  void link_down(Index i);

  // Divides the slots anew; the parties that are to be told another number now.
  std::vector<Index> share(Instant now);
  std::uint32_t says(Index i) const { return parties_[i].says; }
  // The most that its coordinator may hold here by what it was told.
  std::uint32_t promised(Index i) const;

 private:
  struct Said {
    std::uint64_t ticket = 0;
    std::uint32_t slots = 0;
  };
  struct Party {
    Terms terms;
    bool open = false;
    std::uint32_t held = 0;
    std::optional<std::uint32_t> demand = 0;
    Millis interval{0};
    std::uint32_t says = 0;
    std::deque<Said> said{};   // what it may go by; the last is the newest
    std::int64_t credit = 0;   // thousandths of a slot, times milliseconds
    Instant idle_since{};      // slots of it are not filled since
    Instant fresh_until{};     // what it was given is not taken back yet
    std::uint32_t passes = 0;  // times in a row that it did not fill what it asked for
    Instant passed_until{};
  };
  // What of each is worked out in one division.
  struct Part {
    std::uint32_t wants = 0, slots = 0;
    std::int64_t fluid = 0;  // thousandths
  };
  std::vector<Part> divide(Instant now);
  void divide_level(const std::vector<Index>& level, std::uint32_t& left, std::vector<Part>& parts);
  void pour(const std::vector<Index>& level, std::uint32_t slots, std::vector<Part>& parts) const;
  void pass_over(Party& p, Instant now) const;
  void offer_rest(std::uint32_t left, std::vector<Part>& parts) const;

  std::uint32_t slots_;
  std::uint32_t stray_ = 0;
  std::vector<Party> parties_;
  std::optional<Instant> last_;
};
}  // namespace proctor
