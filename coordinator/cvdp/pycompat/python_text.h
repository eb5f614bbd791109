#pragma once
// Values, numbers and texts as Python has them.  Pure; any thread; never fails.
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/answers/json.h"
#include "common/answers/single_shot.h"
#include "common/base/json_text.h"
#include "common/base/parse.h"

namespace proctor::cvdp {
// Values and texts of common/answers as names of this room, for all of it works on them.

using namespace answers;  // lint: allow using, it is no other room's namespace that takes them

// The member `key` of a mapping, which may be null; null where there is none, or none of this kind.
using answers::object_at;
using answers::text_at;
template <class O>  // Object or const Object
auto value_at(O* of, std::string_view key) {
  return of == nullptr ? nullptr : of->find(key);
}
template <class O>
auto object_at(O* of, std::string_view key) {
  auto* const v = value_at(of, key);
  return v == nullptr ? nullptr : v->object();
}
template <class O>
auto array_at(O* of, std::string_view key) {
  auto* const v = value_at(of, key);
  return v == nullptr ? nullptr : v->array();
}
inline const std::string* text_at(const Object* of, std::string_view key) {
  return of == nullptr ? nullptr : text_at(*of, key);
}

// object_of("id", id, "log", log): a mapping of these members in this order.
inline void append_to(Object& /*out*/) {}
template <class V, class... Rest>
void append_to(Object& out, std::string key, V&& value, Rest&&... rest) {
  out.append(std::move(key), std::forward<V>(value));
  append_to(out, std::forward<Rest>(rest)...);
}
template <class... Parts>
Object object_of(Parts&&... parts) {
  Object out;
  append_to(out, std::forward<Parts>(parts)...);
  return out;
}

// kInvalid, with a sentence.
template <class... Parts>
Error invalid(fmt::format_string<Parts...> sentence, Parts&&... parts) {
  return {Errc::kInvalid, fmt::format(sentence, std::forward<Parts>(parts)...)};
}

// A letter or digit of ASCII, or "_".
inline bool is_word_byte(char c) {
  return is_digit(c) || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}

// Numbers of the reports as Python formats and rounds them.

// A Python number that is an int until a float is added to it.
struct Count {
  double value = 0;
  bool is_float = false;
  void add(double x) {
    value += x;
    is_float = true;
  }
  void add(const Count& c) {
    value += c.value;
    is_float = is_float || c.is_float;
  }
  Count& operator++() {
    value += 1;
    return *this;
  }
  Value json() const { return is_float ? real(value) : Value(static_cast<std::int64_t>(value)); }
  // str(round(x, 2)): "5", "5.4", "1.0".
  std::string rounded() const;
};
Count count_of(const Value* number);  // 0 where there is none

// "%.2f"; digits from 0 to 17.
std::string fixed(double value, int digits);
inline std::string percent(double value, int digits = 2) {
  return fixed(value, digits) + "%";
}
std::string six_digits(double value);  // "%g"
// round(value, digits), half to even of the exact binary value.
double rounded_to(double value, int digits);

// Text operations as Python's str has them: lines, words and lower case (Unicode 14).
// Source: CVDP 3.1, 3.4, 8.5.

// str.splitlines(): ends at \n, \r, \r\n, \v, \f, FS, GS, RS, NEL, LS and PS; no last empty line.
std::vector<std::string_view> split_lines(std::string_view text);

// str.lower(), str.split() and re.sub(r"[^\w\s]", "", text).
std::string lower_text(std::string_view text);
std::vector<std::string_view> split_words(std::string_view text);
std::string without_punctuation(std::string_view text);
}  // namespace proctor::cvdp
