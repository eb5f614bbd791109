#include "worker/shell/stops.h"

#include <algorithm>

namespace proctor {

void Addresses::begin_at(const std::string& address) {
  const auto it = std::ranges::find(all_, address);
  if (it != all_.end()) at_ = static_cast<std::size_t>(it - all_.begin());
}

bool Addresses::next() {
  if (!has_choice()) return false;
  at_ = (at_ + 1) % all_.size();
  return true;
}

void Addresses::sent_away(Instant now, bool again) {
  at_ = 0;
  if (again)
    rests_until_ = now + kRest;
  else
    over_ = true;
}

void Addresses::replace(std::vector<std::string> all) {
  if (all != all_) {
    const std::string here = at();
    all_ = std::move(all);
    at_ = 0;
    begin_at(here);
  }
  over_ = false;
  rests_until_.reset();
}

}  // namespace proctor
