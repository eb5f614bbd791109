#pragma once
// Redactors: texts are struck out of everything that a session tells or keeps, before it leaves the
// worker.  The run's own token always is; the rules of a campaign go on from there.  Pure; any
// thread.
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json.h"

namespace proctor {
class Redactor {
 public:
  virtual ~Redactor() = default;
  // The text as it may be kept.  The same text gives the same text.
  virtual std::string apply(std::string_view text) const = 0;
};

// Texts as they stand, each with the name of its rule: "[redacted:RULE:LENGTH:8 hex of SHA-256]".
class LiteralRedactor final : public Redactor {
 public:
  using Rules = std::vector<std::pair<std::string, std::string>>;  // name, text
  explicit LiteralRedactor(Rules rules) : rules_(std::move(rules)) {}
  std::string apply(std::string_view text) const override;

 private:
  Rules rules_;
};

// Every text in it, also names of members.
Json redacted(const Json& value, const Redactor& by);

// The secrets of a run as rules: by their names, as they stand and as they stand within JSON.  One
// of less than kSecretLeast bytes is none that could be struck out: the rest would not be readable
// any more.
inline constexpr std::size_t kSecretLeast = 8;
LiteralRedactor::Rules rules_for_secrets(const std::map<std::string, std::string>& secrets);
}  // namespace proctor
