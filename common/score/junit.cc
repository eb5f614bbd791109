#include "common/score/junit.h"

#include <algorithm>
#include <pugixml.hpp>
#include <string>

#include "common/base/text.h"

namespace proctor {
namespace {

// A node of pugixml is 64 bytes and an attribute 40: together at most 230 MB.
constexpr std::size_t kTagsMax = 1'000'000;
constexpr std::size_t kAttributesMax = 4'000'000;
constexpr std::size_t kDepthMax = 64;

Error invalid(std::string detail) {
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
        return invalid("text outside the root");
      rest_.remove_prefix(at);
      if (rest_.empty()) return ok_status();
      if (kTagsMax < ++tags_) return invalid("more than a million tags");
      if (rest_.starts_with("<!--")) {
        PROCTOR_CHECK_OK(skip("<!--", "-->"));
      } else if (rest_.starts_with("<![CDATA[")) {
        PROCTOR_CHECK_OK(skip("<![CDATA[", "]]>"));
      } else if (rest_.starts_with("<?")) {
        PROCTOR_CHECK_OK(skip("<?", "?>"));
      } else if (rest_.starts_with("<!")) {
        return invalid("a document type declaration; none is read");
      } else {
        PROCTOR_CHECK_OK(tag());
      }
    }
  }

 private:
  Status skip(std::string_view open, std::string_view close) {
    const std::size_t end = rest_.find(close, open.size());
    if (end == std::string_view::npos) return invalid("ends inside " + std::string(open));
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
      if (c == '=' && kAttributesMax < ++attributes_) return invalid("too many attributes");
      if (c == '<') return invalid("'<' inside a tag");
      if (c == '>') break;
    }
    if (i == rest_.size()) return invalid("ends inside a tag");
    const bool empty = rest_[i - 1] == '/';
    if (closing) {
      if (depth_ == 0) return invalid("an end tag without its start");
      --depth_;
    } else if (!empty && kDepthMax < ++depth_) {
      return invalid("nested deeper than " + std::to_string(kDepthMax));
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
    if (!why_.empty()) return invalid(why_);
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
    if (root) return invalid("a second root <" + printable(node.name(), 40) + ">");
    root = node;
  }
  const std::string_view name = root.name();
  if (name != "testsuites" && name != "testsuite")
    return invalid("the root is <" + printable(name, 40) + ">, not <testsuites> or <testsuite>");
  return root;
}

}  // namespace

Result<TestResults> parse_junit(std::string_view bytes) {
  if (kResultFileBytes < bytes.size())
    return invalid(std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(kResultFileBytes) + " are read");
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  if (bytes.find('\0') != std::string_view::npos) return invalid("a NUL byte");
  if (!is_utf8(bytes)) return invalid("not UTF-8");
  PROCTOR_CHECK_OK(Scan(bytes).run());
  // The encoding is fixed: what the scan saw is what the parser reads.
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(bytes.data(), bytes.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return invalid(std::string(parsed.description()) + " at byte " + std::to_string(parsed.offset));
  PROCTOR_TRY(pugi::xml_node root, root_of(document));
  Collector collector;
  if (collector.for_each(root)) root.traverse(collector);
  return collector.take();
}

}  // namespace proctor
