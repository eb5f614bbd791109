#include "common/base/json.h"
#include "common/base/json_text.h"

#include <doctest/doctest.h>

#include <limits>

using namespace proctor;

namespace {

std::string refusal(std::string_view text) {
  const Result<Json> read = parse_json(text);
  return read.ok() ? read->dump() : read.error().detail;
}

}  // namespace

TEST_CASE("members are written by name, or in the order in which they were added") {
  Json j = {{"c", 1}, {"a", Json::object()}, {"b", 3}};
  CHECK(j.dump() == R"({"a":{},"b":3,"c":1})");
  CHECK(j.dump_as_built() == R"({"c":1,"a":{},"b":3})");
  j["a"] = 2;  // keeps its place
  CHECK(!j.emplace("b", 4));
  CHECK(j.erase("c") == 1);
  CHECK(j.erase("c") == 0);
  j["d"] = nullptr;
  j["c"] = 5;
  CHECK(j.dump_as_built() == R"({"a":2,"b":3,"d":null,"c":5})");
  Json copy = j;
  copy["0"] = std::move(j["d"]);
  CHECK(copy.dump_as_built(1) ==
        "{\n \"a\": 2,\n \"b\": 3,\n \"d\": null,\n \"c\": 5,\n \"0\": null\n}");
  CHECK(parse_json(R"({"z":{"y":1,"x":2},"a":3})")->dump_as_built() ==
        R"({"z":{"y":1,"x":2},"a":3})");
}

TEST_CASE("lists in braces become what they were with nlohmann") {
  CHECK(Json({{"a", 1}, {"b", 2}}).dump() == R"({"a":1,"b":2})");
  CHECK(Json({"a", 1}).dump() == R"(["a",1])");
  CHECK(Json({{"a", {}}, {"b", {1}}, {"c", {"d", "e"}}}).dump() ==
        R"({"a":null,"b":[1],"c":["d","e"]})");
  const Json nested = {{}};
  CHECK(nested.dump() == "[null]");
  Json j = {{"x", 1}};
  j["x"] = {Json::array()};
  CHECK(j.dump() == R"({"x":[[]]})");
  j["x"] = {};
  CHECK(j.dump() == R"({"x":null})");
}

TEST_CASE("a value takes itself, a part of itself, and becomes a part of itself") {
  Json j = {{"a", {1, 2}}, {"b", 3}};
  Json& same = j;
  j = same;
  j = std::move(same);
  CHECK(j.dump() == R"({"a":[1,2],"b":3})");
  j["c"] = j;
  CHECK(j.dump() == R"({"a":[1,2],"b":3,"c":{"a":[1,2],"b":3}})");
  j = j["c"];
  j["a"] = {{"b", 4}, {"a", {1, 2}}};
  j.update(j["a"]);
  CHECK(j.dump() == R"({"a":[1,2],"b":4})");
  j = std::move(j["a"]);
  j.push_back(j);
  CHECK(j.dump() == "[1,2,[1,2]]");
  j = std::move(j.back());
  CHECK(j.dump() == "[1,2]");
  const Json taken = std::move(j);
  CHECK(j.is_null());  // NOLINT(bugprone-use-after-move): what is left is promised
}

TEST_CASE("values of another kind are refused, and numbers are converted") {
  CHECK(Json(-1.5).get<std::int64_t>() == -1);
  CHECK(Json(7).get<double>() == 7.0);
  CHECK_THROWS_AS(Json(true).get<std::int64_t>(), Json::exception);
  CHECK_THROWS_AS(Json(true).get<double>(), Json::exception);
  CHECK_THROWS_AS(Json(1).get<bool>(), Json::exception);
  CHECK_THROWS_AS(Json("1").get<std::uint32_t>(), Json::exception);
  CHECK_THROWS_AS(Json().get<std::vector<int>>(), Json::exception);
  const Json j = {{"n", nullptr}};
  CHECK_THROWS_AS(j.value("n", 1), Json::exception);
  CHECK_THROWS_AS(j["m"].dump(), Json::exception);
  CHECK_THROWS_AS(Json(5).value("n", 1), Json::exception);
  CHECK(j.value("m", 1) == 1);
  CHECK(!Json(5).contains("n"));
  CHECK(Json(5).items().empty());
  // Only numbers become numbers: an enumeration would be written as 1.0.
  enum Plain { kOne };
  CHECK(!std::constructible_from<Json, Plain>);
  CHECK(!std::constructible_from<Json, std::vector<bool>::reference>);
}

