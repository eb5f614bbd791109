#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/cvdp/json_writer.h"
#include "common/cvdp/prompt.h"
#include "common/cvdp/response.h"
#include "common/cvdp/text_metrics.h"
#include "common/cvdp/unicode.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;
using namespace proctor::cvdp::testing;

namespace {
std::string answer(std::string_view text, std::size_t files = 0) {
  const auto r = parse_response(text, form_for(files));
  return r.ok() ? write_json(Value(*r)) : "!";
}
std::string score(std::string_view reply) {
  const auto j = parse_judgement(reply);
  return j.ok() ? python_repr(j->score) + (j->pass ? " pass" : " fail") : "!";
}
}  // namespace

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

  TEST_CASE("an answer with no fence one two or an open one") {
    CHECK(answer("plain  \n", 1) == R"({"direct_text": "plain"})");
    CHECK(answer("a ```v\none\n``` b ```v\ntwo\n```", 1) == R"({"direct_text": "one\n"})");
    CHECK(answer("open ```v\nmodule", 1) == R"({"direct_text": "open ```v\nmodule"})");
    CHECK(answer("``````", 1) == R"({"direct_text": ""})");
    CHECK(answer("", 1) == R"({"direct_text": ""})");
    const std::string large(std::size_t{100} << 20, 'x');
    CHECK(parse_response(large, AnswerForm::kPlainText)->find("direct_text")->string()->size() ==
          large.size());
    CHECK(answer(large) == "!");
  }

  TEST_CASE("sound JSON is not repaired and broken JSON is") {
    CHECK(answer(R"({"response": "x: y, z: w", "flag": true})") ==
          R"({"response": "x: y, z: w", "flag": true})");
    CHECK(answer("{response: hello}") == R"({"response": "hello"})");
    CHECK(answer("[1,2]") == "!");
    CHECK(answer("} {") == "!");
    CHECK(answer(std::string(100'000, '{')) == "!");
  }

  TEST_CASE("an answer becomes files and names that lead outside are refused") {
    const auto files = [](std::string_view text, std::vector<std::string> expected) {
      const auto r = parse_response(text, form_for(expected.size()));
      REQUIRE(r.ok());
      return files_of_response(*r, expected);
    };
    CHECK(files("```v\nm\n```", {"rtl/a.sv"}).files[0].path == "rtl/a.sv");
    const auto two =
        files(R"({"code":[{"a":"1"},{"../b":"2"},{"/etc/c":"3"},5,{"d":true}]})", {"a", "b"});
    CHECK(two.files.size() == 2);
    CHECK(two.files[1].text == "True");
    CHECK(two.refused == std::vector<std::string>{"../b", "/etc/c"});
    CHECK(files(R"({"response":"words"})", {}).files[0].path == "subjective.txt");
    CHECK(files(R"({"other":["it's",1.0,null]})", {}).files[0].text ==
          "{'other': [\"it's\", 1.0, None]}");
  }

  TEST_CASE("a judge's reply gives a score between 0 and 1") {
    CHECK(score(R"({"score": 0.7, "reasoning": "r"})") == "0.7 pass");
    CHECK(score("Sure!\n```json\n{\"score\": 0.69}\n```") == "0.69 fail");
    CHECK(score("```\n{\"score\": 7}\n```") == "1.0 pass");
    CHECK(score(R"({"score": -2})") == "0.0 fail");
    CHECK(score(R"(text {"a": {"score": 0.5}} more)") == "0.5 fail");
    for (const char* bad :
         {"", "0.9", "{}", R"({"score": "0.9"})", R"({"score": true})", "```", R"({"score": NaN})"})
      CHECK(score(bad) == "!");
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
