#include "common/contract/scalar.h"

#include <array>
#include <utility>

#include "common/base/parse.h"

namespace proctor {
namespace {

constexpr std::string_view kDurationHint = "a duration such as 30m, 45s, 1h30m or 1500ms";
constexpr std::string_view kSizeHint = "a size such as 512MiB or 2GiB";

bool take_quantity(std::string_view& rest, std::uint64_t& out) {
  return take_number(rest, out) && out <= kQuantityMax;
}

struct Unit64 {
  std::string_view name;
  std::uint64_t value;
};
constexpr std::array<Unit64, 4> kTimes{{{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit64, 9> kSizes{{{"TiB", std::uint64_t{1} << 40},
                                        {"GiB", std::uint64_t{1} << 30},
                                        {"MiB", std::uint64_t{1} << 20},
                                        {"KiB", std::uint64_t{1} << 10},
                                        {"TB", 1'000'000'000'000},
                                        {"GB", 1'000'000'000},
                                        {"MB", 1'000'000},
                                        {"KB", 1000},
                                        {"B", 1}}};

Error expected(std::string_view what) {
  return Error{Errc::kInvalid, std::string(what)};
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t out = 0;
  if (!take_quantity(text, out) || !text.empty())
    return expected("a whole number of at most " + std::to_string(kQuantityMax));
  return out;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{366} * 24 * 3'600'000;
  std::uint64_t total = 0;
  std::size_t next = 0;  // units may only become smaller
  do {
    std::uint64_t n = 0;
    if (!take_quantity(text, n)) return expected(kDurationHint);
    std::size_t letters = 0;
    while (letters < text.size() && !is_digit(text[letters])) ++letters;
    const std::string_view unit = text.substr(0, letters);
    std::size_t i = next;
    while (i < kTimes.size() && kTimes[i].name != unit) ++i;
    if (i == kTimes.size()) return expected(kDurationHint);
    if (kMost / kTimes[i].value < n) return expected("a duration of at most 366 days");
    total += n * kTimes[i].value;
    next = i + 1;
    text.remove_prefix(letters);
  } while (!text.empty());
  if (kMost < total) return expected("a duration of at most 366 days");
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t n = 0;
  if (!take_quantity(text, n)) return expected(kSizeHint);
  for (const Unit64& unit : kSizes) {
    if (unit.name != text) continue;
    if (kQuantityMax / unit.value < n) return expected("a size below 8 PiB");
    return n * unit.value;
  }
  return expected(kSizeHint);
}

Result<std::uint64_t> parse_decimal(std::string_view text, unsigned digits,
                                    std::uint64_t scaled_max) {
  PROCTOR_ASSERT(digits <= 12);
  const Error wrong = expected("a non-negative decimal with at most " + std::to_string(digits) +
                               " digits after the point");
  const std::size_t dot = text.find('.');
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (dot == 0 || text.empty() || (dot != std::string_view::npos && fraction.empty())) return wrong;
  if (digits < fraction.size()) return wrong;
  std::uint64_t out = 0;
  const auto append = [&](char c) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (scaled_max / 10 < out) return false;
    out = out * 10 + digit;  // at most scaled_max + 9: no overflow, callers stay below 2^63
    return out <= scaled_max;
  };
  const Error too_large = expected("at most " + format_decimal(scaled_max, digits));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == dot) continue;
    if (!is_digit(text[i])) return wrong;
    if (!append(text[i])) return too_large;
  }
  for (std::size_t i = fraction.size(); i < digits; ++i)
    if (!append('0')) return too_large;
  return out;
}

std::string format_duration(std::chrono::milliseconds duration) {
  const auto ms = static_cast<std::uint64_t>(duration.count());
  if (ms == 0) return "0s";
  for (const Unit64& unit : kTimes)
    if (ms % unit.value == 0) return std::to_string(ms / unit.value) + std::string(unit.name);
  return std::to_string(ms) + "ms";
}

std::string format_size(std::uint64_t bytes) {
  if (bytes == 0) return "0B";
  for (const Unit64& unit : kSizes)
    if (unit.value % 1024 == 0 && bytes % unit.value == 0)
      return std::to_string(bytes / unit.value) + std::string(unit.name);
  return std::to_string(bytes) + "B";
}

std::string format_decimal(std::uint64_t scaled, unsigned digits) {
  std::string fraction;
  for (unsigned i = 0; i < digits; ++i, scaled /= 10)
    fraction.insert(fraction.begin(), static_cast<char>('0' + scaled % 10));
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return std::to_string(scaled) + (fraction.empty() ? "" : "." + fraction);
}

}  // namespace proctor
