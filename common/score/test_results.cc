#include "common/score/test_results.h"

#include <algorithm>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
// How alike two names are: bytes that they share at both ends, and bytes of `test` in parts that
// `wanted` has too.
std::size_t likeness(std::string_view wanted, std::string_view test) {
  std::size_t front = 0, back = 0, parts = 0;
  const std::size_t most = std::min(wanted.size(), test.size());
  while (front < most && wanted[front] == test[front]) ++front;
  while (front + back < most && wanted[wanted.size() - 1 - back] == test[test.size() - 1 - back])
    ++back;
  const auto next = [](std::string_view& rest) {
    const std::string_view part = rest.substr(0, rest.find_first_of(".:"));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
  };
  std::set<std::string_view> has;
  while (!wanted.empty()) has.insert(next(wanted));
  while (!test.empty())
    if (const std::string_view part = next(test); has.contains(part)) parts += part.size();
  return front + back + parts;
}
}  // namespace

std::string test_name(std::string_view id) {
  const std::string_view parameters = id.substr(std::min(id.find('['), id.size()));
  id.remove_suffix(parameters.size());
  const std::size_t file = std::min(id.find("::"), id.size());
  std::string out(id.substr(0, file));
  if (file < id.size() && out.ends_with(".py")) {
    out.resize(out.size() - 3);
    if (out.starts_with("./")) out.erase(0, 2);
    std::ranges::replace(out, '/', '.');
  }
  const std::size_t last = id.rfind("::");
  for (std::size_t at = file; at < id.size();) {
    const std::size_t next = std::min(id.find("::", at + 2), id.size());
    out += at == last ? "::" : ".";
    out += id.substr(at + 2, next - at - 2);
    at = next;
  }
  return out.append(parameters);
}

void TestResults::add(std::string id, TestStatus status, std::string_view name) {
  const auto named = by_name_.emplace(test_name(name.empty() ? id : name), id);
  if (!named.second && named.first->second != id) named.first->second.clear();
  const auto [it, is_new] = tests.emplace(std::move(id), status);
  if (!is_new && it->second != TestStatus::kFail) it->second = status;
}

std::map<std::string, TestStatus>::const_iterator TestResults::find(const std::string& id) const {
  if (const auto it = tests.find(id); it != tests.end()) return it;
  const auto named = by_name_.find(test_name(id));
  return named == by_name_.end() ? tests.end() : tests.find(named->second);
}

std::vector<std::string> TestResults::nearest(std::string_view id, std::size_t count) const {
  const std::string wanted = test_name(id);
  std::vector<std::pair<std::size_t, const std::string*>> ran;
  for (const auto& [test, status] : tests)
    if (status != TestStatus::kSkip) ran.emplace_back(likeness(wanted, test_name(test)), &test);
  const std::size_t n = std::min(count, ran.size());
  std::ranges::partial_sort(ran, ran.begin() + static_cast<std::ptrdiff_t>(n),
                            [](const auto& a, const auto& b) {
                              return a.first != b.first ? b.first < a.first : *a.second < *b.second;
                            });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(*ran[i].second);
  return out;
}

// JUnit XML.

namespace {
// A node of pugixml is 64 bytes and an attribute 40: together at most 230 MB.
constexpr std::size_t kTagsMax = 1'000'000;
constexpr std::size_t kAttributesMax = 4'000'000;
constexpr std::size_t kDepthMax = 64;

Error invalid_junit(std::string detail) {
  return Error{Errc::kInvalid, "JUnit XML: " + std::move(detail)};
}

// Counts what pugixml would allocate, before it does.  It need not understand XML, only see every
// '<' and '=' that could become a node: what it skips (comments, CDATA, instructions), pugixml
// skips by the same ends.
class Scan {
 public:
  explicit Scan(std::string_view bytes) : rest_(bytes) {}

