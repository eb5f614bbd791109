// Models over HTTP and as programs: the real libcurl, a provider of our own, real processes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>

#include "tests/support/chat_server.h"
#include "worker/model/model.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;
using End = ModelReply::End;

namespace {

ModelRequest question(std::chrono::milliseconds timeout = 20s) {
  return {"m", "task", 1, "system", "user", 100, timeout};
}

ModelReply ask(const ChatServer& server, std::chrono::milliseconds timeout = 20s) {
  ModelAccess access;
  access.url = server.url() + "/";
  return open_model(access)->ask(question(timeout), {});
}

ModelReply run(const std::string& script, std::stop_token stop = {},
               std::chrono::milliseconds timeout = 20s) {
  ModelAccess access;
  access.program = {"sh", "-c", script};
  return open_model(access)->ask(question(timeout), std::move(stop));
}

}  // namespace

TEST_SUITE("model over HTTP") {
  TEST_CASE("an endpoint is asked as OpenAI's, and its key goes nowhere else") {
    const ChatServer server([](const Json&, std::size_t) {
      ChatAnswer a = chat_says("the key is sk-test-1", 11, 7);
      a.headers = "Location: /elsewhere\r\n";
      return a;
    });
    ::setenv("PROCTOR_TEST_MODEL_KEY", "sk-test-1", 1);
    ModelAccess access;
    access.url = server.url();
    access.key_variable = "PROCTOR_TEST_MODEL_KEY";
    const ModelReply reply = open_model(access)->ask(question(), {});
    ::unsetenv("PROCTOR_TEST_MODEL_KEY");
    CHECK(reply.end == End::kAnswered);
    CHECK(reply.text == "the key is ***");
    CHECK(reply.raw.find("sk-test-1") == std::string::npos);
    REQUIRE(reply.usage);
    CHECK(reply.usage->input_tokens == 11);
    const auto heard = server.heard();
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    CHECK(heard[0].head.find("Authorization: Bearer sk-test-1") != std::string::npos);
    CHECK(heard[0].body["messages"][1]["content"] == "user");
    CHECK(heard[0].body["max_completion_tokens"] == 100);
    CHECK(open_model(access)->ask(question(), {}).why ==
          "the variable PROCTOR_TEST_MODEL_KEY has no key");
    CHECK(server.heard().size() == 1);
  }

  TEST_CASE("providers that misbehave are read as what they are") {
    ChatAnswer busy{429, "later", "retry-AFTER: 3\r\n"};
    ChatAnswer truncated = chat_says("long", 1, 1);
    truncated.said_length = truncated.body.size() + 10;
    ChatAnswer cut = chat_says("x");
    cut.body.resize(cut.body.size() / 2);
    ChatAnswer page{200, "<html>sorry</html>", "", "text/html"};
    ChatAnswer huge{200, std::string(kModelReplyBytes + 1, ' ')};
    ChatAnswer gone;
    gone.close = true;
    ChatAnswer moved{302, "", "Location: http://127.0.0.1:1/\r\n"};
    struct Row {
      const char* what;
      ChatAnswer answer;
      End end;
      const char* why;
    };
    const Row rows[] = {{"busy", busy, End::kBusy, "429"},
                        {"broken", {500, "oops"}, End::kFailed, "500"},
                        {"cut off", truncated, End::kFailed, ""},
                        {"half an object", cut, End::kFailed, "no JSON object"},
                        {"a page", page, End::kFailed, "text/html"},
                        {"huge", huge, End::kUnreadable, "larger than 16 MiB"},
                        {"closed", gone, End::kFailed, ""},
                        {"redirected", moved, End::kRefused, "302"}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const ChatServer server([&](const Json&, std::size_t) { return row.answer; });
      const ModelReply reply = ask(server);
      CHECK(reply.end == row.end);
      CHECK_MESSAGE(reply.why.find(row.why) != std::string::npos, reply.why);
      CHECK(reply.raw.size() <= kModelReplyBytes);
      if (row.end == End::kBusy) CHECK(reply.retry_after == 3s);
    }
  }

  TEST_CASE("a slow provider is left at the time limit, or when the run is stopped") {
    const ChatServer server([](const Json&, std::size_t) {
      ChatAnswer a;
      a.hang = true;
      return a;
    });
    const ModelReply late = ask(server, 200ms);
    CHECK(late.end == End::kFailed);
    CHECK(late.billed);
    std::stop_source stop;
    ModelAccess access;
    access.url = server.url();
    std::jthread stopper([&] {
      while (server.heard().size() < 2) std::this_thread::yield();
      stop.request_stop();
    });
    CHECK(open_model(access)->ask(question(60s), stop.get_token()).end == End::kStopped);
  }

  TEST_CASE("nobody there costs nothing") {
    std::string url;
    {
      const ChatServer server([](const Json&, std::size_t) { return ChatAnswer(); });
      url = server.url();
    }
    ModelAccess access;
    access.url = url;
    const ModelReply reply = open_model(access)->ask(question(), {});
    CHECK(reply.end == End::kFailed);
    CHECK_FALSE(reply.billed);
  }

  TEST_CASE("a program is a model: it reads JSON and writes JSON") {
    const ModelReply good =
        run("read line; case \"$line\" in *'\"user\":\"user\"'*) "
            "echo '{\"text\": \"fine\", \"usage\": {\"input_tokens\": 3, \"output_tokens\": 4}}';; "
            "esac");
    CHECK(good.end == End::kAnswered);
    CHECK(good.text == "fine");
    CHECK(good.usage->input_tokens == 3);
    CHECK(run("echo full >&2; exit 75").end == End::kBusy);
    CHECK_FALSE(run("exit 75").billed);
    CHECK(run("exit 3").end == End::kFailed);
    // One that does not read what it is asked: more than a pipe holds.
    ModelAccess deaf;
    deaf.program = {"sh", "-c", "exec <&-; echo '{\"text\": \"x\"}'; sleep 0.1"};
    ModelRequest much = question();
    much.user.assign(1'000'000, 'u');
    CHECK(open_model(deaf)->ask(much, {}).text == "x");
    CHECK(run("echo nonsense").why == "the program wrote no JSON object with a text");
    CHECK(run("sleep 60", {}, 100ms).end == End::kFailed);
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(run("sleep 60", stopped.get_token()).end == End::kStopped);
    // 100 MB, and more: what comes after the bound is not kept.
    const ModelReply huge = run("yes | head -c 100000000");
    CHECK(huge.end == End::kUnreadable);
    CHECK(huge.why == "the answer is larger than 16 MiB");
    CHECK(huge.raw.empty());
    ModelAccess absent;
    absent.program = {"/no/such/program"};
    const ModelReply none = open_model(absent)->ask(question(), {});
    CHECK(none.end == End::kFailed);
    CHECK_FALSE(none.billed);
  }
}
