#pragma once
// A text that a person wrote as one tree, and what is wrong with it.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/limits.h"
#include "common/base/words.h"

namespace proctor {
// Faults of a file a person wrote, said so that the person can repair them: where, which
// field, what was found, what was expected, and the word that was probably meant.
// Diagnostics collects all of them, so that one `proctor check` shows every error at once.
// Pure values; not thread-safe.

// A place in a text, both from 1.  Columns count bytes.
struct Mark {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend bool operator==(Mark, Mark) = default;
};

struct Diagnostic {
  std::string file;
  Mark at;
  std::string field;  // "checks[0].timeout"; empty: the document
  std::string found;
  std::string expected;
  std::string suggestion;  // empty: none
};

// `file:line:column: field: found X, expected Y (did you mean "z"?)`, safe to print.
std::string to_string(const Diagnostic& diagnostic);

class Diagnostics {
 public:
  // Keeps the first kKept and counts the rest: a hostile file must not fill memory with complaints.
  static constexpr std::size_t kKept = 1000;
  void add(Diagnostic diagnostic);
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  const std::vector<Diagnostic>& kept() const { return kept_; }
  // One line each, ordered as found; the last line says how many were left out, if any were.
  std::string text() const;

 private:
  std::vector<Diagnostic> kept_;
  std::size_t count_ = 0;
};

// A YAML or JSON text as one tree that remembers the line and column of every key and value, so
// that whoever reads it can say where an error is.  Scalars stay text: money never passes through
// a floating point number.
//
// Strict, because such files come from outside: UTF-8 only, no NUL or other control bytes, one
// document, mapping keys are plain texts and appear once, no anchors, aliases or tags (an alias can
// make a small file a huge tree), bounded size, depth and node count.  YAML is 1.2 as yaml-cpp
// reads it; JSON is RFC 8259.  Pure; any thread.

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kSequence, kMapping };
  Kind kind = Kind::kNull;
  Mark at;
  std::string text;            // kScalar
  bool quoted = false;         // kScalar: in quotes or a block; a plain `5` or `true` is not
  std::vector<Node> items;     // kSequence
  std::vector<Entry> entries;  // kMapping, in the order of the text
  // The value of a key of a mapping; null when there is none.
  const Node* find(std::string_view key) const;
};

constexpr auto words(Node::Kind) {
  using enum Node::Kind;
  return std::to_array<Word<Node::Kind>>(
      {{"nothing", kNull}, {"a text", kScalar}, {"a list", kSequence}, {"a mapping", kMapping}});
}

struct Entry {
  std::string key;
  Mark at;
  Node value;
};

struct Document {
  std::string file;  // as diagnostics name it
  Node root;
};

enum class Format { kYaml, kJson };

struct DocumentBounds {
  std::size_t bytes_max = limits::kConfigFileBytes;
  std::size_t depth_max = limits::kConfigDepth;
  std::size_t nodes_max = limits::kConfigNodes;
};

// nullopt when there is no tree to go on with; the reason is in `out`.  A tree with duplicate keys
// is returned with the first of each, so that further errors can be found, and every duplicate is
// in `out`: a caller that must not accept them compares out.count().
std::optional<Document> read_document(std::string_view text, Format format, std::string file,
                                      Diagnostics& out, const DocumentBounds& bounds = {});

// By the name's ending: ".json" is JSON, everything else YAML.
Format format_of(std::string_view file);

// "nothing", "\"text\"", "a list" or "a mapping": a value as a diagnostic names it.
std::string describe(const Node& node);
}  // namespace proctor