  Status run() {
    for (;;) {
      const std::size_t at = std::min(rest_.find('<'), rest_.size());
      // The parser would drop text outside the root without a word.
      if (depth_ == 0 && rest_.substr(0, at).find_first_not_of(" \t\r\n") < at)
        return invalid_junit("text outside the root");
      rest_.remove_prefix(at);
      if (rest_.empty()) return ok_status();
      if (kTagsMax < ++tags_) return invalid_junit("more than a million tags");
      if (rest_.starts_with("<!--")) {
        PROCTOR_CHECK_OK(skip("<!--", "-->"));
      } else if (rest_.starts_with("<![CDATA[")) {
        PROCTOR_CHECK_OK(skip("<![CDATA[", "]]>"));
      } else if (rest_.starts_with("<?")) {
        PROCTOR_CHECK_OK(skip("<?", "?>"));
      } else if (rest_.starts_with("<!")) {
        return invalid_junit("a document type declaration; none is read");
      } else {
        PROCTOR_CHECK_OK(tag());
      }
    }
  }

 private:
  Status skip(std::string_view open, std::string_view close) {
    const std::size_t end = rest_.find(close, open.size());
    if (end == std::string_view::npos) return invalid_junit("ends inside " + std::string(open));
    rest_.remove_prefix(end + close.size());
    return ok_status();
  }

  Status tag() {
    const bool closing = rest_.starts_with("</");
    std::size_t i = 1;
    char quote = 0;
    for (; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '=' && kAttributesMax < ++attributes_) return invalid_junit("too many attributes");
      if (c == '<') return invalid_junit("'<' inside a tag");
      if (c == '>') break;
    }
    if (i == rest_.size()) return invalid_junit("ends inside a tag");
    const bool empty = rest_[i - 1] == '/';
    if (closing) {
      if (depth_ == 0) return invalid_junit("an end tag without its start");
      --depth_;
    } else if (!empty && kDepthMax < ++depth_) {
      return invalid_junit("nested deeper than " + std::to_string(kDepthMax));
    }
    rest_.remove_prefix(i + 1);
    return ok_status();
  }

  std::string_view rest_;
  std::size_t tags_ = 0, attributes_ = 0, depth_ = 0;
};

void append_part(std::string& id, std::string_view part) {
  if (part.empty()) return;
  if (!id.empty()) id += "::";
  id += part;
}

std::string replace_all(std::string_view text, char from, std::string_view to) {
  std::string out;
  for (const char c : text) {
    if (c == from)
      out += to;
    else
      out += c;
  }
  return out;
}

// The id of a test without a file.
std::string class_and_name(const pugi::xml_node& test) {
  std::string id;
  append_part(id, test.attribute("classname").value());
  append_part(id, test.attribute("name").value());
  return id;
}

std::string test_id(const pugi::xml_node& test) {
  const std::string_view file = test.attribute("file").value();
  if (file.empty()) return class_and_name(test);
  std::string_view cls = test.attribute("classname").value();
  // The class name of pytest begins with the module: tests/test_a.py is tests.test_a.
  const std::string module =
      replace_all(file.ends_with(".py") ? file.substr(0, file.size() - 3) : file, '/', ".");
  if (cls == module) {
    cls = {};
  } else if (cls.starts_with(module + ".")) {
    cls.remove_prefix(module.size() + 1);
  }
  std::string id(file);
  append_part(id, replace_all(cls, '.', "::"));
  append_part(id, test.attribute("name").value());
  return id;
}

TestStatus test_status(const pugi::xml_node& test) {
  if (test.child("failure") || test.child("error")) return TestStatus::kFail;
  const std::string_view status = test.attribute("status").value();
  if (test.child("skipped") || status == "notrun" || status == "disabled") return TestStatus::kSkip;
  return TestStatus::kPass;
}

