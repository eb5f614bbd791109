#include "common/base/json_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "common/base/parse.h"

namespace proctor {
namespace {
constexpr JsonFault kNoValue{"a value is expected", "a JSON value"};
constexpr JsonFault kEndsBefore{"the text ends where a value is expected", "a JSON value"};
constexpr JsonFault kNoKey{"a key in double quotes is expected", "a key in double quotes"};
constexpr JsonFault kNoColon{"\":\" is expected", "\":\""};
constexpr JsonFault kNoObjectEnd{"\",\" or \"}\" is expected", "\",\" or \"}\""};
constexpr JsonFault kNoArrayEnd{"\",\" or \"]\" is expected", "\",\" or \"]\""};
constexpr JsonFault kMore{"there is more behind the value", "the end of the file"};
constexpr JsonFault kEndsInside{"the text ends inside a string", "\" at the end of the text"};
constexpr JsonFault kControl{"a control character inside a string", "\" at the end of the text"};
constexpr JsonFault kNoEscape{"an unknown escape inside a string", "a JSON escape"};
constexpr JsonFault kNoHex{"four hexadecimal digits are expected", "a JSON escape"};
constexpr JsonFault kHalf{"half a surrogate pair inside a string", "a JSON escape"};
constexpr JsonFault kTooDeep{"nested too deeply", ""};

// What a letter behind a backslash means, and the letter for what is escaped so; 0: none.
constexpr std::array<std::array<char, 256>, 2> kEscapes = [] {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  std::array<std::array<char, 256>, 2> out{};
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    out[0][static_cast<unsigned char>(kLetters[i])] = kMeanings[i];
    out[1][static_cast<unsigned char>(kMeanings[i])] = kLetters[i];
  }
  return out;
}();

// How many bytes of a string's inside come before one that ends it, escapes or is none of it, or,
// where kAscii, is not printable ASCII.  Eight at a time: most texts are mostly such bytes.
template <bool kAscii>
std::size_t plain_bytes(std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kOnes = 0x0101010101010101U, kTops = kOnes << 7U;
  const auto zeros = [](std::uint64_t x) { return (x - kOnes) & ~x; };
  std::size_t n = 0;
  for (std::uint64_t w = 0; n + sizeof w <= text.size(); n += sizeof w) {
    std::memcpy(&w, text.data() + n, sizeof w);
    std::uint64_t found =
        zeros(w ^ kOnes * '"') | zeros(w ^ kOnes * '\\') | ((w - kOnes * ' ') & ~w);
    if (kAscii) found |= w | zeros(w ^ kOnes * 0x7F);
    // Only the lowest mark is sure.
    if ((found & kTops) != 0)
      return n + static_cast<std::size_t>(std::countr_zero(found & kTops)) / 8;
  }
  for (; n < text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[n]);
    if (c < 0x20 || c == '"' || c == '\\' || (kAscii && 0x7F <= c)) break;
  }
  return n;
}

bool take_unit(std::string_view text, std::size_t& at, char32_t& out) {
  const std::string_view digits = text.substr(at, 4);
  const auto unit = whole_number<std::uint32_t>(digits, 16);
  if (digits.size() < 4 || !unit) return false;
  at += 4;
  out = *unit;
  return true;
}

// Takes what is behind a backslash; `at` moves to the fault where there is one.
const JsonFault* take_escape(std::string_view text, std::size_t& at, char32_t& out) {
  if (at == text.size()) return &kEndsInside;
  if (const char c = kEscapes[0][static_cast<unsigned char>(text[at])]; c != 0) {
    out = static_cast<unsigned char>(c);
    ++at;
    return nullptr;
  }
  if (text[at] != 'u') return &kNoEscape;
  if (!take_unit(text, ++at, out)) return &kNoHex;
  if (out < 0xD800 || 0xDBFF < out || text.substr(at, 2) != "\\u") return nullptr;
  std::size_t behind = at + 2;
  char32_t low = 0;
  if (!take_unit(text, behind, low)) {
    at = behind;
    return &kNoHex;
  }
  if (low < 0xDC00 || 0xDFFF < low) return nullptr;
  out = 0x10000 + ((out - 0xD800) << 10U) + (low - 0xDC00);
  at = behind;
  return nullptr;
}

void append_unit(std::string& out, char32_t unit) {
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += "0123456789abcdef"[(unit >> shift) & 15U];
}
}  // namespace

JsonToken JsonLexer::accept(JsonToken token, State then) {
  end_ = at_;
  state_ = then;
  return token;
}

JsonToken JsonLexer::fail(const JsonFault& fault, std::size_t at) {
  fault_ = &fault;
  from_ = at;
  return JsonToken::kFault;
}

