#pragma once
// What a journal's facts say to people, and since when.  Pure.
#include <string>
#include <string_view>

#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
// "worker build7 is gone: ...": the fact with its cause, in one sentence.  `unit`: of money.
std::string sentence_of(const StoryFact& fact, const std::string& unit);

// "2026-11-22T10:58:42Z" (a fraction and an offset as in +01:00 may stand there), or how long ago:
// 90s, 15m, 2h, 3d.  kInvalid says what was expected.
Result<WallTime> parse_since(std::string_view text, WallTime now);
}  // namespace proctor::cli