// Every <testcase> at any depth; the depth was bounded by the scan.
class Collector : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& node) override {
    if (node.type() != pugi::node_element) return true;
    if (is_suite(node)) return suite(node);
    if (std::string_view(node.name()) != "testcase") return true;
    std::string id = test_id(node);
    if (!is_suite(node.parent())) {
      why_ = "a <testcase> inside <" + printable(node.parent().name(), 40) + ">";
    } else if (std::string_view(node.attribute("name").value()).empty()) {
      why_ = "a <testcase> without a name";
    } else if (kTestIdBytes < id.size()) {
      why_ = "a test id of " + std::to_string(id.size()) + " bytes";
    } else if (results_.tests.size() == kResultTests) {
      why_ = "more than " + std::to_string(kResultTests) + " tests";
    }
    if (!why_.empty()) return false;
    results_.add(std::move(id), test_status(node), class_and_name(node));
    return true;
  }
  Result<TestResults> take() {
    if (!why_.empty()) return invalid_junit(why_);
    return std::move(results_);
  }

 private:
  static bool is_suite(const pugi::xml_node& node) {
    const std::string_view name = node.name();
    return name == "testsuite" || name == "testsuites";
  }

  // What failed before or after its tests, or around them, is told of the suite alone.
  bool suite(const pugi::xml_node& node) {
    if (!node.child("failure") && !node.child("error")) return true;
    std::string id = std::string(node.attribute("name").value()) + " (suite)";
    if (kTestIdBytes < id.size() || results_.tests.size() == kResultTests) {
      why_ = "more than can be read of a suite";
      return false;
    }
    results_.add(std::move(id), TestStatus::kFail);
    return true;
  }

  TestResults results_;
  std::string why_;
};

Result<pugi::xml_node> root_of(const pugi::xml_document& document) {
  pugi::xml_node root;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() != pugi::node_element) continue;
    if (root) return invalid_junit("a second root <" + printable(node.name(), 40) + ">");
    root = node;
  }
  const std::string_view name = root.name();
  if (name != "testsuites" && name != "testsuite")
    return invalid_junit("the root is <" + printable(name, 40) +
                         ">, not <testsuites> or <testsuite>");
  return root;
}
}  // namespace

Result<TestResults> parse_junit(std::string_view bytes) {
  if (kResultFileBytes < bytes.size())
    return invalid_junit(std::to_string(bytes.size()) + " bytes; at most " +
                         std::to_string(kResultFileBytes) + " are read");
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  if (bytes.find('\0') != std::string_view::npos) return invalid_junit("a NUL byte");
  if (!is_utf8(bytes)) return invalid_junit("not UTF-8");
  PROCTOR_CHECK_OK(Scan(bytes).run());
  // The encoding is fixed: what the scan saw is what the parser reads.
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(bytes.data(), bytes.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return invalid_junit(std::string(parsed.description()) + " at byte " +
                         std::to_string(parsed.offset));
  PROCTOR_TRY(pugi::xml_node root, root_of(document));
  Collector collector;
  if (collector.for_each(root)) root.traverse(collector);
  return collector.take();
}

// TAP.

namespace {
constexpr std::size_t kLineBytes = std::size_t{64} << 10;

Error invalid_tap(std::string detail) {
  return Error{Errc::kInvalid, "TAP: " + std::move(detail)};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
bool starts_with_word(std::string_view s, std::string_view word) {
  return word.size() <= s.size() &&
         std::ranges::equal(s.substr(0, word.size()), word, {}, [](char c) {
           return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c;
         });
}

struct Line {
  std::string description;
  std::string_view directive;  // after '#', trimmed
};

// A directive begins at the first '#' that follows a blank and is not escaped; "\#" is a '#'.
Line split_directive(std::string_view text) {
  Line out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '#' || text[i + 1] == '\\')) {
      out.description += text[++i];
      continue;
    }
    if (text[i] == '#' && (i == 0 || is_blank(text[i - 1]))) {
      out.directive = trimmed(text.substr(i + 1));
      break;
    }
    out.description += text[i];
  }
  out.description = std::string(trimmed(out.description));
  return out;
}

