#include "worker/gateway/redactor.h"

#include "common/base/digest.h"

namespace proctor {

std::string LiteralRedactor::apply(std::string_view text) const {
  constexpr std::size_t kShown = 8;
  std::string out(text);
  for (const auto& [name, secret] : rules_) {
    if (secret.empty()) continue;
    std::size_t at = out.find(secret);
    if (at == std::string::npos) continue;
    std::string instead = "[redacted:" + name;
    instead += ':';
    instead += std::to_string(secret.size());
    instead += ':';
    instead += sha256(secret).hex().substr(0, kShown);
    instead += ']';
    for (; at != std::string::npos; at = out.find(secret, at + instead.size()))
      out.replace(at, secret.size(), instead);
  }
  return out;
}

Json redacted(const Json& value, const Redactor& by) {
  if (value.is_string()) return by.apply(value.string());
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(redacted(item, by));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, item] : value.items()) out[by.apply(key)] = redacted(item, by);
  return out;
}

}  // namespace proctor