TEST_CASE("numbers are compared by value and written in their shortest form") {
  CHECK(Json(std::numeric_limits<std::uint64_t>::max()) != Json(-1));
  CHECK(Json(-1) < Json(std::uint64_t{0}));
  CHECK(Json(2) == Json(2.0));
  CHECK(Json(1e-7).dump() == "1e-07");
  CHECK(Json(-0.0).dump() == "-0.0");
  CHECK(Json(100000000000000000000.0).dump() == "1e+20");
  CHECK(Json(std::numeric_limits<double>::quiet_NaN()).dump() == "null");
  CHECK(Json("\x7f\xc3\xa9\x01").dump(-1, Json::Utf8::kStrict, true) == R"("\u007f\u00e9\u0001")");
  CHECK_THROWS_AS(Json("a\xff").dump(), Json::exception);
  CHECK(Json("a\xff").dump(-1, Json::Utf8::kReplace) == "\"a\xEF\xBF\xBD\"");
}

TEST_CASE("text is read strictly, and the refusal says where it is wrong") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(refusal(nested(32)) == nested(32));
  CHECK(refusal(nested(33)) == "nested too deeply");
  CHECK(refusal(R"({"a":{"b":1},"b":{"b":[{"c":1,"\u0063":2}]}})") == "duplicate key \"c\"");
  CHECK(refusal(R"({"a":{"a":{"a":1}}})") == R"({"a":{"a":{"a":1}}})");
  CHECK(refusal("1 2") == "not JSON at byte 3");
  CHECK(refusal("") == "not JSON at byte 1");
  CHECK(refusal("[1,]") == "not JSON at byte 4");
  CHECK(refusal("\"\\ud800\"") == "not JSON at byte 8");
  CHECK(refusal("1e999") == "not JSON at byte 5");
  CHECK(refusal("-0") == "0");
  CHECK(refusal("18446744073709551616") == "1.8446744073709552e+19");
  CHECK(refusal("1e-999") == "0.0");
  CHECK(refusal("\"\xff\"") == "not UTF-8");
  CHECK(refusal("\xEF\xBB\xBF{}") == "{}");
  CHECK(refusal(std::string("1\0x", 3)) == "not JSON at byte 2");
}

TEST_CASE("canonical text has its keys in the order of UTF-16") {
  const Json j = {
      {"\uE000", 1}, {"\U00010000", 2}, {"\uD7FF", 3}, {"b", {-1, "\n"}}, {"a", nullptr}};
  CHECK(*canonical_json(j) ==
        "{\"a\":null,\"b\":[-1,\"\\n\"],\"\uD7FF\":3,\"\U00010000\":2,\"\uE000\":1}");
  CHECK(canonical_json({1.5}).error().detail == "floating point number in hashed JSON");
  CHECK(canonical_json({1LL << 53}).error().detail == "integer beyond 2^53 - 1 in hashed JSON");
  CHECK(canonical_json({-(1LL << 53)}).error().detail == "integer beyond 2^53 - 1 in hashed JSON");
  CHECK(canonical_json({"\xff"}).error().detail == "string is not UTF-8");
}

TEST_CASE("tokens say where they are, and a value is skipped") {
  const std::string text = R"( {"a\u0062": [1, {"c": "]"}, -0.5e+3], "d" : null} )";
  JsonLexer in(text);
  const auto next = [&](JsonToken expected) {
    CHECK(in.next() == expected);
    return in.bytes();
  };
  CHECK(next(JsonToken::kObject) == "{");
  CHECK(next(JsonToken::kKey) == R"("a\u0062")");
  CHECK(in.text() == "ab");
  CHECK(next(JsonToken::kArray) == "[");
  const std::size_t from = in.at();
  in.skip();
  CHECK(text.substr(from, in.end() - from) == R"([1, {"c": "]"}, -0.5e+3])");
  CHECK(next(JsonToken::kKey) == "\"d\"");
  CHECK(next(JsonToken::kNull) == "null");
  in.skip();
  CHECK(next(JsonToken::kObjectEnd) == "}");
  CHECK(in.next() == JsonToken::kEnd);
  JsonLexer inner(text, {.depth_max = 1}, from);
  CHECK(inner.next() == JsonToken::kArray);
  CHECK(inner.next() == JsonToken::kNumber);
  CHECK(!inner.real());
  CHECK(inner.next() == JsonToken::kFault);
  CHECK(inner.at() == text.find("{\"c"));
}
