#pragma once
// How configuration files write quantities: durations ("30m", "1h30m", "1500ms"), sizes
// ("512MiB", "2GB", "100B"), counts ("12") and decimals ("1.5"), and how we write them back.
// Exact integers only.  Each reader fails with kInvalid and a sentence that says what is expected.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor {

// The largest integer that JSON and Lua hold exactly, 2^53 - 1: no quantity is above it.
inline constexpr std::uint64_t kQuantityMax = (std::uint64_t{1} << 53) - 1;

Result<std::uint64_t> parse_count(std::string_view text);
// Parts of h, m, s and ms, each at most once and in this order; at most 366 days.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// A whole number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB.
Result<std::uint64_t> parse_size(std::string_view text);
// A non-negative decimal with at most `digits` fractional digits, times 10^digits.
// Requires: digits <= 12.  Refuses results above `scaled_max`.
Result<std::uint64_t> parse_decimal(std::string_view text, unsigned digits,
                                    std::uint64_t scaled_max);

// The shortest text that reads back as the same value.
std::string format_duration(std::chrono::milliseconds duration);
std::string format_size(std::uint64_t bytes);
std::string format_decimal(std::uint64_t scaled, unsigned digits);

}  // namespace proctor
