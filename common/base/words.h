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
#include <utility>

namespace proctor {
template <class E>
using Word = std::pair<std::string_view, E>;

template <class E>
concept HasWords = requires(E e) {
  words(e);
};

namespace words_detail {
// Compilers print an enumerator by its name, and every other value as a cast.
template <auto Value>
consteval bool is_enumerator() {
  constexpr std::string_view kSelf = __PRETTY_FUNCTION__;
  return kSelf[kSelf.rfind("Value = ") + 8] != '(';
}

template <class E>
consteval auto checked_words() {
  constexpr auto kTable = words(E{});
  static_assert(!is_enumerator<static_cast<E>(kTable.size())>(), "an enumerator has no word");
  constexpr bool kEach = [&] {
    std::array<bool, kTable.size()> found{};
    for (const auto& [word, value] : kTable) found[static_cast<std::size_t>(value)] = true;
    for (const bool one : found)
      if (!one) return false;
    return true;
  }();
  static_assert(kEach, "each enumerator from 0 has one word");
  return kTable;
}
}  // namespace words_detail

// The table, in its own order.
template <HasWords E>
inline constexpr auto kWordsOf = words_detail::checked_words<E>();

// Requires: `value` is an enumerator.
template <HasWords E>
constexpr std::string_view word_of(E value) {
  for (const auto& [word, one] : kWordsOf<E>)
    if (one == value) return word;
  return {};
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
