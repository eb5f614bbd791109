#pragma once
// difflib of Python: the same matching blocks, the same unified diff, byte for byte.
// Ratcliff and Obershelp's gestalt matching: the longest block two sequences share, then the same
// on both sides of it; lines that make up more than a hundredth of 200 or more are not looked for
// (difflib's "autojunk").  Pure; any thread.  Source: CVDP 3.1; the difflib documentation.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor::cvdp {
// Lines old[old_at, old_at + size) are lines new[new_at, new_at + size).
struct MatchingBlock {
  std::size_t old_at = 0;
  std::size_t new_at = 0;
  std::size_t size = 0;
  friend bool operator==(const MatchingBlock&, const MatchingBlock&) = default;
};

// In order, adjacent ones joined, an empty one at the end.  kExhausted: more work than `steps_max`;
// hostile texts make the matching cubic.
Result<std::vector<MatchingBlock>> matching_blocks(std::span<const std::string_view> old_lines,
                                                   std::span<const std::string_view> new_lines,
                                                   std::uint64_t steps_max = 2'000'000'000);

// difflib.unified_diff(old, new, "a/" + path, "b/" + path, lineterm="") joined by "\n": three lines
// of context, no final newline, nothing at all when the lines are equal.  Errors as
// matching_blocks().
Result<std::string> unified_diff(std::span<const std::string_view> old_lines,
                                 std::span<const std::string_view> new_lines,
                                 std::string_view path);
}  // namespace proctor::cvdp
