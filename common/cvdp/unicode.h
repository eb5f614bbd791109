#pragma once
// Which characters are words and blanks to Python, and their lower case (Unicode 14).
// Pure; any thread; never fails.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace proctor::cvdp {

bool is_word(char32_t c);    // \w of a text pattern: letters, digits, "_"
bool is_space(char32_t c);   // str.isspace, \s
char32_t lower(char32_t c);  // of one character; U+0130 (two in lower case) stays

bool is_printable(char32_t c);  // str.isprintable
// For the lower case of a capital sigma, which depends on what stands round it.  No character is
// both.
bool is_cased(char32_t c);
bool is_case_ignorable(char32_t c);

// str.lower(), str.strip(), str.split() and re.sub(r"[^\w\s]", "", text).
std::string lower_text(std::string_view text);
std::string_view strip_text(std::string_view text);
std::vector<std::string_view> split_words(std::string_view text);
std::string without_punctuation(std::string_view text);

}  // namespace proctor::cvdp
