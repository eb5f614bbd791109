#pragma once
// JSON of described structures (fields.h), both ways.  Pure; one thread at a time for each object.
//
//   const Json json = to_json(hold);
//   PROCTOR_TRY(const ProviderHold hold, from_json<ProviderHold>(json));
//
// Numbers are integers within 2^53 - 1, enumerations are their words, digests hex, money
// micro-dollars, a pair a list of two, an empty std::optional null.  Readers are strict: a member
// that is missing, unknown, of another kind or out of its bounds is refused with its path
// ("checks[2].id").  Those of records that other versions wrote take what these had less, or more.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/json.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
namespace json_detail {
template <class T>
inline constexpr bool kIsStrong = false;
template <class Tag, class Rep>
inline constexpr bool kIsStrong<Strong<Tag, Rep>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsPair = false;
template <class T, class U>
inline constexpr bool kIsPair<std::pair<T, U>> = true;

template <class T>
bool is_empty(const T& value) {
  if constexpr (kIsOptional<T>)
    return !value;
  else if constexpr (requires { value.is_null(); })
    return value.is_null();
  else if constexpr (requires { value.empty(); })
    return value.empty();
  else if constexpr (requires { value == T{}; })
    return value == T{};
  else
    return false;
}
}  // namespace json_detail

// Writes members into an object.
class JsonWriter {
 public:
  // Texts are written as they are, or (kClean) made UTF-8 and cut to their rule's bytes, to
  // `bytes_max` where it has none: for records that have to be written whatever is in them.
  enum class Texts : std::uint8_t { kAsTheyAre, kClean };
  explicit JsonWriter(Texts texts = Texts::kAsTheyAre, std::size_t bytes_max = SIZE_MAX)
      : texts_(texts), bytes_max_(bytes_max) {}

  template <class T>
  void operator()(const char* name, const T& value, const Rule& rule = {}) {
    if (!rule.optional || !json_detail::is_empty(value)) put(name, json_of(value, rule));
  }
  template <class F>
  void section(const char* name, F describe) {
    JsonWriter inner(texts_, bytes_max_);
    describe(inner);
    put(name, inner.take());
  }
  template <class T>
  void follows(const char* name, const T& value) {
    put(name, json_of(value, {}));
  }
  void require(bool, const char*, std::string_view) {}
  static constexpr std::uint32_t version() { return UINT32_MAX; }

  Json take() { return std::move(out_); }

 private:
  void put(const char* name, Json value);
  Json text_json(const std::string& text, const Rule& rule) const;
  static Json real_json(double value, const Rule& rule);
  static Json number_json(std::uint64_t value);
  static Json number_json(std::int64_t value);

  template <class T>
  Json json_of(const T& value, const Rule& rule) const {
    if constexpr (std::same_as<T, Json> || std::same_as<T, bool>) {
      return value;
    } else if constexpr (std::floating_point<T>) {
      return real_json(value, rule);
    } else if constexpr (std::unsigned_integral<T>) {
      return number_json(std::uint64_t{value});
    } else if constexpr (std::signed_integral<T>) {
      return number_json(std::int64_t{value});
    } else if constexpr (json_detail::kIsStrong<T>) {
      return json_of(value.raw(), rule);
    } else if constexpr (requires { typename T::period; }) {  // a duration
      return number_json(std::int64_t{value.count()});
    } else if constexpr (std::same_as<T, MicroUsd>) {
      return number_json(value.micros());
    } else if constexpr (std::same_as<T, Digest>) {
      return value.hex();
    } else if constexpr (HasWords<T>) {
      return word_of(value);
    } else if constexpr (HasText<T>) {
      return value.to_text();
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      return text_json(std::string(value), rule);
    } else if constexpr (requires { value.native(); }) {  // a path
      return text_json(value.native(), rule);
    } else if constexpr (json_detail::kIsOptional<T>) {
      return value ? json_of(*value, rule) : Json();
    } else if constexpr (json_detail::kIsPair<T>) {
      return Json::array({json_of(value.first, rule), json_of(value.second, rule)});
    } else if constexpr (Described<const T>) {
      JsonWriter inner(texts_, bytes_max_);
      fields(inner, value);
      return inner.take();
    } else if constexpr (requires { typename T::mapped_type; }) {
      Json out = Json::object();
      for (const auto& [name, one] : value) out[name] = json_of(one, rule);
      return out;
    } else {
      Json out = Json::array();
      for (const auto& one : value) {
        if (texts_ == Texts::kClean && out.size() == rule.items) break;
        out.push_back(json_of(one, rule));
      }
      return out;
    }
  }

  Texts texts_;
  std::size_t bytes_max_;
  Json out_ = Json::object();
};

// Whether a reader refuses members and sections that are more or less than it knows: a coordinator
// of another version may have written its status.  kDeciding is kAny, and leaves members that are
// `aside` as they were, whatever the text has in their places.
enum class Versions : std::uint8_t { kThis, kAny, kDeciding };

// Reads the members of one object.  The first problem stays; later reads leave their members as
// they were.
class JsonReader {
 public:
  // `json` outlives this; `path` names it in errors, "" for the root.
  JsonReader(const Json& json, std::string_view path, std::string& problem,
             Versions versions = Versions::kThis);

