#pragma once
// Reads short texts from their front: numbers, words, lines.  Pure; thread-safe.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proctor {
// Takes the number at the front of `text`, or leaves both: no digit is there, or more than `out`
// holds.  Only a type with a sign reads one.
template <class Number>
bool take_number(std::string_view& text, Number& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// `text` if all of it is one number.
template <class Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number out{};
  return take_number(text, out, base) && text.empty() ? std::optional(out) : std::nullopt;
}

// Takes `word` from the front of `text` if it is there.
inline bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Takes what is before the first `end`, and that; all where none is.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::string_view out = text.substr(0, text.find(end));
  text.remove_prefix(std::min(out.size() + 1, text.size()));
  return out;
}

// The pieces between the separators, one more than there are separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

// Without blanks around it.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

inline bool is_digit(char c) {
  return '0' <= c && c <= '9';
}
inline bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// With small letters for ASCII's capitals.
inline std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}
}  // namespace proctor
