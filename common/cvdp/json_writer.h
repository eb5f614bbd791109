#pragma once
// JSON as Python's json.dumps writes it with its defaults: ", " and ": ", every character outside
// ASCII escaped, members in their order; with `indent` one member a line, "," without the blank.
// Pure; any thread; never fails.  Source: CVDP 3, 9.1, 9.4.
#include <string>
#include <string_view>

#include "common/cvdp/value.h"

namespace proctor::cvdp {

inline constexpr int kOneLine = -1;

void write_json(std::string& out, const Value& value, int indent = kOneLine);
std::string write_json(const Value& value, int indent = kOneLine);
// In double quotes.
void write_json_string(std::string& out, std::string_view text);

}  // namespace proctor::cvdp
