// What is told and kept of calls, and calls that a recording answers.
#include <map>
#include <sstream>

#include "common/base/digest.h"
#include "tests/integration/gateway/session_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

std::string turn(int messages, const std::string& more = "") {
  std::string body = R"({"model":"m","max_completion_tokens":100,"messages":[)";
  for (int i = 0; i < messages; ++i) {
    if (0 < i) body += ',';
    body +=
        R"({"role":"user","content":")" + std::string(1'200, static_cast<char>('a' + i)) + "\"}";
  }
  return body + more + "]}";
}

std::string streaming(std::string body) {
  return body.insert(1, R"("stream":true,)");
}

std::string whole(const std::map<std::string, std::string>& kept, const Json& pieces) {
  std::string out;
  for (const Json& p : pieces) out += kept.at(p.get<std::string>());
  return out;
}

CassetteCall recorded(const std::string& request, const ProviderSays& says) {
  CassetteCall c;
  c.run = "t/m/r1";
  c.route = "chat";
  c.status = says.status;
  c.pieces = {request};
  c.answer = says.body;
  for (const std::string& piece : says.pieces) c.answer += piece;
  c.streamed = !says.pieces.empty();
  return c;
}

SessionScene::Shape on_cassette(std::vector<CassetteCall> calls) {
  SessionScene::Shape shape;
  shape.player =
      std::make_shared<CassettePlayer>(std::move(calls), "t/m/r1", CassetteMatch::kCanonical);
  return shape;
}

const ProviderServer::Script kNobody = [](const auto&, std::size_t) -> ProviderSays {
  return chat_answer("nobody asks me", 1, 1);
};

}  // namespace

