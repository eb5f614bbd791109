#pragma once
// What a reviewer's time costs: the human part of R158 (R174).  Priced by the row
// human,minute of the price table and by no other; a default row does not price people.
// Pure; any thread.
#include "common/contract/cost_model.h"

namespace proctor {

inline constexpr const char* kHumanAction = "human";
inline constexpr const char* kHumanUnit = "minute";
// The most that one review may be: a million minutes.
inline constexpr std::uint64_t kReviewMilliMinutesMax = 1'000'000'000;

// In 1e-12 USD for a minute.  kNotFound names the row that is missing.
Result<std::uint64_t> human_minute_price(const CostModel& prices);
// Of thousandths of a minute, in 128 bits, rounded up once.  Requires: at most the maximum above.
MicroUsd review_cost(std::uint64_t pico_per_minute, std::uint64_t milli_minutes);
// "12", "7.5": a positive decimal with at most three digits after the point.
Result<std::uint64_t> parse_minutes(std::string_view text);
std::string format_minutes(std::uint64_t milli_minutes);

}  // namespace proctor
