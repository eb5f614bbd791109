#include "worker/gateway/json_spans.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {
Error broken(std::size_t at, const char* what) {
  return Error{Errc::kInvalid, "byte " + std::to_string(at) + ": " + what};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// How many bytes of a text's inside come before one that ends it, escapes or is none of it.  Eight
// at a time: a conversation is walked over several times.
std::size_t plain_bytes(std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kOnes = 0x0101010101010101U, kTops = kOnes << 7U;
  std::size_t n = 0;
  for (std::uint64_t w = 0; n + sizeof w <= text.size(); n += sizeof w) {
    std::memcpy(&w, text.data() + n, sizeof w);
    const auto zeros = [](std::uint64_t x) { return (x - kOnes) & ~x; };
    const std::uint64_t found =
        (zeros(w ^ kOnes * '"') | zeros(w ^ kOnes * '\\') | ((w - kOnes * ' ') & ~w)) & kTops;
    if (found != 0) return n + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  }
  return n;
}

// Walks over a text.  Of one that was read whole before, nothing can fail any more.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t at) : text_(text), at_(at) {}
  std::size_t at() const { return at_; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool ended() const { return at_ == text_.size(); }

  Status string() {
    const std::size_t from = at_;
    if (!take('"')) return broken(at_, "expected a text");
    while ((at_ += plain_bytes(text_.substr(at_))) < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return ok_status();
      if (static_cast<unsigned char>(c) < 0x20) return broken(at_ - 1, "a control byte in a text");
      if (c == '\\' && !escape()) return broken(at_, "no such escape");
    }
    return broken(from, "a text without end");
  }

  Status number() {
    const std::size_t from = at_;
    take('-');
    if (!take('0') && !digits()) return broken(from, "no value");
    if (take('.') && !digits()) return broken(at_, "no digits behind the point");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return broken(at_, "no digits of an exponent");
    }
    return ok_status();
  }

  Status word() {
    for (const std::string_view w : {"true", "false", "null"}) {
      if (text_.substr(at_, w.size()) != w) continue;
      at_ += w.size();
      return ok_status();
    }
    return number();
  }

  // Any value, however deep, without recursion.
  Status value(const JsonText::OnKey* on_key = nullptr) {
    std::string open;
    for (;;) {
      blanks();
      if (peek() == '{' || peek() == '[') {
        open += peek();
        if (JsonText::kDepthMax < open.size()) return broken(at_, "nested too deep");
        const char close = take('{') ? '}' : (take('['), ']');
        blanks();
        if (!take(close)) {
          if (close == '}') PROCTOR_CHECK_OK(key(on_key));
          continue;
        }
        open.pop_back();
      } else {
        PROCTOR_CHECK_OK(peek() == '"' ? string() : word());
      }
      for (;;) {  // behind a value: the next, or the end of what holds it
        if (open.empty()) return ok_status();
        blanks();
        if (take(',')) {
          blanks();
          if (open.back() == '{') PROCTOR_CHECK_OK(key(on_key));
          break;
        }
        if (!take(open.back() == '{' ? '}' : ']')) return broken(at_, "expected , or the end");
        open.pop_back();
      }
    }
  }

 private:
  bool digits() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return from < at_;
  }
  bool escape() {
    constexpr std::string_view kPlain = "\"\\/bfnrt", kHex = "0123456789abcdefABCDEF";
    const char c = peek();
    if (at_ == text_.size()) return false;
    ++at_;
    if (c != 'u') return kPlain.find(c) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, ++at_)
      if (at_ == text_.size() || kHex.find(text_[at_]) == std::string_view::npos) return false;
    return true;
  }
  Status key(const JsonText::OnKey* on_key) {
    const std::size_t from = at_;
    PROCTOR_CHECK_OK(string());
    const std::string_view quoted = text_.substr(from, at_ - from);
    blanks();
    if (!take(':')) return broken(at_, "expected a colon");
    if (on_key == nullptr) return ok_status();
    blanks();
    const std::string_view raw = quoted.substr(1, quoted.size() - 2);
    if (raw.find('\\') == std::string_view::npos) {
      (*on_key)(raw, at_);
    } else {
      const Result<Json> plain = parse_json(quoted, {.bytes_max = quoted.size()});
      (*on_key)(plain.ok() ? plain->string() : std::string(raw), at_);
    }
    return ok_status();
  }

  std::string_view text_;
  std::size_t at_;
};
}  // namespace

