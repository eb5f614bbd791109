#include "worker/shell/itinerary.h"

#include <algorithm>
#include <utility>

#include "common/base/assert.h"

namespace proctor {

std::vector<Itinerary::Place> Itinerary::in_order(std::vector<Stop> stops) {
  std::ranges::stable_sort(stops,
                           [](const Stop& a, const Stop& b) { return a.priority > b.priority; });
  std::vector<Place> out;
  for (Stop& stop : stops) {
    PROCTOR_ASSERT(!stop.addresses.empty());
    out.push_back({std::move(stop)});
  }
  return out;
}

Itinerary::Itinerary(std::vector<Stop> stops, bool grows)
    : places_(in_order(std::move(stops))), grows_(grows) {
  if (!places_.empty()) place_ = 0;
}

bool Itinerary::has_choice() const {
  return grows_ || 1 < places_.size() || (place_ && 1 < at()->addresses.size());
}

void Itinerary::begin_at(const std::string& address) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::vector<std::string>& all = places_[i].stop.addresses;
    const auto it = std::ranges::find(all, address);
    if (it == all.end()) continue;
    place_ = i;
    address_ = static_cast<std::size_t>(it - all.begin());
    return;
  }
}

// The next place after this one that may be entered; itself last.
bool Itinerary::go_from(std::size_t from, Instant now) {
  for (std::size_t i = 1; i <= places_.size(); ++i) {
    const std::size_t next = (from + i) % places_.size();
    const Place& p = places_[next];
    // Without more stops to come nobody is asked twice: the journey would have no end.
    if (p.leaves || (p.rests_until && (!grows_ || now < *p.rests_until))) continue;
    place_ = next;
    address_ = 0;
    return true;
  }
  return false;
}

bool Itinerary::silent(Instant now, bool bound) {
  if (!place_) return false;
  const std::size_t was = *place_, before = address_;
  if (address_ + 1 < at()->addresses.size()) {
    ++address_;
    return true;
  }
  address_ = 0;  // all of this stop's were tried
  if (!bound) (void)go_from(was, now);
  return place_ != was || address_ != before;
}

void Itinerary::sent_away(Instant now) {
  if (!place_) return;
  last_ = *place_;
  place_.reset();
  address_ = 0;
  if (places_[last_].leaves) {
    places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(last_));
    last_ = last_ == 0 ? 0 : last_ - 1;
  } else {
    places_[last_].rests_until = now + kRest;
  }
  (void)look(now);
}

bool Itinerary::look(Instant now) {
  if (place_) return true;
  return !places_.empty() && go_from(last_, now);
}

bool Itinerary::is_over() const {
  return !grows_ && !place_;
}

bool Itinerary::replace(std::vector<Stop> stops) {
  std::vector<Place> next = in_order(std::move(stops));
  for (Place& p : next)
    for (const Place& old : places_)
      if (old.stop.name == p.stop.name) p.rests_until = old.rests_until;
  if (!place_) {
    places_ = std::move(next);
    last_ = 0;
    return true;
  }
  const Place here = places_[*place_];
  const auto it =
      std::ranges::find(next, here.stop.name, [](const Place& p) { return p.stop.name; });
  const bool same = it != next.end() && it->stop.addresses == here.stop.addresses &&
                    it->stop.server_key == here.stop.server_key;
  if (it != next.end() && same) {
    place_ = static_cast<std::size_t>(it - next.begin());
  } else {  // until it has delivered what it has
    next.push_back(here);
    next.back().leaves = true;
    place_ = next.size() - 1;
  }
  places_ = std::move(next);
  return same;
}

}  // namespace proctor
