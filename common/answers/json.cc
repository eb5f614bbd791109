#include "common/answers/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "common/base/json_text.h"
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
  return n == nullptr ? std::nullopt : json_double(n->text);
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
// A list or mapping whose end has not come.
struct Open {
  Value* value;
  std::unordered_map<std::string, std::size_t> places;  // of large mappings only; never iterated
};

// Where the value of `key` goes: the last of a repeated key counts, at the place of the first.
Value* place(Open& open, std::string key, std::vector<std::string>* repeated) {
  constexpr std::size_t kSmall = 16, kTold = 16;
  Object& members = *open.value->object();
  Value* found = nullptr;
  if (members.size() <= kSmall) {
    found = members.find(key);
  } else {
    if (open.places.empty())
      for (const Member& m : members) open.places.emplace(m.key, open.places.size());
    const auto [it, fresh] = open.places.emplace(key, members.size());
    if (!fresh) found = &members.members()[it->second].value;
  }
  if (found == nullptr) return &members.append(std::move(key), Value());
  if (repeated != nullptr && repeated->size() < kTold) repeated->push_back(std::move(key));
  return found;
}

Number number(const JsonLexer& in) {
  const std::string_view text = in.bytes();
  if (in.real()) return {python_repr(*json_double(text)), true};
  return {text == "-0" ? "0" : std::string(text), false};
}
}  // namespace

Result<Value> read_json(std::string_view text, const ReadBounds& bounds,
                        std::vector<std::string>* repeated) {
  const auto wrong = [](std::size_t at, const std::string& what) {
    return Error{Errc::kInvalid, "column " + std::to_string(at + 1) + ": " + what};
  };
  if (bounds.bytes_max < text.size())
    return wrong(
        0, std::to_string(text.size()) + " bytes, at most " + std::to_string(bounds.bytes_max));
  if (!is_utf8(text)) return wrong(0, "not UTF-8");
  Value root;
  Value* member = &root;  // where the next value goes that is no element of a list
  std::vector<Open> open;
  std::size_t nodes = 0;
  constexpr std::size_t kDigitsMax = 4300;  // Python's own bound on int()
  const auto put = [&](Value v) {
    ++nodes;
    Array* const list = open.empty() ? nullptr : open.back().value->array();
    return &(list == nullptr ? *member = std::move(v) : list->emplace_back(std::move(v)));
  };
  JsonLexer in(text, {bounds.depth_max + 1, true, true});
  for (;;) {
    switch (in.next()) {
      case JsonToken::kObject:
        open.push_back({put(Object()), {}});
        break;
      case JsonToken::kArray:
        open.push_back({put(Array()), {}});
        break;
      case JsonToken::kObjectEnd:
      case JsonToken::kArrayEnd:
        open.pop_back();
        break;
      case JsonToken::kKey:
        member = place(open.back(), in.text(), repeated);
        break;
      case JsonToken::kString:
        put(in.text());
        break;
      case JsonToken::kNumber:
        if (!in.real() && kDigitsMax < in.bytes().size())
          return wrong(in.end(), "a whole number of more than 4300 digits");
        put(number(in));
        break;
      case JsonToken::kTrue:
      case JsonToken::kFalse:
        put(in.bytes() == "true");
        break;
      case JsonToken::kNull:
        put(nullptr);
        break;
      case JsonToken::kEnd:
        return root;
      case JsonToken::kFault:
        if (in.fault().expected.empty())
          return wrong(in.at(), "nested deeper than " + std::to_string(bounds.depth_max));
        return wrong(in.at(), std::string(in.fault().what));
    }
    if (bounds.nodes_max < nodes)
      return wrong(in.at(), "more than " + std::to_string(bounds.nodes_max) + " values");
  }
}

namespace {
class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void value(const Value& v, int depth) {
    if (const std::string* s = v.string()) return write_json_string(out_, *s, true);
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
      write_json_string(out_, m.key, true);
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

void write_json(std::string& out, const Value& value, int indent) {
  Writer(out, indent).value(value, 0);
}

std::string write_json(const Value& value, int indent) {
  std::string out;
  write_json(out, value, indent);
  return out;
}
}  // namespace proctor::answers
