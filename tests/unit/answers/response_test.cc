#include "common/answers/single_shot.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/answers/json.h"

using namespace proctor;
using namespace proctor::answers;

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

TEST_SUITE("answers") {
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
}
