#include "common/base/money.h"

#include "common/base/parse.h"

namespace proctor {
namespace {
constexpr std::size_t kFractionDigits = 6;
constexpr std::int64_t kMicrosPerUsd = 1'000'000;
}  // namespace

const char* why_not_usd(std::string_view text, MicroUsd& out) {
  if (text.empty()) return "it is empty";
  if (text.front() == '-') return "an amount cannot be negative";
  const std::size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (whole.empty()) return "a digit is expected before the point";
  if (dot != std::string_view::npos && fraction.empty())
    return "a digit is expected after the point";
  if (kFractionDigits < fraction.size())
    return "at most six digits after the point (one micro-dollar) are kept";
  std::int64_t micros = 0;
  const auto append = [&](char c) {
    if (!is_digit(c)) return false;
    if (kLedgerMax.micros() / 10 < micros) return false;
    micros = micros * 10 + (c - '0');
    return micros <= kLedgerMax.micros();
  };
  for (const std::string_view part : {whole, fraction})
    for (const char c : part) {
      if (!is_digit(c)) return "only digits and one point are allowed";
      if (!append(c)) return "it is above 9007199254.740991";
    }
  for (std::size_t i = fraction.size(); i < kFractionDigits; ++i)
    if (!append('0')) return "it is above 9007199254.740991";
  out = MicroUsd::from_micros(micros);
  return nullptr;
}

Result<MicroUsd> parse_usd(std::string_view text) {
  MicroUsd out;
  const char* why = why_not_usd(text, out);
  if (why == nullptr) return out;
  return Error{Errc::kInvalid,
               "\"" + std::string(text.substr(0, 40)) + "\" is not an amount: " + why};
}

std::string format_usd_exact(MicroUsd amount) {
  const bool negative = amount < MicroUsd::zero();
  // Unsigned arithmetic, so that the most negative value prints too.
  const std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(amount.micros())
                                      : static_cast<std::uint64_t>(amount.micros());
  std::string fraction = std::to_string(size % kMicrosPerUsd);
  fraction.insert(0, kFractionDigits - fraction.size(), '0');
  return (negative ? "-" : "") + std::to_string(size / kMicrosPerUsd) + "." + fraction;
}

std::string format_usd(MicroUsd amount) {
  std::string out = format_usd_exact(amount);
  constexpr std::size_t kCents = 2;
  const std::size_t least = out.find('.') + 1 + kCents;
  while (least < out.size() && out.back() == '0') out.pop_back();
  return out;
}
}  // namespace proctor
