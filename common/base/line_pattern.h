#pragma once
// Regular expressions for single lines.  Pure; a pattern is shared by any number of threads.
#include <memory>
#include <string_view>

#include "common/base/result.h"

namespace re2 {
class RE2;
}

namespace proctor {
// A regular expression that a line matches somewhere, as RE2 has it: in time that grows with line
// times pattern whatever both are.  One of ASCII alone is about bytes, any other about characters;
// lines need not be UTF-8.
class LinePattern {
 public:
  // Errors: kInvalid, in words for the model.
  static Result<LinePattern> compile(std::string_view pattern);
  // Matches a plain text.
  static LinePattern literal(std::string_view text);
  // `line` is without its end.
  bool matches(std::string_view line) const;
  // Where the first match begins; npos: there is none.
  std::size_t find(std::string_view line) const;

 private:
  LinePattern(std::string_view text, bool literal);
  std::shared_ptr<const re2::RE2> pattern_;
};
}  // namespace proctor
