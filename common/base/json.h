#pragma once
// JSON values, read within bounds and written as text or canonically (RFC 8785).
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/result.h"

namespace proctor {
template <class J, class Member>
class JsonIterator;

// One JSON value that owns all below it.  Members of an object are iterated by name;
// dump_as_built() writes them in the order in which they were added.  Member functions fail with
// Json::exception where the value is of another kind than they need.  Safe to read from several
// threads, as a standard container is.
//
// Its functions are compiled once, in json.cc: a header of templates in half of all units was the
// largest part of a build (decision 171).
class Json {
 public:
  enum class Kind : std::uint8_t {
    kNull,
    kBoolean,
    kInteger,
    kUnsigned,
    kFloat,
    kString,
    kArray,
    kObject
  };
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;
  using iterator = JsonIterator<Json, Object::iterator>;
  using const_iterator = JsonIterator<const Json, Object::const_iterator>;
  // One part of a list in braces.  It owns its value so that the list can be moved from.
  class Part;
  class exception;
  // How dump() takes bytes that are not UTF-8: it fails, or writes U+FFFD in their place.
  enum class Utf8 : std::uint8_t { kStrict, kReplace };

  Json() noexcept = default;  // NOLINTBEGIN(google-explicit-constructor): on purpose
  Json(std::nullptr_t) noexcept {}
  template <std::same_as<bool> T>
  Json(T v) noexcept : kind_(Kind::kBoolean) {
    value_.boolean = v;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T v)
  noexcept : kind_(std::is_signed_v<T> ? Kind::kInteger : Kind::kUnsigned) {
    if constexpr (std::is_signed_v<T>)
      value_.integer = v;
    else
      value_.number = v;
  }
  // A template, as the two above: what only converts to a number would silently become one.
  template <std::floating_point T>
  Json(T v) noexcept : kind_(Kind::kFloat) {
    value_.real = static_cast<double>(v);
  }
  Json(std::string v);
  Json(std::string_view v);
  Json(const char* v);
  // {"a", 1} is a list; a list of pairs whose first parts are texts is an object.
  Json(std::initializer_list<Part> parts);
  Json(Array v);
  Json(Object v);
  // A range of what is a Json becomes a list, a map of names an object.
  template <class R>
  requires(!std::convertible_to<const R&, std::string_view> && !std::same_as<R, Array> &&
           !std::same_as<R, Object> && requires(const R& r) {
             r.begin();
             r.end();
             r.size();
             typename R::value_type;
           }) Json(const R& range);

  Json(const Json& other);  // NOLINTEND(google-explicit-constructor)
  Json(Json&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::kNull)),
        place_(other.place_),
        value_(other.value_) {}
  // By value: `other` may be this value, a part of it, or hold it.
  Json& operator=(Json other) noexcept;
  ~Json() {
    if (Kind::kString <= kind_) destroy();
  }

  static Json array() { return Json(Array()); }
  static Json array(std::initializer_list<Part> parts);
  static Json object() { return Json(Object()); }
  static Json object(std::initializer_list<Part> parts);

  Kind kind() const noexcept { return kind_; }
  // "null", "boolean", "number", "string", "array" or "object".
  std::string_view kind_name() const noexcept;
  bool is_null() const noexcept { return kind_ == Kind::kNull; }
  bool is_boolean() const noexcept { return kind_ == Kind::kBoolean; }
  bool is_number() const noexcept { return Kind::kInteger <= kind_ && kind_ <= Kind::kFloat; }
  bool is_number_integer() const noexcept {
    return kind_ == Kind::kInteger || is_number_unsigned();
  }
  // True for every integer that was read without a sign.
  bool is_number_unsigned() const noexcept { return kind_ == Kind::kUnsigned; }
  bool is_string() const noexcept { return kind_ == Kind::kString; }
  bool is_array() const noexcept { return kind_ == Kind::kArray; }
  bool is_object() const noexcept { return kind_ == Kind::kObject; }
  bool is_structured() const noexcept { return Kind::kArray <= kind_; }

