#pragma once
// The words of an enumeration: one table, beside its definition.
//
//   enum class Stage : std::uint8_t { kAssigned, kAgent };
//   constexpr auto words(Stage) {
//     return std::to_array<Word<Stage>>({{"assigned", Stage::kAssigned}, {"agent",
//     Stage::kAgent}});
//   }
//
// word_of(Stage::kAgent) is "agent", from_word<Stage>("agent") finds it again.  A table that lacks
// an enumerator does not compile.  Pure; any thread.
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace proctor {
template <class E>
using Word = std::pair<std::string_view, E>;

template <class E>
concept HasWords = std::is_enum_v<E> && requires(E e) {
  words(e);
};

// Compilers print an enumerator by its name, and every other value as a cast.
template <auto Value>
consteval bool is_enumerator() {
  constexpr std::string_view kSelf = __PRETTY_FUNCTION__;
  return kSelf[kSelf.rfind("Value = ") + 8] != '(';
}

// The table as it is.  It does not compile where it lacks an enumerator: they are 0 to N - 1.
// For a second table of one enumeration, beside words().
template <class E, std::size_t N>
consteval std::array<Word<E>, N> each_once(std::array<Word<E>, N> table) {
  static_assert(!is_enumerator<static_cast<E>(N)>(), "an enumerator has no word");
  std::array<bool, N> found{};
  for (const auto& [word, value] : table) found.at(static_cast<std::size_t>(value)) = true;
  for (const bool one : found)
    if (!one) throw "an enumerator has no word";
  return table;
}

template <class E, std::size_t N>
constexpr std::string_view word_in(const std::array<Word<E>, N>& table, E value) {
  for (const auto& [word, one] : table)
    if (one == value) return word;
  return {};
}

// The table of words(), in its own order.
template <HasWords E>
inline constexpr auto kWordsOf = each_once(words(E{}));

// Requires: `value` is an enumerator.
template <HasWords E>
constexpr std::string_view word_of(E value) {
  return word_in(kWordsOf<E>, value);
}

// The same, where other types have their to_string().
template <HasWords E>
constexpr std::string_view to_string(E value) {
  return word_of(value);
}

template <HasWords E>
constexpr std::optional<E> from_word(std::string_view word) {
  for (const auto& [known, value] : kWordsOf<E>)
    if (known == word) return value;
  return std::nullopt;
}

// "pass, fail or error": the words of E, for messages.
template <HasWords E>
std::string words_listed() {
  std::string out;
  for (std::size_t i = 0; i < kWordsOf<E>.size(); ++i) {
    if (i != 0) out += i + 1 == kWordsOf<E>.size() ? " or " : ", ";
    out += kWordsOf<E>[i].first;
  }
  return out;
}
}  // namespace proctor
