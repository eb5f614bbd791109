#pragma once
// Time as data, and Strong, the type of ids and counts that do not mix.
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <typeindex>  // the lightest that declares std::hash
#include <utility>

namespace proctor {
// Strong<Tag, Rep>: an id or count that does not mix with its neighbours.
template <class Tag, class Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep r) : rep_(std::move(r)) {}
  constexpr const Rep& raw() const { return rep_; }
  friend constexpr bool operator==(const Strong&, const Strong&) = default;
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  Rep rep_{};
};
}  // namespace proctor

template <class Tag, class Rep>
struct std::hash<proctor::Strong<Tag, Rep>> {
  std::size_t operator()(const proctor::Strong<Tag, Rep>& s) const {
    return std::hash<Rep>{}(s.raw());
  }
};

namespace proctor {
// Time is data.  Core code receives an Instant with each event and never asks for one.
// Two clocks by type: Instant decides (monotonic), WallTime is only written down.

struct MonoClock {  // a tag, not a source: it has no now()
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<MonoClock>;
  static constexpr bool is_steady = true;
};
using Instant = MonoClock::time_point;
using Millis = MonoClock::duration;

// Milliseconds since 1970 (UTC), for records that people read.  Never compared to decide anything.
using WallTime = Strong<struct WallTimeTag, std::int64_t>;
}  // namespace proctor
