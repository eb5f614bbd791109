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
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    // Most characters are of ASCII and no blank.
    if (const auto c = static_cast<unsigned char>(text[at]); 0x20 < c && c < 0x80) {
      ++at;
      continue;
    }
    if (!is_space(next_code_point(text, at))) continue;
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
