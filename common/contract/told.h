#pragma once
// What was complained of before the parts of a campaign are held against each other, so that one
// mistake is told once: a value that could not be read has a default by then, and a name that could
// not is unknown, and neither is what its author wrote.  Pure.
#include <set>
#include <string>
#include <utility>

#include "common/contract/campaign.h"
#include "common/contract/diagnostic.h"

namespace proctor {

class Told {
 public:
  Told(const Campaign& campaign, const Diagnostics& before);

  // Was something at this place of the campaign's own file?
  bool at(Mark place) const { return places_.contains({place.line, place.column}); }
  // Are all contracts, all methods there and whole: is what none of them has unknown?
  bool knows_contracts() const { return contracts_; }
  bool knows_methods() const { return methods_; }
  // Of runs: their envelope and caps, and with the price table what they may cost.
  bool knows_run_caps() const { return run_caps_; }
  bool knows_prices() const { return prices_; }

 private:
  std::set<std::pair<std::uint32_t, std::uint32_t>> places_;
  bool contracts_ = true, methods_ = true, run_caps_ = true, prices_ = true;
};

}  // namespace proctor
