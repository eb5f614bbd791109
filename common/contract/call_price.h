#pragma once
// What a call of a model is charged, held against what was reserved for it: both go by the same
// prices of the same parts, so that no bill within the reserved tokens passes worst_price().
#include "common/contract/cost_model.h"

namespace proctor {

// As price(), of a call that asked its provider to write `cache` into its cache.  What a provider
// writes unasked costs what the table's row says, and without one what input does: a provider that
// bills it otherwise has no price here.  Nobody pays for hours who asked for minutes.
// charged_price(t, q, cache) <= worst_price(t, most, cache) where no part of q is above that of
// `most`.
MicroUsd charged_price(const Tariff& tariff, const Quantities& amount, CacheUse cache);
// So many tokens were written without being asked for, and no row prices that.
bool wrote_unpriced(const Tariff& tariff, std::uint64_t written, CacheUse cache);

}  // namespace proctor