Result<JsonText> JsonText::read(std::string_view text, const OnKey& on_key) {
  if (!is_utf8(text)) return Error{Errc::kInvalid, "not UTF-8"};
  Cursor c(text, 0);
  c.blanks();
  const std::size_t from = c.at();
  if (c.ended()) return broken(0, "nothing");
  PROCTOR_CHECK_OK(c.value(on_key ? &on_key : nullptr));
  const JsonSpan root{from, c.at() - from};
  c.blanks();
  if (!c.ended()) return broken(c.at(), "something behind the end");
  return JsonText(text, root);
}

Result<std::vector<JsonMember>> JsonText::members(JsonSpan object) const {
  std::vector<JsonMember> out;
  Cursor c(text_, object.at);
  c.take('{');
  c.blanks();
  while (c.peek() != '}') {
    JsonMember m;
    m.begin = c.at();
    PROCTOR_CHECK_OK(c.string());
    const auto key = text({m.begin, c.at() - m.begin});
    if (!key) return broken(m.begin, "a key that is no text");
    m.key = *key;
    c.blanks();
    c.take(':');
    c.blanks();
    m.value.at = c.at();
    PROCTOR_CHECK_OK(c.value());
    m.value.size = c.at() - m.value.at;
    out.push_back(std::move(m));
    if (kMembersMax < out.size()) return broken(object.at, "an object of too many members");
    c.blanks();
    if (c.take(',')) c.blanks();
  }
  std::vector<std::string_view> keys;
  for (const JsonMember& m : out) keys.push_back(m.key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end())
    return Error{Errc::kInvalid, "\"" + printable(*twice, 60) + "\" is there twice"};
  return out;
}

Result<std::vector<JsonSpan>> JsonText::elements(JsonSpan array) const {
  std::vector<JsonSpan> out;
  Cursor c(text_, array.at);
  c.take('[');
  c.blanks();
  while (c.peek() != ']') {
    JsonSpan span{c.at(), 0};
    PROCTOR_CHECK_OK(c.value());
    span.size = c.at() - span.at;
    out.push_back(span);
    if (kElementsMax < out.size()) return broken(array.at, "a list of too many elements");
    c.blanks();
    if (c.take(',')) c.blanks();
  }
  return out;
}

std::optional<std::string> JsonText::text(JsonSpan span) const {
  const std::string_view quoted = bytes(span);
  if (quoted.empty() || quoted.front() != '"') return std::nullopt;
  if (quoted.find('\\') == std::string_view::npos)
    return std::string(quoted.substr(1, quoted.size() - 2));
  const Result<Json> plain = parse_json(quoted, {.bytes_max = quoted.size()});
  if (!plain.ok()) return std::nullopt;
  return plain->string();
}

std::optional<std::uint64_t> JsonText::count(JsonSpan span) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
  const std::string_view digits = bytes(span);
  std::uint64_t out = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (ec != std::errc() || end != digits.data() + digits.size() || kMost < out) return std::nullopt;
  return out;
}

std::optional<bool> JsonText::flag(JsonSpan span) const {
  if (bytes(span) == "true") return true;
  if (bytes(span) == "false") return false;
  return std::nullopt;
}

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key) {
  const auto it = std::ranges::find(members, key, &JsonMember::key);
  return it == members.end() ? nullptr : &*it;
}

std::string spliced(std::string_view text, std::vector<Splice> edits) {
  std::ranges::stable_sort(edits, {}, [](const Splice& s) { return s.instead.at; });
  std::string out;
  std::size_t at = 0;
  for (const Splice& s : edits) {
    PROCTOR_ASSERT(at <= s.instead.at && s.instead.at + s.instead.size <= text.size());
    out += text.substr(at, s.instead.at - at);
    out += s.bytes;
    at = s.instead.at + s.instead.size;
  }
  out += text.substr(at);
  return out;
}

Splice further_member(JsonSpan object, bool has_members, std::string_view key,
                      std::string_view value) {
  std::string bytes = has_members ? "," : "";
  bytes += json_quoted(key);
  bytes += ':';
  bytes += value;
  return {{object.at + object.size - 1, 0}, std::move(bytes), std::string(key), ""};
}

std::string json_quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, Json::Utf8::kReplace);
}
}  // namespace proctor
