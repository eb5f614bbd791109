#include "common/contract/document.h"

#include <doctest/doctest.h>

namespace proctor {
namespace {

std::string refusal(std::string_view text, Format format = Format::kYaml) {
  Diagnostics out;
  static_cast<void>(read_document(text, format, "f", out));
  return out.text();
}

std::string repeated(std::string_view part, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += part;
  return out;
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a document keeps the place of every key and value") {
    for (const Format format : {Format::kYaml, Format::kJson}) {
      Diagnostics out;
      const auto doc =
          read_document("{\"a\": 5.00,\n  \"b\": [true, \"x\\u00e9\"]}", format, "f", out);
      REQUIRE(doc);
      CHECK(out.empty());
      const Node& root = doc->root;
      REQUIRE(root.entries.size() == 2);
      CHECK(root.entries[0].at == Mark{1, 2});
      CHECK(root.entries[0].value.text == "5.00");
      CHECK_FALSE(root.entries[0].value.quoted);
      CHECK(root.entries[1].at == Mark{2, 3});
      CHECK(root.entries[1].value.items[1].text == "x\xC3\xA9");
      CHECK(root.entries[1].value.items[1].quoted);
      CHECK(root.entries[1].value.items[1].at == Mark{2, 15});
    }
  }

  TEST_CASE("a block of YAML is a quoted text at its own place") {
    Diagnostics out;
    const auto doc = read_document("a:\n  b: |\n    x\n    y\n  c: ~\n", Format::kYaml, "f", out);
    REQUIRE(doc);
    const Node* a = doc->root.find("a");
    REQUIRE(a != nullptr);
    CHECK(a->find("b")->text == "x\ny\n");
    CHECK(a->find("b")->quoted);
    CHECK(a->find("c")->kind == Node::Kind::kNull);
    CHECK(a->find("d") == nullptr);
  }

  TEST_CASE("YAML that could hide something is refused with its place") {
    struct Row {
      const char* what;
      std::string text;
      const char* expected;
    };
    const Row rows[] = {
        {"duplicate key", "a: 1\nb:\n  c: 1\n  c: 2\n",
         "f:4:3: b.c: found the key \"c\" a second time, expected each key once\n"},
        {"two duplicates", "a: 1\na: 2\nb: 1\nb: 1\n",
         "f:2:1: a: found the key \"a\" a second time, expected each key once\n"
         "f:4:1: b: found the key \"b\" a second time, expected each key once\n"},
        {"duplicate in a list", "l:\n- x: 1\n- y: 1\n  y: 2\n",
         "f:4:3: l[1].y: found the key \"y\" a second time, expected each key once\n"},
        {"anchor", "a: &x 1\n",
         "f:1:4: document: found an anchor, expected the value alone: anchors and aliases are not "
         "read\n"},
        {"tag", "a: !!python/object x\n",
         "f:1:4: document: found the tag tag:yaml.org,2002:python/object, expected a value without "
         "tag\n"},
        {"second document", "a: 1\n---\nb: 1\n",
         "f:2:1: document: found a second document, expected one document in a file\n"},
        {"list as key", "? [a]\n: 1\n",
         "f:1:3: document: found a list or mapping as key, expected a text as key\n"},
        {"null key", "~: 1\n", "f:1:1: document: found an empty key, expected a text as key\n"},
        {"NUL", std::string("a: b\nc: \0d\n", 11),
         "f:2:4: document: found the byte \\x00, expected text without control characters\n"},
        {"escaped NUL", "a: \"x\\0y\"\n",
         "f:1:4: document: found a NUL character, expected text without NUL\n"},
        {"the byte at which yaml-cpp stops", "a: 1\n\x04\nb: 2\n",
         "f:2:1: document: found the byte \\x04, expected text without control characters\n"},
        {"not UTF-8", "a: 1\nb: \xFF\n",
         "f:2:1: document: found bytes that are not UTF-8, expected UTF-8 text\n"},
        {"too deep", repeated("[", 33) + repeated("]", 33),
         "f:1:33: document: found more than 32 levels of nesting, expected fewer\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CHECK(refusal(row.text) == row.expected);
    }
  }

  TEST_CASE("JSON that could hide something is refused with its place") {
    struct Row {
      const char* what;
      std::string text;
      const char* expected;
    };
    const Row rows[] = {
        {"duplicate key", "{\"a\": 1,\n\"a\": 2}",
         "f:2:1: a: found the key \"a\" a second time, expected each key once\n"},
        {"trailing bytes", "{} x", "f:1:4: document: found \"x\", expected the end of the file\n"},
        {"trailing comma", "[1,]", "f:1:4: document: found \"]\", expected a JSON value\n"},
        {"comment", "// x\n{}", "f:1:1: document: found \"/\", expected a JSON value\n"},
        {"leading zero", "[01]", "f:1:2: document: found \"0\", expected a JSON value\n"},
        {"not a number", "[NaN]", "f:1:2: document: found \"N\", expected a JSON value\n"},
        {"lone surrogate", "[\"\\ud800\"]",
         "f:1:3: document: found a broken escape, expected a JSON escape\n"},
        {"escaped NUL", "[\"\\u0000\"]",
         "f:1:2: document: found a NUL character, expected text without NUL\n"},
        {"open text", "[\"a\n\"]",
         "f:1:4: document: found \"\\x0a\", expected \" at the end of the text\n"},
        {"empty", "", "f:1:1: document: found the end of the file, expected a JSON value\n"},
        {"too deep", repeated("[", 33) + repeated("]", 33),
         "f:1:33: document: found more than 32 levels of nesting, expected fewer\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CHECK(refusal(row.text, Format::kJson) == row.expected);
    }
    Diagnostics out;
    const auto doc = read_document("[\"\\ud83d\\ude00\\/\"]", Format::kJson, "f", out);
    REQUIRE(doc);
    CHECK(doc->root.items[0].text == "\xF0\x9F\x98\x80/");
  }

  TEST_CASE("huge and deep texts are refused without much work") {
    CHECK(refusal(std::string(limits::kConfigFileBytes + 1, 'a')).find("expected at most") !=
          std::string::npos);
    constexpr std::size_t kDeep = 400'000;
    for (const char* part : {"[", "{", "{a: ", "- ", "[ \n", "? ", "[a,", "{a: [", "a: {"}) {
      CAPTURE(part);
      const std::string deep = repeated(part, kDeep / std::string_view(part).size());
      CHECK_FALSE(refusal(deep).empty());
      CHECK_FALSE(refusal(deep, Format::kJson).empty());
    }
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    CHECK(refusal(lines).find("levels of nesting") != std::string::npos);
    CHECK(refusal("[" + repeated("1,", 100'000) + "1]").find("100000 values") != std::string::npos);
  }

  TEST_CASE("every truncation of a document is read or refused") {
    const std::string yaml = "a: [1, {b: \"c\\n\"}]\nd: |\n  e\nf: {g: ~}\n";
    const std::string json = "{\"a\": [1.5e3, {\"b\": \"\\u00e9\\n\"}], \"c\": null, \"d\": true}";
    for (std::size_t n = 0; n < json.size(); ++n) {
      CHECK_FALSE(refusal(json.substr(0, n), Format::kJson).empty());
      static_cast<void>(refusal(yaml.substr(0, n)));
    }
    CHECK(refusal(json, Format::kJson).empty());
    CHECK(refusal(yaml).empty());
  }
}

}  // namespace proctor
