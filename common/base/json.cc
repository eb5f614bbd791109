#include "common/base/json.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "common/base/json_text.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/base/words.h"

namespace proctor {
// A value from the tokens of a text, and its canonical text.
class JsonBuilder {
 public:
  static Result<std::string> canonical(const Json& value);
  static Result<Json> read(std::string_view text, std::size_t depth_max) {
    Json root;
    std::vector<Json*> open;  // lists and objects whose end has not come, outermost first
    Json* member = &root;     // where the next value goes that is no element of a list
    const auto put = [&](Json v) -> Json& {
      if (open.empty() || !open.back()->is_array()) return *member = std::move(v);
      return open.back()->value_.array->emplace_back(std::move(v));
    };
    JsonLexer in(text, {.depth_max = depth_max});
    for (;;) {
      switch (in.next()) {
        case JsonToken::kObject:
          open.push_back(&put(Json::object()));
          break;
        case JsonToken::kArray:
          open.push_back(&put(Json::array()));
          break;
        case JsonToken::kObjectEnd:
        case JsonToken::kArrayEnd:
          open.pop_back();
          break;
        case JsonToken::kKey: {
          Json::Object& members = *open.back()->value_.object;
          const auto [at, fresh] = members.try_emplace(in.text());
          if (!fresh)
            return Error{Errc::kInvalid, "duplicate key \"" + at->first.substr(0, 80) + "\""};
          member = &at->second;
          member->place_ = static_cast<std::uint32_t>(members.size());
          break;
        }
        case JsonToken::kString:
          put(in.text());
          break;
        case JsonToken::kNumber:
          if (!std::isfinite(put(number(in)).as_double())) return not_json(in.end());
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
            return Error{Errc::kInvalid, std::string(in.fault().what)};
          return not_json(in.at() + 1);
      }
    }
  }

 private:
  static Error not_json(std::size_t bytes) {
    return {Errc::kInvalid, "not JSON at byte " + std::to_string(bytes)};
  }
  static Json number(const JsonLexer& in) {
    const std::string_view digits = in.bytes();
    if (in.real()) return *json_double(digits);
    if (const auto n = whole_number<std::uint64_t>(digits)) return *n;
    const auto n = whole_number<std::int64_t>(digits);
    return n ? Json(*n) : Json(*json_double(digits));
  }
};

namespace {
// RFC 8785 orders keys by UTF-16 code units: as bytes of UTF-8, but for the last 8,192 characters
// of the first plane, which come behind all other planes.
bool utf16_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
  };
  return std::ranges::lexicographical_compare(a, b, {}, rank, rank);
}
}  // namespace

struct Json::Dump {
  enum class Order : std::uint8_t { kName, kAdded, kCanonical };
  int indent = -1;
  Utf8 utf8 = Utf8::kStrict;
  bool ascii = false;
  Order order = Order::kName;
  std::string out = {};

  void line(int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  }

  template <std::integral T>
  void number(T v) {
    constexpr std::int64_t kSafe = (std::int64_t{1} << 53) - 1;
    if (order == Order::kCanonical && (std::cmp_less(v, -kSafe) || std::cmp_less(kSafe, v)))
      throw exception("integer beyond 2^53 - 1 in hashed JSON");
    char digits[24];
    out.append(digits, std::to_chars(std::begin(digits), std::end(digits), v).ptr);
  }

  void text(const std::string& text) {
    if (is_utf8(text)) return write_json_string(out, text, ascii);
    if (utf8 == Utf8::kStrict) throw exception("string is not UTF-8");
    out += nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  }

  void member(const Object::value_type& member, bool first, int depth) {
    if (!first) out += ',';
    line(depth);
    text(member.first);
    out += indent < 0 ? ":" : ": ";
    write(member.second, depth);
  }

