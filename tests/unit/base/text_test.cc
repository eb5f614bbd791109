// What may stand on a terminal, and what a worker may be called.
#include <doctest/doctest.h>

#include "common/base/ids.h"
#include "common/base/text.h"

using namespace proctor;

TEST_SUITE("base") {
  TEST_CASE("one thing is told from many") {
    CHECK(counted(0, "run") == "0 runs");
    CHECK(counted(1, "task") == "1 task");
    CHECK(counted(2, "run") == "2 runs");
  }

  TEST_CASE("the end of what a program wrote is told whole, on one line") {
    CHECK(last_lines("", 9) == "");
    CHECK(last_lines("a\r\nb\n\n", 9) == "a\\x0d; b");
    std::string noise;
    for (int i = 0; i < 40; ++i) noise += "\x1b\n";
    CHECK(last_lines(noise + "cause\n", 60).ends_with("; cause"));
    CHECK(last_lines("abcdef", 3) == "def");
  }

  TEST_CASE("what reorders, hides or moves text on a terminal is spelled in hexadecimal") {
    const struct {
      const char* from;
      const char* to;
    } rows[] = {
        {"plain \xc3\xa4\xe2\x82\xac", "plain \xc3\xa4\xe2\x82\xac"},
        {"\x1b[2J", "\\x1b[2J"},
        {"a\nb\r\t\x7f", "a\\x0ab\\x0d\\x09\\x7f"},
        {"\xc2\x9b", "\\xc2\\x9b"},                    // CSI of C1
        {"\xc2\xa0", "\xc2\xa0"},                      // the first behind C1
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"},           // U+202E
        {"\xe2\x80\xaa", "\\xe2\\x80\\xaa"},           // U+202A
        {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},           // U+2066
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},           // U+2028, a line end
        {"\xe2\x80\x8b", "\\xe2\\x80\\x8b"},           // U+200B, no width
        {"\xe2\x80\x8d", "\xe2\x80\x8d"},              // U+200D joins emoji
        {"\xe2\x80\x8f", "\\xe2\\x80\\x8f"},           // U+200F
        {"\xef\xbf\xbf", "\\xef\\xbf\\xbf"},           // U+FFFF, which no XML may hold
        {"\xe2\x80\xa7", "\xe2\x80\xa7"},              // before the line ends
        {"\xe2\x80\xaf", "\xe2\x80\xaf"},              // behind the overrides
        {"\xd8\x9c", "\\xd8\\x9c"},                    // U+061C
        {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},           // U+FEFF
        {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},  // U+E0041, a tag
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xc2\xad", "\\xc2\\xad"},                    // U+00AD, a soft hyphen
        {"\xcd\x8f", "\\xcd\\x8f"},                    // U+034F
        {"\xe1\x85\xa0", "\\xe1\\x85\\xa0"},           // U+1160
        {"\xe1\x9e\xb4", "\\xe1\\x9e\\xb4"},           // U+17B4
        {"\xe1\xa0\x8e", "\\xe1\\xa0\\x8e"},           // U+180E
        {"\xe3\x85\xa4", "\\xe3\\x85\\xa4"},           // U+3164
        {"\xe3\x85\xa5", "\xe3\x85\xa5"},              // the first behind it
        {"\xef\xb8\x8f", "\\xef\\xb8\\x8f"},           // U+FE0F
        {"\xef\xbe\xa0", "\\xef\\xbe\\xa0"},           // U+FFA0
        {"\xf0\x9d\x85\xb3", "\\xf0\\x9d\\x85\\xb3"},  // U+1D173
        {"\xe2\x80", "\\xe2\\x80"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // half of a pair
    };
    for (const auto& row : rows) {
      CAPTURE(row.to);
      CHECK(printable(row.from) == row.to);
      CHECK(printable(printable(row.from)) == row.to);
    }
  }

  TEST_CASE("a worker's name is an id") {
    for (const char* fine : {"w", "0", "w1", "local-1", "build7.example.org", "A_b-c.9", "w--"}) {
      CAPTURE(fine);
      CHECK(is_worker_name(fine));
    }
    CHECK(is_worker_name(std::string(100, 'w')));
    CHECK_FALSE(is_worker_name(std::string(101, 'w')));
    for (const char* wrong : {"", ".w", "-w", "_w", "two words", "w/1", "w\n", "\xc3\xa4",
                              "w\xe2\x80\xae"
                              "1",
                              "w:1", "w@h", "w*"}) {
      CAPTURE(wrong);
      CHECK_FALSE(is_worker_name(wrong));
    }
  }
}
