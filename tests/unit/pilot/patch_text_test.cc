#include "common/pilot/variants.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

constexpr const char* kTwoHunks =
    "diff --git a/lib/a.c b/lib/a.c\n"
    "index 1111111..2222222 100644\n"
    "--- a/lib/a.c\n"
    "+++ b/lib/a.c\n"
    "@@ -1,3 +1,4 @@\n"
    " one\n"
    "+two\n"
    " three\n"
    " four\n"
    "@@ -10,3 +11,3 @@ int f()\n"
    " ten\n"
    "-eleven\n"
    "+eleven!\n"
    " twelve\n";

}  // namespace

TEST_SUITE("patch text") {
  TEST_CASE("a diff comes out as it went in, but for counts of one") {
    const PatchText patch = parse_patch(kTwoHunks);
    REQUIRE(patch.size() == 1);
    CHECK(patch[0].path == "lib/a.c");
    REQUIRE(patch[0].hunks.size() == 2);
    CHECK(patch[0].hunks[1].section == " int f()");
    CHECK(render_patch(patch) == kTwoHunks);
    CHECK(render_patch(parse_patch("--- calc.sh\n+++ calc.sh\n@@ -1 +1 @@\n-a\n+b\n")) ==
          "--- calc.sh\n+++ calc.sh\n@@ -1,1 +1,1 @@\n-a\n+b\n");
  }

  TEST_CASE("the second hunk moves when the first is not there") {
    PatchText patch = parse_patch(kTwoHunks);
    patch[0].hunks.erase(patch[0].hunks.begin());
    CHECK(render_patch(patch).find("@@ -10,3 +10,3 @@ int f()") != std::string::npos);
  }

  TEST_CASE("what is left without a change is no part of a diff") {
    PatchText patch = parse_patch(kTwoHunks);
    patch[0].hunks[0].lines = {" one", " three", " four"};
    CHECK(render_patch(patch).find("@@ -1,3") == std::string::npos);
    patch[0].hunks.pop_back();
    CHECK(render_patch(patch).empty());
    // A new file of which no line is left does not come as an empty one.
    PatchText fresh = parse_patch(
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n");
    CHECK(render_patch(fresh).find("@@ -0,0 +1,1 @@") != std::string::npos);
    fresh[0].hunks[0].lines.clear();
    CHECK(render_patch(fresh).empty());
  }

  TEST_CASE("renames, modes and binary parts stand without a hunk") {
    const std::string text =
        "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n"
        "diff --git a/tool b/tool\nold mode 100644\nnew mode 100755\n"
        "diff --git a/pic b/pic\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n\n";
    const PatchText patch = parse_patch(text);
    REQUIRE(patch.size() == 3);
    CHECK(patch[0].path == "new");
    CHECK(patch[1].path == "tool");
    CHECK(patch[2].path == "pic");
    CHECK(render_patch(patch) == text);
  }

  TEST_CASE("a file that goes away has the path it had") {
    const PatchText patch = parse_patch(
        "diff --git a/t/x.t b/t/x.t\ndeleted file mode 100644\n--- a/t/x.t\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n");
    REQUIRE(patch.size() == 1);
    CHECK(patch[0].path == "t/x.t");
    CHECK(render_patch(patch).find("@@ -1,1 +0,0 @@") != std::string::npos);
  }

  TEST_CASE("lines that look like headers inside a hunk are lines") {
    const PatchText patch = parse_patch(
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old remark\n+++ new remark\n same\n");
    REQUIRE(patch.size() == 1);
    REQUIRE(patch[0].hunks.size() == 1);
    CHECK(patch[0].hunks[0].lines.size() == 3);
  }

  TEST_CASE("what mail puts around a diff and a missing line feed are read") {
    const PatchText patch = parse_patch(
        "From 1 Mon\nSubject: repair\n\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n"
        "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"
        "-- \n2.39\n");
    REQUIRE(patch.size() == 1);
    REQUIRE(patch[0].hunks.size() == 1);
    CHECK(patch[0].hunks[0].lines == std::vector<std::string>{"-x", "\\ No newline at end of file",
                                                              "+y",
                                                              "\\ No newline at end of file"});
  }

  TEST_CASE("a path with unusual bytes is read as git writes it") {
    const PatchText patch = parse_patch(
        "diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\n--- \"a/\\303\\244 b\"\n"
        "+++ \"b/\\303\\244 b\"\n@@ -1 +1 @@\n-x\n+y\n");
    REQUIRE(patch.size() == 1);
    CHECK(patch[0].path == "\303\244 b");
  }

  TEST_CASE("every cut of a diff is read without harm") {
    const std::string text = kTwoHunks;
    for (std::size_t n = 0; n <= text.size(); ++n)
      CHECK(render_patch(parse_patch(text.substr(0, n))).size() <= text.size() + 64);
  }

  TEST_CASE("a line of a hunk knows its number in the new file") {
    const PatchText patch = parse_patch(kTwoHunks);
    CHECK(new_line(patch[0], 0, 1) == 2);
    CHECK(new_line(patch[0], 1, 2) == 12);
  }
}
