#pragma once
// Text shown to people, and path globs.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace proctor {
// The candidate nearest to `word` by edits (insert, delete, replace, swap), if near enough to be
// what was meant: at most a third of its length.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> candidates);

// Safe to print on a terminal: control bytes, broken UTF-8 and characters that reorder or hide
// others (U+202E and its like) become \xNN, cut after `bytes_max` with "...".
std::string printable(std::string_view bytes, std::size_t bytes_max = 200);

bool is_utf8(std::string_view bytes);

// One word of a shell's line, in single quotes.
std::string shell_quoted(std::string_view word);

// Small phrases of messages.

// "1 run", "2 runs".
inline std::string counted(std::uint64_t n, std::string_view one) {
  return std::to_string(n) + " " + std::string(one) + (n == 1 ? "" : "s");
}

// The last `bytes_max` bytes of what a program wrote, safe to print, on one line: "; " between its
// lines.
inline std::string last_lines(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : text.substr(0, text.find_last_not_of("\r\n") + 1))
    out += c == '\n' ? std::string("; ") : std::string(1, c);
  if (bytes_max < out.size()) out.erase(0, out.size() - bytes_max);
  return printable(out, 4 * bytes_max);  // each byte may become \xNN
}

// Path globs as contracts write them: `*` and `?` inside one component, `**` for any number of
// components.  A glob that matches a folder covers everything under it.  Pure; no failures: a
// glob that can match nothing matches nothing.

// Both relative, '/' between components; a trailing '/' of the glob is ignored.
bool glob_covers(std::string_view glob, std::string_view path);
bool any_glob_covers(const std::vector<std::string>& globs, std::string_view path);
// May something below `folder` be covered, or all of it?  "" is the root.
bool any_glob_reaches(const std::vector<std::string>& globs, std::string_view folder);
}  // namespace proctor
