#pragma once
// JSON as Python's json.loads reads it: of a key given twice the last value counts, NaN and
// Infinity are numbers, lone surrogates are text.  Bounded in size, depth and nodes, because the
// text comes from outside.  Pure; any thread.  Fails with kInvalid; the text names the column
// (bytes, from 1).  Source: CVDP 1.1; RFC 8259 for the rest.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/cvdp/value.h"

namespace proctor::cvdp {

struct ReadBounds {
  std::size_t bytes_max = std::size_t{256} << 20;
  std::size_t depth_max = 100;
  std::size_t nodes_max = 5'000'000;
};

// One value and nothing behind it.  Keys that some object gives twice are appended to `repeated`
// (at most 16 of them) where it is not null.
Result<Value> read_json(std::string_view text, const ReadBounds& bounds = {},
                        std::vector<std::string>* repeated = nullptr);

}  // namespace proctor::cvdp
