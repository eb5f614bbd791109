#pragma once
// A structure that crosses a border is described once, beside its definition:
//
//   struct ProviderHold {
//     std::string provider;
//     std::uint32_t ms = 0;
//   };
//   void fields(auto& v, Is<ProviderHold> auto& h) {
//     v("provider", h.provider, {.bytes = limits::kNameBytes});
//     v("ms", h.ms, {.most = kHoldMsMax});
//   }
//
// Visitors make each form from the one description: JSON both ways (json_fields.h), MessagePack
// both ways (wire/codec.h), rows of SQLite.  A visitor `v` has
//   v(name, member, rule)            one member
//   v.section(name, [&](auto& v){})  members that a form with names holds one level deeper
//   v.follows(name, value)           a member that the others determine; a reader expects it
//   v.require(holds, name, why)      a rule between members; a reader refuses `name`
//   v.version()                      the record's version; UINT32_MAX in forms without one
// A member is described before the ones whose description depends on it.
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace proctor {
// T is X or const X: one description reads and writes.
template <class T, class X>
concept Is = std::same_as<std::remove_const_t<T>, X>;

// The largest integer that JSON and Lua hold exactly, 2^53 - 1.
inline constexpr std::uint64_t kExactIntegerMax = (std::uint64_t{1} << 53) - 1;

// Bounds of one member.  A form uses those that it needs.
struct Rule {
  enum class Text : std::uint8_t {
    kPlain,  // UTF-8
    kName,   // not empty, no control bytes: may become a label or a file's name
    kProse,  // for people: a writer may clip it, and escapes what is not UTF-8
    kBytes   // any bytes; forms of text hold "hex:..." where they are not UTF-8
  };
  std::uint64_t most = kExactIntegerMax;  // the largest magnitude of a number
  std::size_t bytes = SIZE_MAX;           // at most, in a text and in each text of a list
  std::size_t items = SIZE_MAX;           // at most, in a list
  std::uint32_t since = 0;                // the first version of the record that has the member
  Text text = Text::kPlain;
  bool optional = false;    // forms with names leave it out where it has its empty value, T{}
  bool older_lack = false;  // older texts lack it; a reader then leaves the member as it was
  bool digits = false;      // a number with a fraction that JSON holds as a text of 12 digits
  bool natural = false;     // no negative number
  bool aside = false;       // it decides no verdict (Versions::kDeciding)
};
inline namespace field_rules {  // so that an enumerator of this name shadows nothing
inline constexpr Rule kOptional{.optional = true};
inline constexpr Rule kLater{.older_lack = true};
inline constexpr Rule kAside{.aside = true}, kLaterAside{.older_lack = true, .aside = true};
}  // namespace field_rules

// Takes what a reader made of a copy of a member; a writer's structure is const and stays.
template <class T, class U>
void keep(T& member, U&& copy) {
  if constexpr (!std::is_const_v<T>) member = std::forward<U>(copy);
}

template <class T>
concept Described = requires(int& v, T& x) {
  fields(v, x);
};
// A type that forms with names hold as one text: its to_text() is what from_text() reads.
// from_text() is false where the text is not one.
template <class T>
concept HasText = requires(const T& value, std::remove_const_t<T>& out) {
  value.to_text();
  out.from_text("");
};
// A member that forms with names hold as the text that `write` makes and `read`, a Result, takes:
//   v("runs", AsText{a.runs, ranges_of, runs_of}, kOptional);
template <class T, class Write, class Read>
struct AsText {
  T& value;
  Write* write;
  Read* read;
  auto to_text() const { return write(value); }
  bool from_text(std::string_view text) const {
    auto out = read(text);
    if (!out.ok()) return false;
    value = std::move(out).value();
    return true;
  }
  bool empty() const { return to_text().empty(); }
};
template <class T, class Write, class Read>
AsText(T&, Write*, Read*) -> AsText<T, Write, Read>;
}  // namespace proctor