TEST_SUITE("gateway trace") {
  TEST_CASE("each turn of a conversation keeps what is new in it") {
    SessionScene scene({}, [](const auto&, std::size_t) { return chat_answer("hello", 8, 9); });
    for (int n = 1; n <= 5; ++n) CHECK(scene.ask(kChat, turn(n)).status == 200);
    const auto said = scene.events("model.request");
    REQUIRE(said.size() == 5);
    const auto kept = scene.kept();
    for (int n = 1; n <= 5; ++n) {
      const Json& e = said[static_cast<std::size_t>(n) - 1];
      CHECK(whole(kept, e["pieces"]) == turn(n));
      CHECK(e["digest"] == sha256(turn(n)).hex());
      CHECK_FALSE(e.contains("stored_digest"));
    }
    std::size_t bytes = 0;
    for (const auto& [digest, text] : kept) bytes += text.size();
    CHECK(bytes < turn(5).size() + 2'000);
  }

  TEST_CASE("tools that are asked for, and what came of them, are told once, by their digests") {
    const std::string call =
        R"({"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"{}"}}]}}],"usage":{"prompt_tokens":8,"completion_tokens":9}})";
    SessionScene scene({}, [&](const auto&, std::size_t) { return ProviderSays{.body = call}; });
    const std::string result = R"(,{"role":"tool","tool_call_id":"c1","content":"42"})";
    scene.ask(kChat, turn(1));
    scene.ask(kChat, turn(1, result));
    scene.ask(kChat, turn(1, result));
    const auto answers = scene.events("model.response");
    REQUIRE(answers.size() == 3);
    CHECK(answers[0]["tool_calls"] ==
          Json::array(
              {{{"id", "c1"}, {"name", "ls"}, {"digest", sha256("{}").hex()}, {"bytes", 2}}}));
    const auto asked = scene.events("model.request");
    CHECK_FALSE(asked[0].contains("tool_results"));
    CHECK(asked[1]["tool_results"] ==
          Json::array({{{"id", "c1"}, {"digest", sha256("\"42\"").hex()}, {"bytes", 4}}}));
    CHECK_FALSE(asked[2].contains("tool_results"));
  }

  TEST_CASE("the run's token and what the rules name is in nothing that is told or kept") {
    SessionScene::Shape shape;
    shape.redactor = std::make_shared<Redactor>(Redactor::Rules{{"name", "Ada Lovelace"}});
    SessionScene scene(
        shape, [](const auto&, std::size_t) { return chat_answer("I am Ada Lovelace", 8, 9); });
    const std::string body =
        R"({"model":"m","max_completion_tokens":100,"messages":[{"role":"user","content":"prk1_test, Ada Lovelace"}]})";
    CHECK(scene.ask(kChat, body).json()["choices"][0]["message"]["content"] == "I am Ada Lovelace");
    CHECK(scene.provider().heard()[0].raw.find("Ada Lovelace") != std::string::npos);
    const Json asked = scene.events("model.request")[0], answer = scene.events("model.response")[0];
    CHECK(asked["digest"] == sha256(body).hex());
    CHECK(asked["stored_digest"] == sha256(whole(scene.kept(), asked["pieces"])).hex());
    CHECK(scene.kept().contains(answer["stored_digest"].get<std::string>()));
    const std::string all = scene.all_evidence();
    CHECK(all.find("Ada") == std::string::npos);
    CHECK(all.find(kToken) == std::string::npos);
    CHECK(all.find("[redacted:token:9:") != std::string::npos);
    CHECK(all.find("[redacted:name:12:") != std::string::npos);
  }

  TEST_CASE("each answer is handed to who watches it, as it may be kept") {
    std::mutex mutex;
    std::vector<std::pair<std::uint64_t, std::string>> heard;
    SessionScene::Shape shape;
    shape.redactor = std::make_shared<Redactor>(Redactor::Rules{{"name", "Ada Lovelace"}});
    shape.answered = [&](std::uint64_t call, std::string_view answer) {
      const std::lock_guard lock(mutex);
      heard.emplace_back(call, answer);
    };
    SessionScene scene(shape, [](const auto&, std::size_t call) {
      return call == 0 ? chat_answer("rm -rf /, Ada Lovelace", 8, 9)
                       : chat_stream("rm -rf /, Ada", 8, 9);
    });
    CHECK(scene.ask(kChat, turn(1)).status == 200);
    CHECK(scene.ask(kChat, streaming(turn(1))).status == 200);
    scene.close();
    const auto answers = scene.events("model.response");
    REQUIRE(answers.size() == 2);
    REQUIRE(heard.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(heard[i].first == answers[i]["call"]);
      const std::string stored = answers[i].value("stored_digest", "");
      CHECK(sha256(heard[i].second).hex() == (stored.empty() ? answers[i]["digest"] : stored));
    }
    CHECK(heard[0].second.find("Ada Lovelace") == std::string::npos);
  }

  TEST_CASE("what calls used is counted by kind, and what was refused too") {
    SessionScene scene({}, [](const auto&, std::size_t n) {
      if (n == 1) return ProviderSays{.body = "{}"};
      return ProviderSays{
          .body =
              R"({"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":80,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}})"};
    });
    scene.ask(kChat, turn(1));
    scene.ask(kChat, turn(1));  // no usage
    scene.ask(kChat, R"({"model":"another","messages":[]})");
    scene.ask(kChat, turn(1), "prk1_wrong");
    scene.close();
    const Usage u = scene.usage();
    CHECK(u.model_calls == 2);
    CHECK(u.cached_input == 60);
    CHECK(u.reasoning_tokens == 5);
    CHECK(u.ceiling_calls == 1);
    CHECK(u.ceiling_micros + 80 + 90 == u.priced_micros);
    CHECK(u.refused_calls == 2);
  }

  TEST_CASE("a recording answers without a provider and without money, and counts as it was") {
    SessionScene scene(on_cassette({recorded(turn(1), chat_answer("first", 8, 9)),
                                    recorded(streaming(turn(2)), chat_stream("second", 20, 30)),
                                    recorded(turn(3), chat_answer("third", 1, 1))}),
                       kNobody);
    CHECK(scene.ask(kChat, turn(1)).json()["choices"][0]["message"]["content"] == "first");
    const HttpAnswer stream = scene.ask(kChat, streaming(turn(2)));
    CHECK(stream.whole);
    CHECK(stream.body.find("\"delta\"") != std::string::npos);
    CHECK(stream.body.ends_with("data: [DONE]\n\n"));
    scene.close();
    CHECK(scene.provider().heard().empty());
    CHECK(scene.spent() == 0);
    CHECK(scene.held() == 0);
    const Usage u = scene.usage();
    CHECK(u.model_calls == 2);
    CHECK(u.replayed_calls == 2);
    CHECK(u.input_tokens == 28);
    CHECK(u.priced_micros == 0);
    // Two calls that end together are written in either order.
    const auto answers = scene.events("model.response");
    const auto first =
        std::ranges::find_if(answers, [](const Json& answer) { return answer["replayed"] == 1; });
    REQUIRE(first != answers.end());
    CHECK((*first)["settled"] == "usage");
    CHECK(scene.events("gateway.open")[0]["cassette"]["calls"] == 3);
    CHECK(scene.events("gateway.closed")[0]["cassette_unused"] == 1);
  }

  TEST_CASE("real clients' calls of yesterday answer those of today without money") {
    const auto text =
        read_file(testing::source_dir() / "tests/unit/gateway/two_days.jsonl", 1 << 20);
    REQUIRE(text.ok());
    struct Days {
      MethodGateway::As as = MethodGateway::As::kOpenai;
      std::vector<CassetteCall> yesterday{};
      std::vector<std::string> today{};
    };
    std::map<std::string, Days> routes{{"chat", {}},
                                       {"messages", {MethodGateway::As::kAnthropic}},
                                       {"responses", {MethodGateway::As::kOpenaiResponses}}};
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const Json call = json_or_null(line);
      const std::string route = call["route"].get<std::string>(), body = call["body"].dump();
      Days& days = routes.at(route);
      if (call["day"] == 2) {
        days.today.push_back(body);
        continue;
      }
      days.yesterday.push_back(recorded(body, route == "chat"       ? chat_answer("a", 8, 9)
                                              : route == "messages" ? messages_stream("a", 8, 9)
                                                                    : responses_stream("a", 8, 9)));
      days.yesterday.back().route = route;
    }
    for (const auto& [route, days] : routes) {
      CAPTURE(route);
      REQUIRE(2 <= days.today.size());
      SessionScene::Shape shape = on_cassette(days.yesterday);
      shape.as = days.as;
      SessionScene scene(shape, kNobody);
      for (const std::string& body : days.today) {
        const HttpAnswer said = scene.ask(route == "chat" ? kChat : "/v1/" + route, body);
        CHECK_MESSAGE(said.status == 200, said.body);
      }
      scene.close();
      CHECK(scene.provider().heard().empty());
      CHECK(scene.spent() == 0);
      CHECK(scene.usage().replayed_calls == days.today.size());
      CHECK(scene.usage().priced_micros == 0);
      CHECK(scene.events("cassette.divergence").empty());
      CHECK(scene.events("gateway.closed")[0]["cassette_unused"] == 0);
    }
  }

  TEST_CASE("a recording may charge what a provider would have, so that caps act the same") {
    SessionScene::Shape shape = on_cassette({recorded(turn(1), chat_answer("first", 8, 9))});
    shape.access.cassette_charges = true;
    SessionScene scene(shape, kNobody);
    CHECK(scene.ask(kChat, turn(1)).status == 200);
    scene.close();
    CHECK(scene.spent() == 8 + 9 * 10);
    CHECK(scene.usage().replayed_calls == 1);
  }

  TEST_CASE("the first call that a recording does not have is named, and is the last") {
    SessionScene scene(on_cassette({recorded(turn(2), chat_answer("first", 8, 9))}), kNobody);
    const HttpAnswer no = scene.ask(kChat, turn(1));
    CHECK(no.status == 401);
    CHECK(no.body.find("cassette_end") != std::string::npos);
    CHECK(no.body.find("call 1 of the recording: /messages/1 differs: (absent) here") !=
          std::string::npos);
    CHECK(scene.ask(kChat, turn(2)).status == 401);
    // Nobody may be judged by another's recording.
    CHECK(scene.lack().why.find("it is a recording that has no such call: cassette: call 1") == 0);
    scene.close();
    const auto events = scene.events("cassette.divergence");
    REQUIRE(events.size() == 1);
    CHECK(events[0]["expected"] == 1);
    CHECK(events[0]["pointer"] == "/messages/1");
    CHECK(scene.spent() == 0);
    CHECK(scene.usage().model_calls == 0);
  }
}
