#include "common/answers/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "common/answers/text.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::answers {
namespace {
void put_hex(std::string& out, std::string_view mark, std::uint32_t c, unsigned digits) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += mark;
  for (unsigned i = digits; i-- > 0;) out += kHex[(c >> (4 * i)) & 15U];
}

void put_text(std::string& out, const std::string& s) {
  const bool single = s.find('\'') == std::string::npos || s.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (std::size_t at = 0; at < s.size();) {
    const auto c = static_cast<std::uint32_t>(next_code_point(s, at));
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (!is_printable(c)) {
      if (c <= 0xFF)
        put_hex(out, "\\x", c, 2);
      else if (c <= 0xFFFF)
        put_hex(out, "\\u", c, 4);
      else
        put_hex(out, "\\U", c, 8);
    } else {
      append_utf8(out, c);
    }
  }
  out += quote;
}

void put(std::string& out, const Value& value) {
  if (const std::string* s = value.string()) return put_text(out, *s);
  if (const bool* b = value.boolean()) {
    out += *b ? "True" : "False";
  } else if (const Number* n = value.number()) {
    out += n->text == "NaN"         ? "nan"
           : n->text == "Infinity"  ? "inf"
           : n->text == "-Infinity" ? "-inf"
                                    : n->text;
  } else if (const Array* a = value.array()) {
    out += '[';
    for (std::size_t i = 0; i < a->size(); ++i) {
      if (i != 0) out += ", ";
      put(out, (*a)[i]);
    }
    out += ']';
  } else if (const Object* o = value.object()) {
    out += '{';
    for (const Member& m : *o) {
      if (&m != &o->members().front()) out += ", ";
      put_text(out, m.key);
      out += ": ";
      put(out, m.value);
    }
    out += '}';
  } else {
    out += "None";
  }
}
}  // namespace

const Value* Object::find(std::string_view key) const {
  for (const Member& m : members_)
    if (m.key == key) return &m.value;
  return nullptr;
}

Value* Object::find(std::string_view key) {
  for (Member& m : members_)
    if (m.key == key) return &m.value;
  return nullptr;
}

Value& Object::at(std::string_view key) {
  if (Value* found = find(key)) return *found;
  return append(std::string(key), Value());
}

void Object::set(std::string_view key, Value value) {
  at(key) = std::move(value);
}

bool Object::erase(std::string_view key) {
  const auto it =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.key == key; });
  if (it == members_.end()) return false;
  members_.erase(it);
  return true;
}

Value& Object::append(std::string key, Value value) {
  members_.push_back({std::move(key), std::move(value)});
  return members_.back().value;
}

void Object::reserve(std::size_t members) {
  members_.reserve(members);
}

std::optional<double> Value::as_double() const {
  if (const bool* b = boolean()) return *b ? 1.0 : 0.0;
  const Number* n = number();
  if (n == nullptr) return std::nullopt;
  if (n->text == "NaN") return std::nan("");
  if (n->text == "Infinity") return HUGE_VAL;
  if (n->text == "-Infinity") return -HUGE_VAL;
  double out = 0;
  const char* const end = n->text.data() + n->text.size();
  const auto read = std::from_chars(n->text.data(), end, out);
  if (read.ec == std::errc::result_out_of_range) return n->text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return out;
}

bool Value::truthy() const {
  if (const bool* b = boolean()) return *b;
  if (number() != nullptr) {
    const auto d = as_double();
    return !d || *d != 0;
  }
  if (const std::string* s = string()) return !s->empty();
  if (const Array* a = array()) return !a->empty();
  if (const Object* o = object()) return !o->empty();
  return false;
}

std::string_view Value::kind() const {
  static constexpr std::array<std::string_view, 6> kNames = {"null", "a truth value", "a number",
                                                             "text", "a list",        "a mapping"};
  return kNames[v_.index()];
}

bool operator==(const Value& a, const Value& b) {
  if (a.v_.index() != b.v_.index()) return false;
  if (const Object* o = a.object()) return o->members() == b.object()->members();
  if (const Array* x = a.array()) return *x == *b.array();
  if (const Number* n = a.number()) return *n == *b.number();
  if (const std::string* s = a.string()) return *s == *b.string();
  if (const bool* t = a.boolean()) return *t == *b.boolean();
  return true;
}

