#pragma once
// Text shown to people.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace proctor {

// The candidate nearest to `word` by edits (insert, delete, replace, swap), if near enough to be
// what was meant: at most a third of its length.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> candidates);

// Safe to print on a terminal: control bytes, broken UTF-8 and characters that reorder or hide
// others (U+202E and its like) become \xNN, cut after `bytes_max` with "...".
std::string printable(std::string_view bytes, std::size_t bytes_max = 200);

bool is_utf8(std::string_view bytes);

}  // namespace proctor
