#include "common/base/line_pattern.h"

#include <re2/re2.h>
#include <algorithm>

#include "common/base/text.h"

namespace proctor {
namespace {
constexpr int kStepsMax = 4'000;
}  // namespace

LinePattern::LinePattern(std::string_view text, bool literal) {
  // In Latin-1 `.` matches every byte, but (?i) takes parts of two characters for one letter.
  const bool bytes = literal || std::ranges::none_of(text, [](char c) { return (c & 0x80) != 0; });
  re2::RE2::Options options(bytes ? re2::RE2::Latin1 : re2::RE2::DefaultOptions);
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_literal(literal);
  pattern_ = std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

Result<LinePattern> LinePattern::compile(std::string_view pattern) {
  LinePattern out(pattern, /*literal=*/false);
  if (!out.pattern_->ok())
    return Error{Errc::kInvalid, "the pattern cannot be read: " + printable(out.pattern_->error())};
  // A search may take as many steps for each byte of a line.
  if (kStepsMax < out.pattern_->ProgramSize())
    return Error{Errc::kInvalid, "the pattern has repetitions that are too many together"};
  return out;
}

LinePattern LinePattern::literal(std::string_view text) {
  return {text, /*literal=*/true};
}

std::size_t LinePattern::find(std::string_view line) const {
  const re2::StringPiece text(line.data(), line.size());
  re2::StringPiece match;
  if (!pattern_->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &match, 1))
    return std::string_view::npos;
  return static_cast<std::size_t>(match.data() - text.data());
}

bool LinePattern::matches(std::string_view line) const {
  return re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *pattern_);
}
}  // namespace proctor
