#pragma once
// A JSON text read where it lies: which bytes are which value, so that a request is judged and
// edited without being written anew.  The grammar of all of it is checked once, whoever reads what
// of it afterwards.  Pure; any thread.  Errors: kInvalid.
// Source: RFC 8259.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor {
struct JsonSpan {
  std::size_t at = 0, size = 0;
  friend bool operator==(const JsonSpan&, const JsonSpan&) = default;
};

struct JsonMember {
  std::string key;        // without escapes
  std::size_t begin = 0;  // of the key with its quote
  JsonSpan value;
};

class JsonText {
 public:
  static constexpr std::size_t kDepthMax = 256, kMembersMax = 10'000, kElementsMax = 100'000;
  // For every member at any depth: its key, and where its value begins.
  using OnKey = std::function<void(std::string_view key, std::size_t value_at)>;
  // UTF-8, one value and nothing behind it.  `text` outlives this.
  static Result<JsonText> read(std::string_view text, const OnKey& on_key = nullptr);

  JsonSpan root() const { return root_; }
  std::string_view bytes(JsonSpan span) const { return text_.substr(span.at, span.size); }
  // '{', '[', '"', 't', 'f', 'n', or a digit or '-' of a number.
  char kind(JsonSpan span) const { return text_[span.at]; }

  // Requires: kind() is '{'.  Refuses a key that is there twice.
  Result<std::vector<JsonMember>> members(JsonSpan object) const;
  // Requires: kind() is '['.
  Result<std::vector<JsonSpan>> elements(JsonSpan array) const;
  // The text of a string; nullopt: it is none, or holds half a surrogate pair.
  std::optional<std::string> text(JsonSpan span) const;
  // A plain whole number up to 2^53.
  std::optional<std::uint64_t> count(JsonSpan span) const;
  std::optional<bool> flag(JsonSpan span) const;

 private:
  JsonText(std::string_view text, JsonSpan root) : text_(text), root_(root) {}
  std::string_view text_;
  JsonSpan root_;
};

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key);

// A value of a JSON text; empty where the way to it is not there.
class JsonAt {
 public:
  // `text` outlives this.
  explicit JsonAt(const JsonText& text) : JsonAt(&text, text.root()) {}

  explicit operator bool() const { return span_.has_value(); }
  // By names with a dot between them; "0" is the first element of a list, and no member.
  JsonAt operator[](std::string_view path) const;
  std::vector<JsonAt> each() const;  // element of a list
  char kind() const { return span_ ? text_->kind(*span_) : '\0'; }
  std::string_view bytes() const { return span_ ? text_->bytes(*span_) : std::string_view(); }
  std::string text() const { return span_ ? text_->text(*span_).value_or("") : ""; }
  // A string's own text, else the JSON of it.
  std::string said() const { return kind() == '"' ? text() : std::string(bytes()); }
  std::uint64_t count() const { return span_ ? text_->count(*span_).value_or(0) : 0; }

 private:
  JsonAt(const JsonText* text, std::optional<JsonSpan> span) : text_(text), span_(span) {}
  const JsonText* text_;
  std::optional<JsonSpan> span_;
};

// An edit of a text that leaves every other byte as it was.
struct Splice {
  JsonSpan instead;  // of size 0: before this place
  std::string bytes;
  std::string member, why;  // for the record
};

// Requires: no two of them overlap, all lie within `text`.
std::string spliced(std::string_view text, std::vector<Splice> edits);

// A further member of an object whose last byte is the bracket that ends it.
Splice further_member(JsonSpan object, bool has_members, std::string_view key,
                      std::string_view value);
// A JSON string.
std::string json_quoted(std::string_view text);
}  // namespace proctor
