// Markup: whatever others wrote is text, by type.
#include "coordinator/aggregate/markup.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "coordinator/aggregate/canvas.h"

using namespace proctor::aggregate;

namespace {

template <class T>
concept Streamable = requires(Markup m, T t) {
  m << t;
};
template <class T>
concept Addable = requires(Markup m, T t) {
  m + t;
};
template <class T>
concept MakesAnElement = requires(T t) {
  element("p", t);
};
template <class T>
concept IsATag = requires(T t) {
  element(t, Markup());
};
template <class T>
concept IsAValue = requires(T t) {
  empty_element("p", {{"class", t}});
};

// Somebody's text beside markup does not compile, in any of the ways one would try.
static_assert(!std::is_constructible_v<Markup, std::string>);
static_assert(!std::is_constructible_v<Markup, std::string_view>);
static_assert(!std::is_constructible_v<Markup, const char*>);
static_assert(!Streamable<std::string> && !Streamable<std::string_view> &&
              !Streamable<const char*>);
static_assert(!Addable<std::string> && !Addable<std::string_view>);
static_assert(!MakesAnElement<std::string> && !IsATag<std::string> && !IsATag<const char*>);
static_assert(!IsAValue<std::string> && !IsAValue<std::string_view> && !IsAValue<const char*>);
static_assert(Streamable<Markup> && Addable<Markup>);

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("text of others is inert: what would be markup, and what would turn or hide text") {
    struct Row {
      std::string_view outside, inside;
    };
    const Row rows[] = {
        {"<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"},
        {"\"><img src=x onerror=y>", "&quot;&gt;&lt;img src=x onerror=y&gt;"},
        {"a&b&amp;", "a&amp;b&amp;amp;"},
        {"\xE2\x80\xAE"
         "gnp.exe",
         "\\xe2\\x80\\xaegnp.exe"},
        {"\x1b[2J\n", "\\x1b[2J\\x0a"},
        {"\xEF\xBF\xBE\xEF\xBF\xBF", "\\xef\\xbf\\xbe\\xef\\xbf\\xbf"},
        {"\xff", "\\xff"},
        {"stra\xC3\x9F"
         "e",
         "stra\xC3\x9F"
         "e"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.outside);
      CHECK(text(row.outside).bytes() == row.inside);
      CHECK(attribute_text(row.outside).escaped() == row.inside);
    }
    CHECK(element("p", {{"id", numbered("set-", 3)}}, text("<b>")).bytes() ==
          "<p id=\"set-3\">&lt;b&gt;</p>");
    CHECK(Markup("Words of ours & theirs").bytes() == "Words of ours &amp; theirs");
    CHECK(text(std::string(10'000, 'x')).bytes().size() < 500);
  }

  TEST_CASE("coordinates have one decimal, and values all that a double holds in twelve digits") {
    CHECK(tenths(0.04).escaped() == "0");
    CHECK(tenths(-2.25).escaped() == "-2.3");
    CHECK(tenths(12).escaped() == "12");
    CHECK(full(1.0 / 3).escaped() == "0.333333333333");
  }

  TEST_CASE("ticks of an axis are round and reach what is shown") {
    CHECK(round_ticks(0, 5) == std::vector<double>{0});
    CHECK(round_ticks(7, 5) == std::vector<double>{0, 2, 4, 6, 8});
    CHECK(round_ticks(100, 5) == std::vector<double>{0, 20, 40, 60, 80, 100});
    for (const double most : {0.001, 0.3, 1.0, 4.9, 51.0, 99'999.0}) {
      const std::vector<double> ticks = round_ticks(most, 5);
      CAPTURE(most);
      CHECK(most <= ticks.back());
      CHECK(ticks.size() <= 7);
    }
  }
}
