#include "common/answers/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "common/answers/text.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::answers {
namespace {

// Bytes that end a run of plain characters inside a string.
constexpr std::array<bool, 256> kEndsRun = [] {
  std::array<bool, 256> out{};
  for (std::size_t c = 0; c < 0x20; ++c) out[c] = true;
  out['"'] = out['\\'] = true;
  return out;
}();

// What stands for the character behind a backslash; 0: no single character.
constexpr std::array<char, 256> kEscaped = [] {
  std::array<char, 256> out{};
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  for (std::size_t i = 0; i < kFrom.size(); ++i) out[static_cast<unsigned char>(kFrom[i])] = kTo[i];
  return out;
}();

class Reader {
 public:
  Reader(std::string_view text, const ReadBounds& bounds, std::vector<std::string>* repeated)
      : text_(text), bounds_(bounds), repeated_(repeated) {}

  Result<Value> document() {
    Value out;
    space();
    if (!value(out, 0)) return error();
    space();
    if (at_ != text_.size() && !fail("there is more behind the value")) return error();
    return out;
  }

 private:
  using Places = std::unordered_map<std::string, std::size_t>;  // never iterated

  Error error() const {
    return {Errc::kInvalid, "column " + std::to_string(wrong_at_ + 1) + ": " + wrong_};
  }
  bool fail(std::string what) {
    if (wrong_.empty()) {
      wrong_ = std::move(what);
      wrong_at_ = at_;
    }
    return false;
  }
  bool ended() const { return at_ == text_.size(); }
  void space() {
    while (!ended() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    if (ended() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }

  bool value(Value& out, std::size_t depth) {
    if (bounds_.depth_max < depth)
      return fail("nested deeper than " + std::to_string(bounds_.depth_max));
    if (bounds_.nodes_max < ++nodes_)
      return fail("more than " + std::to_string(bounds_.nodes_max) + " values");
    if (ended()) return fail("the text ends where a value is expected");
    switch (text_[at_]) {
      case '{':
        return object(out, depth);
      case '[':
        return list(out, depth);
      case '"': {
        std::string s;
        if (!string(s)) return false;
        out = Value(std::move(s));
        return true;
      }
      default:
        return scalar(out);
    }
  }

  bool scalar(Value& out) {
    if (word("null")) return out = Value(), true;
    if (word("true")) return out = Value(true), true;
    if (word("false")) return out = Value(false), true;
    for (const char* name : {"NaN", "Infinity", "-Infinity"})
      if (word(name)) return out = Value(Number{name, true}), true;
    return number(out);
  }

  bool digits() {
    const std::size_t from = at_;
    while (!ended() && '0' <= text_[at_] && text_[at_] <= '9') ++at_;
    return from < at_;
  }

  // As Python's scanner: what does not belong to a number is left for the caller to refuse.
  bool number(Value& out) {
    const std::size_t from = at_;
    take('-');
    if (!take('0') && !digits()) {
      at_ = from;
      return fail("a value is expected");
    }
    std::size_t end = at_;
    bool is_real = false;
    if (take('.') && digits()) {
      end = at_;
      is_real = true;
    }
    at_ = end;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (digits()) {
        end = at_;
        is_real = true;
      }
    }
    at_ = end;
    const std::string_view text = text_.substr(from, end - from);
    if (!is_real) {
      constexpr std::size_t kDigitsMax = 4300;  // Python's own bound on int()
      if (kDigitsMax < text.size()) return fail("a whole number of more than 4300 digits");
      out = Value(Number{text == "-0" ? "0" : std::string(text), false});
      return true;
    }
    const auto read = Value(Number{std::string(text), true}).as_double();
    double d = read ? *read : 0.0;
    // from_chars says "out of range" of both ends.
    if (std::isinf(d) && small_exponent(text)) d = text[0] == '-' ? -0.0 : 0.0;
    out = Value(Number{python_repr(d), true});
    return true;
  }

  static bool small_exponent(std::string_view text) {
    const std::size_t e = text.find_first_of("eE");
    return e == std::string_view::npos || text[e + 1] == '-';
  }

  bool list(Value& out, std::size_t depth) {
    ++at_;
    Array items;
    space();
    if (!take(']')) {
      do {
        space();
        items.emplace_back();
        if (!value(items.back(), depth + 1)) return false;
        space();
      } while (take(','));
      if (!take(']')) return fail("\",\" or \"]\" is expected");
    }
    out = Value(std::move(items));
    return true;
  }

  bool object(Value& out, std::size_t depth) {
    ++at_;
    Object members;
    Places places;  // of large objects only
    space();
    if (!take('}')) {
      do {
        space();
        std::string key;
        if (ended() || text_[at_] != '"') return fail("a key in double quotes is expected");
        if (!string(key)) return false;
        space();
        if (!take(':')) return fail("\":\" is expected");
        space();
        Value* const slot = place(members, places, std::move(key));
        if (!value(*slot, depth + 1)) return false;
        space();
      } while (take(','));
      if (!take('}')) return fail("\",\" or \"}\" is expected");
    }
    out = Value(std::move(members));
    return true;
  }

  // Where the value of `key` goes: the last of a repeated key counts, at the place of the first.
  Value* place(Object& members, Places& places, std::string key) {
    constexpr std::size_t kSmall = 16;
    Value* found = nullptr;
    if (members.size() <= kSmall) {
      found = members.find(key);
    } else {
      if (places.empty())
        for (std::size_t i = 0; i < members.size(); ++i) places[members.members()[i].key] = i;
      const auto [it, fresh] = places.emplace(key, members.size());
      if (!fresh) found = &members.members()[it->second].value;
    }
    if (found == nullptr) return &members.append(std::move(key), Value());
    constexpr std::size_t kTold = 16;
    if (repeated_ != nullptr && repeated_->size() < kTold) repeated_->push_back(std::move(key));
    return found;
  }

  bool string(std::string& out) {
    ++at_;
    // Most texts hold few escaped quotes: the first quote says how long they are at least.
    if (const std::size_t quote = text_.find('"', at_); quote != std::string_view::npos)
      out.reserve(quote - at_);
    for (;;) {
      const std::size_t from = at_;
      at_ += plain_run<RunFor::kReader>(text_, at_);
      while (at_ < text_.size() && !kEndsRun[static_cast<unsigned char>(text_[at_])]) ++at_;
      out.append(text_, from, at_ - from);
      if (ended()) return fail("the text ends inside a string");
      if (text_[at_] == '"') {
        ++at_;
        return true;
      }
      if (text_[at_] != '\\') return fail("a control character inside a string");
      ++at_;
      if (!escape(out)) return false;
    }
  }

  bool escape(std::string& out) {
    if (ended()) return fail("the text ends inside a string");
    const char c = text_[at_];
    if (const char plain = kEscaped[static_cast<unsigned char>(c)]; plain != 0) {
      out += plain;
      ++at_;
      return true;
    }
    if (c != 'u') return fail("an unknown escape inside a string");
    ++at_;
    char32_t unit = 0;
    if (!hex4(unit)) return false;
    if (0xD800 <= unit && unit < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      const std::size_t back = at_;
      at_ += 2;
      char32_t low = 0;
      if (!hex4(low)) return false;
      if (0xDC00 <= low && low < 0xE000)
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      else
        at_ = back;
    }
    append_utf8(out, unit);
    return true;
  }

  bool hex4(char32_t& out) {
    const std::string_view digits = text_.substr(at_, 4);
    const auto value = whole_number<unsigned>(digits, 16);
    if (digits.size() < 4 || !value) return fail("four hexadecimal digits are expected");
    at_ += 4;
    out = *value;
    return true;
  }

  std::string_view text_;
  ReadBounds bounds_;
  std::vector<std::string>* repeated_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
  std::string wrong_;
  std::size_t wrong_at_ = 0;
};

}  // namespace

Result<Value> read_json(std::string_view text, const ReadBounds& bounds,
                        std::vector<std::string>* repeated) {
  if (bounds.bytes_max < text.size())
    return Error{Errc::kInvalid, "column 1: " + std::to_string(text.size()) + " bytes, at most " +
                                     std::to_string(bounds.bytes_max)};
  if (!is_ascii(text) && !is_utf8(text)) return Error{Errc::kInvalid, "column 1: not UTF-8"};
  return Reader(text, bounds, repeated).document();
}

}  // namespace proctor::answers
