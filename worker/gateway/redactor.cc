#include "worker/gateway/redactor.h"

#include <algorithm>

#include "common/base/digest.h"

namespace proctor {
std::string Redactor::apply(std::string_view text) const {
  constexpr std::size_t kShown = 8;
  std::string out(text);
  for (const auto& [name, secret] : rules_) {
    if (secret.empty()) continue;
    std::size_t at = out.find(secret);
    if (at == std::string::npos) continue;
    const std::string instead = "[redacted:" + name + ":" + std::to_string(secret.size()) + ":" +
                                sha256(secret).hex().substr(0, kShown) + "]";
    for (; at != std::string::npos; at = out.find(secret, at + instead.size()))
      out.replace(at, secret.size(), instead);
  }
  return out;
}

Json redacted(const Json& value, const std::function<std::string(std::string_view)>& by) {
  if (value.is_string()) return by(value.string());
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(redacted(item, by));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, item] : value.items()) out[by(key)] = redacted(item, by);
  return out;
}

Redactor::Rules rules_for_secrets(const std::map<std::string, std::string>& secrets) {
  Redactor::Rules out;
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
