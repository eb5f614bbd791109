#pragma once
// JSON text (RFC 8259) token by token, where it lies: the one grammar of all that read JSON.
// Also the inside of its strings.  Pure; a lexer is for one thread.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace proctor {
enum class JsonToken : std::uint8_t {
  kObject,  // its first byte; the end is a token of its own
  kObjectEnd,
  kArray,
  kArrayEnd,
  kKey,
  kString,
  kNumber,
  kTrue,
  kFalse,
  kNull,
  kEnd,  // behind the value there is nothing
  kFault
};

struct JsonRules {
  // Lists and objects that may be open at once.
  std::size_t depth_max = std::numeric_limits<std::size_t>::max();
  // NaN, Infinity and -Infinity are numbers, and a number ends where it may, as in Python.
  bool python = false;
  bool lone_surrogates = false;  // an escape may spell half a pair
};

// A fault in two wordings: a sentence, and what would be right (empty: the value is too deep).
struct JsonFault {
  std::string_view what, expected;
};

class JsonLexer {
 public:
  // Reads the value that begins at `at`.  `text` is UTF-8 and outlives this.
  explicit JsonLexer(std::string_view text, JsonRules rules = {}, std::size_t at = 0)
      : text_(text), rules_(rules), at_(at) {}

  // Requires: the last token was neither kEnd nor kFault.
  JsonToken next();
  // Reads on to the end of the value whose first token was the last.
  void skip();

  // The last token's first byte, and the byte behind it; where the fault is.
  std::size_t at() const { return from_; }
  std::size_t end() const { return end_; }
  std::string_view bytes() const { return text_.substr(from_, end_ - from_); }
  // The last token was kKey or kString: its text, in WTF-8.
  std::string text() const;
  // The last token was kNumber: it has a fraction or an exponent, or is one of Python's names.
  bool real() const { return real_; }
  // The last token was kFault.
  const JsonFault& fault() const { return *fault_; }

 private:
  enum class State : std::uint8_t { kValue, kFirst, kBehind };
  bool ended() const { return at_ == text_.size(); }
  char peek() const { return ended() ? '\0' : text_[at_]; }
  bool take(char c);
  bool digits();
  void blanks();
  JsonToken accept(JsonToken token, State then);
  JsonToken fail(const JsonFault& fault, std::size_t at);
  JsonToken value();
  JsonToken word(std::string_view word, JsonToken token);
  JsonToken number();
  JsonToken behind_word(JsonToken token);
  JsonToken string(JsonToken token);

  std::string_view text_;
  JsonRules rules_;
  std::size_t at_;  // the next byte
  std::size_t from_ = 0, end_ = 0;
  std::string open_;  // the brackets that will end what is open
  State state_ = State::kValue;
  bool escaped_ = false, real_ = false;
  const JsonFault* fault_ = nullptr;
};

// All of `number` as a double, NaN and Infinity too.  Beyond the largest it is infinite.
std::optional<double> json_double(std::string_view number);

// `text` in double quotes, with all outside ASCII escaped where `ascii`.  Requires: WTF-8.
void write_json_string(std::string& out, std::string_view text, bool ascii);

// WTF-8: UTF-8 that may also hold halves of surrogate pairs.

inline void append_utf8(std::string& out, char32_t c) {
  const unsigned more = c < 0x80      ? 0
                        : c < 0x800   ? 1
                        : c < 0x10000 ? 2
                                      : 3;  // bytes behind the first
  const unsigned first = more == 0 ? 0 : 0xF0U << (3 - more);
  out += static_cast<char>((first | c >> (6 * more)) & 0xFFU);
  for (unsigned i = more; 0 < i; --i)
    out += static_cast<char>(0x80U | ((c >> (6 * (i - 1))) & 0x3FU));
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
}  // namespace proctor
