#include <doctest/doctest.h>

#include "common/answers/json.h"

using namespace proctor;
using namespace proctor::answers;

namespace {
std::string again(std::string_view text) {
  const auto v = read_json(text);
  return v.ok() ? write_json(*v) : "! " + v.error().detail;
}
}  // namespace

// Oracle: json.loads and json.dumps of CPython 3.11.
TEST_SUITE("answers") {
  TEST_CASE("JSON comes out as Python would print it") {
    CHECK(again(R"({"b":1,"a":[true,false,null],"c":{}})") ==
          R"({"b": 1, "a": [true, false, null], "c": {}})");
    CHECK(again(R"("caf\u00e9 \ud83d\ude00 / \/ \u007f \u0001 \b\f\n\r\t")") ==
          R"("caf\u00e9 \ud83d\ude00 / / \u007f \u0001 \b\f\n\r\t")");
    CHECK(again("\"caf\xC3\xA9 \xF0\x9F\x98\x80\"") == R"("caf\u00e9 \ud83d\ude00")");
    CHECK(again(R"(["\ud800", "\udc00x", "\ud800\u0041"])") ==
          R"(["\ud800", "\udc00x", "\ud800A"])");
    CHECK(again("[1e5, 1.0, -0, -0.0, 1e16, 123456789012345678901234567890, 1e-5, 0.0001]") ==
          "[100000.0, 1.0, 0, -0.0, 1e+16, 123456789012345678901234567890, 1e-05, 0.0001]");
    CHECK(again("[NaN, Infinity, -Infinity, 1e999, -1e999, 1e-999]") ==
          "[NaN, Infinity, -Infinity, Infinity, -Infinity, 0.0]");
    CHECK(again("[0.1, 2.5e-7, 1.7976931348623157e308, 5e-324, 83.33333333333333]") ==
          "[0.1, 2.5e-07, 1.7976931348623157e+308, 5e-324, 83.33333333333333]");
    CHECK(again("[1" + std::string(400, '0') + ".5, 0." + std::string(400, '0') + "1]") ==
          "[Infinity, 0.0]");
  }

  TEST_CASE("of a key given twice the last value counts at the place of the first") {
    std::vector<std::string> repeated;
    const auto v = read_json(R"({"a":1,"b":2,"a":3})", {}, &repeated);
    REQUIRE(v.ok());
    CHECK(write_json(*v) == R"({"a": 3, "b": 2})");
    CHECK(repeated == std::vector<std::string>{"a"});
    std::string many = "{";
    for (int i = 0; i < 40; ++i) many += "\"k" + std::to_string(i) + "\":1,";
    const auto large = read_json(many + "\"k39\":2,\"k0\":3,\"last\":4}", {}, &repeated);
    REQUIRE(large.ok());
    CHECK(large->object()->size() == 41);
    CHECK(write_json(*large->object()->find("k39")) == "2");
    CHECK(write_json(large->object()->members().front().value) == "3");
  }

  TEST_CASE("indented JSON is Python's with indent 2") {
    CHECK(write_json(*read_json(R"({"a":[1,{"b":[]}],"c":{}})"), 2) ==
          "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
  }

  TEST_CASE("what is no JSON is refused with its column") {
    CHECK(again("") == "! column 1: the text ends where a value is expected");
    CHECK(again("{\"a\":1} x") == "! column 9: there is more behind the value");
    CHECK(again("[1,]") == "! column 4: a value is expected");
    CHECK(again("[01]") == "! column 3: \",\" or \"]\" is expected");
    CHECK(again("{a:1}") == "! column 2: a key in double quotes is expected");
    CHECK(again("\"a\nb\"") == "! column 3: a control character inside a string");
    CHECK(again(R"("\x")") == "! column 3: an unknown escape inside a string");
    CHECK(again(R"("\u12")") == "! column 4: four hexadecimal digits are expected");
    CHECK(again("\"\xFF\"") == "! column 1: not UTF-8");
    CHECK(again("\xEF\xBB\xBF{}") == "! column 1: a value is expected");
    CHECK(again(std::string(5000, '1')) ==
          "! column 5001: a whole number of more than 4300 digits");
    CHECK(again(std::string(200, '[')) == "! column 102: nested deeper than 100");
    CHECK(again("-") == "! column 1: a value is expected");
    CHECK_FALSE(read_json("[1,2,3]", {.nodes_max = 3}).ok());
    CHECK_FALSE(read_json("[1,2,3]", {.bytes_max = 6}).ok());
  }
}
