#include <doctest/doctest.h>

#include "common/base/text.h"
#include "worker/tools/text_lines.h"

namespace proctor {

TEST_SUITE("text of tools") {
  TEST_CASE("lines have numbers, from where and as many as are asked for") {
    const NumberedLines all = number_lines("a\n\nc", 1, 10);
    CHECK(all.text == "1\ta\n2\t\n3\tc\n");
    CHECK(all.shown == 3);
    CHECK(all.lines == 3);
    const NumberedLines some = number_lines("a\nb\nc\nd\n", 2, 2);
    CHECK(some.text == "2\tb\n3\tc\n");
    CHECK(some.lines == 4);
    CHECK(number_lines("a\n", 5, 2).text.empty());
    CHECK(number_lines("", 1, 2).lines == 0);
    // Whole lines alone, and of a long one its beginning.
    const NumberedLines bounded = number_lines("aaaa\nbbbb\nc\n", 1, 10, 15);
    CHECK(bounded.text == "1\taaaa\n2\tbbbb\n");
    CHECK(bounded.shown == 2);
    CHECK(bounded.lines == 3);
    const std::string wide = number_lines(std::string(5'000, 'x') + "\nend\n", 1, 10).text;
    CHECK(wide.size() < 2'100);
    CHECK(wide.find(" [...]\n2\tend\n") != std::string::npos);
  }

  TEST_CASE("of a long stream the beginning and the end are shown, and how much is not") {
    CHECK(head_and_tail("short") == "short");
    std::string stream;
    for (int i = 0; i < 1'000; ++i) stream += "line " + std::to_string(i) + "\n";
    const std::string shown = head_and_tail(stream, 200);
    CHECK(shown.starts_with("line 0\nline 1\n"));
    CHECK(shown.ends_with("line 998\nline 999\n"));
    CHECK(shown.find("line 12\n[8697 bytes left out]\nline 989\n") != std::string::npos);
    CHECK(shown.size() < 250);
    const std::string half(50, 'x');
    CHECK(head_and_tail(std::string(1'000, 'x'), 100) == half + "\n[900 bytes left out]\n" + half);
  }

  TEST_CASE("whatever bytes come, text goes out") {
    CHECK(as_text("plain") == "plain");
    CHECK(as_text("a\xff"
                  "b") ==
          "a\xEF\xBF\xBD"
          "b");
    CHECK(as_text(std::string_view("a\0b", 3)) ==
          "a\xEF\xBF\xBD"
          "b");
    CHECK(as_text("\xc3") == "\xEF\xBF\xBD");
    CHECK(is_text("caf\xc3\xa9"));
    CHECK_FALSE(is_text("caf\xc3"));
    CHECK_FALSE(is_text(std::string_view("\0", 1)));
    // Cut at the end of a character.
    CHECK(head_of("caf\xc3\xa9", 4) == "caf");
    CHECK(head_of("caf\xc3\xa9", 5) == "caf\xc3\xa9");
    std::string accents;
    for (int i = 0; i < 500; ++i) accents += "\xe2\x82\xac";
    for (std::size_t most = 100; most < 106; ++most) {
      CAPTURE(most);
      CHECK(is_utf8(head_and_tail(accents, most)));
      CHECK(head_of(accents, most).size() % 3 == 0);
    }
  }

  TEST_CASE("a text is replaced where it is there as often as said") {
    const auto once = edit_text("x = 1\ny = 2\n", {"f", "y = 2", "y = 3", 1});
    REQUIRE(once.ok());
    CHECK(once->text == "x = 1\ny = 3\n");
    CHECK(once->lines == std::vector<std::uint64_t>{2});
    const auto thrice = edit_text("a\na\nba\n", {"f", "a", "cc", 3});
    REQUIRE(thrice.ok());
    CHECK(thrice->text == "cc\ncc\nbcc\n");
    CHECK(thrice->lines == std::vector<std::uint64_t>{1, 2, 3});
    CHECK(edit_text("aaa", {"f", "aa", "", 1}).value().text == "a");

    const auto more = edit_text("a\nb\na\n", {"f", "a", "c", 1});
    REQUIRE_FALSE(more.ok());
    CHECK(more.error().detail.find("2 times and not 1, at lines 1, 3") != std::string::npos);
    CHECK_FALSE(edit_text("a\n", {"f", "a", "c", 2}).ok());
    CHECK(edit_text("a\n", {"f", "b", "c", 1}).error().detail.find("not there") !=
          std::string::npos);
    // A thousand times a large text is more than a file may have.
    const EditFile large{"f", "a", std::string(100'000, 'x'), 1'000};
    CHECK_FALSE(edit_text(std::string(1'000, 'a'), large).ok());
  }
}

}  // namespace proctor
