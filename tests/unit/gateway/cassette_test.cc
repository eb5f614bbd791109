// Recordings: what is the same request, which recorded call answers it, and where two differ.
#include <doctest/doctest.h>

#include "common/base/json.h"
#include "worker/gateway/cassette_match.h"
#include "worker/gateway/cassette_player.h"

using namespace proctor;

namespace {

CassetteCall recorded(const std::string& request, const std::string& run = "t/m/r1",
                      const std::string& route = "chat") {
  CassetteCall c;
  c.run = run;
  c.route = route;
  c.status = 200;
  c.pieces = {request};
  c.answer = "to " + request;
  return c;
}

std::string taken(CassettePlayer& player, const std::string& body, ModelApi api = ModelApi::kChat) {
  const auto found = player.take(api, body);
  if (const auto* hit = std::get_if<CassettePlayer::Hit>(&found))
    return std::to_string(hit->number);
  return std::get<CassettePlayer::Miss>(found).text;
}

}  // namespace

TEST_SUITE("gateway cassette") {
  TEST_CASE("spelling, order and what changes from run to run do not count") {
    const std::string a =
        R"({"model":"m","messages":[{"role":"user","content":"h\u00e9 \/"}],"temperature":0.70,"user":"a"})";
    const std::string b =
        R"({ "temperature": 0.70, "metadata": {"run": 7}, "store": true, "messages": [ {"content": "hé /", "cache_control": {"type": "ephemeral"}, "role": "user"} ], "model": "m"})";
    CHECK(canonical_request(a) ==
          R"({"messages":[{"content":"hé /","role":"user"}],"model":"m","temperature":0.70})");
    CHECK(canonical_request(a) == canonical_request(b));
    CHECK_FALSE(first_difference(a, b).has_value());
    // Volatile at the top alone, but for cache_control.
    CHECK(canonical_request(R"({"a":{"user":1}})") == R"({"a":{"user":1}})");
    CHECK(canonical_request("[1]").empty());
    CHECK(canonical_request("no").empty());
  }

  TEST_CASE("the first place at which two requests differ is named") {
    const auto at = [](const std::string& ours, const std::string& theirs) {
      const auto d = first_difference(ours, theirs);
      return d ? d->pointer + " " + d->ours + " " + d->theirs : "";
    };
    CHECK(at(R"({"a":[{"t":"0.31s"}]})", R"({"a":[{"t":"0.29s"}]})") ==
          R"(/a/0/t "0.31s" "0.29s")");
    CHECK(at(R"({"a":[1]})", R"({"a":[1,{"b":2}]})") == R"(/a/1 (absent) {"b":2})");
    CHECK(at(R"({"a/b":1,"z":1})", R"({"z":1})") == "/a~1b 1 (absent)");
    CHECK(at(R"({"a":1})", R"({"a":"1"})") == R"(/a 1 "1")");
    const std::string far = std::string(1'000, 'x');
    const auto d = first_difference("{\"a\":\"" + far + "1\"}", "{\"a\":\"" + far + "2\"}");
    REQUIRE(d);
    CHECK(d->ours == "..." + std::string(40, 'x') + "1\"");
  }

  TEST_CASE("by meaning, each recorded call answers once, in whatever order they come") {
    CassettePlayer player({recorded(R"({"n":1})"), recorded(R"({"n":2})"), recorded(R"({"n":1})")},
                          "other", CassetteMatch::kCanonical);
    CHECK(taken(player, R"({"n":2})") == "2");
    CHECK(taken(player, R"({ "n": 1 })") == "1");
    CHECK(player.unused() == 1);
    CHECK(taken(player, R"({"n":2})") == "call 3 of the recording: /n differs: 2 here, 1 recorded");
    CHECK(taken(player, R"({"n":1})") == "3");
    CHECK(taken(player, R"({"n":1})") == "the recording has no further call of chat");
    CHECK(player.unused() == 0);
  }

  TEST_CASE("by bytes another spelling is another call, and by order anything is the next one") {
    CassettePlayer exact({recorded(R"({"n":1})")}, "t/m/r1", CassetteMatch::kExact);
    CHECK(taken(exact, R"({"n": 1})").starts_with("call 1 of the recording: the body differs"));
    CHECK(taken(exact, R"({"n":1})") == "1");
    CassettePlayer sequence(
        {recorded(R"({"n":1})"), recorded("{}", "t/m/r1", "messages"), recorded(R"({"n":2})")},
        "t/m/r1", CassetteMatch::kSequence);
    CHECK(taken(sequence, R"({"n":9})") == "1");
    CHECK(taken(sequence, R"({"n":9})") == "3");
    CHECK(taken(sequence, "{}", ModelApi::kMessages) == "2");
  }

  TEST_CASE("a run that was recorded is answered by its own calls alone") {
    const auto calls = [] {
      return std::vector{recorded("{}", "t/m/r1"), recorded("{}", "t/m/r2")};
    };
    CassettePlayer own(calls(), "t/m/r2", CassetteMatch::kCanonical);
    CHECK(own.unused() == 1);
    CHECK(taken(own, "{}") == "2");
    CHECK(CassettePlayer(calls(), "t/m/r3", CassetteMatch::kCanonical).unused() == 2);
  }
}