std::string python_repr(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view all(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = all.find('e');
  int exponent = 0;
  const std::size_t digits_at = all[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(all.data() + digits_at, end, exponent);
  const bool negative = all[0] == '-';
  std::string digits;
  for (const char c : all.substr(0, e))
    if (c != '-' && c != '.') digits += c;
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    const int size = std::abs(exponent);
    return out + (exponent < 0 ? "e-" : "e+") + (size < 10 ? "0" : "") + std::to_string(size);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

const std::string* text_at(const Value& value, std::string_view key) {
  return value.object() == nullptr ? nullptr : text_at(*value.object(), key);
}

const std::string* text_at(const Object& object, std::string_view key) {
  const Value* found = object.find(key);
  return found == nullptr ? nullptr : found->string();
}

const Object* object_at(const Value& value, std::string_view key) {
  const Object* o = value.object();
  const Value* found = o == nullptr ? nullptr : o->find(key);
  return found == nullptr ? nullptr : found->object();
}

std::string python_repr_of(const Value& value) {
  std::string out;
  put(out, value);
  return out;
}

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

namespace {
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> out{};
  for (std::size_t c = 0x20; c < 0x7F; ++c) out[c] = true;
  out['"'] = out['\\'] = false;
  return out;
}();

// The letter that stands for a character behind a backslash; 0: none.
constexpr std::array<char, 256> kLetter = [] {
  std::array<char, 256> out{};
  constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
  constexpr std::string_view kTo = "\"\\nrtfb";
  for (std::size_t i = 0; i < kFrom.size(); ++i) out[static_cast<unsigned char>(kFrom[i])] = kTo[i];
  return out;
}();

void write_unit(std::string& out, unsigned unit) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kHex[(unit >> shift) & 15U];
}

void write_escape(std::string& out, std::string_view text, std::size_t& at) {
  if (const char letter = kLetter[static_cast<unsigned char>(text[at])]; letter != 0) {
    const std::array<char, 2> both = {'\\', letter};
    out.append(both.data(), both.size());
    ++at;
    return;
  }
  const auto c = static_cast<std::uint32_t>(next_code_point(text, at));
  if (c < 0x10000) return write_unit(out, c);
  write_unit(out, 0xD800U + ((c - 0x10000U) >> 10U));
  write_unit(out, 0xDC00U + ((c - 0x10000U) & 0x3FFU));
}

class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void value(const Value& v, int depth) {
    if (const std::string* s = v.string()) return write_json_string(out_, *s);
    if (const Object* o = v.object()) return object(*o, depth);
    if (const Array* a = v.array()) return list(*a, depth);
    if (const Number* n = v.number()) {
      out_ += n->text;
    } else if (const bool* b = v.boolean()) {
      out_ += *b ? "true" : "false";
    } else {
      out_ += "null";
    }
  }

 private:
  void object(const Object& o, int depth) {
    if (o.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    bool first = true;
    for (const Member& m : o) {
      separate(first, depth + 1);
      write_json_string(out_, m.key);
      out_ += ": ";
      value(m.value, depth + 1);
    }
    close('}', depth);
  }
  void list(const Array& a, int depth) {
    if (a.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    bool first = true;
    for (const Value& v : a) {
      separate(first, depth + 1);
      value(v, depth + 1);
    }
    close(']', depth);
  }
  void separate(bool& first, int depth) {
    if (!first) out_ += indent_ < 0 ? ", " : ",";
    first = false;
    line(depth);
  }
  void close(char bracket, int depth) {
    line(depth);
    out_ += bracket;
  }
  void line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth), ' ');
  }
  std::string& out_;
  int indent_;
};
}  // namespace

void write_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t from = at;
    at += plain_run<RunFor::kWriter>(text, at);
    while (at < text.size() && kPlain[static_cast<unsigned char>(text[at])]) ++at;
    out.append(text, from, at - from);
    if (at < text.size()) write_escape(out, text, at);
  }
  out += '"';
}

void write_json(std::string& out, const Value& value, int indent) {
  Writer(out, indent).value(value, 0);
}

std::string write_json(const Value& value, int indent) {
  std::string out;
  write_json(out, value, indent);
  return out;
}
}  // namespace proctor::answers
