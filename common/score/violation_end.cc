#include "common/score/violation_end.h"

#include <algorithm>

#include "common/base/parse.h"

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
    std::string_view rest = rationale.substr(at + kBroken.size());
    std::uint64_t count = 0;
    if (!take_number(rest, count) || !take_word(rest, " (")) continue;
    out.count = std::max({out.count, count, std::uint64_t{1}});
    out.first = rest.substr(0, rest.rfind(')'));
  }
  return out;
}

}  // namespace proctor
