#include "common/score/violation_end.h"

#include <algorithm>
#include <charconv>

namespace proctor {
namespace {

constexpr std::string_view kBroken = "; violations: ";

}  // namespace

std::string violation_words(std::uint64_t count, std::string_view first) {
  if (count == 0) return "";
  std::string out(kBroken);
  out += std::to_string(count);
  out += " (";
  out += first.substr(0, kFirstViolationBytes);
  out += ")";
  return out;
}

ViolationEnd violations_in(std::string_view rationale) {
  ViolationEnd out;
  for (std::size_t at = rationale.find(kBroken); at != std::string_view::npos;
       at = rationale.find(kBroken, at + 1)) {
    const std::string_view rest = rationale.substr(at + kBroken.size());
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || !rest.substr(digits).starts_with(" (")) continue;
    out.count = std::max({out.count, count, std::uint64_t{1}});
    const std::string_view first = rest.substr(digits + 2);
    out.first = first.substr(0, first.rfind(')'));
  }
  return out;
}

}  // namespace proctor
