#pragma once
// Redactors: texts are struck out of everything that a session tells or keeps, before it leaves the
// worker.  The run's own token always is; the rules of a campaign go on from there.  Pure; any
// thread.
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json.h"

namespace proctor {
// Texts as they stand, each with the name of its rule: "[redacted:RULE:LENGTH:8 hex of SHA-256]".
class Redactor {
 public:
  using Rules = std::vector<std::pair<std::string, std::string>>;  // name, text
  explicit Redactor(Rules rules) : rules_(std::move(rules)) {}
  // The text as it may be kept.  The same text gives the same text.
  std::string apply(std::string_view text) const;

 private:
  Rules rules_;
};

// Every text in it, also names of members, by a Redactor's apply() or several.
Json redacted(const Json& value, const std::function<std::string(std::string_view)>& by);

// The secrets of a run as rules: by their names, as they stand and as they stand within JSON.  One
// of less than kSecretLeast bytes is none that could be struck out: the rest would not be readable
// any more.
inline constexpr std::size_t kSecretLeast = 8;
Redactor::Rules rules_for_secrets(const std::map<std::string, std::string>& secrets);
}  // namespace proctor
