#pragma once
// Edits of a text that leave every other byte as it was.  Pure; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "worker/gateway/json_spans.h"

namespace proctor {

struct Splice {
  JsonSpan instead;  // of size 0: before this place
  std::string bytes;
  std::string member, why;  // for the record
};

// Requires: no two of them overlap, all lie within `text`.
std::string spliced(std::string_view text, std::vector<Splice> edits);

// A further member of an object whose last byte is the bracket that ends it.
Splice further_member(JsonSpan object, bool has_members, std::string_view key,
                      std::string_view value);
// A JSON string.
std::string json_quoted(std::string_view text);

}  // namespace proctor
