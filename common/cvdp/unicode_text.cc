#include <bit>
#include <cstring>

#include "common/cvdp/unicode.h"
#include "common/cvdp/utf8.h"

namespace proctor::cvdp {
namespace {

constexpr char32_t kSigma = 0x3A3;

// Does a cased letter follow, with nothing between that counts?
bool letter_follows(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const char32_t c = next_code_point(text, at);
    if (!is_case_ignorable(c)) return is_cased(c);
  }
  return false;
}

// The next byte from `at` on that may begin a blank: of most texts one in six.  Eight are looked at
// together, by the high bit of each.
std::size_t next_unusual(std::string_view text, std::size_t at) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kHigh = 0x8080808080808080U, kLow = 0x7F7F7F7F7F7F7F7FU;
  constexpr std::uint64_t kPastBlank = 0x5F5F5F5F5F5F5F5FU;  // 0x80 less 0x21
  for (std::uint64_t bytes = 0; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const std::uint64_t unusual = (~((bytes & kLow) + kPastBlank) | bytes) & kHigh;
    if (unusual != 0) return at + static_cast<std::size_t>(std::countr_zero(unusual)) / 8;
  }
  while (at < text.size() && 0x20 < static_cast<signed char>(text[at])) ++at;  // not past ASCII
  return at;
}

}  // namespace

std::string lower_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool after_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == 0x130)
      out += "i\xCC\x87";
    else if (c == kSigma && after_letter && !letter_follows(text, at))
      append_utf8(out, 0x3C2);
    else
      append_utf8(out, lower(c));
    // A capital sigma at a word's end has a lower case of its own.
    if (!is_case_ignorable(c)) after_letter = is_cased(c);
  }
  return out;
}

std::string_view strip_text(std::string_view text) {
  std::size_t from = 0;
  while (from < text.size()) {
    std::size_t next = from;
    if (!is_space(next_code_point(text, next))) break;
    from = next;
  }
  std::size_t end = text.size();
  for (std::size_t at = from; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_space(c)) end = at;
  }
  return from == text.size() ? std::string_view() : text.substr(from, end - from);
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(text.size() / 4);  // of prose and code more than there are
  std::size_t from = 0, at = 0;
  while ((at = next_unusual(text, at)) < text.size()) {
    const std::size_t here = at;
    if (text[at] == ' ')
      ++at;
    else if (!is_space(next_code_point(text, at)))
      continue;
    if (from < here) out.push_back(text.substr(from, here - from));
    from = at;
  }
  if (from < text.size()) out.push_back(text.substr(from));
  return out;
}

std::string without_punctuation(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t c = next_code_point(text, at);
    if (is_word(c) || is_space(c)) out += text.substr(from, at - from);
  }
  return out;
}

}  // namespace proctor::cvdp
