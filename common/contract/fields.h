#pragma once
// Configuration files of structures that are described once (base/fields.h), and the quantities
// that they hold.
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/document.h"

namespace proctor {
// How configuration files write quantities: durations ("30m", "1h30m", "1500ms"), sizes
// ("512MiB", "2GB", "100B"), counts ("12") and decimals ("1.5"), and how we write them back.
// Exact integers only.  Each reader fails with kInvalid and a sentence that says what is expected.

// The largest integer that JSON and Lua hold exactly, 2^53 - 1: no quantity is above it.
inline constexpr std::uint64_t kQuantityMax = kExactIntegerMax;

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

// kAlways: a file may leave it out, a canonical form has it even where it is empty.
enum class Need { kMust, kMay, kAlways };

// A rule for a text.  `expected` completes "found X, expected ...".
struct TextRule {
  std::size_t bytes_max;
  std::string_view expected;
  bool (*accepts)(std::string_view) = nullptr;  // beside "not empty and at most bytes_max"
};

// One scalar as text under a rule; reports and returns "" otherwise.
std::string read_text(const Node& node, const std::string& path, const TextRule& rule,
                      Problems& problems);
std::optional<MicroUsd> read_usd(const Node& node, const std::string& path, Problems& problems);
// "a, b or c".
std::string one_of(std::span<const std::string_view> names);

// A mapping of a file is described beside what is read:
//
//   void fields(auto& v, Is<Policy> auto& p) {
//     v("writable", p.writable, kWorkGlobRule);
//     v("wall", p.wall, kLeast);
//   }
//
// Fields reads it, Canonical (contract_digest.h) writes its canonical form, KeyList lists its keys.
// Beside v(key, member, rules...), the rules being those of read_member(), each visitor has
//   v.bytes, v.decimal, v.words, v.file  members of a type that has other forms too
//   v.once(key, list, &T::name, ...)    names of a list that come once
//   v.then(x, f)                        a reader calls f(fields, x): rules between members, and
//                                       members that are read by hand
//   v.put(key, json, holds)             a member that is written by hand, where `holds`
//   v.also({keys})                      keys that no canonical form has
//   v.when(holds)                       is what follows written?  It is read all the same
//   v.of(holds)                         is what follows written, or read?
// A type with other forms than a mapping has its own read_node() and node_json().

class KeyList {
 public:
  template <class... Rules>
  void operator()(std::string_view key, Rules&&...) {
    also({key});
  }
  void bytes(std::string_view key, const auto&...) { also({key}); }
  void decimal(std::string_view key, const auto&...) { also({key}); }
  void words(std::string_view key, const auto&...) { also({key}); }
  void file(std::string_view key, const auto&...) { also({key}); }
  void put(std::string_view key, const auto&...) { also({key}); }
  void once(const auto&...) {}
  void then(const auto&...) {}
  void also(std::initializer_list<std::string_view> keys);
  static bool when(bool) { return true; }
  static bool of(bool) { return true; }
  std::vector<std::string_view> take() { return std::move(keys_); }

 private:
  std::vector<std::string_view> keys_;
};

// The keys of a described structure, in the order of its description.
template <class T>
Keys keys_of() {
  static const std::vector<std::string_view> kKeys = [] {
    KeyList v;
    T x{};
    fields(v, x);
    return v.take();
  }();
  return kKeys;
}

class FileCollector;

// Reads a mapping key by key, with a diagnostic for everything that is not as it should be: unknown
// keys (and the one that was probably meant), missing ones, wrong kinds, values out of range.  A
// read that fails reports and leaves its member as it was, so that reading goes on and every error
// of a file is found; so does one whose key is absent.  Internal to the parsers of this room.
class Fields {
 public:
  // Reports `node` if it is no mapping, and every key that is not in `keys`.
  // Requires: every later read names a key of `keys`; node, problems and files outlive this.
  Fields(const Node& node, std::string path, Keys keys, Problems& problems,
         FileCollector* files = nullptr);

