#pragma once
// JSON as Python holds, reads and writes it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/result.h"

namespace proctor::answers {
// A JSON value as Python sees it: members keep their order, a number keeps the
// text Python would print, a string may hold a lone surrogate (as three bytes, WTF-8).
// Plain data; owns what it holds; never fails.  Not thread-safe.

class Value;
struct Member;
using Array = std::vector<Value>;

// A Python int (any size) or float, as `repr` prints it.
struct Number {
  std::string text;
  bool real = false;  // a float
  friend bool operator==(const Number&, const Number&) = default;
};

// A Python dict with text keys: setting a key that is there keeps its place.
class Object {
 public:
  Object();
  Object(const Object&);
  Object(Object&&) noexcept;
  Object& operator=(const Object&);
  Object& operator=(Object&&) noexcept;
  ~Object();

  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  // The value under `key`, appended as null when there was none.
  Value& at(std::string_view key);
  void set(std::string_view key, Value value);
  bool erase(std::string_view key);
  // Without looking whether the key is there.  Requires: it is not.
  Value& append(std::string key, Value value);
  void reserve(std::size_t members);
  void clear();

  bool empty() const { return members_.empty(); }
  std::size_t size() const;
  const std::vector<Member>& members() const { return members_; }
  std::vector<Member>& members() { return members_; }
  auto begin() const { return members_.begin(); }
  auto end() const { return members_.end(); }

 private:
  std::vector<Member> members_;
};

class Value {
 public:
  Value() = default;
  Value(std::nullptr_t) {}                                         // NOLINT: implicit on purpose
  Value(bool b) : v_(b) {}                                         // NOLINT
  Value(std::int64_t n) : v_(Number{std::to_string(n), false}) {}  // NOLINT
  Value(int n) : Value(std::int64_t{n}) {}                         // NOLINT
  Value(Number n) : v_(std::move(n)) {}                            // NOLINT
  Value(std::string s) : v_(std::move(s)) {}                       // NOLINT
  Value(std::string_view s) : v_(std::string(s)) {}                // NOLINT
  Value(const char* s) : v_(std::string(s)) {}                     // NOLINT
  Value(Array a) : v_(std::move(a)) {}                             // NOLINT
  Value(Object o) : v_(std::move(o)) {}                            // NOLINT

  bool is_null() const { return v_.index() == 0; }
  const bool* boolean() const { return std::get_if<bool>(&v_); }
  const Number* number() const { return std::get_if<Number>(&v_); }
  const std::string* string() const { return std::get_if<std::string>(&v_); }
  std::string* string() { return std::get_if<std::string>(&v_); }
  const Array* array() const { return std::get_if<Array>(&v_); }
  Array* array() { return std::get_if<Array>(&v_); }
  const Object* object() const { return std::get_if<Object>(&v_); }
  Object* object() { return std::get_if<Object>(&v_); }

  // A number or a truth value (true is 1); nullopt for anything else.
  std::optional<double> as_double() const;
  // As Python's `if` takes it: null, false, 0, "" and empty containers are false.
  bool truthy() const;
  // "null", "a truth value", "a number", "text", "a list" or "a mapping": for error texts.
  std::string_view kind() const;
  friend bool operator==(const Value&, const Value&);

 private:
  std::variant<std::monostate, bool, Number, std::string, Array, Object> v_;
};

struct Member {
  std::string key;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

// Where a member is complete: a list of incomplete ones can only be declared.
inline Object::Object() = default;
inline Object::Object(const Object&) = default;
inline Object::Object(Object&&) noexcept = default;
inline Object& Object::operator=(const Object&) = default;
inline Object& Object::operator=(Object&&) noexcept = default;
inline Object::~Object() = default;
inline void Object::clear() {
  members_.clear();
}
inline std::size_t Object::size() const {
  return members_.size();
}

// repr() of what JSON can hold: {'a': [1, True, None]}.
std::string python_repr_of(const Value& value);
// A float as Python's repr prints it: shortest digits that read back, 1e-05, 1e+16, 0.1, 100.0.
std::string python_repr(double value);
inline Value real(double value) {
  return Number{python_repr(value), true};
}

// `value` read as the text under `key`; null where it is no mapping, has no such key or no text.
const std::string* text_at(const Value& value, std::string_view key);
const std::string* text_at(const Object& object, std::string_view key);
const Object* object_at(const Value& value, std::string_view key);
// Their results would point into a value that is gone.
const std::string* text_at(Value&& value, std::string_view key) = delete;
const Object* object_at(Value&& value, std::string_view key) = delete;

// JSON as Python's json.loads reads it: of a key given twice the last value counts, NaN and
// Infinity are numbers, lone surrogates are text.  Bounded in size, depth and nodes, because the
// text comes from outside.  Fails with kInvalid; the text names the column (bytes, from 1).
// And as json.dumps writes it with its defaults: ", " and ": ", every character outside ASCII
// escaped, members in their order; with `indent` one member a line, "," without the blank.  That
// never fails.  Pure; any thread.  Source: RFC 8259 for the rest.

struct ReadBounds {
  std::size_t bytes_max = std::size_t{256} << 20;
  std::size_t depth_max = 100;
  std::size_t nodes_max = 5'000'000;
};

// One value and nothing behind it.  Keys that some object gives twice are appended to `repeated`
// (at most 16 of them) where it is not null.
Result<Value> read_json(std::string_view text, const ReadBounds& bounds = {},
                        std::vector<std::string>* repeated = nullptr);

inline constexpr int kOneLine = -1;

void write_json(std::string& out, const Value& value, int indent = kOneLine);
std::string write_json(const Value& value, int indent = kOneLine);

// Which characters are words and blanks to Python (Unicode 14).  Text is WTF-8, as Python's str may
// hold lone surrogates.  Pure; any thread; never fails on text that read_json() made.
bool is_word(char32_t c);       // \w of a text pattern: letters, digits, "_"
bool is_space(char32_t c);      // str.isspace, \s
bool is_printable(char32_t c);  // str.isprintable

std::string_view strip_text(std::string_view text);  // str.strip()
}  // namespace proctor::answers
