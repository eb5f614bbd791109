// Programs as models: real processes.
#include "worker/model/model.h"

#include <doctest/doctest.h>

using namespace proctor;
using namespace std::chrono_literals;
using End = ModelReply::End;

namespace {

Result<CassetteCall> run_program(
    std::vector<std::string> argv, std::chrono::milliseconds timeout = 20s,
    const std::function<bool()>& stop = [] { return false; }, std::size_t user_bytes = 4) {
  ModelAccess access;
  access.program = std::move(argv);
  access.total = timeout;
  // As the gateway sends it: with the limit that it granted.
  Json body = parse_json(chat_body({"m", "system", std::string(user_bytes, 'u')})).value();
  body[access.output_limit] = 100;
  return ask_program(access, {"task", 2}, body.dump(), stop);
}

template <class... More>
Result<CassetteCall> run(const std::string& script, More... more) {
  return run_program({"sh", "-c", script}, more...);
}

ModelReply read(const Result<CassetteCall>& said) {
  REQUIRE(said.ok());
  return read_chat_answer({said->status, said->answer});
}

}  // namespace

TEST_SUITE("model program") {
  TEST_CASE("a program is a model: it reads JSON and writes JSON") {
    const auto good =
        run("read line; case \"$line\" in *'\"max_output_tokens\":100,\"model\":\"m\",\"sample\":2,"
            "\"system\":\"system\",\"task\":\"task\",\"timeout_ms\":20000,\"user\":\"uuuu\"'*) "
            "echo '{\"text\": \"fine\", \"usage\": {\"input_tokens\": 3, \"output_tokens\": 4}}';; "
            "esac");
    CHECK(read(good).text == "fine");
    const Json usage = parse_json(good->answer)->at("usage");
    CHECK(usage["prompt_tokens"] == 3);
    CHECK(usage["completion_tokens"] == 4);
    CHECK(read(run("echo full >&2; exit 75")).end == End::kBusy);
    CHECK(read(run("echo nonsense")).end == End::kFailed);
    for (const char* bad : {"t", "{}", "{\"text\": 1}", "[]"})
      CHECK(read(run("echo '" + std::string(bad) + "'")).end == End::kFailed);
    // One that does not read what it is asked: more than a pipe holds.
    CHECK(read(run(
                   "exec <&-; echo '{\"text\": \"x\"}'; sleep 0.1", 20s, [] { return false; },
                   1'000'000))
              .text == "x");
  }

  TEST_CASE("what is no answer has the status 0, and says why") {
    const auto failed = run("echo sad >&2; exit 3");
    REQUIRE(failed.ok());
    CHECK(failed->status == 0);
    CHECK(failed->answer.find("sad") != std::string::npos);
    CHECK(run("sleep 60", 100ms)->status == 0);
    CHECK(run("sleep 60", 20s, [] { return true; })->status == 0);
    CHECK_FALSE(run_program({"/no/such/program"}).ok());
  }

  TEST_CASE("a body without a limit on its output is asked of no program") {
    ModelAccess access;
    access.program = {"echo", "{\"text\": \"free\"}"};
    Json body = parse_json(chat_body({"m", "system", "user"})).value();
    const auto asked = [&] {
      return ask_program(access, {"task", 1}, body.dump(), [] { return false; });
    };
    REQUIRE_FALSE(asked().ok());
    CHECK(asked().error().code == Errc::kInvalid);
    body[access.output_limit] = Json();
    CHECK_FALSE(asked().ok());
    body[access.output_limit] = 1;
    CHECK(asked().ok());
  }

  TEST_CASE("of 100 MB no more is kept than shows that it is too much") {
    const auto huge = run("yes | head -c 100000000");
    REQUIRE(huge.ok());
    CHECK(huge->answer.size() == kModelReplyBytes + 1);
    CHECK(read(huge).end == End::kUnreadable);
  }
}
