#include "coordinator/cvdp/dataset/transform.h"

#include <doctest/doctest.h>

#include "coordinator/cvdp/pycompat/python_diff.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
std::string applied(std::string_view text, std::string_view patch) {
  const auto a = apply_patch(text, patch);
  return a.ok() ? a->text : "! " + a.error().detail;
}
std::string diff(std::string_view a, std::string_view b) {
  const auto d = create_patch(a, b, "f");
  REQUIRE(d.ok());
  return *d;
}
std::string numbers(int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += std::to_string(i) + "\n";
  return out;
}
}  // namespace

TEST_SUITE("cvdp") {
  TEST_CASE("lines end where Python's splitlines ends them") {
    const auto lines = split_lines(
        "a\r\nb\rc\vd\fe\x1c"
        "f\xC2\x85g\xE2\x80\xA8h\xE2\x80\xA9i\xC3\x85\n");
    CHECK(lines.size() == 9);
    CHECK(lines.back() == "i\xC3\x85");
    CHECK(split_lines("").empty());
    CHECK(split_lines("\n\n").size() == 2);
  }

  // Oracle: difflib of CPython 3.11.
  TEST_CASE("a patch of changed lines has three lines of context and no final newline") {
    CHECK(diff("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\nfour\n5\n6\n7\n8\n9\nten") ==
          "--- a/f\n+++ b/f\n@@ -2,9 +2,10 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n 8\n 9\n+ten");
    CHECK(
        diff(numbers(20), "x\n" + numbers(19)) ==
        "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+x\n 0\n 1\n 2\n@@ -17,4 +18,3 @@\n 16\n 17\n 18\n-19");
    CHECK(diff("a\n", "a") == "");
    CHECK(diff("a\n", "") == "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a");
    CHECK(diff("", "x\ny\n") == "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+x\n+y");
  }

  TEST_CASE("a line that is everywhere is not looked for from 200 lines on") {
    std::string a;
    std::string b;
    for (int i = 0; i < 100; ++i) {
      a += "end\nline " + std::to_string(i) + "\n";
      b += "line " + std::to_string(99 - i) + "\nend\n";
    }
    const auto blocks = matching_blocks(split_lines(a), split_lines(b));
    REQUIRE(blocks.ok());
    // difflib.SequenceMatcher(None, a, b).get_matching_blocks()
    CHECK(*blocks == std::vector<MatchingBlock>{{0, 197, 3}, {200, 200, 0}});
  }

  TEST_CASE("work without end is refused") {
    std::string a;
    for (int i = 0; i < 400; ++i) a += std::to_string(i % 100) + "\n";
    CHECK(matching_blocks(split_lines(a), split_lines(a), 100).error().code == Errc::kExhausted);
  }

  TEST_CASE("a patch is applied as upstream applies it and its mistakes are kept") {
    CHECK(applied("a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n") == "a\nB\nc\n");
    CHECK(applied("", "@@ -0,0 +1,1 @@\n+x") == "x\n");
    CHECK(applied("1\n2\n", "@@ -1,2 +1,2 @@\n wrong\n-wrong\n+Y\n") == "1\nY\n");
    CHECK(applied("a\n-- c\n", "@@ -1,2 +1,1 @@\n a\n--- c\n") == "a\n-- c\n");
    CHECK(applied("a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n") == "b\n");
  }

  TEST_CASE("hunks that lie are warned of or refused") {
    const auto past = apply_patch("a\n", "@@ -9,0 +9,1 @@\n+z\n");
    REQUIRE(past.ok());
    CHECK(past->text == "a\n");
    CHECK(past->warnings == std::vector<std::string>{
                                "Warning: Cannot insert line at index 8, out of range (max: 2)"});
    CHECK(applied("a\n", "@@ nonsense @@\n+z\n") == "! \"@@ nonsense @@\" is no hunk header");
    CHECK(applied("a\n", "@\n") == "! \"@\" is no hunk header");
    CHECK(applied("a\n", "@@ -1 +99999999999999999999 @@\n+z\n").starts_with("! "));
    CHECK(applied("a\n", "@@ -1 +999999999999 @@\n+z\n") == "a\n");
  }

  TEST_CASE("upstream's own results of applying") {
    if (!have_shared_data("upstream's own results of applying")) return;
    std::size_t cases = 0;
    const Value all = units("diff_apply");
    for (const Value& c : *all.array()) {
      CAPTURE(text_in(c, "case"));
      const auto a = apply_patch(text_in(c, "text"), text_in(c, "patch"));
      REQUIRE(a.ok());
      CHECK(a->text == text_in(c, "result"));
      std::string said;
      for (const std::string& w : a->warnings) said += w + "\n";
      CHECK(said == text_in(c, "stdout"));
      ++cases;
    }
    CHECK(cases == 16);
  }

  TEST_CASE("upstream's own patches") {
    if (!have_shared_data("upstream's own patches")) return;
    std::size_t cases = 0;
    const Value all = units("create_patch");
    for (const Value& c : *all.array()) {
      const std::string* before = in(c, "orig").string();
      const auto p = create_patch(before == nullptr ? "" : *before, text_in(c, "mod"), "rtl/f.sv");
      REQUIRE(p.ok());
      CHECK(*p == text_in(c, "patch"));
      ++cases;
    }
    CHECK(cases == 7);
  }

  TEST_CASE("what an agent changed is told in upstream's form") {
    const auto told = [](std::vector<AgentChange> changes) {
      const auto text = agent_changes(changes);
      return text.ok() ? *text : "! " + text.error().detail;
    };
    CHECK(told({}) == "");
    CHECK(told({{"rtl/new.sv", std::nullopt, "a\nb"},
                {"docs/gone.md", "x\n", std::nullopt},
                {"src/test.py", "1\n", "2\n"},
                {"docs/empty", std::nullopt, ""}}) ==
          "--- /dev/null\n+++ b/docs/empty\n@@ -0,0 +1,0 @@\n\n"
          "--- a/docs/gone.md\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n\n"
          "--- /dev/null\n+++ b/rtl/new.sv\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    CHECK(told({{"verif/t", "1\n2\n3\n4\n5\n", "1\n2\nx\n4\n5\n"}}) ==
          "--- a/verif/t\n+++ b/verif/t\n@@ -1,5 +1,5 @@\n 1\n 2\n-3\n+x\n 4\n 5\n");
    // Line ends alone are no change, a missing last one has no lines to show.
    CHECK(told({{"rtl/a", "a\r\nb\r\n", "a\nb\n"}}) == "");
    CHECK(told({{"rtl/a", "a\n", "a"}}) == "");
    CHECK(told({{"rtl/a", "a\n", "a"}, {"rtl/b", std::nullopt, "b\n"}}) ==
          "\n--- /dev/null\n+++ b/rtl/b\n@@ -0,0 +1,1 @@\n+b\n");
    // Bytes that are no text, as Python replaces them.
    CHECK(text_of_bytes("a\xFF\xE2\x82z\xED\xA0\x80\xC3\xA9\r\rb\xF0\x9F") ==
          "a\uFFFD\uFFFDz\uFFFD\uFFFD\uFFFD\u00E9\n\nb\uFFFD");
  }
}
