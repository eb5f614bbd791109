// What calls cost, however they end.
#include <sys/stat.h>

#include <atomic>
#include <future>

#include "tests/integration/gateway/session_scene.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using namespace proctor::testing;
using Then = ProviderSays::Then;

TEST_SUITE("gateway session") {
  TEST_CASE("a call goes on with the operator's key and is charged at what it used") {
    SessionScene scene({}, [](const auto&, std::size_t) { return chat_answer("hello", 8, 9); });
    const HttpAnswer answer = scene.ask(kChat, chat(100, R"(,"unknown":{"kept":1.50})"));
    CHECK(answer.status == 200);
    CHECK(answer.json()["choices"][0]["message"]["content"] == "hello");
    CHECK(scene.spent() == 8 + 9 * 10);
    CHECK(scene.held() == 0);
    const auto heard = scene.provider().heard();
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].path == "/v1/chat/completions");
    CHECK(
        heard[0].raw ==
        R"({"model":"provider-model","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":100,"unknown":{"kept":1.50}})");
    CHECK(heard[0].head.find("authorization: Bearer " + std::string(kProviderKey)) !=
          std::string::npos);
    CHECK(heard[0].head.find(kToken) == std::string::npos);
    CHECK(heard[0].head.find("user-agent: proctor/") != std::string::npos);
    const auto said = scene.events("model.response");
    REQUIRE(said.size() == 1);
    CHECK(said[0]["settled"] == "usage");
    CHECK(said[0]["charged_micros"] == 98);
    CHECK(scene.all_evidence().find(kProviderKey) == std::string::npos);
  }

  TEST_CASE("Anthropic's messages have their own place, header and counts") {
    SessionScene::Shape shape;
    shape.as = MethodGateway::As::kAnthropic;
    shape.access.auth = ModelAuth::kXApiKey;
    SessionScene scene(shape,
                       [](const auto&, std::size_t) { return messages_answer("hello", 8, 9); });
    const UniqueFd fd = scene.connect();
    const std::string body = R"({"model":"m","max_tokens":50,"messages":[]})";
    SessionScene::say(
        fd.get(),
        "POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost:8710\r\nContent-Type: "
        "application/json\r\nx-api-key: prk1_test\r\nanthropic-version: 2023-06-01\r\n"
        "accept-encoding: gzip\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
    CHECK(SessionScene::read(fd.get()).json()["content"][0]["text"] == "hello");
    CHECK(scene.spent() == 98);
    const auto heard = scene.provider().heard();
    CHECK(heard[0].path == "/v1/messages");
    CHECK(heard[0].head.find("x-api-key: " + std::string(kProviderKey)) != std::string::npos);
    CHECK(heard[0].head.find("anthropic-version: 2023-06-01") != std::string::npos);
    CHECK(heard[0].head.find("accept-encoding: identity") != std::string::npos);
    CHECK(heard[0].head.find("gzip") == std::string::npos);
  }

  TEST_CASE("a limit is lowered to what the money holds, and then nothing more is granted") {
    SessionScene::Shape shape;
    shape.micros = 30'000;
    shape.access.output_floor = 100;
    SessionScene scene(shape, [](const ProviderServer::Heard& h, std::size_t) {
      const auto limit = h.body["max_completion_tokens"].get<std::uint64_t>();
      return chat_answer("x", 10, limit);  // uses all that it may
    });
    std::size_t served = 0;
    HttpAnswer last;
    for (int i = 0; i < 20; ++i) {
      last = scene.ask(kChat, chat(1'000));
      if (last.status != 200) break;
      ++served;
    }
    CHECK(last.status == 401);
    CHECK(last.json()["error"]["code"] == "budget_exceeded");
    CHECK(last.head.find("x-should-retry: false") != std::string::npos);
    CHECK(served == 3);
    CHECK(scene.stopped());
    // The last call went out with less than it asked for, and the cap was never passed.
    std::uint64_t billed = 0;
    for (const auto& h : scene.provider().heard())
      billed += 10 + h.body["max_completion_tokens"].get<std::uint64_t>() * 10;
    CHECK(scene.provider().heard().size() == served);
    CHECK(billed == static_cast<std::uint64_t>(scene.spent()));
    CHECK(scene.spent() <= 30'000);
    // Whoever asks again gets the same word, without a provider.
    CHECK(scene.ask(kChat, chat(1)).status == 401);
    CHECK(scene.provider().heard().size() == served);
  }

  TEST_CASE("an answer without usage, and no answer at all, cost all that was reserved") {
    for (const Then then : {Then::kGoOn, Then::kCloseFirst}) {
      SessionScene scene({}, [&](const auto&, std::size_t) {
        ProviderSays says;
        says.body = R"({"choices":[{}]})";
        says.then = then;
        return says;
      });
      const HttpAnswer answer = scene.ask(kChat, chat(100));
      CHECK(answer.status == (then == Then::kGoOn ? 200 : 0));  // 0: the connection ended
      const auto said = scene.events("model.request");
      CHECK(scene.spent() == said[0]["ceiling"]["micros"].get<std::int64_t>());
      CHECK(scene.events("model.response")[0]["settled"] == "ceiling");
      CHECK(scene.held() == 0);
      CHECK(scene.provider().heard().size() == 1);  // it may have run: not asked again
    }
  }

  TEST_CASE("errors are settled by their status, and come back as they were said") {
    struct Row {
      int status;
      bool free;
      bool errors_are_free = true;
    };
    for (const Row& row : {Row{400, true}, Row{404, true}, Row{422, true}, Row{500, true},
                           Row{500, false, false}, Row{302, false}, Row{401, true}}) {
      CAPTURE(row.status);
      SessionScene::Shape shape;
      shape.access.errors_are_free = row.errors_are_free;
      SessionScene scene(shape, [&](const auto&, std::size_t) {
        ProviderSays says;
        says.status = row.status;
        says.headers = "Location: http://169.254.169.254/\r\n";
        says.body = std::string(R"({"error":{"message":"bad key )") + kProviderKey + "\"}}";
        return says;
      });
      const HttpAnswer answer = scene.ask(kChat, chat(100));
      CHECK(answer.status == row.status);
      CHECK(answer.body.find(kProviderKey) == std::string::npos);
      CHECK(answer.head.find("Location") == std::string::npos);
      CHECK((scene.spent() == 0) == row.free);
      CHECK(scene.all_evidence().find(kProviderKey) == std::string::npos);
    }
  }

  TEST_CASE("what a provider says of an error passes as it came, once for each request") {
    struct Row {
      int status;
      std::string headers;  // of the provider
      std::string seen;     // of those, by the client
    };
    const std::string secret = kProviderKey;
    for (const Row& row :
         {Row{429, "", ""}, Row{429, "Retry-After: 7\r\n", "retry-after: 7\r\n"},
          Row{503, "retry-after-ms: 20\r\nX-Should-Retry: true\r\n",
              "retry-after-ms: 20\r\nx-should-retry: true\r\n"},
          Row{500, "x-should-retry: false\r\nset-cookie: a=b\r\n", "x-should-retry: false\r\n"},
          Row{529, "retry-after: " + secret + "\r\n", "retry-after: ***\r\n"},
          Row{502, "retry-after: " + std::string(300, '7') + "\r\n", ""}}) {
      CAPTURE(row.status);
      CAPTURE(row.headers);
      SessionScene scene({}, [&](const auto&, std::size_t) {
        return ProviderSays{.status = row.status,
                            .headers = row.headers,
                            .content_type = "text/html",
                            .body = "<html>no</html>"};
      });
      const HttpAnswer answer = scene.ask(kChat, chat(100));
      CHECK(answer.status == row.status);
      CHECK(answer.body == "<html>no</html>");
      CHECK(answer.head.find("content-type: text/html\r\n") != std::string::npos);
      std::string seen;
      for (const std::string name :
           {"retry-after", "retry-after-ms", "x-should-retry", "set-cookie", "x-proctor"})
        if (const std::size_t at = answer.head.find("\r\n" + name + ": "); at != std::string::npos)
          seen += answer.head.substr(at + 2, answer.head.find("\r\n", at + 2) - at);
      CHECK(seen == row.seen);
      CHECK(scene.provider().heard().size() == 1);
      CHECK(scene.events("model.response")[0]["tries"] == 1);
      CHECK(scene.held() == 0);
      CHECK(scene.spent() == 0);
      const bool busy = row.status == 429 || row.status == 503 || row.status == 529;
      CHECK(scene.usage().busy_calls == (busy ? 1 : 0));
      CHECK(scene.usage().failed_calls == (busy ? 0 : 1));
    }
  }

  TEST_CASE("a cap that only calls without an answer used up is no end of its agent") {
    for (const bool answered : {false, true}) {
      CAPTURE(answered);
      SessionScene::Shape shape;
      shape.micros = 30'000;
      shape.access.output_floor = 100;
      SessionScene scene(shape, [&](const ProviderServer::Heard& h, std::size_t call) {
        // A whole answer of all that was asked for leaves no room either, and is no loss.
        ProviderSays says = chat_answer(
            "x", 10, answered ? h.body["max_completion_tokens"].get<std::uint64_t>() : 1);
        if (answered || call == 0) return says;
        says.then = Then::kCloseFirst;
        return says;
      });
      std::size_t asked = 1;
      HttpAnswer last = scene.ask(kChat, chat(1'000));
      for (; last.status != 401 && asked < 20; ++asked) last = scene.ask(kChat, chat(1'000));
      CHECK(last.json()["error"]["code"] == "budget_exceeded");
      CHECK(scene.usage().failed_calls == (answered ? 0 : asked - 2));
      CHECK(scene.usage().busy_calls == 0);
      scene.close();
      CHECK(scene.lack().eaten != answered);
      CHECK(scene.lack().why.empty() == answered);
    }
  }

  TEST_CASE("after an answer a provider forbids one request, before any the operator's account") {
    SessionScene scene({}, [](const auto&, std::size_t call) {
      if (call == 1) return ProviderSays{.status = 403, .body = R"({"error":{"code":"flagged"}})"};
      return chat_answer("x", 1, 1);
    });
    CHECK(scene.ask(kChat, chat(100)).status == 200);
    const HttpAnswer forbidden = scene.ask(kChat, chat(100));
    CHECK(forbidden.status == 403);
    CHECK(forbidden.json().at("error").at("code") == "flagged");
    CHECK(scene.ask(kChat, chat(100)).status == 200);
    CHECK(scene.held() == 0);
    SessionScene other(
        {}, [](const auto&, std::size_t) { return ProviderSays{.status = 403, .body = "{}"}; });
    CHECK(other.ask(kChat, chat(100)).json().at("error").at("code") == "upstream_refused");
    CHECK(other.provider().heard().size() == 1);
  }

  TEST_CASE("after an answer 401 is of one request, unless the key is refused to us as well") {
    for (const bool revoked : {false, true}) {
      CAPTURE(revoked);
      SessionScene scene({}, [revoked](const auto& heard, std::size_t call) {
        if (call == 0) return chat_answer("x", 1, 1);
        // What is asked with nothing of the agent's: a provider without a word on it says 400.
        if (heard.body == Json::object())
          return ProviderSays{.status = revoked ? 401 : 400, .body = R"({"error":{}})"};
        return ProviderSays{.status = 401, .body = R"({"error":{"code":"missing_scopes"}})"};
      });
      CHECK(scene.ask(kChat, chat(100)).status == 200);
      const HttpAnswer denied = scene.ask(kChat, chat(100));
      CHECK(denied.status == 401);
      CHECK(denied.json().at("error").at("code") ==
            (revoked ? "upstream_refused" : "missing_scopes"));
      CHECK(scene.provider().heard().size() == 3);
      CHECK(scene.provider().heard().back().head.find("user-agent: proctor/") != std::string::npos);
      CHECK(scene.provider().heard().back().head.find("test/1") == std::string::npos);
      CHECK(scene.events("model.response").back()["key_status"] == (revoked ? 401 : 400));
      scene.close();
      CHECK(scene.lack().why.empty() != revoked);
      CHECK(scene.spent() == 11);
      CHECK(scene.held() == 0);
    }
  }

  TEST_CASE("a provider that nobody can reach costs nothing") {
    SessionScene::Shape shape;
    SessionScene scene(shape, [](const auto&, std::size_t) { return ProviderSays{}; });
    ::chmod(scene.key_file().c_str(), 0644);  // others may read it: it is not used
    const HttpAnswer answer = scene.ask(kChat, chat(100));
    CHECK(answer.status == 401);
    CHECK(answer.json()["error"]["code"] == "upstream_refused");
    CHECK(scene.spent() == 0);
    CHECK(scene.held() == 0);
    CHECK(scene.provider().heard().empty());
  }

  TEST_CASE("a client that leaves while its answer is awaited still pays for it") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      ProviderSays says = chat_answer("late", 5, 6);
      says.then = Then::kHangFirst;
      return says;
    });
    {
      const UniqueFd fd = scene.connect();
      SessionScene::say(fd.get(), SessionScene::request(kChat, chat(100)));
      REQUIRE(SessionScene::eventually([&] { return scene.provider().heard().size() == 1; }));
    }
    CHECK(0 < scene.held());
    scene.provider().release();
    REQUIRE(SessionScene::eventually([&] { return scene.held() == 0; }));
    CHECK(scene.spent() == 65);
  }

  TEST_CASE("what is under way when the agent ends is cut off after its grace, at its ceiling") {
    SessionScene::Shape shape;
    shape.bounds.drain = std::chrono::milliseconds(50);
    SessionScene scene(shape, [](const auto&, std::size_t) {
      ProviderSays says = chat_answer("never", 5, 6);
      says.then = Then::kHangFirst;
      return says;
    });
    const UniqueFd fd = scene.connect();
    SessionScene::say(fd.get(), SessionScene::request(kChat, chat(100)));
    REQUIRE(SessionScene::eventually([&] { return scene.provider().heard().size() == 1; }));
    const std::int64_t held = scene.held();
    scene.close();
    CHECK(scene.held() == 0);
    CHECK(scene.spent() == held);
    CHECK(scene.events("gateway.closed")[0]["at_ceiling"] == 1);
  }

  TEST_CASE("parallel calls wait for held money instead of being refused, and never pass the cap") {
    SessionScene::Shape shape;
    shape.micros = 4'000;  // room for three at a time
    shape.access.output_floor = 100;
    SessionScene scene(shape, [](const auto&, std::size_t) { return chat_answer("x", 10, 9); });
    std::vector<std::jthread> clients;
    std::atomic<int> served = 0;
    for (int i = 0; i < 20; ++i)
      clients.emplace_back([&] { served += scene.ask(kChat, chat(100)).status == 200 ? 1 : 0; });
    clients.clear();
    CHECK(served == 20);
    CHECK(scene.spent() == 20 * 100);
  }

  TEST_CASE("a call is made when its money counts, and no other call waits for that") {
    std::atomic<int> covers{0};
    std::promise<void> disk;
    SessionScene::Shape shape;
    shape.cover = [&, synced = disk.get_future().share()] {
      const bool first = covers++ == 0;
      covers.notify_all();
      if (first) synced.wait();
    };
    SessionScene scene(shape, [](const auto&, std::size_t) { return chat_answer("hello", 8, 9); });
    auto first = std::async(std::launch::async, [&] { return scene.ask(kChat, chat(100)).status; });
    covers.wait(0);
    CHECK(scene.ask(kChat, chat(100)).status == 200);
    CHECK(scene.provider().heard().size() == 1);
    disk.set_value();
    CHECK(first.get() == 200);
    CHECK(scene.provider().heard().size() == 2);
    CHECK(scene.spent() == 2 * (8 + 9 * 10));
  }

  TEST_CASE("a list of prompts is reserved for every one of them, and fits or is not granted") {
    SessionScene::Shape shape;
    shape.micros = 100'000;
    SessionScene scene(shape, [](const ProviderServer::Heard& h, std::size_t) {
      ProviderSays says;  // all that the limit allows, for each prompt
      const std::uint64_t used =
          h.body["prompt"].size() * h.body["max_tokens"].get<std::uint64_t>();
      says.body = Json{{"choices", Json::array({{{"text", "x"}}})},
                       {"usage", {{"prompt_tokens", 100}, {"completion_tokens", used}}}}
                      .dump();
      return says;
    });
    const auto ask = [&](const std::string& prompt, std::size_t count) {
      std::string body = R"({"model":"m","max_tokens":16,"prompt":[)" + prompt;
      for (std::size_t i = 1; i < count; ++i) body += "," + prompt;
      return scene.ask("/v1/completions", body + "]}").status;
    };
    CHECK(ask("\"a\"", 100) == 200);
    const auto reserved = scene.events("model.request")[0]["ceiling"];
    CHECK(reserved["output"] == 1'600);
    CHECK(scene.spent() == 100 + 16'000);
    CHECK_FALSE(scene.events("model.response")[0].contains("overrun"));
    CHECK(ask("[1]", 1'000) == 401);  // 160,000 of output
    CHECK(scene.provider().heard().size() == 1);
  }

  TEST_CASE("a bill above the worst case is told, and is the last of its run") {
    struct Bill {
      std::uint64_t input, output;
    };
    for (const Bill bill : {Bill{10, 5'000}, Bill{50'000, 10}}) {
      CAPTURE(bill.input);
      SessionScene scene(
          {}, [&](const auto&, std::size_t) { return chat_answer("x", bill.input, bill.output); });
      CHECK(scene.ask(kChat, chat(100)).status == 200);  // it is paid for, so it is delivered
      const auto said = scene.events("model.response");
      REQUIRE(said.size() == 1);
      CHECK(said[0]["overrun"] == true);
      CHECK(said[0]["usage"]["input_tokens"] == bill.input);
      CHECK(said[0]["usage"]["output_tokens"] == bill.output);
      CHECK(said[0]["why"].get<std::string>().find(std::to_string(bill.output)) !=
            std::string::npos);
      const auto stopped = scene.events("gateway.stopped");
      REQUIRE(stopped.size() == 1);
      CHECK(stopped[0]["code"] == "overrun");
      const HttpAnswer next = scene.ask(kChat, chat(100));
      CHECK(next.status == 401);
      CHECK(next.json()["error"]["code"] == "overrun");
      CHECK(next.head.find("x-should-retry: false") != std::string::npos);
      CHECK(scene.provider().heard().size() == 1);
      CHECK(scene.usage().overruns == 1);
      scene.close();
      CHECK(scene.events("gateway.closed")[0]["overruns"] == 1);
    }
  }

  TEST_CASE("what a provider writes into a cache unasked and unpriced is no overrun") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      // All that was reserved, written into a cache that has no price and was not asked for.
      ProviderSays says = chat_answer("x", 90, 100);
      Json body = read_json(says.body);
      body["usage"]["prompt_tokens_details"]["cache_write_tokens"] = 90;
      says.body = body.dump();
      return says;
    });
    CHECK(scene.ask(kChat, chat(100)).status == 200);
    CHECK(scene.events("gateway.stopped").empty());
    CHECK(scene.usage().overruns == 0);
    CHECK(scene.usage().defaulted == 1);
    CHECK(scene.ask(kChat, chat(100)).status == 200);
  }

  TEST_CASE("embeddings and counting tokens have no output, and counting is free") {
    SessionScene scene({}, [](const auto&, std::size_t) {
      ProviderSays says;
      says.body = R"({"data":[{}],"usage":{"prompt_tokens":7,"total_tokens":7}})";
      return says;
    });
    CHECK(scene.ask("/v1/embeddings", R"({"model":"m","input":["a","b"]})").status == 200);
    CHECK(scene.spent() == 7);
    CHECK_FALSE(scene.provider().heard()[0].body.contains("max_tokens"));
    SessionScene::Shape shape;
    shape.as = MethodGateway::As::kAnthropic;
    SessionScene other(shape, [](const auto&, std::size_t) {
      ProviderSays says;
      says.body = R"({"input_tokens":12})";
      return says;
    });
    CHECK(other.ask("/v1/messages/count_tokens", R"({"model":"m","messages":[]})")
              .json()["input_tokens"] == 12);
    CHECK(other.spent() == 0);
    CHECK(other.provider().heard()[0].path == "/v1/messages/count_tokens");
  }
}
