#include "common/contract/human_cost.h"

#include <algorithm>

#include "common/contract/scalar.h"

namespace proctor {
namespace {
constexpr unsigned kMinuteDigits = 3;
}

Result<std::uint64_t> human_minute_price(const CostModel& prices) {
  const auto row = std::ranges::find_if(prices.rows, [](const PriceRow& r) {
    return r.action_type == kHumanAction && r.unit == kHumanUnit;
  });
  if (row != prices.rows.end()) return row->pico_usd;
  return Error{Errc::kNotFound, "the price table (" +
                                    (prices.abstract() ? "the built-in " + prices.version
                                                       : std::string("pilot_cost_model.csv")) +
                                    ") has no row human,minute"};
}

MicroUsd review_cost(std::uint64_t pico_per_minute, std::uint64_t milli_minutes) {
  // At most 1e18 x 1e9: fits 128 bits.
  __extension__ typedef unsigned __int128 Wide;
  constexpr Wide kPerMicro = Wide{1'000'000} * 1'000;
  const Wide amount = Wide{pico_per_minute} * milli_minutes;
  const Wide micros = amount / kPerMicro + (amount % kPerMicro == 0 ? 0 : 1);
  const Wide most = static_cast<Wide>(kLedgerMax.micros());
  return MicroUsd::from_micros(static_cast<std::int64_t>(std::min(micros, most)));
}

Result<std::uint64_t> parse_minutes(std::string_view text) {
  PROCTOR_TRY(const std::uint64_t n, parse_decimal(text, kMinuteDigits, kReviewMilliMinutesMax));
  if (n == 0) return Error{Errc::kInvalid, "more than nothing"};
  return n;
}

std::string format_minutes(std::uint64_t milli_minutes) {
  return format_decimal(milli_minutes, kMinuteDigits);
}

}  // namespace proctor
