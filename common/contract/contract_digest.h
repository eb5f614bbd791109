#pragma once
// Canonical forms and digests: the identity of contracts and methods.  Pure; any thread.
#include <string>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "common/contract/contract.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {
// Writes a described structure (fields.h) as its canonical form has it: every member but empty
// texts, lists and tables.  Internal to this room.
class Canonical {
 public:
  void operator()(const char* key, const std::string& value, const TextRule&,
                  Need need = Need::kMay) {
    put(key, value, need != Need::kMay || !value.empty());
  }
  void operator()(const char* key, const std::vector<std::string>& value, const TextRule&,
                  std::size_t = 0) {
    words(key, value);
  }
  void operator()(const char* key, const std::map<std::string, std::string>& value, const TextRule&,
                  const TextRule&, Need need = Need::kMay);
  void operator()(const char* key, const std::chrono::milliseconds& value,
                  std::chrono::milliseconds) {
    put(key, format_duration(value));
  }
  void operator()(const char* key, const MicroUsd& value, Need = Need::kMay) {
    put(key, format_usd_exact(value));
  }
  void operator()(const char* key, const Digest& value) { put(key, value.hex()); }
  void operator()(const char* key, const std::same_as<bool> auto& value) { put(key, value); }
  template <std::integral T>
  void operator()(const char* key, const T& value, std::uint64_t, std::uint64_t) {
    put(key, static_cast<std::uint64_t>(value));
  }
  template <HasWords E>
  void operator()(const char* key, const E& value) {
    put(key, word_of(value));
  }
  template <std::integral T>
  void operator()(const char* key, const std::optional<T>& value, std::uint64_t least,
                  std::uint64_t most) {
    if (value) (*this)(key, *value, least, most);
  }
  template <class T, class... Rules>
  requires(!std::integral<T>) void operator()(const char* key, const std::optional<T>& value,
                                              const Rules&... rules) {
    if constexpr (std::same_as<T, std::vector<std::string>>)
      put(key, value ? Json(*value) : Json(), value.has_value());
    else if (value)
      (*this)(key, *value, rules...);
  }
  template <class T>
  requires Described<const T>
  void operator()(const char* key, const T& value, std::string_view = {}) {
    put(key, node_json(value));
  }
  template <class T>
  requires Described<const T>
  void operator()(const char* key, const std::vector<T>& list, Need need = Need::kMay,
                  std::size_t = 0) {
    put(key, list_json(list), need != Need::kMay || !list.empty());
  }
  template <class T>
  requires Described<const T>
  void operator()(const char* key, const std::map<std::string, T>& table) {
    Json out = Json::object();
    for (const auto& [name, value] : table) out[name] = node_json(value);
    put(key, std::move(out), !table.empty());
  }
  void operator()(const char* key, const std::map<std::string, std::uint64_t>& value,
                  std::string_view, const TextRule&, std::uint64_t, std::uint64_t) {
    put(key, value, !value.empty());
  }
  void bytes(const char* key, std::uint64_t value, std::uint64_t) { put(key, format_size(value)); }
  void bytes(const char* key, const std::optional<std::uint64_t>& value, std::uint64_t least) {
    if (value) bytes(key, *value, least);
  }
  void decimal(const char* key, std::uint64_t value, unsigned digits, std::uint64_t,
               std::string_view = {}) {
    put(key, format_decimal(value, digits));
  }
  void words(const char* key, const std::vector<std::string>& value) {
    put(key, value, !value.empty());
  }
  void file(const char* key, const std::string& value, std::string_view = {}) {
    put(key, value, !value.empty());
  }
  void put(const char* key, Json value, bool holds = true) {
    if (holds) out_[key] = std::move(value);
  }
  void once(const auto&...) {}
  void then(const auto&...) {}
  void also(std::initializer_list<std::string_view>) {}
  static bool when(bool holds) { return holds; }
  static bool of(bool holds) { return holds; }
  Json take() { return std::move(out_); }

 private:
  Json out_ = Json::object();
};

template <class T>
requires Described<const T> Json node_json(const T& value) {
  Canonical v;
  fields(v, value);
  return v.take();
}

template <class T>
Json list_json(const std::vector<T>& list) {
  Json out = Json::array();
  for (const T& item : list) out.push_back(node_json(item));
  return out;
}

// A file that a contract or method refers to, in their canonical forms.
enum class FileMode { kPlain, kExecutable };
constexpr auto words(FileMode) {
  return std::to_array<Word<FileMode>>(
      {{"0644", FileMode::kPlain}, {"0755", FileMode::kExecutable}});
}
struct FileFacts {
  std::string path;
  FileMode mode = FileMode::kPlain;
  std::uint64_t size = 0;
  Digest sha256{};
};
void fields(auto& v, Is<FileFacts> auto& f) {
  v("path", f.path, kPathRule, Need::kMust);
  v("mode", f.mode);
  v("size", f.size, 0, limits::kReferencedFileBytes);
  v("sha256", f.sha256);
}

// Asserts that the value has a canonical form.
std::string canonical_text(const Json& value);

// The identity of what is run.  The canonical form of a contract or method is canonical JSON
// (RFC 8785) over every field, with defaults filled in, and the mode, size and SHA-256 of every
// file it refers to; the digest is the SHA-256 of that text.  Comments, key order and layout of the
// YAML do not reach it; anything else does (R041).
//
//   {"contract":{"checks":[...],...},"files":[{"mode":"0644","path":"fix.patch",
//    "sha256":"...","size":312}],"format":1}
//
// "contract" has the shape of the YAML file, so that the same parser reads it back from a bundle.
// Requires: the value came from a parser or satisfies its rules.

std::string canonical_form(const Contract& contract);
Digest digest_of(const Contract& contract);

std::string canonical_form(const Method& method);
Digest digest_of(const Method& method);
}  // namespace proctor