class Parser {
 public:
  Status line(std::string_view text) {
    if (starts_with_word(text, "BAIL OUT!"))
      return invalid_tap("bailed out: " + printable(trimmed(text.substr(9)), 200));
    if (text.starts_with("1..")) return plan(text.substr(3));
    if (text.starts_with("not ok") && ends_word(text, 6)) return test(text.substr(6), false);
    if (text.starts_with("ok") && ends_word(text, 2)) return test(text.substr(2), true);
    return ok_status();
  }

  Result<TestResults> finish() {
    if (!planned_) return invalid_tap("no plan: the stream is not complete");
    if (*planned_ != count_)
      return invalid_tap("planned " + std::to_string(*planned_) + " tests and ran " +
                         std::to_string(count_));
    if (!numbers_.empty() && *planned_ < *numbers_.rbegin())
      return invalid_tap("test number " + std::to_string(*numbers_.rbegin()) + " beyond the plan");
    return std::move(results_);
  }

 private:
  static bool ends_word(std::string_view text, std::size_t at) {
    return text.size() == at || is_blank(text[at]);
  }

  Status plan(std::string_view rest) {
    if (planned_) return invalid_tap("a second plan");
    std::size_t n = 0;
    const bool counted = take_number(rest, n);
    rest = trimmed(rest);
    if (!counted || (!rest.empty() && rest.front() != '#'))
      return invalid_tap("a plan that is not 1..N");
    if (kResultTests < n) return invalid_tap("a plan of " + std::to_string(n) + " tests");
    planned_ = n;
    return ok_status();
  }

  Status test(std::string_view rest, bool passed) {
    if (kResultTests <= count_)
      return invalid_tap("more than " + std::to_string(kResultTests) + " tests");
    ++count_;
    rest = trimmed(rest);
    std::size_t number = count_;
    // "ok 2nd try" is a description, "ok 2" and "ok 2 - x" are numbered.
    std::string_view after = rest;
    std::uint32_t said = 0;
    if (take_number(after, said) && (after.empty() || is_blank(after.front()))) {
      number = said;
      rest = trimmed(after);
    }
    if (number == 0 || !numbers_.insert(number).second)
      return invalid_tap("test number " + std::to_string(number) + " twice or zero");
    if (rest == "-" || rest.starts_with("- ")) rest = trimmed(rest.substr(1));
    Line parts = split_directive(rest);
    if (parts.description.empty()) parts.description = std::to_string(number);
    if (kTestIdBytes < parts.description.size())
      return invalid_tap("a description beyond 4096 bytes");
    TestStatus status = passed ? TestStatus::kPass : TestStatus::kFail;
    if (starts_with_word(parts.directive, "SKIP") ||
        (!passed && starts_with_word(parts.directive, "TODO")))
      status = TestStatus::kSkip;
    results_.add(std::move(parts.description), status);
    return ok_status();
  }

  TestResults results_;
  std::optional<std::size_t> planned_;
  std::size_t count_ = 0;
  std::set<std::size_t> numbers_;
};
}  // namespace

Result<TestResults> parse_tap(std::string_view bytes) {
  if (kResultFileBytes < bytes.size())
    return invalid_tap(std::to_string(bytes.size()) + " bytes; at most " +
                       std::to_string(kResultFileBytes) + " are read");
  if (!is_utf8(bytes)) return invalid_tap("not UTF-8");
  // "ok" may be the front of "okay, ...": a line that was cut must not count.
  if (!bytes.empty() && bytes.back() != '\n') return invalid_tap("the last line has no end");
  Parser parser;
  std::size_t number = 0;
  while (!bytes.empty()) {
    ++number;
    std::string_view line = take_until(bytes, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (kLineBytes < line.size())
      return invalid_tap("line " + std::to_string(number) + " is longer than 64 KiB");
    if (Status s = parser.line(line); !s.ok())
      return Error{Errc::kInvalid, s.error().detail + " (line " + std::to_string(number) + ")"};
  }
  return parser.finish();
}
}  // namespace proctor