  void object(const Object& members, int depth) {
    out += '{';
    bool first = true;
    if (order == Order::kName) {
      for (const auto& m : members) member(m, std::exchange(first, false), depth + 1);
    } else {
      std::vector<const Object::value_type*> sorted;
      sorted.reserve(members.size());
      for (const auto& m : members) sorted.push_back(&m);
      if (order == Order::kAdded)
        std::ranges::sort(sorted, {}, [](const auto* m) { return m->second.place_; });
      else if (const auto before = [](const auto* a,
                                      const auto* b) { return utf16_less(a->first, b->first); };
               !std::ranges::is_sorted(sorted, before))
        std::ranges::sort(sorted, before);
      for (const auto* m : sorted) member(*m, std::exchange(first, false), depth + 1);
    }
    if (!members.empty()) line(depth);
    out += '}';
  }

  void array(const Array& elements, int depth) {
    out += '[';
    bool first = true;
    for (const Json& e : elements) {
      if (!std::exchange(first, false)) out += ',';
      line(depth + 1);
      write(e, depth + 1);
    }
    if (!elements.empty()) line(depth);
    out += ']';
  }

  void write(const Json& v, int depth) {
    switch (v.kind_) {
      case Kind::kNull:
        out += "null";
        return;
      case Kind::kBoolean:
        out += v.value_.boolean ? "true" : "false";
        return;
      case Kind::kInteger:
        number(v.value_.integer);
        return;
      case Kind::kUnsigned:
        number(v.value_.number);
        return;
      case Kind::kFloat:
        if (order == Order::kCanonical) throw exception("floating point number in hashed JSON");
        out += nlohmann::json(v.value_.real).dump();
        return;
      case Kind::kString:
        text(*v.value_.string);
        return;
      case Kind::kArray:
        array(*v.value_.array, depth);
        return;
      case Kind::kObject:
        object(*v.value_.object, depth);
        return;
    }
  }

  std::string all(const Json& v) {
    write(v, 0);
    return std::move(out);
  }
};

std::string Json::dump(int indent, Utf8 utf8, bool ascii) const {
  return Dump{indent, utf8, ascii}.all(*this);
}

std::string Json::dump_as_built(int indent, Utf8 utf8) const {
  return Dump{indent, utf8, false, Dump::Order::kAdded}.all(*this);
}

Result<std::string> JsonBuilder::canonical(const Json& value) {
  try {
    return Json::Dump{.order = Json::Dump::Order::kCanonical}.all(value);
  } catch (const Json::exception& e) {
    return Error{Errc::kInvalid, e.what()};
  }
}

std::ostream& operator<<(std::ostream& out, const Json& v) {
  return out << v.dump(-1, Json::Utf8::kReplace);
}

Json::Json(std::string v) : kind_(Kind::kString) {
  value_.string = new std::string(std::move(v));
}
Json::Json(std::string_view v) : Json(std::string(v)) {}
Json::Json(const char* v) : Json(std::string(v)) {}
Json::Json(Array v) : kind_(Kind::kArray) {
  value_.array = new Array(std::move(v));
}
Json::Json(Object v) : kind_(Kind::kObject) {
  value_.object = new Object(std::move(v));
}

Json::Json(std::initializer_list<Part> parts) {
  const bool pairs = std::ranges::all_of(parts, [](const Part& part) {
    const Json& v = part.value();
    return v.is_array() && v.value_.array->size() == 2 && v.value_.array->front().is_string();
  });
  *this = pairs ? object(parts) : array(parts);
}

Json Json::array(std::initializer_list<Part> parts) {
  Array out;
  out.reserve(parts.size());
  for (const Part& part : parts) out.push_back(part.take());
  return out;
}

Json Json::object(std::initializer_list<Part> parts) {
  Json out = object();
  for (const Part& part : parts) {
    Json pair = part.take();
    out.emplace(pair.at(0).string(), std::move(pair.at(1)));
  }
  return out;
}

