#include "worker/gateway/splice.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {

std::string spliced(std::string_view text, std::vector<Splice> edits) {
  std::ranges::stable_sort(edits, {}, [](const Splice& s) { return s.instead.at; });
  std::string out;
  std::size_t at = 0;
  for (const Splice& s : edits) {
    PROCTOR_ASSERT(at <= s.instead.at && s.instead.at + s.instead.size <= text.size());
    out += text.substr(at, s.instead.at - at);
    out += s.bytes;
    at = s.instead.at + s.instead.size;
  }
  out += text.substr(at);
  return out;
}

Splice further_member(JsonSpan object, bool has_members, std::string_view key,
                      std::string_view value) {
  std::string bytes = has_members ? "," : "";
  bytes += json_quoted(key);
  bytes += ':';
  bytes += value;
  return {{object.at + object.size - 1, 0}, std::move(bytes), std::string(key), ""};
}

std::string json_quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, Json::Utf8::kReplace);
}

}  // namespace proctor
