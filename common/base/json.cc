#include "common/base/json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>

namespace proctor {
// Builds a value from what nlohmann's reader finds, and refuses what that would let pass: duplicate
// keys and depth.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(Json& root, std::size_t depth_max) : root_(root), depth_max_(depth_max) {}

  bool null() override { return put(Json()); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(std::size_t) override { return enter(Json::object()); }
  bool key(string_t& k) override {
    Json::Object& members = *open_.back()->value_.object;
    const auto [at, fresh] = members.try_emplace(std::move(k));
    if (!fresh) return refuse("duplicate key \"" + at->first.substr(0, 80) + "\"");
    at->second.place_ = static_cast<std::uint32_t>(members.size());
    member_ = &at->second;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("not JSON at byte " + std::to_string(at));
  }
  const std::string& why() const { return why_; }

 private:
  Json& place(Json v) {
    if (open_.empty()) return root_ = std::move(v);
    if (open_.back()->is_array()) return open_.back()->value_.array->emplace_back(std::move(v));
    return *member_ = std::move(v);
  }
  bool put(Json v) {
    place(std::move(v));
    return true;
  }
  bool enter(Json v) {
    open_.push_back(&place(std::move(v)));
    return open_.size() <= depth_max_ || refuse("nested too deeply");
  }
  bool leave() {
    open_.pop_back();
    return true;
  }
  bool refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }

  Json& root_;
  std::size_t depth_max_;
  std::vector<Json*> open_;  // lists and objects whose end has not come, outermost first
  Json* member_ = nullptr;   // the member whose value comes next
  std::string why_;
};

namespace {
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return 0x20 <= byte && byte < 0x7F && c != '"' && c != '\\';
  });
}

template <std::integral T>
void write_number(T v, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(std::begin(digits), std::end(digits), v).ptr);
}

