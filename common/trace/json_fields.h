#pragma once
// JsonFields: reads one JSON object strictly, field by field.  The first problem stays, with the
// path of the field; later reads then return defaults.  finish() also refuses unknown fields.
// For the files of a run directory; not thread-safe, lives on one stack.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {
class JsonFields {
 public:
  // `json` must outlive this; `path` names it in errors ("checks[2]", "" for the root).
  JsonFields(const Json& json, std::string path);
  // The object `key` of `parent`; an error of the parent is also its own, being the first.
  JsonFields(JsonFields& parent, const char* key);

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  std::string text(const char* key);
  std::uint64_t count(const char* key, std::uint64_t max = (std::uint64_t{1} << 53) - 1);
  std::int64_t integer(const char* key);
  bool boolean(const char* key);
  Digest digest(const char* key);
  std::optional<Digest> optional_digest(const char* key);  // null or hex
  std::optional<std::string> optional_text(const char* key);
  std::vector<std::string> texts(const char* key);
  // An object or array inside; an empty one after an error.
  const Json& object(const char* key);
  const Json& array(const char* key);

  void refuse(std::string_view key, std::string_view what);
  std::string path_of(std::string_view key) const;
  Status finish();

 private:
  const Json* find(const char* key, Json::Kind kind, std::string_view expected);
  const Json& json_;
  std::string path_;
  std::vector<std::string> seen_;  // the keys that were asked for, some twice
  std::string error_;
};
}  // namespace proctor
