#include "common/contract/tree_builder.h"

#include "common/base/text.h"

namespace proctor {

bool TreeBuilder::wants_key() const {
  return !stack_.empty() && stack_.back().node.kind == Node::Kind::kMapping &&
         !stack_.back().pending;
}

TreeBuilder::Answer TreeBuilder::count(Mark at) {
  if (bounds_.nodes_max < ++nodes_)
    return SyntaxError{at, "more than " + std::to_string(bounds_.nodes_max) + " values",
                       "at most that many in one file"};
  return std::nullopt;
}

TreeBuilder::Answer TreeBuilder::null(Mark at) {
  if (auto r = count(at)) return r;
  if (wants_key()) return SyntaxError{at, "an empty key", "a text as key"};
  Node node;
  node.at = at;
  // yaml-cpp places the nothing after "key:" at the next token, which is elsewhere.
  if (!stack_.empty() && stack_.back().pending && stack_.back().pending->at.line != at.line)
    node.at = stack_.back().pending->at;
  attach(std::move(node));
  return std::nullopt;
}

TreeBuilder::Answer TreeBuilder::scalar(Mark at, std::string text, bool quoted) {
  if (auto r = count(at)) return r;
  // An escape in a quoted text can still spell a NUL.
  if (text.find('\0') != std::string::npos)
    return SyntaxError{at, "a NUL character", "text without NUL"};
  if (!is_utf8(text)) return SyntaxError{at, "an escape that is not a character", "Unicode text"};
  if (wants_key()) return take_key(at, std::move(text));
  Node node;
  node.kind = Node::Kind::kScalar;
  node.at = at;
  node.text = std::move(text);
  node.quoted = quoted;
  attach(std::move(node));
  return std::nullopt;
}

TreeBuilder::Answer TreeBuilder::take_key(Mark at, std::string text) {
  Frame& top = stack_.back();
  top.duplicate = !top.keys.insert(text).second;
  if (top.duplicate) {
    const std::string where = path();
    const std::string shown = printable(text, 80);
    out_.add({file_, at, where.empty() ? shown : where + "." + shown,
              "the key \"" + shown + "\" a second time", "each key once", ""});
  }
  top.pending = Entry{std::move(text), at, Node{}};
  return std::nullopt;
}

TreeBuilder::Answer TreeBuilder::begin(Node::Kind kind, Mark at) {
  if (auto r = count(at)) return r;
  if (wants_key()) return SyntaxError{at, "a list or mapping as key", "a text as key"};
  if (bounds_.depth_max <= stack_.size())
    return SyntaxError{at, "more than " + std::to_string(bounds_.depth_max) + " levels of nesting",
                       "fewer"};
  Frame frame;
  frame.node.kind = kind;
  frame.node.at = at;
  stack_.push_back(std::move(frame));
  return std::nullopt;
}

void TreeBuilder::end() {
  Node node = std::move(stack_.back().node);
  stack_.pop_back();
  attach(std::move(node));
}

void TreeBuilder::attach(Node node) {
  if (stack_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& top = stack_.back();
  if (top.node.kind == Node::Kind::kSequence) {
    top.node.items.push_back(std::move(node));
    return;
  }
  top.pending->value = std::move(node);
  if (!top.duplicate) top.node.entries.push_back(*std::move(top.pending));
  top.pending.reset();
}

std::string TreeBuilder::path() const {
  std::string out;
  for (const Frame& f : stack_) {
    if (&f == &stack_.back()) break;
    if (f.node.kind == Node::Kind::kSequence) {
      out += "[" + std::to_string(f.node.items.size()) + "]";
    } else if (f.pending) {
      out += (out.empty() ? "" : ".") + printable(f.pending->key, 80);
    }
  }
  return out;
}

}  // namespace proctor
