#include <doctest/doctest.h>

#include "worker/tools/text_lines.h"

namespace proctor {
namespace {

DiffFile one_file(std::string_view diff) {
  auto files = read_unified_diff(diff);
  if (!files.ok()) FAIL(files.error().detail);
  REQUIRE(files->size() == 1);
  return files->front();
}
std::string refused(std::string_view diff) {
  const auto files = read_unified_diff(diff);
  REQUIRE_FALSE(files.ok());
  return files.error().detail;
}

constexpr std::string_view kOld = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
constexpr std::string_view kDiff =
    "diff --git a/src/n.txt b/src/n.txt\n"
    "index 1111111..2222222 100644\n"
    "--- a/src/n.txt\n"
    "+++ b/src/n.txt\n"
    "@@ -1,3 +1,3 @@ a heading\n"
    " one\n"
    "-two\n"
    "+2\n"
    " three\n"
    "@@ -6,2 +6,3 @@\n"
    " six\n"
    "+six and a half\n"
    " seven\n";

}  // namespace

TEST_SUITE("unified diff") {
  TEST_CASE("hunks are applied at their places") {
    const DiffFile file = one_file(kDiff);
    CHECK(file.from == "src/n.txt");
    CHECK(file.to == "src/n.txt");
    CHECK(file.hunks.size() == 2);
    CHECK(apply_hunks(file, kOld).value() ==
          "one\n2\nthree\nfour\nfive\nsix\nsix and a half\nseven\n");
  }

  TEST_CASE("a hunk whose numbers are wrong stands at the nearest place that it fits") {
    const std::string moved = "zero\nzero\n" + std::string(kOld);
    CHECK(apply_hunks(one_file(kDiff), moved).value() ==
          "zero\nzero\none\n2\nthree\nfour\nfive\nsix\nsix and a half\nseven\n");
    // Of two places the nearer one, and never before the hunk that came first.
    const DiffFile near = one_file("--- a/f\n+++ b/f\n@@ -5 +5 @@\n-x\n+y\n");
    CHECK(apply_hunks(near, "x\n-\n-\n-\n-\nx\n").value() == "x\n-\n-\n-\n-\ny\n");
    const DiffFile twice = one_file("--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n@@ -9 +9 @@\n-x\n+z\n");
    CHECK(apply_hunks(twice, "x\n-\nx\nx\n").value() == "x\n-\ny\nz\n");
    CHECK_FALSE(apply_hunks(twice, "x\n-\nx\n").ok());
  }

  TEST_CASE("a hunk that does not fit is named with what is there") {
    const auto out = apply_hunks(one_file(kDiff), "one\nTWO\nthree\nsix\nseven\n");
    REQUIRE_FALSE(out.ok());
    CHECK(out.error().detail ==
          "hunk 1 (line 5 of the patch) does not fit src/n.txt: line 2 should be \"two\" and is "
          "\"TWO\"");
    CHECK(apply_hunks(one_file(kDiff), "one\n").error().detail.find("is not there") !=
          std::string::npos);
  }

  TEST_CASE("a file is made, removed, and has an end or none") {
    const DiffFile made = one_file(
        "diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run.sh\n"
        "@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n\\ No newline at end of file\n");
    CHECK(made.from.empty());
    CHECK(made.path() == "run.sh");
    CHECK(made.executable);
    CHECK(apply_hunks(made, "").value() == "#!/bin/sh\ntrue");
    const DiffFile gone = one_file("--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n");
    CHECK(gone.to.empty());
    CHECK(gone.path() == "f");
    CHECK(apply_hunks(gone, "a\nb\n").value().empty());
    CHECK_FALSE(apply_hunks(gone, "a\nb\nc\n").ok());
    const DiffFile end =
        one_file("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
    CHECK(apply_hunks(end, "a").value() == "a\n");
    CHECK_FALSE(apply_hunks(end, "a\n").ok());
    const DiffFile inserted = one_file("--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+new\n");
    CHECK(apply_hunks(inserted, "a\nb\n").value() == "a\nnew\nb\n");
    CHECK_FALSE(apply_hunks(inserted, "").ok());
  }

  TEST_CASE("names have the prefixes of a diff on both sides or on none") {
    CHECK(one_file("--- src/f\n+++ src/f\n@@ -1 +1 @@\n-a\n+b\n").path() == "src/f");
    CHECK(one_file("--- a/f\t2026-11-26\n+++ b/f\t2026-11-26\n@@ -1 +1 @@\n-a\n+b\n").path() ==
          "f");
    CHECK(one_file("--- a/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n").path() == "a/f");
    CHECK(one_file("--- /dev/null\n+++ new/f\n@@ -0,0 +1 @@\n+b\n").path() == "new/f");
    // An empty line of context, as editors leave it.
    CHECK(apply_hunks(one_file("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\n+b\n\n c\n"), "a\n\nc\n")
              .value() == "b\n\nc\n");
  }

  TEST_CASE("what is no diff, or more than one, is refused by its line") {
    struct Row {
      std::string_view diff, why;
    };
    const Row rows[] = {
        {"", "no unified diff"},
        {"hello\n", "no unified diff"},
        {"--- a/f\n", "line 2 of the patch: +++ must follow"},
        {"--- a/f\n+++ b/f\n", "no hunk of the file"},
        {"@@ -1 +1 @@\n-a\n+b\n", "a hunk of no file"},
        {"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\n+b\n", "promises other numbers"},
        {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n-c\n+b\n", "promises other numbers"},
        {"--- a/f\n+++ b/f\n@@ -x +1 @@\n-a\n", "a hunk is @@"},
        {"--- a/f\n+++ b/f\n@@ -99999999999999999999 +1 @@\n-a\n", "a hunk is @@"},
        {"--- a/f\n+++ b/f\n@@ -0,0 +0,0 @@\n", "a hunk without lines"},
        {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n\\ No newline\n-a\n+b\n", "speaks of no line"},
        {"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "leaves the workspace"},
        {"--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n", "absolute"},
        {"--- a/.git/config\n+++ b/.git/config\n@@ -1 +1 @@\n-a\n+b\n", "in .git"},
        {"--- \"a/x\"\n+++ \"b/x\"\n@@ -1 +1 @@\n-a\n+b\n", "a path in quotes"},
        {"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "no file on either side"},
        {"--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "a rename is not taken"},
        {"diff --git a/f b/g\nrename from f\nrename to g\n", "a rename"},
        {"diff --git a/f b/f\nGIT binary patch\n", "a binary patch"},
        {"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "a change of a mode"},
        {"diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n", "a link"},
        {"diff --git a/f b/f\nnew file mode 100644\nindex 0..e69de29\n", "an empty file"},
        {"diff --git a/f b/f\ndeleted file mode 100644\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n"
         "@@ -1 +1 @@\n-a\n+b\n",
         "an empty file"},
        {"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n",
         "for the second time"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.diff);
      const std::string why = refused(row.diff);
      CAPTURE(why);
      CHECK(why.find(row.why) != std::string::npos);
    }
  }

  TEST_CASE("every cut of a diff is refused or is a diff, and none of them takes long") {
    for (std::size_t n = 0; n < kDiff.size(); ++n) {
      const auto files = read_unified_diff(kDiff.substr(0, n));
      if (!files.ok()) continue;
      for (const DiffFile& file : *files) (void)apply_hunks(file, kOld).ok();
    }
    std::string hunks = "--- a/f\n+++ b/f\n", old;
    for (int i = 0; i < 1'500; ++i) hunks += "@@ -1,2 +1,2 @@\n x\n-x\n+y\n";
    for (int i = 0; i < 200'000; ++i) old += "x\n";
    CHECK(apply_hunks(one_file(hunks), old).ok());
    std::string far = "--- a/f\n+++ b/f\n";
    for (int i = 0; i < 1'500; ++i) far += "@@ -1,3 +1,2 @@\n x\n x\n-z\n";
    CHECK_FALSE(apply_hunks(one_file(far), old).ok());
  }
}

}  // namespace proctor
