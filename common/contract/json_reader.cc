// JSON (RFC 8259) with positions.  nlohmann's reader, used elsewhere (base/json.h), tells a byte
// offset only for syntax errors, and a misspelt key is not one.
#include <algorithm>
#include <cstdint>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/tree_builder.h"

namespace proctor {
namespace {

using Answer = std::optional<SyntaxError>;

void append_utf8(std::string& out, std::uint32_t cp) {
  const auto byte = [&](std::uint32_t b) {
    out += static_cast<char>(static_cast<unsigned char>(b));
  };
  if (cp < 0x80) return byte(cp);
  if (cp < 0x800) {
    byte(0xC0 | (cp >> 6));
  } else if (cp < 0x10000) {
    byte(0xE0 | (cp >> 12));
    byte(0x80 | ((cp >> 6) & 0x3F));
  } else {
    byte(0xF0 | (cp >> 18));
    byte(0x80 | ((cp >> 12) & 0x3F));
    byte(0x80 | ((cp >> 6) & 0x3F));
  }
  byte(0x80 | (cp & 0x3F));
}

class Reader {
 public:
  Reader(std::string_view text, TreeBuilder& builder) : rest_(text), builder_(builder) {}

  Answer document() {
    space();
    if (auto r = value()) return r;
    space();
    if (!rest_.empty()) return unexpected("the end of the file");
    return std::nullopt;
  }

 private:
  void skip(std::size_t n) {
    for (const char c : rest_.substr(0, n)) {
      if (c == '\n') {
        ++at_.line;
        at_.column = 1;
      } else {
        ++at_.column;
      }
    }
    rest_.remove_prefix(n);
  }
  void space() { skip(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    skip(1);
    return true;
  }
  Answer unexpected(std::string expected) const {
    const std::string found =
        rest_.empty() ? "the end of the file" : "\"" + printable(rest_.substr(0, 1)) + "\"";
    return SyntaxError{at_, found, std::move(expected)};
  }

  // Recursion is bounded: the builder refuses the first level too many.
  Answer value() {
    if (rest_.empty()) return unexpected("a JSON value");
    switch (rest_.front()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return text();
      default:
        return word();
    }
  }

  Answer object() {
    if (auto r = builder_.begin(Node::Kind::kMapping, at_)) return r;
    skip(1);
    space();
    if (!accept('}')) {
      do {
        space();
        if (rest_.empty() || rest_.front() != '"') return unexpected("a key in double quotes");
        if (auto r = text()) return r;
        space();
        if (!accept(':')) return unexpected("\":\"");
        space();
        if (auto r = value()) return r;
        space();
      } while (accept(','));
      if (!accept('}')) return unexpected("\",\" or \"}\"");
    }
    builder_.end();
    return std::nullopt;
  }

  Answer array() {
    if (auto r = builder_.begin(Node::Kind::kSequence, at_)) return r;
    skip(1);
    space();
    if (!accept(']')) {
      do {
        space();
        if (auto r = value()) return r;
        space();
      } while (accept(','));
      if (!accept(']')) return unexpected("\",\" or \"]\"");
    }
    builder_.end();
    return std::nullopt;
  }

  std::optional<std::uint32_t> hex4(std::size_t from) const {
    if (rest_.size() < from + 4) return std::nullopt;
    std::uint32_t out = 0;
    for (const char c : rest_.substr(from, 4)) {
      if (is_digit(c)) {
        out = out * 16 + static_cast<std::uint32_t>(c - '0');
      } else if (('a' <= c && c <= 'f') || ('A' <= c && c <= 'F')) {
        out = out * 16 + static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    return out;
  }

  // At a backslash.  False: not an escape.
  bool escape(std::string& out) {
    static constexpr std::string_view kShort = "\"\\/bfnrt";
    static constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
    if (rest_.size() < 2) return false;
    if (const std::size_t i = kShort.find(rest_[1]); i != std::string_view::npos) {
      out += kMeaning[i];
      skip(2);
      return true;
    }
    if (rest_[1] != 'u') return false;
    const auto high = hex4(2);
    if (!high) return false;
    if (*high < 0xD800 || 0xDFFF < *high) {
      append_utf8(out, *high);
      skip(6);
      return true;
    }
    if (rest_.substr(6, 2) != "\\u") return false;
    const auto low = hex4(8);
    if (0xDBFF < *high || !low || *low < 0xDC00 || 0xDFFF < *low) return false;
    append_utf8(out, 0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00));
    skip(12);
    return true;
  }

  Answer text() {
    const Mark begin = at_;
    skip(1);
    std::string out;
    for (;;) {
      const std::size_t n = std::min(rest_.find_first_of("\"\\\n\r\t"), rest_.size());
      out += rest_.substr(0, n);
      skip(n);
      if (accept('"')) return builder_.scalar(begin, std::move(out), true);
      if (rest_.empty() || rest_.front() != '\\') return unexpected("\" at the end of the text");
      if (!escape(out)) return SyntaxError{at_, "a broken escape", "a JSON escape"};
    }
  }

  static bool is_number(std::string_view s) {
    std::size_t i = 0;
    const auto digits = [&] {
      const std::size_t from = i;
      while (i < s.size() && is_digit(s[i])) ++i;
      return i - from;
    };
    if (i < s.size() && s[i] == '-') ++i;
    const std::size_t whole = i;
    const std::size_t n = digits();
    if (n == 0 || (1 < n && s[whole] == '0')) return false;
    if (i < s.size() && s[i] == '.') {
      ++i;
      if (digits() == 0) return false;
    }
    if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
      ++i;
      if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
      if (digits() == 0) return false;
    }
    return i == s.size();
  }

  Answer word() {
    const std::string_view w =
        rest_.substr(0, std::min(rest_.find_first_of(" \t\r\n,:]}[{\""), rest_.size()));
    const Mark begin = at_;
    if (w == "null") {
      skip(w.size());
      return builder_.null(begin);
    }
    if (w != "true" && w != "false" && !is_number(w)) return unexpected("a JSON value");
    skip(w.size());
    return builder_.scalar(begin, std::string(w), false);
  }

  std::string_view rest_;
  TreeBuilder& builder_;
  Mark at_;
};

}  // namespace

std::optional<SyntaxError> read_json(std::string_view text, TreeBuilder& builder) {
  return Reader(text, builder).document();
}

}  // namespace proctor
