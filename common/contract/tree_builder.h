#pragma once
// Builds a Node tree from a parser's events and refuses what document.h promises to refuse.
// Internal to the two readers.  After a refusal the builder must not be fed further.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/contract/document.h"

namespace proctor {

struct SyntaxError {
  Mark at;
  std::string found;
  std::string expected;
};

class TreeBuilder {
 public:
  using Answer = std::optional<SyntaxError>;
  TreeBuilder(const DocumentBounds& bounds, std::string file, Diagnostics& out)
      : bounds_(bounds), file_(std::move(file)), out_(out) {}

  Answer null(Mark at);
  Answer scalar(Mark at, std::string text, bool quoted);
  Answer begin(Node::Kind kind, Mark at);  // kSequence or kMapping
  void end();
  // The finished tree; an empty text is a kNull node.
  Node take() { return std::move(root_); }
  // The frames above the current one are mappings waiting for a key?
  bool wants_key() const;

 private:
  struct Frame {
    Node node;
    std::optional<Entry> pending;  // a key that waits for its value
    std::set<std::string, std::less<>> keys;
    bool duplicate = false;
  };
  Answer count(Mark at);
  void attach(Node node);
  Answer take_key(Mark at, std::string text);
  std::string path() const;

  DocumentBounds bounds_;
  std::string file_;
  Diagnostics& out_;
  std::vector<Frame> stack_;
  std::size_t nodes_ = 0;
  Node root_;
};

// The two readers.  A refusal is the text's first syntax error.
std::optional<SyntaxError> read_yaml(std::string_view text, TreeBuilder& builder);
std::optional<SyntaxError> read_json(std::string_view text, TreeBuilder& builder);

}  // namespace proctor
