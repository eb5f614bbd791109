#pragma once
// JSON as Python's json.loads reads it: of a key given twice the last value counts, NaN and
// Infinity are numbers, lone surrogates are text.  Bounded in size, depth and nodes, because the
// text comes from outside.  Fails with kInvalid; the text names the column (bytes, from 1).
// And as json.dumps writes it with its defaults: ", " and ": ", every character outside ASCII
// escaped, members in their order; with `indent` one member a line, "," without the blank.  That
// never fails.  Pure; any thread.  Source: RFC 8259 for the rest.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/answers/value.h"
#include "common/base/result.h"

namespace proctor::answers {

struct ReadBounds {
  std::size_t bytes_max = std::size_t{256} << 20;
  std::size_t depth_max = 100;
  std::size_t nodes_max = 5'000'000;
};

// One value and nothing behind it.  Keys that some object gives twice are appended to `repeated`
// (at most 16 of them) where it is not null.
Result<Value> read_json(std::string_view text, const ReadBounds& bounds = {},
                        std::vector<std::string>* repeated = nullptr);

inline constexpr int kOneLine = -1;

void write_json(std::string& out, const Value& value, int indent = kOneLine);
std::string write_json(const Value& value, int indent = kOneLine);
// In double quotes.
void write_json_string(std::string& out, std::string_view text);

}  // namespace proctor::answers
