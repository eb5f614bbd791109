#include "common/base/apply.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

const std::string kHead = "diff --git a/f b/f\n--- a/f\n+++ b/f\n";
const std::string kBody = " a\n-b\n+c\n+d\n e\n";

std::string mended(const std::string& diff, std::size_t mends) {
  std::vector<std::string> said;
  std::string out = mended_patch(diff, said);
  CHECK(said.size() == mends);
  return out;
}

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("a patch gets its last newline and hunk headers that count their lines") {
    const std::string right = kHead + "@@ -1,3 +1,4 @@ def f()\n" + kBody;
    CHECK(mended(right, 0) == right);
    CHECK(mended(right.substr(0, right.size() - 1), 1) == right);
    for (const char* wrong :
         {"@@ -1,9 +1,9 @@", "@@ -1 +1 @@", "@@ -1,2 +1,2 @@", "@@ -1,0 +1,0 @@"})
      for (const std::string& after :
           {std::string(), kHead + "@@ -7 +8 @@\n-x\n+y\n", std::string("-- \n2.39.5\n\n"),
            std::string("--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n"), std::string("\n```\n")}) {
        CAPTURE(wrong);
        CAPTURE(after);
        CHECK(mended(kHead + wrong + " def f()\n" + kBody + after, 1) == right + after);
      }
    CHECK(mended(kHead + "@@ -1,9 +1,9 @@\n a\n\n-b\n+c", 2) ==
          kHead + "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n");
  }

  TEST_CASE("a patch that git reads as it was written stays as it is") {
    for (const std::string& diff :
         {kHead +
              "@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
          // A removed "-- x" and an added "++ y" look like the names of a file.
          kHead + "@@ -1,2 +1,2 @@\n--- x\n+++ y\n a\n", kHead + "@@ -1,2 +0,0 @@\n-a\n-\n",
          kHead + "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n",
          kHead + "@@ -1 +1 @@\n-a\n+@@ -1,5 +1,5 @@\n", kHead + "@@ -1,2 +1,2 @@\n-a\n+b\n\n",
          std::string("@@ -x +1 @@\n"), std::string("\n"), std::string()}) {
      CAPTURE(diff);
      CHECK(mended(diff, 0) == diff);
    }
  }
}
