#include "common/contract/document.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>
#include <algorithm>
#include <set>
#include <sstream>

#include "common/base/git_program.h"
#include "common/base/json_text.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
std::string to_string(const Diagnostic& d) {
  const auto safe = [](const std::string& s) {
    return printable(redact_urls(s), limits::kDetailBytes);
  };
  std::string out = safe(d.file) + ":" + std::to_string(d.at.line) + ":" +
                    std::to_string(d.at.column) + ": " +
                    (d.field.empty() ? "document" : safe(d.field)) + ": found " + safe(d.found) +
                    ", expected " + safe(d.expected);
  if (!d.suggestion.empty()) out += " (did you mean \"" + safe(d.suggestion) + "\"?)";
  return out;
}

void Diagnostics::add(Diagnostic diagnostic) {
  ++count_;
  if (kept_.size() < kKept) kept_.push_back(std::move(diagnostic));
}

std::string Diagnostics::text() const {
  std::string out;
  for (const Diagnostic& d : kept_) out += to_string(d) + "\n";
  if (kept_.size() < count_) out += "... and " + std::to_string(count_ - kept_.size()) + " more\n";
  return out;
}

struct SyntaxError {
  Mark at;
  std::string found;
  std::string expected;
};

// Builds a Node tree from a parser's events and refuses what document.h promises to refuse.
// Internal to the two readers.  After a refusal the builder must not be fed further.
class TreeBuilder {
 public:
  using Answer = std::optional<SyntaxError>;
  TreeBuilder(const DocumentBounds& bounds, std::string file, Diagnostics& out)
      : bounds_(bounds), file_(std::move(file)), out_(out) {}