  // bool, numbers (a number of another type is converted as by static_cast, a boolean is none),
  // std::string, Json, and vectors and maps of these.
  template <class T>
  T get() const;
  template <class T>
  void get_to(T& out) const {
    out = get<T>();
  }
  bool boolean() const;
  const std::string& string() const;
  Array& list();
  const Array& list() const;
  const Object& members() const;
  // The members of an object; none of every other value.
  const Object& items() const noexcept;

  // Members.  The operator makes an object of null and adds a member that is missing; at() and the
  // operator of a const value fail.
  Json& operator[](std::string_view name);
  const Json& operator[](std::string_view name) const { return at(name); }
  Json& at(std::string_view name);
  const Json& at(std::string_view name) const;
  bool contains(std::string_view name) const;
  iterator find(std::string_view name);
  const_iterator find(std::string_view name) const;
  // The member as a T, or `otherwise` where there is none.
  template <class T>
  T value(std::string_view name, const T& otherwise) const;
  std::string value(std::string_view name, const char* otherwise) const;
  // False: the object had a member of that name, which stays.
  bool emplace(std::string_view name, Json v);
  // How many members were removed: 0 or 1.
  std::size_t erase(std::string_view name);
  // Takes the members of `other` by name; they replace those of the same names.
  void update(Json other);

  // Elements.  An index beyond the last fails; push_back() makes a list of null.
  template <std::integral I>
  Json& operator[](I at) {
    return list_element(static_cast<std::size_t>(at));
  }
  template <std::integral I>
  const Json& operator[](I at) const {
    return list_element(static_cast<std::size_t>(at));
  }
  template <std::integral I>
  Json& at(I at) {
    return list_element(static_cast<std::size_t>(at));
  }
  template <std::integral I>
  const Json& at(I at) const {
    return list_element(static_cast<std::size_t>(at));
  }
  void push_back(Json v);
  template <class T>
  Json& emplace_back(T&& v) {
    push_back(Json(std::forward<T>(v)));
    return list().back();
  }
  Json& front() { return *begin_element(); }
  const Json& front() const { return *begin_element(); }
  Json& back() { return *(begin_element() + size() - 1); }
  const Json& back() const { return *(begin_element() + size() - 1); }
  void clear();

  // Null has none, every other value that is neither list nor object is one.
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;

  // Text without spaces, or with lines indented by `indent` where that is 0 or more.
  // Numbers in their shortest form that reads back as the same; those that are not finite are null.
  std::string dump(int indent = -1, Utf8 utf8 = Utf8::kStrict, bool ascii = false) const;
  // As dump(), with members in the order in which they were added.
  std::string dump_as_built(int indent = -1, Utf8 utf8 = Utf8::kStrict) const;

  // Numbers are equal by value; the order of members says nothing.
  friend bool operator==(const Json& a, const Json& b) { return a.compare(b) == 0; }
  friend std::partial_ordering operator<=>(const Json& a, const Json& b) { return a.compare(b); }
  friend std::ostream& operator<<(std::ostream& out, const Json& v);

 private:
  friend class JsonBuilder;
  struct Dump;

  [[noreturn]] void wrong_kind(const char* wanted) const;
  void destroy() noexcept;
  std::partial_ordering compare(const Json& other) const;
  double as_double() const;
  std::int64_t as_signed() const;
  std::uint64_t as_unsigned() const;
  Object& make_object();
  Array& make_array();
  Json& list_element(std::size_t at);
  const Json& list_element(std::size_t at) const;
  Json* begin_element() { return const_cast<Json*>(std::as_const(*this).begin_element()); }
  const Json* begin_element() const;

  union Value {
    bool boolean;
    std::int64_t integer;
    std::uint64_t number;
    double real;
    std::string* string;
    Array* array;
    Object* object;
  };
  Kind kind_ = Kind::kNull;
  // A member's place, from 1, in the order in which its object's members were added.  An assignment
  // gives a member another value and leaves its place.
  std::uint32_t place_ = 0;
  Value value_{};
};

