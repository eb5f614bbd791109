#include "worker/gateway/cassette_rules.h"

#include <re2/re2.h>

namespace proctor {
namespace {

// One expression, so that a text is read once whatever their number: group N is rule N - 1.
std::string all_rules() {
  std::string out;
  for (const CassetteRule& rule : kCassetteRules) {
    if (!out.empty()) out += '|';
    out.append("(").append(rule.pattern).append(")");
  }
  return out;
}

}  // namespace

std::string by_cassette_rules(std::string_view text) {
  static const re2::RE2 rules(all_rules());
  std::array<re2::StringPiece, 1 + kCassetteRules.size()> found;
  const re2::StringPiece all(text.data(), text.size());
  std::string out;
  std::size_t at = 0;
  while (rules.Match(all, at, all.size(), re2::RE2::UNANCHORED, found.data(),
                     static_cast<int>(found.size()))) {
    const auto begin = static_cast<std::size_t>(found[0].data() - all.data());
    std::size_t rule = 0;
    while (found.at(1 + rule).data() == nullptr) ++rule;
    const std::string_view with = kCassetteRules.at(rule).with;
    out += text.substr(at, begin - at);
    out += with.empty() ? text.substr(begin, found[0].size()) : with;
    at = begin + found[0].size();
  }
  out += text.substr(at);
  return out;
}

}  // namespace proctor
