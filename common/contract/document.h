#pragma once
// A YAML or JSON text as one tree that remembers the line and column of every key and value, so
// that whoever reads it can say where an error is.  Scalars stay text: money never passes through
// a floating point number.
//
// Strict, because such files come from outside: UTF-8 only, no NUL or other control bytes, one
// document, mapping keys are plain texts and appear once, no anchors, aliases or tags (an alias can
// make a small file a huge tree), bounded size, depth and node count.  YAML is 1.2 as yaml-cpp
// reads it; JSON is RFC 8259.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/limits.h"
#include "common/contract/diagnostic.h"

namespace proctor {

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