Json::Json(const Json& other) : kind_(other.kind_), place_(other.place_), value_(other.value_) {
  if (kind_ == Kind::kString) value_.string = new std::string(*other.value_.string);
  if (kind_ == Kind::kArray) value_.array = new Array(*other.value_.array);
  if (kind_ == Kind::kObject) value_.object = new Object(*other.value_.object);
}

Json& Json::operator=(Json other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(value_, other.value_);
  return *this;
}

void Json::destroy() noexcept {
  if (kind_ == Kind::kString) delete value_.string;
  if (kind_ == Kind::kArray) delete value_.array;
  if (kind_ == Kind::kObject) delete value_.object;
}

static constexpr auto words(Json::Kind) {
  using enum Json::Kind;
  return std::to_array<Word<Json::Kind>>({{"null", kNull},
                                          {"boolean", kBoolean},
                                          {"number", kInteger},
                                          {"number", kUnsigned},
                                          {"number", kFloat},
                                          {"string", kString},
                                          {"array", kArray},
                                          {"object", kObject}});
}

std::string_view Json::kind_name() const noexcept {
  return word_of(kind_);
}

void Json::wrong_kind(const char* wanted) const {
  throw exception(fmt::format("expected {}, found {}", wanted, kind_name()));
}

bool Json::boolean() const {
  if (!is_boolean()) wrong_kind("boolean");
  return value_.boolean;
}

const std::string& Json::string() const {
  if (!is_string()) wrong_kind("string");
  return *value_.string;
}

const Json::Array& Json::list() const {
  if (!is_array()) wrong_kind("array");
  return *value_.array;
}

Json::Array& Json::list() {
  return const_cast<Array&>(std::as_const(*this).list());
}

const Json::Object& Json::members() const {
  if (!is_object()) wrong_kind("object");
  return *value_.object;
}

const Json::Object& Json::items() const noexcept {
  static const Object kNone;
  return is_object() ? *value_.object : kNone;
}

double Json::as_double() const {
  if (kind_ == Kind::kFloat) return value_.real;
  return kind_ == Kind::kUnsigned ? static_cast<double>(as_unsigned())
                                  : static_cast<double>(as_signed());
}

