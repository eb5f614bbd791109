#include "common/trace/json_fields.h"

#include <algorithm>

#include "common/base/text.h"

namespace proctor {
namespace {
const Json& empty_object() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}
const Json& empty_array() {
  static const Json kEmpty = Json::array();
  return kEmpty;
}
}  // namespace

JsonFields::JsonFields(const Json& json, std::string path)
    : json_(json.is_object() ? json : empty_object()), path_(std::move(path)) {
  if (!json.is_object()) error_ = (path_.empty() ? "document" : path_) + ": expected an object";
}

JsonFields::JsonFields(JsonFields& parent, const char* key)
    : json_(parent.object(key)), path_(parent.path_of(key)), error_(parent.error_) {}

std::string JsonFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void JsonFields::refuse(std::string_view key, std::string_view what) {
  if (error_.empty()) error_ = path_of(key) + ": " + std::string(what);
}

const Json* JsonFields::find(const char* key, Json::Kind kind, std::string_view expected) {
  seen_.emplace_back(key);
  const auto it = json_.find(key);
  if (it == json_.end()) {
    refuse(key, "missing");
    return nullptr;
  }
  const bool same = it->kind() == kind || (kind == Json::Kind::kInteger && it->is_number_integer());
  if (!same) {
    refuse(key, "expected " + std::string(expected) + ", found " + it->kind_name());
    return nullptr;
  }
  return &*it;
}

std::string JsonFields::text(const char* key) {
  const Json* v = find(key, Json::Kind::kString, "text");
  return v == nullptr ? std::string() : v->get<std::string>();
}

std::uint64_t JsonFields::count(const char* key, std::uint64_t max) {
  const Json* v = find(key, Json::Kind::kUnsigned, "a whole number");
  if (v == nullptr) return 0;
  const auto n = v->get<std::uint64_t>();
  if (max < n) {
    refuse(key, std::to_string(n) + " is more than " + std::to_string(max));
    return 0;
  }
  return n;
}

std::int64_t JsonFields::integer(const char* key) {
  const Json* v = find(key, Json::Kind::kInteger, "an integer");
  if (v == nullptr) return 0;
  constexpr std::int64_t kMax = (std::int64_t{1} << 53) - 1;
  const bool fits = v->is_number_unsigned()
                        ? v->get<std::uint64_t>() <= static_cast<std::uint64_t>(kMax)
                        : -kMax <= v->get<std::int64_t>();
  if (!fits) {
    refuse(key, "beyond 2^53 - 1");
    return 0;
  }
  return v->get<std::int64_t>();
}

bool JsonFields::boolean(const char* key) {
  const Json* v = find(key, Json::Kind::kBoolean, "true or false");
  return v != nullptr && v->get<bool>();
}

Digest JsonFields::digest(const char* key) {
  Result<Digest> d = Digest::from_hex(text(key));
  if (!d.ok()) {
    refuse(key, "expected 64 lower-case hex digits");
    return {};
  }
  return *d;
}

std::optional<Digest> JsonFields::optional_digest(const char* key) {
  const auto it = json_.find(key);
  if (it != json_.end() && it->is_null()) {
    seen_.emplace_back(key);
    return std::nullopt;
  }
  return digest(key);
}

std::optional<std::string> JsonFields::optional_text(const char* key) {
  const auto it = json_.find(key);
  if (it != json_.end() && it->is_null()) {
    seen_.emplace_back(key);
    return std::nullopt;
  }
  return text(key);
}

std::vector<std::string> JsonFields::texts(const char* key) {
  std::vector<std::string> out;
  for (const Json& v : array(key)) {
    if (!v.is_string()) {
      refuse(key, "expected a list of text");
      return {};
    }
    out.push_back(v.get<std::string>());
  }
  return out;
}

const Json& JsonFields::object(const char* key) {
  const Json* v = find(key, Json::Kind::kObject, "an object");
  return v == nullptr ? empty_object() : *v;
}

const Json& JsonFields::array(const char* key) {
  const Json* v = find(key, Json::Kind::kArray, "a list");
  return v == nullptr ? empty_array() : *v;
}

Status JsonFields::finish() {
  for (const auto& item : json_.items()) {
    if (std::ranges::find(seen_, item.first) == seen_.end())
      refuse(printable(item.first, 80), "unknown field");
  }
  if (!error_.empty()) return Error{Errc::kInvalid, error_};
  return ok_status();
}
}  // namespace proctor
