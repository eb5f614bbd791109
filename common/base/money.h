#pragma once
// MicroUsd: whole millionths of a dollar.  No floating point, no implicit conversion,
// no silent overflow.  2^63 micro-dollars is nine trillion dollars: enough.  Redis may hold
// less (a Lua number is exact to 2^53): see kLedgerMax.
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor {
class MicroUsd {
 public:
  constexpr MicroUsd() = default;
  static constexpr MicroUsd from_micros(std::int64_t m) { return MicroUsd(m); }
  static constexpr MicroUsd zero() { return MicroUsd(0); }
  constexpr std::int64_t micros() const { return micros_; }

  friend constexpr MicroUsd operator+(MicroUsd a, MicroUsd b) {
    std::int64_t out = 0;
    PROCTOR_ASSERT(!__builtin_add_overflow(a.micros_, b.micros_, &out));
    return MicroUsd(out);
  }
  friend constexpr MicroUsd operator-(MicroUsd a, MicroUsd b) {
    std::int64_t out = 0;
    PROCTOR_ASSERT(!__builtin_sub_overflow(a.micros_, b.micros_, &out));
    return MicroUsd(out);
  }
  friend constexpr auto operator<=>(MicroUsd, MicroUsd) = default;

 private:
  constexpr explicit MicroUsd(std::int64_t m) : micros_(m) {}
  std::int64_t micros_ = 0;
};

// The largest amount an envelope may hold: 2^53 - 1 micro-dollars, about nine billion dollars.
inline constexpr MicroUsd kLedgerMax = MicroUsd::from_micros((std::int64_t{1} << 53) - 1);

// Reads a non-negative decimal of dollars with at most six fractional digits ("5", "0.25",
// "12.000001") and at most kLedgerMax.  No sign, exponent, spaces or digit groups.
// Fails with kInvalid and a sentence that says what was found.
Result<MicroUsd> parse_usd(std::string_view text);
// The same without a sentence around it: nullptr, and the amount in `out`, or why it is none.
const char* why_not_usd(std::string_view text, MicroUsd& out);

// "5.000000": always six digits, so that every micro is visible.
std::string format_usd_exact(MicroUsd amount);
// "5.00", "0.000123": at least two and at most six fractional digits, never rounded.
std::string format_usd(MicroUsd amount);
}  // namespace proctor