std::int64_t Json::as_signed() const {
  switch (kind_) {
    case Kind::kInteger:
      return value_.integer;
    case Kind::kUnsigned:
      return static_cast<std::int64_t>(value_.number);
    case Kind::kFloat:
      return static_cast<std::int64_t>(value_.real);
    case Kind::kNull:
    case Kind::kBoolean:
    case Kind::kString:
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  wrong_kind("number");
}

std::uint64_t Json::as_unsigned() const {
  if (kind_ == Kind::kFloat) return static_cast<std::uint64_t>(value_.real);
  return static_cast<std::uint64_t>(as_signed());
}

Json::Object& Json::make_object() {
  if (is_null()) *this = object();
  return const_cast<Object&>(members());
}

Json::Array& Json::make_array() {
  if (is_null()) *this = array();
  return list();
}

Json& Json::operator[](std::string_view name) {
  Object& all = make_object();
  const auto at = all.lower_bound(name);
  if (at != all.end() && at->first == name) return at->second;
  Json& added = all.try_emplace(at, std::string(name))->second;
  added.place_ = static_cast<std::uint32_t>(all.size());
  return added;
}

const Json& Json::at(std::string_view name) const {
  const auto found = members().find(name);
  if (found == members().end()) throw exception("no member \"" + std::string(name) + "\"");
  return found->second;
}

Json& Json::at(std::string_view name) {
  return const_cast<Json&>(std::as_const(*this).at(name));
}

bool Json::contains(std::string_view name) const {
  return items().contains(name);
}

Json::iterator Json::find(std::string_view name) {
  return is_object() ? iterator(value_.object->find(name)) : end();
}

Json::const_iterator Json::find(std::string_view name) const {
  return is_object() ? const_iterator(std::as_const(*value_.object).find(name)) : end();
}

std::string Json::value(std::string_view name, const char* otherwise) const {
  return value(name, std::string(otherwise));
}

bool Json::emplace(std::string_view name, Json v) {
  const std::size_t before = size();
  Json& member = (*this)[name];
  if (size() == before) return false;
  member = std::move(v);
  return true;
}

std::size_t Json::erase(std::string_view name) {
  Object& all = const_cast<Object&>(members());
  const auto found = all.find(name);
  if (found == all.end()) return 0;
  for (auto& [other, v] : all)
    if (found->second.place_ < v.place_) --v.place_;
  all.erase(found);
  return 1;
}

void Json::update(Json other) {
  make_object();
  for (const auto& [name, v] : other.members()) (*this)[name] = v;
}

const Json* Json::begin_element() const {
  if (is_array()) return value_.array->data();
  if (is_object()) return &value_.object->begin()->second;
  return this;
}

const Json& Json::list_element(std::size_t at) const {
  if (list().size() <= at) throw exception("no element " + std::to_string(at));
  return list()[at];
}

Json& Json::list_element(std::size_t at) {
  return const_cast<Json&>(std::as_const(*this).list_element(at));
}

void Json::push_back(Json v) {
  make_array().push_back(std::move(v));
}

void Json::clear() {
  if (is_array()) *this = array();
  if (is_object()) *this = object();
}

std::size_t Json::size() const noexcept {
  if (is_array()) return value_.array->size();
  if (is_object()) return value_.object->size();
  return is_null() ? 0 : 1;
}

Json::const_iterator Json::begin() const {
  return is_object() ? const_iterator(std::as_const(*value_.object).begin())
                     : const_iterator(begin_element());
}

Json::const_iterator Json::end() const {
  return is_object() ? const_iterator(std::as_const(*value_.object).end())
                     : const_iterator(begin_element() + size());
}

Json::iterator Json::begin() {
  return is_object() ? iterator(value_.object->begin()) : iterator(begin_element());
}

Json::iterator Json::end() {
  return is_object() ? iterator(value_.object->end()) : iterator(begin_element() + size());
}

std::partial_ordering Json::compare(const Json& other) const {
  if (is_number() && other.is_number()) {
    if (kind_ == Kind::kFloat || other.kind_ == Kind::kFloat)
      return as_double() <=> other.as_double();
    const bool low = kind_ == Kind::kInteger && value_.integer < 0;
    const bool other_low = other.kind_ == Kind::kInteger && other.value_.integer < 0;
    if (low || other_low)
      return low && other_low ? as_signed() <=> other.as_signed() : other_low <=> low;
    return as_unsigned() <=> other.as_unsigned();
  }
  if (kind_ != other.kind_) return kind_ <=> other.kind_;
  switch (kind_) {
    case Kind::kBoolean:
      return value_.boolean <=> other.value_.boolean;
    case Kind::kString:
      return *value_.string <=> *other.value_.string;
    case Kind::kArray:
      return *value_.array <=> *other.value_.array;
    case Kind::kObject:
      return *value_.object <=> *other.value_.object;
    case Kind::kNull:
    case Kind::kInteger:
    case Kind::kUnsigned:
    case Kind::kFloat:
      break;
  }
  return std::partial_ordering::equivalent;
}

Result<Json> parse_json(std::string_view text, const JsonBounds& bounds) {
  if (bounds.bytes_max < text.size())
    return Error{Errc::kInvalid, "JSON of " + std::to_string(text.size()) + " bytes; at most " +
                                     std::to_string(bounds.bytes_max) + " are read"};
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  if (!is_utf8(text)) return Error{Errc::kInvalid, "not UTF-8"};
  return JsonBuilder::read(text, bounds.depth_max);
}

Result<std::string> canonical_json(const Json& value) {
  return JsonBuilder::canonical(value);
}
}  // namespace proctor
