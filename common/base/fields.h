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
//   v.follows(name, value)           a member that the others determine; a reader compares it
//   v.require(holds, name, why)      a rule between members; a reader refuses `name`
//   v.version()                      the record's version; UINT32_MAX in forms without one
// A member is described before the ones whose description depends on it.
#include <concepts>
#include <cstddef>
#include <cstdint>
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
  std::uint64_t most = kExactIntegerMax;  // the largest magnitude of a number
  std::size_t bytes = SIZE_MAX;           // at most, in a text and in each text of a list
  std::size_t items = SIZE_MAX;           // at most, in a list
  std::uint32_t since = 0;                // the first version of the record that has the member
  bool optional = false;  // forms with names leave it out where it has its empty value, T{}
  bool natural = false;   // no negative number
};
inline constexpr Rule kOptional{.optional = true};

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
}  // namespace proctor
