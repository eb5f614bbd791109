#pragma once
// Itinerary: which coordinator a worker serves, of those that it knows, and where it goes when a
// campaign is over, refuses it, or does not answer.  One at a time; by priority, then in the order
// in which they were named.  Pure.
//
// A stop is a campaign's coordinator with its addresses, of which the next is tried when one does
// not answer.  Who was sent away from a stop does not come back to it before kRest; when every stop
// has sent it away and nobody will name another, the journey is over.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace proctor {

struct Stop {
  std::string name;
  std::vector<std::string> addresses;  // at least one
  std::string server_key{};            // Z85; empty: the worker's --server-key
  std::uint32_t priority = 5;          // higher first
  friend bool operator==(const Stop&, const Stop&) = default;
};

class Itinerary {
 public:
  static constexpr Millis kRest{30'000};
  // `grows`: somebody may name more stops while the worker runs, so it waits for them.
  Itinerary(std::vector<Stop> stops, bool grows);

  // The stop it is at; nothing: there is none to go to now.
  const Stop* at() const { return place_ ? &places_[*place_].stop : nullptr; }
  const std::string& address() const { return at()->addresses[address_]; }
  // More than one place to be at, now or later.
  bool has_choice() const;
  // Where an earlier life of the worker was, if it still is a stop.
  void begin_at(const std::string& address);

  // Nobody answers here.  `bound`: what runs belongs to this stop, so only its other addresses are
  // tried.  True: it is elsewhere now.
  bool silent(Instant now, bool bound);
  // Its campaign is over, or it does not want this worker.
  void sent_away(Instant now);
  // While it is nowhere: goes where it may.  True: it is somewhere now.
  bool look(Instant now);
  // Every stop has sent it away, and there will be no others.
  bool is_over() const;

  // The stops are these now.  False: the one it is at is not among them any more (it stays there
  // until it is sent away), or has other addresses.
  bool replace(std::vector<Stop> stops);

 private:
  struct Place {
    Stop stop;
    std::optional<Instant> rests_until{};
    bool leaves = false;  // not named any more
  };
  bool go_from(std::size_t place, Instant now);
  static std::vector<Place> in_order(std::vector<Stop> stops);

  std::vector<Place> places_;
  std::optional<std::size_t> place_;
  std::size_t last_ = 0;  // where it was before it was nowhere
  std::size_t address_ = 0;
  bool grows_;
};

}  // namespace proctor
