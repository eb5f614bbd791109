#pragma once
// A record of one shape as a record of the other, as upstream's --force-agentic and --force-copilot
// make it: the same bytes in the file.  Pure; any thread.  Source: CVDP 3.1, 3.2, 3.4.
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {

// What the other shape cannot hold.
struct Loss {
  std::string field;
  std::string text;
};

struct Transformed {
  Value value;
  bool changed = false;  // it was of the other shape
  std::vector<std::string> warnings;
};

// `value` must be a mapping; every member may be of any kind, wrong ones are taken as absent and
// told in `warnings`.  A record that has the shape already comes back as it is.
// kExhausted: a diff that takes too long.
Result<Transformed> transform(Value value, Shape to);

// What a round trip through the other shape would not bring back, found by making it.
Result<std::vector<Loss>> losses_of(const Value& value, Shape to);

// The file's name upstream writes: stem.agentic_transformed.jsonl.
std::string transformed_name(std::string_view file_name, Shape to);

}  // namespace proctor::cvdp