  const Node* find(std::string_view key) const;
  const std::string& path() const { return path_; }
  std::string path(std::string_view key) const;
  Mark at() const { return node_.at; }
  // Where to point at for a key: its value, or the mapping when it is absent.
  Mark at(std::string_view key) const;
  Problems& problems() const { return *problems_; }
  FileCollector* files() const { return files_; }
  void missing(std::string_view key, std::string_view expected) const;
  // Reports what was found at a key, or at the mapping where that is absent.
  void complain(std::string_view key, std::string found, std::string expected) const {
    problems_->add(at(key), path(key), std::move(found), std::move(expected));
  }
  // Reports the value of a key that is there.
  void wrong(std::string_view key, std::string expected) const;
  // Reports a list that is absent or empty.
  void some(std::string_view key, const std::string& what) const;
  // Each item of a list with its path; an absent list has none.
  void each(std::string_view key,
            const std::function<void(const Node&, const std::string& path)>& visit) const;
  // Each entry of a mapping likewise; `expected` says what it should be.
  void named(std::string_view key, std::string_view expected,
             const std::function<void(const Entry&, const std::string& path)>& visit) const;

  template <class T, class... Rules>
  void operator()(std::string_view key, T& out, const Rules&... rules) const {
    read_member(*this, key, out, rules...);
  }
  template <class T>
  void bytes(std::string_view key, T& out, std::uint64_t least) const {
    read_bytes(*this, key, out, least);
  }
  // Times 10^digits.
  void decimal(std::string_view key, std::uint64_t& out, unsigned digits, std::uint64_t most,
               std::string_view needed = {}) const;
  // Words of a command: any of them may be empty, and come twice.
  void words(std::string_view key, std::vector<std::string>& out) const;
  // The path of a file, which is read.
  void file(std::string_view key, std::string& out, std::string_view needed = {}) const;
  template <class T>
  void once(std::string_view key, const std::vector<T>& list, std::string T::*name,
            std::string_view expected, std::string_view member = {}) const {
    std::vector<std::string> names;
    for (const T& item : list) names.push_back(item.*name);
    each_once(key, names, expected, member);
  }
  template <class T, class F>
  void then(T& x, F f) const {
    f(*this, x);
  }
  void put(const auto&...) const {}
  void also(std::initializer_list<std::string_view>) const {}
  static bool when(bool) { return true; }
  static bool of(bool holds) { return holds; }

 private:
  void each_once(std::string_view key, std::span<const std::string> names,
                 std::string_view expected, std::string_view member) const;

