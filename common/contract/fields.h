#pragma once
// Configuration files read field by field, and the quantities that they hold.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/document.h"

namespace proctor {
// How configuration files write quantities: durations ("30m", "1h30m", "1500ms"), sizes
// ("512MiB", "2GB", "100B"), counts ("12") and decimals ("1.5"), and how we write them back.
// Exact integers only.  Each reader fails with kInvalid and a sentence that says what is expected.

// The largest integer that JSON and Lua hold exactly, 2^53 - 1: no quantity is above it.
inline constexpr std::uint64_t kQuantityMax = (std::uint64_t{1} << 53) - 1;

Result<std::uint64_t> parse_count(std::string_view text);
// Parts of h, m, s and ms, each at most once and in this order; at most 366 days.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// A whole number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB.
Result<std::uint64_t> parse_size(std::string_view text);
// A non-negative decimal with at most `digits` fractional digits, times 10^digits.
// Requires: digits <= 12.  Refuses results above `scaled_max`.
Result<std::uint64_t> parse_decimal(std::string_view text, unsigned digits,
                                    std::uint64_t scaled_max);

// The shortest text that reads back as the same value.
std::string format_duration(std::chrono::milliseconds duration);
std::string format_size(std::uint64_t bytes);
std::string format_decimal(std::uint64_t scaled, unsigned digits);

// Reading a mapping field by field, with a diagnostic for everything that is not as it should be:
// unknown keys (and the one that was probably meant), missing ones, wrong kinds, values out of
// range.  A read that fails reports and returns the default, so that reading goes on and every
// error of a file is found.  Internal to the parsers of this room.

using Keys = std::span<const std::string_view>;

// Where diagnostics of one file go.
class Problems {
 public:
  Problems(std::string file, Diagnostics& out) : file_(std::move(file)), out_(out) {}
  void add(Mark at, std::string field, std::string found, std::string expected,
           std::string suggestion = "") {
    out_.add({file_, at, std::move(field), std::move(found), std::move(expected),
              std::move(suggestion)});
  }
  void wrong(const Node& node, std::string field, std::string expected) {
    add(node.at, std::move(field), describe(node), std::move(expected));
  }
  const std::string& file() const { return file_; }
  std::size_t count() const { return out_.count(); }
  Diagnostics& out() { return out_; }

 private:
  std::string file_;
  Diagnostics& out_;
};

enum class Need { kMust, kMay };

// A rule for a text.  `expected` completes "found X, expected ...".
struct TextRule {
  std::size_t bytes_max;
  std::string_view expected;
  bool (*accepts)(std::string_view) = nullptr;  // beside "not empty and at most bytes_max"
};

class Fields {
 public:
  // Reports `node` if it is no mapping, and every key that is not in `keys`.
  // Requires: every later read names a key of `keys`; node and problems outlive this.
  Fields(const Node& node, std::string path, Keys keys, Problems& problems);

  const Node* find(std::string_view key) const;
  std::string path(std::string_view key) const;
  // Where to point at for a key: its value, or the mapping when it is absent.
  Mark at(std::string_view key) const;
  Problems& problems() const { return *problems_; }

  std::string text(std::string_view key, Need need, const TextRule& rule) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::uint64_t count(std::string_view key, std::uint64_t otherwise, std::uint64_t min,
                      std::uint64_t max) const;
  std::chrono::milliseconds duration(std::string_view key, std::chrono::milliseconds otherwise,
                                     std::chrono::milliseconds min) const;
  std::uint64_t size(std::string_view key, std::uint64_t otherwise, std::uint64_t min) const;
  std::optional<MicroUsd> usd(std::string_view key, Need need) const;
  std::optional<std::uint64_t> optional_count(std::string_view key) const;
  std::optional<std::chrono::milliseconds> optional_duration(std::string_view key) const;
  template <class E, std::size_t N>
  E choice(std::string_view key, E otherwise, const std::array<Word<E>, N>& words) const {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = words[i].first;
    const std::optional<std::size_t> i = choose(key, names);
    return i ? words[*i].second : otherwise;
  }
  template <HasWords E>
  E choice(std::string_view key, E otherwise) const {
    return choice(key, otherwise, kWordsOf<E>);
  }
  // Each item of a list with its path; an absent list has none.
  void each(std::string_view key,
            const std::function<void(const Node&, const std::string& path)>& visit) const;
  // Texts without duplicates.
  std::vector<std::string> texts(std::string_view key, const TextRule& rule) const;
  // A mapping from names to texts.
  std::map<std::string, std::string> table(std::string_view key, const TextRule& name,
                                           const TextRule& value) const;
  void missing(std::string_view key, std::string_view expected) const;

 private:
  std::optional<std::size_t> choose(std::string_view key,
                                    std::span<const std::string_view> names) const;
  const Node& node_;
  std::string path_;
  Keys keys_;
  Problems* problems_;
};

// One scalar as text under a rule; reports and returns "" otherwise.
std::string read_text(const Node& node, const std::string& path, const TextRule& rule,
                      Problems& problems);
std::optional<MicroUsd> read_usd(const Node& node, const std::string& path, Problems& problems);
// "a, b or c".
std::string one_of(std::span<const std::string_view> names);
}  // namespace proctor
