#pragma once
// Which characters are words and blanks to Python (Unicode 14), code points and bytes.  Text is
// WTF-8: UTF-8 that may also hold lone surrogates, as Python's str does.  Pure; any thread; never
// fails on text that read_json() made.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace proctor::answers {
bool is_word(char32_t c);       // \w of a text pattern: letters, digits, "_"
bool is_space(char32_t c);      // str.isspace, \s
bool is_printable(char32_t c);  // str.isprintable

std::string_view strip_text(std::string_view text);  // str.strip()

inline bool is_ascii(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080U) != 0) return false;
  }
  for (; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0x80U) != 0) return false;
  return true;
}

// Whom a run of plain characters of a JSON string ends for: a reader (quotes, backslashes, control
// bytes) or a writer (also everything outside printable ASCII).
enum class RunFor { kReader, kWriter };
// How many bytes from `at` on are plain, eight at a time as far as they go; the byte behind the
// last of them is special, or among the last seven, which the caller looks at one by one.
template <RunFor kFor>
std::size_t plain_run(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHigh = 0x8080808080808080U;
  const auto zero_bytes = [](std::uint64_t w) { return (w - kOnes) & ~w & kHigh; };
  const std::size_t from = at;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t w = 0;
    std::memcpy(&w, text.data() + at, 8);
    std::uint64_t special = ((w - kOnes * 0x20) & ~w & kHigh) | zero_bytes(w ^ (kOnes * '"')) |
                            zero_bytes(w ^ (kOnes * '\\'));
    if constexpr (kFor == RunFor::kWriter) special |= (w & kHigh) | zero_bytes(w ^ (kOnes * 0x7F));
    if (special == 0) continue;
    // Only the lowest mark is sure, and only where the lowest byte comes first.
    if constexpr (std::endian::native == std::endian::little)
      at += static_cast<std::size_t>(std::countr_zero(special)) / 8;
    break;
  }
  return at - from;
}

inline void append_utf8(std::string& out, char32_t c) {
  const auto byte = [&](char32_t b) { out += static_cast<char>(static_cast<unsigned char>(b)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | (c >> 6));
    byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | (c >> 12));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | (c >> 18));
    byte(0x80 | ((c >> 12) & 0x3F));
    byte(0x80 | ((c >> 6) & 0x3F));
    byte(0x80 | (c & 0x3F));
  }
}

// The code point at `at`, which moves behind it.  A byte that begins none is itself.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto b = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = b(at);
  const std::size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (n == 1 || first < 0xC0 || text.size() - at < n) {
    ++at;
    return first;
  }
  char32_t c = first & (0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) c = (c << 6) | (b(at + i) & 0x3FU);
  at += n;
  return c;
}
}  // namespace proctor::answers
