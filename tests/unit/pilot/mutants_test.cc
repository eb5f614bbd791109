#include "common/pilot/variants.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace proctor;

namespace {

constexpr const char* kPatch =
    "diff --git a/a.py b/a.py\n"
    "--- a/a.py\n"
    "+++ b/a.py\n"
    "@@ -1,2 +1,3 @@\n"
    " def f(x):\n"
    "-    return x\n"
    "+    if x < 10 and ready:\n"
    "+        return x + 1\n"
    "@@ -20,1 +21,2 @@\n"
    " end = 1\n"
    "+flag = true\n"
    "diff --git a/b.py b/b.py\n"
    "--- a/b.py\n"
    "+++ b/b.py\n"
    "@@ -1,1 +1,1 @@\n"
    "-y = 1\n"
    "+y = 2\n";

std::vector<std::string> whats(const std::vector<Mutant>& mutants) {
  std::vector<std::string> out;
  out.reserve(mutants.size());
  for (const Mutant& m : mutants) out.push_back(m.what);
  return out;
}

std::string altered(std::string_view line) {
  std::string out;
  for (const AlteredLine& one : altered_lines(line)) out += one.line + "|";
  return out;
}

}  // namespace

TEST_SUITE("mutants") {
  TEST_CASE("all there are, in order, without doubles") {
    const std::vector<Mutant> all = mutants_of(parse_patch(kPatch), 1, 1'000);
    CHECK(whats(all) == std::vector<std::string>{
                            "a.py:1: this hunk is left out",
                            "a.py:21: this hunk is left out",
                            // Of b.py: the file's only hunk.
                            "b.py:1: this hunk is left out",
                            "a.py:1: nothing but this hunk",
                            "a.py:21: nothing but this hunk",
                            "b.py:1: nothing but this hunk",
                            "a.py:2: the line is left out",
                            "a.py:3: the line is left out",
                            "b.py:1: the line is left out",
                            "a.py:2: exchanged with the line after it",
                            "a.py:2: 10 becomes 11",
                            "a.py:2: < becomes <=",
                            "a.py:2: and becomes or",
                            "a.py:3: 1 becomes 2",
                            "a.py:22: true becomes false",
                            "b.py:1: 2 becomes 3",
                        });
    CHECK(all.front().name == "mutant-1");
    CHECK(all.back().name == "mutant-" + std::to_string(all.size()));
  }

  TEST_CASE("a seed chooses, and always the same") {
    const PatchText patch = parse_patch(kPatch);
    const std::vector<Mutant> some = mutants_of(patch, 20260307, 5);
    CHECK(some.size() == 5);
    CHECK(whats(some) == whats(mutants_of(patch, 20260307, 5)));
    const std::vector<std::string> all = whats(mutants_of(patch, 1, 1'000));
    for (const Mutant& m : some) CHECK(std::ranges::find(all, m.what) != all.end());
    CHECK(mutants_of(patch, 1, 0).empty());
  }

  TEST_CASE("none is the patch, nothing, or another") {
    const PatchText patch = parse_patch(kPatch);
    std::set<std::string> seen{render_patch(patch), ""};
    for (const Mutant& m : mutants_of(patch, 3, 1'000)) {
      CHECK_MESSAGE(seen.insert(m.patch).second, m.name);
      CHECK(render_patch(parse_patch(m.patch)) == m.patch);
    }
    CHECK(mutants_of({}, 1, 20).empty());
    // One hunk of one line: without it nothing is left, so that is no mutant.
    const auto one = mutants_of(parse_patch("--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n+b\n"), 1, 20);
    CHECK(one.empty());
  }

  TEST_CASE("numbers, comparisons and words change, and what only looks like one does not") {
    CHECK(altered("a[9] = 3;") == "a[10] = 3;|");
    CHECK(altered("x86 0.5 1.5 v2") == "");
    CHECK(altered("n = 99") == "n = 100|");
    CHECK(altered("a <= b") == "a < b|");
    CHECK(altered("a >= b") == "a > b|");
    CHECK(altered("a == b") == "a != b|");
    CHECK(altered("a != b") == "a == b|");
    CHECK(altered("a > b") == "a >= b|");
    CHECK(altered("p->q = (x) => y << 1;") == "p->q = (x) => y << 2;|");
    CHECK(altered("a <=> b; c < d") == "a <=> b; c <= d|");
    CHECK(altered("true or false") == "false or false|true and false|");
    CHECK(altered("android = untrue") == "");
    CHECK(altered("a && b || c") == "a || b || c|");
  }

  TEST_CASE("a last line without a line feed goes with its remark") {
    const auto all = mutants_of(
        parse_patch(
            "--- a/x\n+++ b/x\n@@ -1,1 +1,3 @@\n a\n+b\n+c\n\\ No newline at end of file\n"),
        1, 20);
    const auto dropped = std::ranges::find(all, "x:3: the line is left out", &Mutant::what);
    REQUIRE(dropped != all.end());
    CHECK(dropped->patch == "--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n+b\n");
  }
}
