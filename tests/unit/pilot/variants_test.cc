#include "common/pilot/variants.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

std::string change(const std::string& path, const std::string& from, const std::string& to) {
  return "diff --git a/" + path + " b/" + path + "\n--- a/" + path + "\n+++ b/" + path +
         "\n@@ -1,1 +1,1 @@\n-" + from + "\n+" + to + "\n";
}

Contract contract_with(const std::string& reference) {
  Contract c;
  c.id = "t";
  c.reference_patch = "fix.patch";
  c.files = {{"fix.patch", 0644, reference}};
  return c;
}

std::vector<std::string> names(const std::vector<Variant>& variants) {
  std::vector<std::string> out;
  out.reserve(variants.size());
  for (const Variant& v : variants) out.push_back(v.name);
  return out;
}

}  // namespace

TEST_SUITE("variants") {
  TEST_CASE("tests are what is protected, placed by acceptance, or called a test") {
    Contract c;
    c.policy.protected_ = {"golden/**"};
    c.acceptance_files = {{"a", "check/run.sh"}};
    for (const char* path : {"golden/a", "check/run.sh", "tests/a.py", "src/testing/b.c",
                             "a/x_test.go", "test_x.py", "t/ini.t", "src/FooTest.java"})
      CHECK_MESSAGE(is_test_path(c, path), path);
    for (const char* path :
         {"src/a.c", "check/other.sh", "testimonial.py", "latest/a.c", "contest.c"})
      CHECK_MESSAGE(!is_test_path(c, path), path);
  }

  TEST_CASE("a reference with tests in it is tried in both halves") {
    const std::string source = change("src/a.c", "x = 1;", "x = 2;");
    const std::string test = change("tests/a.sh", "old", "new");
    const Contract c = contract_with(test + source);
    const std::vector<Variant> all = variants_of(c, {});
    CHECK(names(all) == std::vector<std::string>{"reference", "noop", "empty", "junk",
                                                 "shadowed_runner", "tests_only", "source_only",
                                                 "early_exit", "mutant-1", "mutant-2"});
    CHECK(all[0].patch == test + source);
    CHECK(all[1].patch.empty());
    CHECK(all[2].patch.empty());
    CHECK(all[5].patch == test);
    CHECK(all[6].patch == source);
    CHECK(all[7].patch ==
          "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -1,1 +1,2 @@\n"
          "+__builtin__exit(0);\n x = 1;\n");
    CHECK(tests_in_reference(c) == std::vector<std::string>{"tests/a.sh"});
  }

  TEST_CASE("without tests in it there are no halves, without a reference nothing to change") {
    Contract c = contract_with(change("src/a.c", "x", "y"));
    CHECK(names(variants_of(c, {})) == std::vector<std::string>{"reference", "noop", "empty",
                                                                "junk", "shadowed_runner",
                                                                "early_exit", "mutant-1"});
    c.reference_patch.clear();
    CHECK(names(variants_of(c, {})) ==
          std::vector<std::string>{"noop", "empty", "junk", "shadowed_runner"});
  }

  TEST_CASE("no junk where every new file breaks a rule") {
    Contract c = contract_with(change("src/a.c", "x", "y"));
    c.policy.writable = {"src/**"};
    CHECK(names(variants_of(c, {})) ==
          std::vector<std::string>{"reference", "noop", "empty", "early_exit", "mutant-1"});
  }

  TEST_CASE("an early exit has the place and the depth of the repair, and nothing else of it") {
    const Contract c = contract_with(
        "--- a/gone.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"
        "--- a/data.txt\n+++ b/data.txt\n@@ -1,1 +1,1 @@\n-x\n+y\n"
        "--- a/w.py\n+++ b/w.py\n@@ -2,3 +2,3 @@\n def total(cents):\n"
        "-    return floor(cents)\n\\ No newline at end of file\n"
        "+    return round(cents)\n\\ No newline at end of file\n");
    const std::vector<Variant> all = variants_of(c, {.mutants = 0});
    REQUIRE(all.back().name == "early_exit");
    CHECK(all.back().patch ==
          "--- a/w.py\n+++ b/w.py\n@@ -2,2 +2,3 @@\n def total(cents):\n"
          "+    __import__('os')._exit(0)\n     return floor(cents)\n"
          "\\ No newline at end of file\n");
  }
}
