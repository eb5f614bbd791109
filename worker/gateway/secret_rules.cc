#include "worker/gateway/secret_rules.h"

#include <algorithm>

namespace proctor {

LiteralRedactor::Rules rules_for_secrets(const std::map<std::string, std::string>& secrets) {
  LiteralRedactor::Rules out;
  for (const auto& [name, value] : secrets) {
    if (value.size() < kSecretLeast) continue;
    const std::string rule = "secret " + name;
    out.emplace_back(rule, value);
    // What an agent sends is JSON; of bytes that are no text there is no such form.
    std::string quoted = Json(value).dump(-1, Json::Utf8::kReplace);
    quoted = quoted.substr(1, quoted.size() - 2);
    if (quoted != value) out.emplace_back(rule, std::move(quoted));
  }
  // One that another begins with must not leave the rest of it.
  std::ranges::stable_sort(
      out, [](const auto& a, const auto& b) { return b.second.size() < a.second.size(); });
  return out;
}

}  // namespace proctor