bool JsonLexer::take(char c) {
  if (ended() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonLexer::digits() {
  const std::size_t from = at_;
  while (!ended() && is_digit(text_[at_])) ++at_;
  return from < at_;
}

void JsonLexer::blanks() {
  while (!ended() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

JsonToken JsonLexer::next() {
  blanks();
  const bool outermost = open_.empty();
  if (state_ == State::kBehind && outermost) return ended() ? JsonToken::kEnd : fail(kMore, at_);
  const bool object = !outermost && open_.back() == '}';
  if (state_ == State::kValue) return value();
  from_ = at_;
  if (take(open_.back())) {
    open_.pop_back();
    return accept(object ? JsonToken::kObjectEnd : JsonToken::kArrayEnd, State::kBehind);
  }
  if (state_ == State::kBehind) {
    if (!take(',')) return fail(object ? kNoObjectEnd : kNoArrayEnd, at_);
    blanks();
  }
  if (!object) return value();
  if (peek() != '"') return fail(kNoKey, at_);
  if (string(JsonToken::kKey) == JsonToken::kFault) return JsonToken::kFault;
  blanks();
  return take(':') ? JsonToken::kKey : fail(kNoColon, at_);
}

void JsonLexer::skip() {
  if (state_ != State::kFirst) return;
  for (const std::size_t inside = open_.size(); inside <= open_.size();)
    if (next() == JsonToken::kFault) return;
}

JsonToken JsonLexer::value() {
  from_ = at_;
  switch (const char c = peek()) {
    case '{':
    case '[':
      if (rules_.depth_max <= open_.size()) return fail(kTooDeep, at_);
      ++at_;
      open_ += c == '{' ? '}' : ']';
      return accept(c == '{' ? JsonToken::kObject : JsonToken::kArray, State::kFirst);
    case '"':
      return string(JsonToken::kString);
    case 't':
      return word("true", JsonToken::kTrue);
    case 'f':
      return word("false", JsonToken::kFalse);
    case 'n':
      return word("null", JsonToken::kNull);
    default:
      return number();
  }
}

JsonToken JsonLexer::string(JsonToken token) {
  from_ = at_++;
  for (escaped_ = false;; escaped_ = true) {
    at_ += plain_bytes<false>(text_.substr(at_));
    if (take('"')) return accept(token, token == JsonToken::kKey ? State::kValue : State::kBehind);
    if (!take('\\')) return fail(ended() ? kEndsInside : kControl, at_);
    char32_t c = 0;
    if (const JsonFault* fault = take_escape(text_, at_, c)) return fail(*fault, at_);
    if (!rules_.lone_surrogates && 0xD800 <= c && c <= 0xDFFF) return fail(kHalf, at_);
  }
}

std::string JsonLexer::text() const {
  const std::string_view inside = text_.substr(from_ + 1, end_ - from_ - 2);
  if (!escaped_) return std::string(inside);
  std::string out;
  out.reserve(inside.size());
  for (std::size_t at = 0;;) {
    const std::size_t plain = plain_bytes<false>(inside.substr(at));
    out.append(inside, at, plain);
    at += plain;
    if (at++ == inside.size()) return out;
    char32_t c = 0;
    take_escape(inside, at, c);
    append_utf8(out, c);
  }
}

// Outside Python, what follows a word or a number without a break makes that none.
JsonToken JsonLexer::behind_word(JsonToken token) {
  const char c = peek();
  const bool letter = ('a' <= (c | 0x20) && (c | 0x20) <= 'z') || is_digit(c);
  if (!rules_.python && (letter || c == '.' || c == '+' || c == '-')) return fail(kNoValue, from_);
  return accept(token, State::kBehind);
}

JsonToken JsonLexer::word(std::string_view word, JsonToken token) {
  if (!text_.substr(at_).starts_with(word)) return fail(kNoValue, at_);
  at_ += word.size();
  return behind_word(token);
}

JsonToken JsonLexer::number() {
  real_ = true;
  if (rules_.python && !is_digit(peek()))
    for (const std::string_view name : {"NaN", "Infinity", "-Infinity"})
      if (text_.substr(at_).starts_with(name)) return word(name, JsonToken::kNumber);
  real_ = false;
  take('-');
  if (!take('0') && !digits()) return fail(from_ == text_.size() ? kEndsBefore : kNoValue, from_);
  std::size_t end = at_;
  const auto longer = [&] {
    real_ = true;
    end = at_;
  };
  if (take('.') && digits()) longer();
  at_ = end;
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (digits()) longer();
  }
  at_ = end;
  return behind_word(JsonToken::kNumber);
}

std::optional<double> json_double(std::string_view number) {
  double out = 0;
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, out);
  if (read.ec == std::errc::invalid_argument || read.ptr != end) return std::nullopt;
  // from_chars says the same of what is too large and of what is too small.
  if (read.ec != std::errc()) out = std::strtod(std::string(number).c_str(), nullptr);
  return out;
}

void write_json_string(std::string& out, std::string_view text, bool ascii) {
  out += '"';
  for (std::size_t at = 0;;) {
    const std::size_t plain =
        ascii ? plain_bytes<true>(text.substr(at)) : plain_bytes<false>(text.substr(at));
    out += text.substr(at, plain);
    at += plain;
    if (at == text.size()) break;
    if (const char letter = kEscapes[1][static_cast<unsigned char>(text[at])]; letter != 0) {
      out += {'\\', letter};
      ++at;
      continue;
    }
    const char32_t c = next_code_point(text, at);
    if (0x10000 <= c) append_unit(out, 0xD7C0 + (c >> 10U));
    append_unit(out, c < 0x10000 ? c : 0xDC00 + (c & 0x3FFU));
  }
  out += '"';
}
}  // namespace proctor
