// Lines of a build's output that say, in the words of a known tool, why it failed.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/score/taxonomy.h"

using namespace proctor;

namespace {
// "missing_dependency 2; " for each.
std::string found(const std::string& output) {
  FragmentFinder finder;
  std::string out;
  for (const Fragment& f : finder.find(output))
    out += f.extractor + " " + std::to_string(f.line) + "; ";
  return out;
}
}  // namespace

TEST_SUITE("score") {
  TEST_CASE("a tool's own line says that a dependency is missing") {
    for (
        const char* line : {
            "ModuleNotFoundError: No module named 'yaml'",
            "E   ModuleNotFoundError: No module named 'yaml'",
            "ImportError: No module named yaml",
            "/usr/bin/python3: No module named pytest",
            "ERROR: Could not find a version that satisfies the requirement x==9 (from versions: "
            "1)",
            "ERROR: No matching distribution found for x==9",
            "src/a.c:1:10: fatal error: zlib.h: No such file or directory",
            "a.cc:3:10: fatal error: 'zlib.h' file not found",
            "/usr/bin/ld: cannot find -lz: No such file or directory",
            "ld.lld: error: unable to find library -lz",
            "  Could not find a package configuration file provided by \"fmt\" with any of",
            "  Could NOT find ZLIB (missing: ZLIB_LIBRARY ZLIB_INCLUDE_DIR)",
            "npm ERR! code ETARGET",
            "npm error code E404",
            "Error: Cannot find module 'left-pad'",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad' imported from /w/a.js",
            "src/a.ts(1,20): error TS2307: Cannot find module 'left-pad' or its corresponding type",
            "src/a.ts:1:20 - error TS2307: Cannot find module 'left-pad' or its corresponding type",
            "error[E0432]: unresolved import `serde`",
            "error[E0463]: can't find crate for `serde`",
            "error: no matching package named `serde` found",
            "main.go:4:2: no required module provides package example.com/x; to add it:",
            "main.go:4:2: cannot find package \"x\" in any of:",
            "main.go:4:2: cannot find module providing package example.com/x",
            "main.go:4:2: package example.com/x is not in std (/usr/lib/go/src/example.com/x)",
            "package x is not in GOROOT (/usr/lib/go/src/x)",
            "[ERROR] Failed to execute goal on project a: Could not resolve dependencies for "
            "project",
            "[ERROR] /w/A.java:[3,12] package org.junit does not exist",
            "A.java:3: error: package org.junit does not exist",
            "   > Could not find org.junit:junit:99.",
        }) {
      CAPTURE(line);
      CHECK(found(line) == "missing_dependency 1; ");
    }
  }

  TEST_CASE("a tool's own line says that host or version is not the one it needs") {
    for (const char* line : {
             "ERROR: Package 'x' requires a different Python: 3.8.10 not in '>=3.9'",
             "ERROR: Ignored the following versions that require a different python version: 2.0",
             "  CMake 3.28 or higher is required.  You are running version 3.16.3",
             "npm ERR! code EBADENGINE",
             "error: package `x v1.0.0` cannot be built because it requires rustc 1.70 or newer",
             "error: rustc 1.60.0 is not supported by the following packages:",
             "go: go.mod requires go >= 1.99 (running go 1.22.1; GOTOOLCHAIN=local)",
             "note: module requires Go 1.99",
             "Exception in thread \"main\" java.lang.UnsupportedClassVersionError: A has been "
             "compiled",
             "Caused by: java.lang.UnsupportedClassVersionError: A has been compiled by",
             "\tjava.lang.UnsupportedClassVersionError: A has been compiled by",
             "error: invalid target release: 21",
             "[ERROR] Failed to execute goal: Fatal error compiling: error: invalid target "
             "release: 21",
             "error: release version 21 not supported",
             "./a: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by "
             "./a)",
             "./a: /lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ./a)",
             "bash: line 1: ./a: cannot execute binary file: Exec format error",
             "sh: 1: ./a: Exec format error",
         }) {
      CAPTURE(line);
      CHECK(found(line) == "incompatible_environment 1; ");
    }
  }

  TEST_CASE(
      "words within a line, a path of the candidate's own and other failures are no fragment") {
    for (const char* line : {
             "see: ModuleNotFoundError: No module named 'yaml'",
             "NameError: name 'yaml' is not defined",
             "  File \"a.py\", line 1, in <module>",
             "SyntaxError: invalid syntax",
             "a.c:1:1: fatal error: too many errors emitted",
             "a.c:3:5: error: 'x' undeclared (first use in this function)",
             "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)",
             "Error: Cannot find module './left-pad'",
             "Error: Cannot find module '/w/left-pad'",
             "src/a.ts(1,20): error TS2307: Cannot find module '../b' or its corresponding type",
             "npm WARN EBADENGINE Unsupported engine {",
             "npm ERR! code ELIFECYCLE",
             "error[E0432]: unresolved import `crate::a`",
             "error[E0425]: cannot find value `x` in this scope",
             "a.go:3:2: undefined: x",
             "version `GLIBC_2.38' not found",
             "",
         }) {
      CAPTURE(line);
      CHECK(found(line) == "");
    }
  }

  TEST_CASE("a fragment has its line, printable and short, with other lines around it") {
    FragmentFinder finder;
    const std::vector<Fragment> all = finder.find(
        "cc -c a.c\r\na.c:1:10: fatal error: z.h: No such file or directory\r\n\n"
        "error: release version 21 not supported\x1b[0m\nModuleNotFoundError: No module named 'a'");
    REQUIRE(all.size() == 3);
    CHECK(all[0].extractor == "missing_dependency");
    CHECK(all[0].line == 2);
    CHECK(all[1].extractor == "incompatible_environment");
    CHECK(all[1].line == 4);
    CHECK(all[1].text == "error: release version 21 not supported\\x1b[0m");
    CHECK(all[2].line == 5);
    CHECK(all[2].text == "ModuleNotFoundError: No module named 'a'");
    const auto cut = finder.find("ImportError: No module named " + std::string(5'000, '\x01'));
    REQUIRE(cut.size() == 1);
    CHECK(cut[0].text.size() <= FragmentFinder::kTextBytes);
    CHECK(cut[0].text.starts_with("ImportError: No module named \\x01"));
  }

  TEST_CASE("many fragments of one kind hide none of the other, in whatever stream they are") {
    FragmentFinder finder;
    std::string many;
    for (int i = 0; i < 25; ++i)
      many += "ImportError: No module named m" + std::to_string(i) + "\n";
    const std::vector<Fragment> first = finder.find(many + "note: module requires Go 1.99\n");
    REQUIRE(first.size() == FragmentFinder::kMost + 1);
    CHECK(first[9].line == 10);
    CHECK(first[10].extractor == "incompatible_environment");
    CHECK(first[10].line == 26);
    CHECK(finder.find(many).empty());
    std::string others;
    for (int i = 0; i < 25; ++i) others += "note: module requires Go 1.99\n";
    CHECK(finder.find(others).size() == FragmentFinder::kMost - 1);
  }

  TEST_CASE("the last part of a long output is read, from its first whole line on") {
    const std::string line = "ImportError: No module named x\n";
    const std::string filler(FragmentFinder::kReadBytes - line.size(), 'y');
    CHECK(found(line + filler) == "missing_dependency 1; ");
    CHECK(found(line + "y" + filler) == "");
    CHECK(found("a\nb\n" + line + filler) == "missing_dependency 3; ");
    CHECK(found(filler + filler + "\n" + line) == "missing_dependency 2; ");
  }
}
