#include <doctest/doctest.h>

#include "common/base/line_pattern.h"

namespace proctor {

TEST_SUITE("line pattern") {
  TEST_CASE("a line matches where a regular expression does") {
    struct Row {
      const char *pattern, *line;
      bool matches;
    };
    const Row rows[] = {
        {"abc", "xxabcxx", true},
        {"abc", "ab c", false},
        {"", "", true},
        {"a.c", "abc", true},
        {"a.c", "ac", false},
        {"^abc$", "abc", true},
        {"^abc$", "abcd", false},
        {"^$", "", true},
        {"^$", "x", false},
        {"a*b", "b", true},
        {"a+b", "b", false},
        {"^a?b$", "ab", true},
        {"^a?b$", "aab", false},
        {"^(ab|cd)+$", "abcdab", true},
        {"^(ab|cd)+$", "abc", false},
        {"^(?:a|)b$", "b", true},
        {"^a{2,3}$", "aa", true},
        {"^a{2,3}$", "aaaa", false},
        {"^a{2}$", "aaa", false},
        {"^a{2,}$", "aaaaa", true},
        {"^a{2,}$", "a", false},
        {"a{x}", "a{x}", true},
        {"a{,2}", "a{,2}", true},
        {"^[a-c]+$", "abcabc", true},
        {"^[a-c]+$", "abd", false},
        {"^[^a-c]+$", "xyz", true},
        {"^[^a-c]+$", "xbz", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"[\\]x]", "]", true},
        {"^[\\d.]+$", "1.25", true},
        {"^[\\t-\\r]$", "\n", true},
        {"^\\d{4}-\\d{2}$", "2026-11", true},
        {"^\\w+$", "a_1", true},
        {"\\W", "a_1", false},
        {"\\s", "a b", true},
        {"^\\S+$", "a b", false},
        {"\\bcat\\b", "a cat!", true},
        {"\\bcat\\b", "concat", false},
        {"\\Bcat", "concat", true},
        {"a\\.b", "a.b", true},
        {"a\\.b", "axb", false},
        {"(?i)hello", "say HeLLo", true},
        {"(?i)[a-c]x", "BX", true},
        {"a.*?b", "axxb", true},
        {"(a*)*$", "aaab", true},
        {"^(a*)*b$", "aaab", true},
        {"^(a|b|ab)*c$", "ababc", true},
        {"\xc3\xa9", "caf\xc3\xa9", true},
        // Bytes C0 to DE and E0 to FE are pairs of letters in Latin-1 alone.
        {"(?i)\xd0\x9f", "\xf0\x9f\x98\x80", false},
        {"(?i)\xd0\x9f", "\xd0\xbf", true},
        {"(?i)\xd0\xbf", "\xff \xd0\x9f", true},
        {"^[\xd0\xb0-\xd1\x8f]$", "\xd0\xbf", true},
        {"[\xd0\xb0-\xd1\x8f]", "\xd1\x91", false},
        {"^\xd0\xbf.$", "\xd0\xbf\xd1\x8f", true},
        {"(?i)^A.*Z$", "a\xff\xfe\xd0z", true},
    };
    for (const Row& row : rows) {
      CAPTURE(row.pattern);
      CAPTURE(row.line);
      auto pattern = LinePattern::compile(row.pattern);
      REQUIRE(pattern.ok());
      CHECK(pattern->matches(row.line) == row.matches);
      CHECK(pattern->matches(row.line) == row.matches);  // a second time as well
    }
  }

  TEST_CASE("what is not understood is refused with the part that it is") {
    for (const char* bad : {"(", ")", "a)", "(a", "[", "[a", "[]", "*a", "+", "a|*", "\\", "[\\",
                            "\\1", "(?=a)", "a{3,2}", "a{1001}", "[z-a]", "[a-\\d]"}) {
      CAPTURE(bad);
      const auto pattern = LinePattern::compile(bad);
      REQUIRE_FALSE(pattern.ok());
      CHECK(pattern.error().detail.starts_with("the pattern cannot be read: "));
    }
    const auto pattern = LinePattern::compile("(\xd0\xbf");
    REQUIRE_FALSE(pattern.ok());
    CHECK(pattern.error().detail.ends_with("(\xd0\xbf"));
  }

  TEST_CASE("what would blow up is refused or takes the time of its length") {
    const std::string deep(10'000, '('), empty = "((((){1000}){1000}){1000}){1000}";
    for (const std::string& bad : {deep, empty, std::string("((a{100}){100}){100}"),
                                   std::string("(a{1000}|b{1000}){1000}")}) {
      CAPTURE(bad.size());
      CHECK_FALSE(LinePattern::compile(bad).ok());
    }
    std::string many;
    for (int i = 0; i < 80; ++i) many += "a{0,1000}";
    const auto refused = LinePattern::compile(many + "b");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().detail == "the pattern has repetitions that are too many together");
    CHECK(LinePattern::compile("a{0,1000}b").ok());
    auto slow = LinePattern::compile("^(a+)+(a|aa)*(a*)*b$");
    REQUIRE(slow.ok());
    CHECK_FALSE(slow->matches(std::string(20'000, 'a')));
    CHECK(slow->matches(std::string(20'000, 'a') + "b"));
  }

  TEST_CASE("a plain text is looked for as it stands") {
    LinePattern plain = LinePattern::literal("a.*[");
    CHECK(plain.matches("x a.*[ y"));
    CHECK_FALSE(plain.matches("axx["));
  }
}

}  // namespace proctor
