#include "coordinator/core/explanation.h"

#include "common/base/json.h"

namespace proctor {

std::string to_json(const Explanation& why) {
  Json facts = Json::object();
  for (const auto& [name, value] : why.facts)
    std::visit([&, key = name](const auto& v) { facts[key] = v; }, value);
  return Json{{"code", why.code}, {"text", why.text}, {"facts", std::move(facts)}}.dump(
      -1, Json::Utf8::kReplace);
}

}  // namespace proctor
