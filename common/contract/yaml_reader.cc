// YAML through yaml-cpp's events.  Its own node tree is not used: that keeps the last of duplicate
// keys without a word, expands aliases, and builds before anything can be refused.
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "common/base/text.h"
#include "common/contract/tree_builder.h"

namespace proctor {
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

}  // namespace

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

}  // namespace proctor
