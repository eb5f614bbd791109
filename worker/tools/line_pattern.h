#pragma once
// A regular expression that a line matches somewhere, in time that grows with line times pattern
// whatever both are: states are followed side by side and nothing is ever tried again.  Bytes, not
// characters.  Understood: . [a-z] [^a-z] \d \w \s \b and their opposites, ^ $ ( ) (?: ) |, * + ?
// {2,5}, lazy or not, and (?i) at the front.  Back-references and looking around are refused.
// Pure; one thread.
// Errors: kInvalid, in words for the model.
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor {
class LinePattern {
 public:
  static constexpr std::size_t kStepsMax = 4'000;
  static Result<LinePattern> compile(std::string_view pattern);
  // Of a plain text.
  static LinePattern literal(std::string_view text);

  // `line` is without its end.
  bool matches(std::string_view line);

 private:
  friend class PatternWriter;
  struct Step {
    enum class Op { kSet, kSplit, kBegin, kEnd, kWord, kNoWord, kMatch };
    Op op;
    std::uint32_t a = 0, b = 0;  // kSet: which set; kSplit: where to; the next step else
  };
  LinePattern() = default;
  bool follow(std::uint32_t step, std::string_view line, std::size_t at);

  std::string literal_;
  bool is_literal_ = false;
  std::vector<Step> steps_;
  std::vector<std::bitset<256>> sets_;
  // Of one match: the steps that wait for a byte, and when each was last looked at.
  std::vector<std::uint32_t> now_, next_, open_;
  std::vector<std::size_t> seen_;
  std::size_t round_ = 0;
};
}  // namespace proctor