  Answer null(Mark at) {
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

  Answer scalar(Mark at, std::string text, bool quoted) {
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

  // `kind`: kSequence or kMapping.
  Answer begin(Node::Kind kind, Mark at) {
    if (auto r = count(at)) return r;
    if (wants_key()) return SyntaxError{at, "a list or mapping as key", "a text as key"};
    if (bounds_.depth_max <= stack_.size())
      return SyntaxError{
          at, "more than " + std::to_string(bounds_.depth_max) + " levels of nesting", "fewer"};
    Frame frame;
    frame.node.kind = kind;
    frame.node.at = at;
    stack_.push_back(std::move(frame));
    return std::nullopt;
  }

  void end() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    attach(std::move(node));
  }

  // The finished tree; an empty text is a kNull node.
  Node take() { return std::move(root_); }
  // The frames above the current one are mappings waiting for a key?
  bool wants_key() const {
    return !stack_.empty() && stack_.back().node.kind == Node::Kind::kMapping &&
           !stack_.back().pending;
  }

 private:
  struct Frame {
    Node node;
    std::optional<Entry> pending;  // a key that waits for its value
    std::set<std::string, std::less<>> keys;
    bool duplicate = false;
  };
  Answer count(Mark at) {
    if (bounds_.nodes_max < ++nodes_)
      return SyntaxError{at, "more than " + std::to_string(bounds_.nodes_max) + " values",
                         "at most that many in one file"};
    return std::nullopt;
  }

  void attach(Node node) {
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

  Answer take_key(Mark at, std::string text) {
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

  std::string path() const {
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

  DocumentBounds bounds_;
  std::string file_;
  Diagnostics& out_;
  std::vector<Frame> stack_;
  std::size_t nodes_ = 0;
  Node root_;
};

namespace {
Mark mark_of(std::string_view before) {
  Mark at;
  at.line += static_cast<std::uint32_t>(std::ranges::count(before, '\n'));
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  at.column += static_cast<std::uint32_t>(before.size() - line_begin);
  return at;
}

// Bytes that neither format may hold (RFC 8259 admits DEL).  A \x04 would even end the text
// silently: yaml-cpp uses it for the end of its stream.
bool is_forbidden(char c, Format format) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
         (byte == 0x7F && format == Format::kYaml);
}

std::optional<SyntaxError> check_bytes(std::string_view text, Format format,
                                       const DocumentBounds& bounds) {
  if (bounds.bytes_max < text.size())
    return SyntaxError{
        {}, std::to_string(text.size()) + " bytes", "at most " + std::to_string(bounds.bytes_max)};
  const auto bad = std::ranges::find_if(text, [&](char c) { return is_forbidden(c, format); });
  if (bad != text.end()) {
    const auto at = static_cast<std::size_t>(bad - text.begin());
    return SyntaxError{mark_of(text.substr(0, at)), "the byte " + printable(text.substr(at, 1)),
                       "text without control characters"};
  }
  if (is_utf8(text)) return std::nullopt;
  // Name the first line that is broken: a sequence never spans a line feed.
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    if (!is_utf8(text.substr(begin, end - begin)))
      return SyntaxError{mark_of(text.substr(0, begin)), "bytes that are not UTF-8", "UTF-8 text"};
    begin = end;
  }
  return SyntaxError{{}, "bytes that are not UTF-8", "UTF-8 text"};
}
}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto it = std::ranges::find(entries, key, &Entry::key);
  return it == entries.end() ? nullptr : &it->value;
}

Format format_of(std::string_view file) {
  return file.ends_with(".json") ? Format::kJson : Format::kYaml;
}

std::string describe(const Node& node) {
  if (node.kind != Node::Kind::kScalar) return std::string(word_of(node.kind));
  return "\"" + printable(redact_urls(node.text), 80) + "\"";
}

// YAML through yaml-cpp's events.  Its own node tree is not used: that keeps the last of duplicate
// keys without a word, expands aliases, and builds before anything can be refused.

namespace {
// The only way to stop yaml-cpp in the middle is to throw through it; caught below.
struct Stop {
  SyntaxError refusal;
};

Mark mark_of(const YAML::Mark& m) {
  const auto from_one = [](int n) { return static_cast<std::uint32_t>(std::max(n, 0)) + 1; };
  return Mark{from_one(m.line), from_one(m.column)};
}

class Handler : public YAML::EventHandler {
 public:
  explicit Handler(TreeBuilder& builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(seen_, true))
      throw Stop{{mark_of(mark), "a second document", "one document in a file"}};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    feed(builder_.null(mark_of(mark)));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Stop{{mark_of(mark), "an alias", "the value itself: anchors and aliases are not read"}};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    feed(builder_.scalar(mark_of(mark), value, tag == "!"));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(Node::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { builder_.end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(Node::Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { builder_.end(); }

 private:
  void begin(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    feed(builder_.begin(kind, mark_of(mark)));
  }
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      throw Stop{{mark_of(mark), "an anchor", "the value alone: anchors and aliases are not read"}};
  }
  // yaml-cpp reports "?" for plain and "!" for quoted values without a tag of their own.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Stop{{mark_of(mark), "the tag " + printable(tag, 80), "a value without tag"}};
  }
  static void feed(TreeBuilder::Answer answer) {
    if (answer) throw Stop{*std::move(answer)};
  }

  TreeBuilder& builder_;
  bool seen_ = false;
};

// yaml-cpp scans a whole nest of flow brackets before its first event, because any bracket may turn
// out to be a key: 4 MiB of '[' cost it 2 s and 900 MB before the depth could be refused.  So the
// brackets are counted beforehand, in texts and comments too: no person leaves this many open.
std::optional<SyntaxError> refuse_open_brackets(std::string_view text) {
  constexpr std::size_t kOpenMax = 10'000;
  std::size_t open = 0;
  std::uint32_t line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if ((c == ']' || c == '}') && 0 < open) --open;
    if ((c == '[' || c == '{') && kOpenMax < ++open)
      return SyntaxError{{line, 1}, "more than 10000 open brackets", "fewer levels of nesting"};
  }
  return std::nullopt;
}

// The two readers.  A refusal is the text's first syntax error.

std::optional<SyntaxError> read_yaml(std::string_view text, TreeBuilder& builder) {
  if (auto r = refuse_open_brackets(text)) return r;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    Handler handler(builder);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const Stop& stop) {
    return stop.refusal;
  } catch (const YAML::Exception& e) {
    return SyntaxError{mark_of(e.mark), "broken YAML (" + printable(e.msg) + ")", "YAML 1.2"};
  } catch (const std::exception& e) {
    return SyntaxError{{}, "broken YAML (" + printable(e.what()) + ")", "YAML 1.2"};
  }
  return std::nullopt;
}

std::optional<SyntaxError> read_json(std::string_view text, TreeBuilder& builder) {
  JsonLexer in(text);
  Mark at;
  std::size_t before = 0;  // the byte at `at`
  for (;;) {
    const JsonToken token = in.next();
    // A broken escape is where its backslash is.
    const bool escape = token == JsonToken::kFault && in.fault().expected == "a JSON escape";
    const std::size_t here = escape ? text.rfind('\\', in.at() - 1) : in.at();
    for (; before < here; ++before) {
      if (text[before] == '\n')
        at = {at.line + 1, 1};
      else
        ++at.column;
    }
    TreeBuilder::Answer refusal;
    switch (token) {
      case JsonToken::kObject:
        refusal = builder.begin(Node::Kind::kMapping, at);
        break;
      case JsonToken::kArray:
        refusal = builder.begin(Node::Kind::kSequence, at);
        break;
      case JsonToken::kObjectEnd:
      case JsonToken::kArrayEnd:
        builder.end();
        break;
      case JsonToken::kKey:
      case JsonToken::kString:
        refusal = builder.scalar(at, in.text(), true);
        break;
      case JsonToken::kNumber:
      case JsonToken::kTrue:
      case JsonToken::kFalse:
        refusal = builder.scalar(at, std::string(in.bytes()), false);
        break;
      case JsonToken::kNull:
        refusal = builder.null(at);
        break;
      case JsonToken::kEnd:
        return std::nullopt;
      case JsonToken::kFault:
        refusal = SyntaxError{at,
                              escape                ? "a broken escape"
                              : here == text.size() ? "the end of the file"
                                                    : "\"" + printable(text.substr(here, 1)) + "\"",
                              std::string(in.fault().expected)};
    }
    if (refusal) return refusal;
  }
}
}  // namespace

std::optional<Document> read_document(std::string_view text, Format format, std::string file,
                                      Diagnostics& out, const DocumentBounds& bounds) {
  const auto refuse = [&](SyntaxError r) {
    out.add({file, r.at, "", std::move(r.found), std::move(r.expected), ""});
    return std::nullopt;
  };
  if (auto r = check_bytes(text, format, bounds)) return refuse(*std::move(r));
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  TreeBuilder builder(bounds, file, out);
  if (auto r = format == Format::kJson ? read_json(text, builder) : read_yaml(text, builder))
    return refuse(*std::move(r));
  return Document{std::move(file), builder.take()};
}
}  // namespace proctor