  const Node& node_;
  std::string path_;
  Keys keys_;
  Problems* problems_;
  FileCollector* files_;
};

// The types of members and their rules.
void read_member(const Fields& f, std::string_view key, std::string& out, const TextRule& rule,
                 Need need = Need::kMay);
// Texts without duplicates.
void read_member(const Fields& f, std::string_view key, std::vector<std::string>& out,
                 const TextRule& rule, std::size_t most = SIZE_MAX);
// A mapping from names to texts, or to counts, which `expected` says.
void read_member(const Fields& f, std::string_view key, std::map<std::string, std::string>& out,
                 const TextRule& name, const TextRule& value, Need need = Need::kMay);
void read_member(const Fields& f, std::string_view key, std::map<std::string, std::uint64_t>& out,
                 std::string_view expected, const TextRule& name, std::uint64_t least,
                 std::uint64_t most);
void read_member(const Fields& f, std::string_view key, bool& out);
void read_member(const Fields& f, std::string_view key, std::chrono::milliseconds& out,
                 std::chrono::milliseconds least);
void read_member(const Fields& f, std::string_view key, MicroUsd& out, Need need = Need::kMay);
void read_member(const Fields& f, std::string_view key, Digest& out);
void read_bytes(const Fields& f, std::string_view key, std::uint64_t& out, std::uint64_t least);

std::optional<std::uint64_t> read_count(const Node& node, const std::string& path,
                                        std::uint64_t least, std::uint64_t most,
                                        Problems& problems);
template <std::integral T>
void read_member(const Fields& f, std::string_view key, T& out, std::uint64_t least,
                 std::uint64_t most) {
  if (const Node* node = f.find(key))
    if (const auto n = read_count(*node, f.path(key), least, most, f.problems()))
      out = static_cast<T>(*n);
}

std::optional<std::size_t> read_word(const Node& node, const std::string& path,
                                     std::span<const std::string_view> words, Problems& problems);
template <HasWords E>
std::optional<E> read_word(const Node& node, const std::string& path, Problems& problems) {
  std::vector<std::string_view> names;
  for (const auto& [word, value] : kWordsOf<E>) names.push_back(word);
  const auto i = read_word(node, path, names, problems);
  return i ? std::optional(kWordsOf<E>[*i].second) : std::nullopt;
}
template <HasWords E>
void read_member(const Fields& f, std::string_view key, E& out) {
  if (const Node* node = f.find(key))
    out = read_word<E>(*node, f.path(key), f.problems()).value_or(out);
}
// At least one word.
template <HasWords E>
void read_member(const Fields& f, std::string_view key, std::set<E>& out) {
  if (f.find(key) != nullptr) out.clear();
  f.each(key, [&](const Node& item, const std::string& where) {
    if (const auto value = read_word<E>(item, where, f.problems())) out.insert(*value);
  });
  if (out.empty()) f.wrong(key, "a list of its words");
}

template <Described T>
void read_member(const Fields& f, std::string_view key, T& out, std::string_view expected = {}) {
  if (const Node* node = f.find(key))
    read_node(f, *node, f.path(key), out);
  else if (!expected.empty())
    f.missing(key, expected);
}
template <Described T>
void read_member(const Fields& f, std::string_view key, std::vector<T>& out, Need = Need::kMay,
                 std::size_t most = SIZE_MAX) {
  f.each(key, [&](const Node& item, const std::string& where) {
    if (out.size() < most) return read_node(f, item, where, out.emplace_back());
    f.problems().wrong(item, where, "at most " + std::to_string(most) + " " + std::string(key));
  });
}
template <Described T>
void read_member(const Fields& f, std::string_view key, std::map<std::string, T>& out) {
  f.named(key, "a mapping of names", [&](const Entry& e, const std::string& where) {
    read_node(f, e.value, where, out[e.key]);
  });
}

// Empty where the key is absent or the value of a scalar wrong.
template <class T, class Read>
void read_optional(const Fields& f, std::string_view key, std::optional<T>& out, Read read) {
  const std::size_t before = f.problems().count();
  T value{};
  read(value);
  if (f.find(key) != nullptr && (Described<T> || f.problems().count() == before))
    out = std::move(value);
}
template <class T, class... Rules>
void read_member(const Fields& f, std::string_view key, std::optional<T>& out,
                 const Rules&... rules) {
  read_optional(f, key, out, [&](T& value) { read_member(f, key, value, rules...); });
}
inline void read_bytes(const Fields& f, std::string_view key, std::optional<std::uint64_t>& out,
                       std::uint64_t least) {
  read_optional(f, key, out, [&](std::uint64_t& value) { read_bytes(f, key, value, least); });
}

// The structure at a node; `files` where it refers to any.
template <class T>
void read_fields(const Node& node, std::string path, Problems& problems, T& out,
                 FileCollector* files = nullptr) {
  const Fields f(node, std::move(path), keys_of<T>(), problems, files);
  fields(f, out);
}
template <Described T>
void read_node(const Fields& from, const Node& node, const std::string& path, T& out) {
  read_fields(node, path, from.problems(), out, from.files());
}
}  // namespace proctor
