#pragma once
// What amounts of a campaign are counted in.  The only place that decides it: without a price table
// of its own a campaign is priced in abstract units, which are no dollars (R113, R109).
#include <string>

#include "common/contract/cost_model.h"

namespace proctor {

inline std::string money_word(bool abstract) {
  return abstract ? "units" : "USD";
}
inline std::string money_word(const CostModel& prices) {
  return money_word(prices.abstract());
}

}  // namespace proctor
