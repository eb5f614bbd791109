// Numbers, words and lines at the front of a text.
#include "common/base/parse.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace proctor;
using namespace std::string_view_literals;

TEST_SUITE("base") {
  TEST_CASE(
      "a whole number is all of a text, within its type, and has a sign only where that has") {
    CHECK(whole_number<std::uint16_t>("65535") == std::uint16_t{65535});
    for (const std::string_view text :
         {""sv, "65536"sv, "-1"sv, "+1"sv, " 1"sv, "1 "sv, "0x1"sv, "1\0"sv}) {
      CAPTURE(text);
      CHECK_FALSE(whole_number<std::uint16_t>(text));
    }
    CHECK(whole_number<int>("-7") == -7);
    CHECK(whole_number<unsigned>("fF", 16) == 255U);
    CHECK_FALSE(whole_number<unsigned>("g", 16));
  }

  TEST_CASE("what cannot be taken stays") {
    std::string_view text = "12,x";
    unsigned n = 5;
    CHECK_FALSE(take_word(text, "x"));
    CHECK(take_number(text, n));
    CHECK(n == 12);
    CHECK_FALSE(take_number(text, n));
    CHECK(n == 12);
    CHECK(take_word(text, ","));
    CHECK(text == "x");
    text = "999999999999";
    CHECK_FALSE(take_number(text, n));
    CHECK(text == "999999999999");
  }

  TEST_CASE("a text is taken line by line, and its last line needs no end") {
    std::string_view text = "a\n\nb";
    CHECK(take_until(text, '\n') == "a");
    CHECK(take_until(text, '\n').empty());
    CHECK(take_until(text, '\n') == "b");
    CHECK(text.empty());
    CHECK(take_until(text, '\n').empty());
    text = "c\n";
    CHECK(take_until(text, '\n') == "c");
    CHECK(text.empty());
  }

  TEST_CASE("a split text has one piece more than separators") {
    using Pieces = std::vector<std::string_view>;
    CHECK(split("", ',') == Pieces{""});
    CHECK(split("a", ',') == Pieces{"a"});
    CHECK(split(",a,,b,", ',') == Pieces{"", "a", "", "b", ""});
  }

  TEST_CASE("blanks around a text go, and capitals become small") {
    CHECK(trimmed(" \ta b\t") == "a b");
    CHECK(trimmed(" \t").empty());
    CHECK(trimmed("").empty());
    CHECK(trimmed("a\r\n", "\r\n") == "a");
    CHECK(lowered("Ab-Z\xc3\x84") == "ab-z\xc3\x84");
  }
}