  template <class T>
  void operator()(std::string_view name, T&& out, const Rule& rule = {}) {
    if (rule.aside && versions_ == Versions::kDeciding) return;
    if (const Json* value = find(name, rule.optional || rule.older_lack))
      read(*value, {name}, out, rule);
  }
  template <class F>
  void section(std::string_view name, F describe) {
    const Json* value = find(name, is_any());
    if (value == nullptr) return;
    JsonReader inner(*value, {name}, *this);
    describe(inner);
    inner.finish();
  }
  template <class T>
  void follows(const char* name, const T& value) {
    JsonWriter writer;
    writer.follows(name, value);
    expect(name, writer.take());
  }
  void require(bool holds, const char* name, std::string_view why);
  static constexpr std::uint32_t version() { return UINT32_MAX; }

  bool ok() const { return problem_.empty(); }
  bool has(const char* name) const;
  // Refuses members that were not read.
  void finish();

 private:
  struct Place {
    std::string_view name;
    std::size_t index = SIZE_MAX;
  };
  JsonReader(const Json& json, Place place, const JsonReader& parent);

  bool is_any() const { return versions_ != Versions::kThis; }
  const Json* find(std::string_view name, bool optional);
  void expect(const char* name, const Json& member);
  void refuse(Place place, std::string_view why);
  std::string path_of(Place place) const;
  bool is(const Json& json, bool right, Place place, std::string_view expected);

  void read(const Json& json, Place place, bool& out, const Rule&);
  void read(const Json& json, Place place, double& out, const Rule& rule);
  void read(const Json& json, Place place, std::string& out, const Rule& rule);
  void read(const Json& json, Place place, Digest& out, const Rule&);
  void read(const Json& json, Place place, MicroUsd& out, const Rule& rule);
  void read(const Json& json, Place, Json& out, const Rule&);
  std::uint64_t natural(const Json& json, Place place, std::uint64_t most);
  std::int64_t integer(const Json& json, Place place, std::uint64_t most);
  std::string_view text(const Json& json, Place place);

  template <class T>
  void read(const Json& json, Place place, T& out, const Rule& rule) {
    if constexpr (std::unsigned_integral<T>) {
      const auto most = std::min<std::uint64_t>(rule.most, std::numeric_limits<T>::max());
      out = static_cast<T>(natural(json, place, most));
    } else if constexpr (std::signed_integral<T>) {
      constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      const std::uint64_t most = std::min(rule.most, kLargest);
      out = static_cast<T>(rule.natural ? static_cast<std::int64_t>(natural(json, place, most))
                                        : integer(json, place, most));
    } else if constexpr (json_detail::kIsStrong<T>) {
      typename T::rep raw{};
      read(json, place, raw, rule);
      out = T(std::move(raw));
    } else if constexpr (requires { typename T::period; }) {
      out = T(integer(json, place, rule.most));
    } else if constexpr (requires { out.native(); }) {
      std::string raw;
      read(json, place, raw, rule);
      out = std::move(raw);
    } else if constexpr (HasWords<T>) {
      const std::string_view word = text(json, place);
      if (const auto value = from_word<T>(word))
        out = *value;
      else
        refuse(place, "expected " + words_listed<T>());
    } else if constexpr (HasText<T>) {
      const std::string_view word = text(json, place);
      if (ok() && !out.from_text(word)) refuse(place, "not as it is written");
    } else if constexpr (json_detail::kIsOptional<T>) {
      out.reset();
      if (json.is_null() && !rule.optional) return;
      typename T::value_type value{};
      read(json, place, value, rule);
      out = std::move(value);
    } else if constexpr (json_detail::kIsPair<T>) {
      if (!is(json, json.is_array() && json.size() == 2, place, "a list of two")) return;
      read(json[0], place, out.first, rule);
      read(json[1], place, out.second, rule);
    } else if constexpr (Described<T>) {
      JsonReader inner(json, place, *this);
      fields(inner, out);
      inner.finish();
    } else if constexpr (requires { typename T::mapped_type; }) {
      JsonReader inner(json, place, *this);
      for (const auto& [name, one] : json.items()) inner.read(one, {name}, out[name], rule);
    } else {
      if (!is(json, json.is_array(), place, "a list")) return;
      if (rule.items < json.size()) return refuse(place, "has too many items");
      out.clear();
      out.reserve(json.size());
      for (std::size_t i = 0; ok() && i < json.size(); ++i)
        read(json[i], {place.name, i}, out.emplace_back(), rule);
    }
  }

  const Json& json_;
  const JsonReader* parent_ = nullptr;
  Place place_;
  std::string& problem_;  // "PATH: what is wrong"
  Versions versions_;
  std::vector<std::string_view> seen_{};
};

template <Described T>
Json to_json(const T& value) {
  JsonWriter v;
  fields(v, value);
  return v.take();
}

// Reads into `out`, whose members that `json` may lack stay.  kInvalid, or `code`, names the
// member.
template <Described T>
Status read_json(T& out, const Json& json, std::string_view path = "", Errc code = Errc::kInvalid,
                 Versions versions = Versions::kThis) {
  std::string problem;
  JsonReader v(json, path, problem, versions);
  fields(v, out);
  v.finish();
  if (!problem.empty()) return Error{code, std::move(problem)};
  return ok_status();
}
template <Described T>
Result<T> from_json(const Json& json, std::string_view path = "", Errc code = Errc::kInvalid,
                    Versions versions = Versions::kThis) {
  T out{};
  PROCTOR_CHECK_OK(read_json(out, json, path, code, versions));
  return out;
}
}  // namespace proctor
