#pragma once
// DurableSteps: of the scheduler's steps that are durable, those that one turn of the loop tells it
// of.  While the disk stands still they gather, tens of thousands of facts in hundreds of steps;
// told all at once they would be one turn, and whatever else waits for the loop would wait for it.
// Pure; the caller comes again in another turn as long as there is more.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace proctor {

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

}  // namespace proctor
