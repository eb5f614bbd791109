#pragma once
// JSON as tests read it: whatever its size and depth, and members by pointer (RFC 6901).
#include <limits>
#include <string>
#include <string_view>

#include "common/base/json.h"

namespace proctor::testing {

inline constexpr JsonBounds kAnyJson{.bytes_max = std::numeric_limits<std::size_t>::max(),
                                     .depth_max = 500};

// Throws Json::exception where `text` is not JSON.
inline Json read_json(std::string_view text) {
  auto read = parse_json(text, kAnyJson);
  if (!read.ok()) throw Json::exception(read.error().detail);
  return std::move(read).value();
}

// Null where `text` is not JSON.
inline Json json_or_null(std::string_view text) {
  auto read = parse_json(text, kAnyJson);
  return read.ok() ? std::move(read).value() : Json();
}

// What "/a/0/b" names in `json`.  Names with ~ and / are not known here.  A last member that is
// missing is made.
inline Json& at_pointer(Json& json, std::string_view pointer) {
  Json* at = &json;
  while (!pointer.empty()) {
    const std::string_view name = pointer.substr(1, pointer.find('/', 1) - 1);
    pointer.remove_prefix(1 + name.size());
    at = at->is_array() ? &at->at(std::stoul(std::string(name))) : &(*at)[name];
  }
  return *at;
}
inline const Json& at_pointer(const Json& json, std::string_view pointer) {
  return at_pointer(const_cast<Json&>(json), pointer);
}

}  // namespace proctor::testing
