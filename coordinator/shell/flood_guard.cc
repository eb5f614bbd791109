#include "coordinator/shell/flood_guard.h"

#include "common/wire/codec.h"

namespace proctor {

bool FloodGuard::takes(std::size_t port, const std::string& speaker, std::uint64_t kind) {
  const auto is = [kind](wire::Kind k) { return kind == static_cast<std::uint64_t>(k); };
  if (is(wire::Kind::kResult) || is(wire::Kind::kArchiveChunk) || is(wire::Kind::kLeave))
    return true;
  Heard& heard = heard_[{port, speaker}];
  const bool takes = is(wire::Kind::kSync)       ? ++heard.syncs <= kSyncs
                     : is(wire::Kind::kProgress) ? ++heard.progress <= kProgress
                     : is(wire::Kind::kWant)     ? ++heard.wants <= kWants
                                                 : ++heard.garbage <= kGarbage;
  refused_ += takes ? 0 : 1;
  return takes;
}

bool FloodGuard::takes_arrival(const WorkerId& worker) {
  const bool takes = ++arrivals_[worker] <= kArrivals;
  refused_ += takes ? 0 : 1;
  return takes;
}

void FloodGuard::next_second() {
  heard_.clear();
  if (++seconds_ < 60) return;
  seconds_ = 0;
  arrivals_.clear();
}

}  // namespace proctor
