#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "coordinator/cvdp/report/results.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

TEST_SUITE("cvdp") {
  TEST_CASE("BLEU and ROUGE of small texts") {
    CHECK(bleu2("a b c d", "a b c d") == 1.0);
    CHECK(bleu2("a b", "a b c d") == 0.36787944117144233);
    CHECK(bleu2("", "a") == 0);
    CHECK(bleu2("x", "y") == 0);
    CHECK(bleu2("b a", "a b") < 1e-153);
    CHECK(*rouge2("Hello, World!", "hello world") == 1.0);
    CHECK(*rouge2("a b", "a b a b") == 1.0 / 3.0);
    CHECK_FALSE(rouge2("a b", "a").ok());
    CHECK(*rouge2("\xC3\x84pfel \xCE\xA3\xCE\x91\xCE\xA3",
                  "\xC3\xA4pfel \xCF\x83\xCE\xB1\xCF\x82") == 1.0);
  }

  TEST_CASE("long words differ wherever they differ, and count as often as they come") {
    // Alike in their first eight bytes; the last word ends with its text.
    CHECK(bleu2("registers_a registers_b", "registers_a registers_a") < 1e-153);
    CHECK(bleu2("register register1 re", "register register1 re") == 1.0);
    CHECK(bleu2("a a a a", "a a") == doctest::Approx(std::sqrt(0.5 * (1.0 / 3.0))));
    CHECK(*rouge2("registers_b x", "registers_a x registers_b x") == 1.0 / 3.0);
    std::string many;  // more words than any table begins with
    for (int i = 0; i < 5000; ++i) many += "w" + std::to_string(i) + " ";
    CHECK(bleu2(many, many) == 1.0);
  }

  TEST_CASE("a text splits at the same places wherever its blanks stand") {
    const std::string blanks[] = {" ", "\t", "\n", "\xC2\xA0", "\xE2\x80\xA8", "\x1F"};
    const std::string words[] = {"a", "\xC3\xA9t\xC3\xA9", "longer_than_eight", "\x01", "~"};
    std::uint64_t state = 7;
    const auto next = [&state](std::uint64_t n) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33U) % n;
    };
    for (int round = 0; round < 2000; ++round) {
      std::string text;
      std::vector<std::string> due;
      for (std::uint64_t i = next(12); 0 < i; --i) {
        for (std::uint64_t n = 1 + next(3); 0 < n; --n) text += blanks[next(6)];
        due.push_back(words[next(5)]);
        text += due.back();
      }
      if (next(2) == 0) text += blanks[next(6)];
      const auto split = split_words(text);
      CHECK(std::vector<std::string>(split.begin(), split.end()) == due);
    }
  }

  TEST_CASE("words blanks and case are Python's") {
    CHECK(split_words(" a\xC2\xA0"
                      "b\x1F"
                      "c\t")
              .size() == 3);
    CHECK(strip_text("\xE3\x80\x80 x y \n") == "x y");
    CHECK(strip_text(" \n") == "");
    CHECK(lower_text("\xC4\xB0"
                     "A\xC3\x89") ==
          "i\xCC\x87"
          "a\xC3\xA9");
    // A capital sigma: alone, at an end before a mark, before a letter.
    CHECK(lower_text("\xCE\xA3 A\xCE\xA3. A\xCE\xA3'B") == "\xCF\x83 a\xCF\x82. a\xCF\x83'b");
    CHECK(without_punctuation("it's_1, \xE2\x82\xAC!") == "its_1 ");
  }

  TEST_CASE("a prompt has the parts in upstream's order") {
    std::vector<Finding> f;
    const auto record = [&](const char* category, const char* output) {
      return check_record(
          json_of(
              R"({"id":"cvdp_copilot_a_1","categories":[")" + std::string(category) +
              R"(","easy"],"input":{"prompt":"Do it.","context":{"rtl/b.sv":"code"}},"output":)" +
              output + R"(,"harness":{}})"),
          1, f);
    };
    const auto one = prompt_for(record("cid003", R"({"context":{"rtl/a.sv":""}})"));
    REQUIRE(one.ok());
    CHECK(one->user.find("rtl/b.sv holds:\n```\ncode\n```\n") < one->user.find("Do it."));
    CHECK(one->user.find("Do it.") < one->user.find("the file rtl/a.sv"));
    CHECK(one->system.find(std::string(kCodeSchema)) == std::string::npos);
    const auto two = prompt_for(record("cid003", R"({"context":{"a":"","b":""}})"));
    CHECK(two->user.find("['a', 'b']") != std::string::npos);
    CHECK(two->system.find(std::string(kCodeSchema) + "\nor\n" + std::string(kResponseSchema)) !=
          std::string::npos);
    CHECK(prompt_for(record("cid009", R"({"context":{"a":""}})"))->expected.empty());
    CHECK_FALSE(prompt_for(record("cid011", R"({"context":{}})")).ok());
  }

  TEST_CASE("upstream's own scores") {
    if (!have_shared_data("upstream's own scores")) return;
    std::size_t cases = 0;
    const Value all = units("scores_n2");
    for (const Value& c : *all.array()) {
      CAPTURE(write_json(c));
      CHECK(bleu2(text_in(c, "gen"), text_in(c, "ref")) == *in(c, "bleu").as_double());
      const auto r = rouge2(text_in(c, "gen"), text_in(c, "ref"));
      if (in(c, "rouge").string() != nullptr)
        CHECK_FALSE(r.ok());
      else
        CHECK(*r == *in(c, "rouge").as_double());
      ++cases;
    }
    CHECK(cases == 9);
  }

  TEST_CASE("upstream's own parsing of answers") {
    if (!have_shared_data("upstream's own parsing of answers")) return;
    const Value all = units("parse_model_response");
    for (const Value& c : *all.array()) {
      CAPTURE(write_json(c));
      const auto r =
          parse_response(text_in(c, "res"), *in(c, "no_schema").boolean() ? AnswerForm::kPlainText
                                                                          : AnswerForm::kJson);
      const Array& expected = *in(c, "result").array();
      CHECK(r.ok() == *expected[1].boolean());
      CHECK(write_json(r.ok() ? Value(*r) : Value(Object())) == write_json(expected[0]));
    }
    CHECK(all.array()->size() == 16);
    const Value repairs = units("fix_json_formatting");
    for (const Value& c : *repairs.array())
      CHECK(repair_json(text_in(c, "in")) == text_in(c, "out"));
    const Value schemas = units("determine_schema");
    CHECK(*(*in(schemas, "2").array())[0].array() ==
          Array{Value(kCodeSchema), Value(kResponseSchema)});
  }
}
