#pragma once
// JSON at the border: bounded reading, canonical writing (RFC 8785).
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor {

using Json = nlohmann::json;

struct JsonBounds {
  std::size_t bytes_max = std::size_t{4} << 20;
  std::size_t depth_max = 32;
};

// Strict: UTF-8, no duplicate keys, no trailing bytes, no comments, depth and size bounded.
// Fails with kInvalid; the text names the byte offset.
Result<Json> parse_json(std::string_view text, const JsonBounds& bounds = {});

// RFC 8785 restricted to what we hash: objects, arrays, strings, booleans, null and integers
// within +-(2^53 - 1).  Keys are ordered by UTF-16 code units as the RFC asks.
// Fails with kInvalid on floating point numbers and larger integers: hashed bytes hold none.
Result<std::string> canonical_json(const Json& value);

}  // namespace proctor