// Throws nlohmann's exception where `text` is not UTF-8 and has to be.
void write_string(const std::string& text, Json::Utf8 utf8, bool ascii, std::string& out) {
  using Handler = nlohmann::json::error_handler_t;
  if (!is_plain(text)) {
    out += nlohmann::json(text).dump(
        -1, ' ', ascii, utf8 == Json::Utf8::kStrict ? Handler::strict : Handler::replace);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

std::u16string utf16(const std::string& s) {
  std::u16string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto lead = static_cast<unsigned char>(s[i]);
    const std::size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t cp = n == 1 ? lead : lead & (0xFFu >> (n + 1));
    for (std::size_t k = 1; k < n && i + k < s.size(); ++k)
      cp = (cp << 6) | (static_cast<unsigned char>(s[i + k]) & 0x3Fu);
    if (cp < 0x10000) {
      out += static_cast<char16_t>(cp);
    } else {
      cp -= 0x10000;
      out += static_cast<char16_t>(0xD800 + (cp >> 10));
      out += static_cast<char16_t>(0xDC00 + (cp & 0x3FF));
    }
    i += n;
  }
  return out;
}

bool is_ascii(const std::string& s) {
  return std::ranges::all_of(s, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
// RFC 8785 orders keys by UTF-16 code units; for ASCII that is byte order.
bool utf16_less(const std::string& a, const std::string& b) {
  if (is_ascii(a) && is_ascii(b)) return a < b;
  return utf16(a) < utf16(b);
}

constexpr std::int64_t kSafeInteger = (std::int64_t{1} << 53) - 1;

// nlohmann escapes exactly what RFC 8785 asks: ", \, and controls (\b \t \n \f \r, \u00xx).
Status write_text(const std::string& text, std::string& out) {
  try {
    write_string(text, Json::Utf8::kStrict, false, out);
  } catch (const nlohmann::json::exception&) {
    return Error{Errc::kInvalid, "string is not UTF-8"};
  }
  return ok_status();
}

Status write(const Json& v, std::string& out);

Status write_object(const Json::Object& object, std::string& out) {
  using Item = const Json::Object::value_type*;
  std::vector<Item> items;
  items.reserve(object.size());
  for (const auto& item : object) items.push_back(&item);
  const auto before = [](Item a, Item b) { return utf16_less(a->first, b->first); };
  if (!std::ranges::is_sorted(items, before)) std::ranges::sort(items, before);
  out += '{';
  for (const Item item : items) {
    if (item != items.front()) out += ',';
    PROCTOR_CHECK_OK(write_text(item->first, out));
    out += ':';
    PROCTOR_CHECK_OK(write(item->second, out));
  }
  out += '}';
  return ok_status();
}

Status write(const Json& v, std::string& out) {
  switch (v.kind()) {
    case Json::Kind::kObject:
      return write_object(v.members(), out);
    case Json::Kind::kArray: {
      out += '[';
      bool first = true;
      for (const Json& e : v) {
        if (!std::exchange(first, false)) out += ',';
        PROCTOR_CHECK_OK(write(e, out));
      }
      out += ']';
      return ok_status();
    }
    case Json::Kind::kInteger:
      if (v.get<std::int64_t>() < -kSafeInteger || kSafeInteger < v.get<std::int64_t>())
        return Error{Errc::kInvalid, "integer beyond 2^53 - 1 in hashed JSON"};
      write_number(v.get<std::int64_t>(), out);
      return ok_status();
    case Json::Kind::kUnsigned:
      if (static_cast<std::uint64_t>(kSafeInteger) < v.get<std::uint64_t>())
        return Error{Errc::kInvalid, "integer beyond 2^53 - 1 in hashed JSON"};
      write_number(v.get<std::uint64_t>(), out);
      return ok_status();
    case Json::Kind::kString:
      return write_text(v.string(), out);
    case Json::Kind::kBoolean:
      out += v.get<bool>() ? "true" : "false";
      return ok_status();
    case Json::Kind::kNull:
      out += "null";
      return ok_status();
    case Json::Kind::kFloat:
      break;
  }
  return Error{Errc::kInvalid, "floating point number in hashed JSON"};
}
}  // namespace

struct Json::Dump {
  int indent;
  Utf8 utf8;
  bool ascii;
  bool as_built;
  std::string out;

  void line(int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  }

  void member(const Object::value_type& member, bool first, int depth) {
    if (!first) out += ',';
    line(depth);
    write_string(member.first, utf8, ascii, out);
    out += indent < 0 ? ":" : ": ";
    write(member.second, depth);
  }

  void object(const Object& members, int depth) {
    out += '{';
    bool first = true;
    if (as_built) {
      std::vector<const Object::value_type*> placed;
      placed.reserve(members.size());
      for (const auto& m : members) placed.push_back(&m);
      std::ranges::sort(placed, {}, [](const auto* m) { return m->second.place_; });
      for (const auto* m : placed) member(*m, std::exchange(first, false), depth + 1);
    } else {
      for (const auto& m : members) member(m, std::exchange(first, false), depth + 1);
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
        write_number(v.value_.integer, out);
        return;
      case Kind::kUnsigned:
        write_number(v.value_.number, out);
        return;
      case Kind::kFloat:
        out += nlohmann::json(v.value_.real).dump();
        return;
      case Kind::kString:
        write_string(*v.value_.string, utf8, ascii, out);
        return;
      case Kind::kArray:
        array(*v.value_.array, depth);
        return;
      case Kind::kObject:
        object(*v.value_.object, depth);
        return;
    }
  }

  std::string text(const Json& v) {
    try {
      write(v, 0);
    } catch (const nlohmann::json::exception& e) {
      throw exception(e.what());
    }
    return std::move(out);
  }
};

std::string Json::dump(int indent, Utf8 utf8, bool ascii) const {
  return Dump{indent, utf8, ascii, false, {}}.text(*this);
}

std::string Json::dump_as_built(int indent, Utf8 utf8) const {
  return Dump{indent, utf8, false, true, {}}.text(*this);
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

const char* Json::kind_name() const noexcept {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kInteger:
    case Kind::kUnsigned:
    case Kind::kFloat:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "";
}

void Json::wrong_kind(const char* wanted) const {
  throw exception(std::string("expected ") + wanted + ", found " + kind_name());
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
  Json root;
  JsonBuilder builder(root, bounds.depth_max);
  bool ok = false;
  try {
    ok = nlohmann::json::sax_parse(text, &builder);
  } catch (const nlohmann::json::exception& e) {
    return Error{Errc::kInvalid, std::string("not JSON: ") + e.what()};
  }
  if (!ok) return Error{Errc::kInvalid, builder.why().empty() ? "not JSON" : builder.why()};
  return root;
}

Result<std::string> canonical_json(const Json& value) {
  std::string out;
  PROCTOR_CHECK_OK(write(value, out));
  return out;
}
}  // namespace proctor
