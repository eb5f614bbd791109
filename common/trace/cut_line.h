#pragma once
// The last line of a program's output of which not all is kept: whoever reads the file knows that
// it is cut, and by how much, without the events.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace proctor {

inline constexpr std::size_t kCutLineBytes = 160;  // at most

// With the line's end before it and behind it.
std::string cut_line(std::uint64_t lost, std::uint64_t written);
// The line that a file ends with, without its ends, where it is one of these; `tail` is the last
// kCutLineBytes of it, or all.  A program that writes such a line itself is taken at its word.
std::optional<std::string> cut_line_of(std::string_view tail);

}  // namespace proctor