class Json::exception : public std::exception {
 public:
  explicit exception(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

class Json::Part {
 public:
  Part() = default;  // {"name", {}} has null, as a value that is {} is
  template <class T>
  requires(std::constructible_from<Json, T> && !std::same_as<std::remove_cvref_t<T>, Part>)
      Part(T&& v)  // NOLINT: implicit on purpose; a Part is no T
      : value_(std::forward<T>(v)) {}
  Part(std::initializer_list<Part> parts) : value_(parts) {}
  const Json& value() const { return value_; }
  Json take() const { return std::move(value_); }

 private:
  mutable Json value_;
};

// Over the elements of a list, the members of an object, or the one value that is neither.
template <class J, class Member>
class JsonIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = Json;
  using pointer = J*;
  using reference = J&;

  JsonIterator() = default;
  explicit JsonIterator(J* element) : element_(element) {}
  explicit JsonIterator(Member member) : member_(member) {}

  J& operator*() const { return element_ != nullptr ? *element_ : member_->second; }
  J* operator->() const { return &**this; }
  // Requires: it is over the members of an object.
  const std::string& key() const { return member_->first; }
  J& value() const { return **this; }
  JsonIterator& operator++() {
    if (element_ != nullptr)
      ++element_;
    else
      ++member_;
    return *this;
  }
  JsonIterator operator++(int) {
    JsonIterator before = *this;
    ++*this;
    return before;
  }
  JsonIterator& operator--() {
    if (element_ != nullptr)
      --element_;
    else
      --member_;
    return *this;
  }
  JsonIterator operator--(int) {
    JsonIterator before = *this;
    --*this;
    return before;
  }
  friend bool operator==(const JsonIterator&, const JsonIterator&) = default;

 private:
  J* element_ = nullptr;
  Member member_{};
};

template <class R>
requires(!std::convertible_to<const R&, std::string_view> && !std::same_as<R, Json::Array> &&
         !std::same_as<R, Json::Object> && requires(const R& r) {
           r.begin();
           r.end();
           r.size();
           typename R::value_type;
         }) Json::Json(const R& range) {
  if constexpr (requires { typename R::mapped_type; }) {
    make_object();
    for (const auto& [name, v] : range) emplace(name, Json(v));
  } else {
    make_array().reserve(range.size());
    for (const auto& v : range) push_back(Json(static_cast<typename R::value_type>(v)));
  }
}

template <class T>
T Json::get() const {
  if constexpr (std::same_as<T, Json>) {
    return *this;
  } else if constexpr (std::same_as<T, bool>) {
    return boolean();
  } else if constexpr (std::same_as<T, std::string>) {
    return string();
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(as_double());
  } else if constexpr (std::signed_integral<T>) {
    return static_cast<T>(as_signed());
  } else if constexpr (std::unsigned_integral<T>) {
    return static_cast<T>(as_unsigned());
  } else if constexpr (requires { typename T::mapped_type; }) {
    T out;
    for (const auto& [name, v] : members())
      out.emplace(name, v.template get<typename T::mapped_type>());
    return out;
  } else {
    T out;
    for (const Json& v : list()) out.insert(out.end(), v.template get<typename T::value_type>());
    return out;
  }
}

template <class T>
T Json::value(std::string_view name, const T& otherwise) const {
  const Object& all = members();
  const auto found = all.find(name);
  return found == all.end() ? otherwise : found->second.template get<T>();
}

struct JsonBounds {
  std::size_t bytes_max = std::size_t{4} << 20;
  std::size_t depth_max = 32;
};

// Strict: UTF-8, no duplicate keys, no trailing bytes, no comments, depth and size bounded.
// Fails with kInvalid; the text names the byte offset.
Result<Json> parse_json(std::string_view text, const JsonBounds& bounds = {});

// RFC 8785 restricted to what we hash: objects, arrays, strings, booleans, null and integers
// within +-(2^53 - 1).  Keys are ordered by UTF-16 code units as the RFC asks.
// Fails with kInvalid on floating point numbers and larger integers: hashed bytes hold none.
Result<std::string> canonical_json(const Json& value);
}  // namespace proctor
