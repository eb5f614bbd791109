#include <doctest/doctest.h>

#include "worker/tools/tool_loop.h"

namespace proctor {
namespace {

using Api = ToolLoopRules::Api;
using Why = ToolLoopEnd::Why;

// A run on a small workspace, with a model that says what it was told to.
struct LoopScene {
  explicit LoopScene(ToolLoopRules rules) : dir(TempDir::create("loop").value()) {
    REQUIRE(write_file(dir.path() / "a.py", "x = 1\n", Durability::kLazy).ok());
    ToolHooks hooks;
    hooks.reserve = [this](const std::string&, const ToolKind&, std::chrono::milliseconds) {
      ++reserved;
      return reserved <= room ? std::optional<ToolRefusal>()
                              : ToolRefusal{"tool_calls", "tool_calls: all used", true, 1};
    };
    hooks.charge = [](const std::string&, const ToolKind&, std::chrono::milliseconds,
                      std::optional<bool>) {};
    hooks.note = [](std::string_view, const Json&) { return ToolHeard{}; };
    hooks.status = [] { return std::string(); };
    hooks.shell = [](const std::string&, bool, std::chrono::milliseconds) -> Result<ProgramRun> {
      return ProgramRun{0, "", ""};
    };
    hooks.state = [] { return std::string(); };
    hooks.wait = [](std::chrono::milliseconds) {};
    hooks.now = [] { return std::chrono::milliseconds(0); };
    rules.model = "big";
    rules.prompt = std::string(ToolLoop::prompt());
    files = std::make_unique<WorkspaceTools>(WorkspaceTools::open(dir.path(), {}).value());
    session = std::make_unique<ToolSession>(ToolSessionRules{}, *files, std::move(hooks));
    loop = std::make_unique<ToolLoop>(rules, "make x two");
  }
  // The last answer is given again and again.
  ToolLoopEnd run(const std::vector<std::string>& answers) {
    return run_tool_loop(*loop, *session, [&](const std::string& body) -> Result<std::string> {
      requests.push_back(parse_json(body).value());
      return answers[std::min(requests.size(), answers.size()) - 1];
    });
  }

  TempDir dir;
  int reserved = 0, room = 1'000;
  std::vector<Json> requests;
  std::unique_ptr<WorkspaceTools> files;
  std::unique_ptr<ToolSession> session;
  std::unique_ptr<ToolLoop> loop;
};

struct Asks {
  std::string tool;
  Json arguments;
};
std::string chat(const std::vector<Asks>& calls, std::string_view text = "") {
  Json message = {{"role", "assistant"}, {"content", text}};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Json function = {{"name", calls[i].tool}, {"arguments", calls[i].arguments.dump()}};
    message["tool_calls"].push_back(
        {{"id", "c" + std::to_string(i)}, {"type", "function"}, {"function", std::move(function)}});
  }
  Json choice = {{"index", 0U}, {"message", std::move(message)}};
  Json out = {{"id", "x"}};
  out["choices"] = Json::array({std::move(choice)});
  return out.dump();
}
std::string messages(const std::vector<Asks>& calls) {
  Json content = Json::array();
  content.push_back({{"type", "text"}, {"text", "I look."}});
  for (std::size_t i = 0; i < calls.size(); ++i)
    content.push_back({{"type", "tool_use"},
                       {"id", "c" + std::to_string(i)},
                       {"name", calls[i].tool},
                       {"input", calls[i].arguments}});
  return Json{{"role", "assistant"}, {"content", content}}.dump();
}

const std::vector<Asks> kLook = {{"list_dir", Json::object()}, {"read_file", {{"path", "a.py"}}}};
const std::vector<Asks> kGoOn = {{"advance_stage", {{"to", "write"}, {"reason", "seen"}}}};
const std::vector<Asks> kEdit = {
    {"edit_file", {{"path", "a.py"}, {"old_text", "x = 1"}, {"new_text", "x = 2"}}}};
const std::vector<Asks> kSubmit = {{"submit", Json::object()}};

std::string changed(const LoopScene& scene) {
  return read_file(scene.dir.path() / "a.py", 100).value();
}

}  // namespace

TEST_SUITE("tool loop") {
  TEST_CASE("a task is solved through tools, as chat") {
    LoopScene scene({.api = Api::kChat});
    const ToolLoopEnd end = scene.run({chat(kLook), chat(kGoOn), chat(kEdit), chat(kSubmit)});
    CHECK(end.why == Why::kSubmitted);
    CHECK(changed(scene) == "x = 2\n");
    CHECK(scene.session->calls() == 5);
    REQUIRE(scene.requests.size() == 4);
    const Json& first = scene.requests.front();
    CHECK(first.at("model") == "big");
    CHECK(first.at("max_completion_tokens") == 8'192U);
    CHECK(first.at("tools").size() == 11);
    CHECK(first.at("tools").at(0).at("function").at("name") == "list_dir");
    CHECK(first.at("messages").size() == 2);
    CHECK(first.at("messages").at(1).at("content") == "make x two");
    CHECK_FALSE(first.contains("temperature"));
    const Json& second = scene.requests[1].at("messages");
    REQUIRE(second.size() == 5);
    CHECK(second.at(2).at("tool_calls").size() == 2);
    CHECK(second.at(3).at("role") == "tool");
    CHECK(second.at(3).at("tool_call_id") == "c0");
    CHECK(second.at(3).at("content") == "a.py  6\n");
    CHECK(second.at(4).at("content") == "1\tx = 1\n");
    // What was said stays as it was said.
    for (std::size_t i = 0; i < second.size(); ++i)
      CHECK(scene.requests[3].at("messages").at(i) == second.at(i));
  }

  TEST_CASE("a task is solved through tools, as messages") {
    LoopScene scene({.api = Api::kMessages});
    const ToolLoopEnd end =
        scene.run({messages(kLook), messages(kGoOn), messages(kEdit), messages(kSubmit)});
    CHECK(end.why == Why::kSubmitted);
    CHECK(changed(scene) == "x = 2\n");
    const Json& last = scene.requests.back();
    CHECK(last.at("max_tokens") == 8'192U);
    CHECK(last.at("system").at(0).contains("cache_control"));
    CHECK(last.at("tools").at(10).contains("cache_control"));
    CHECK_FALSE(last.at("tools").at(0).contains("cache_control"));
    const Json& said = last.at("messages");
    REQUIRE(said.size() == 7);
    for (std::size_t i = 0; i < said.size(); ++i)
      CHECK(said.at(i).at("role") == (i % 2 == 0 ? "user" : "assistant"));
    CHECK(said.at(2).at("content").size() == 2);
    CHECK(said.at(2).at("content").at(1).at("tool_use_id") == "c1");
    CHECK(said.at(2).at("content").at(1).at("is_error") == false);
    // Breakpoints: the last two that the user said.
    CHECK_FALSE(said.at(2).at("content").at(1).contains("cache_control"));
    CHECK(said.at(4).at("content").back().contains("cache_control"));
    CHECK(said.at(6).at("content").back().contains("cache_control"));
  }

  TEST_CASE("what a model does wrong comes back as a result") {
    LoopScene scene({.api = Api::kChat});
    const std::string odd = chat(
        {{"rm", Json::object()}, {"read_file", Json("text")}, {"edit_file", {{"path", "a.py"}}}});
    CHECK(scene.run({odd, chat(kSubmit)}).why == Why::kSubmitted);
    const Json& said = scene.requests[1].at("messages");
    CHECK(said.at(3).at("content") == "there is no tool rm");
    CHECK(said.at(4).at("content") == "the arguments are no object.");
    CHECK(said.at(5).at("content").get<std::string>().find("missing") != std::string::npos);
  }

  TEST_CASE("an answer without a tool is reminded once, then ends the loop") {
    for (const Api api : {Api::kChat, Api::kMessages}) {
      LoopScene scene({.api = api});
      const auto say = api == Api::kChat
                           ? std::vector<std::string>{chat({}, "hm"), chat(kLook), chat({}, "hm")}
                           : std::vector<std::string>{messages({}), messages(kLook), messages({})};
      CHECK(scene.run(say).why == Why::kSilent);
      CHECK(scene.requests.size() == 4);
      const Json& last = scene.requests.back().at("messages").back();
      CHECK(last.at("role") == "user");
      CHECK(last.dump().find("your answer asked for no tool") != std::string::npos);
    }
  }

  TEST_CASE("caps, turns and answers that are none end it by their names") {
    LoopScene capped({.api = Api::kChat});
    capped.room = 1;
    const ToolLoopEnd end = capped.run({chat(kLook)});
    CHECK(end.why == Why::kRefused);
    CHECK(end.detail.find("all used") != std::string::npos);
    LoopScene turns({.api = Api::kChat, .turns = 3});
    CHECK(turns.run({chat(kLook)}).why == Why::kTurns);
    CHECK(turns.requests.size() == 3);
    for (const char* bad : {"", "{}", "[]", "{\"choices\":[]}", "{\"choices\":[{}]}",
                            "{\"choices\":[{\"message\":{\"tool_calls\":[1]}}]}"}) {
      CAPTURE(bad);
      LoopScene scene({.api = Api::kChat});
      CHECK(scene.run({bad}).why == Why::kModel);
    }
    LoopScene other({.api = Api::kMessages});
    CHECK(other.run({"{\"content\":\"x\"}"}).why == Why::kModel);
  }

  TEST_CASE(
      "what would be too large is left out of the oldest results, never of the last ten turns") {
    ToolLoopRules rules{.api = Api::kChat, .turns = 40};
    rules.request_bytes = 60'000;
    LoopScene scene(rules);
    REQUIRE(write_file(scene.dir.path() / "a.py", std::string(2'000, 'x'), Durability::kLazy).ok());
    CHECK(scene.run({chat({{"read_file", {{"path", "a.py"}}}})}).why == Why::kTurns);
    CHECK(scene.requests.size() == 40);
    CHECK(0 < scene.loop->left_out());
    const Json& said = scene.requests.back().at("messages");
    CHECK(said.at(3).at("content").get<std::string>().find("bytes of output left out]") !=
          std::string::npos);
    CHECK(said.back().at("content").get<std::string>().size() > 2'000);
    for (const Json& request : scene.requests) CHECK(request.dump().size() <= 60'000);

    rules.request_bytes = 20'000;
    LoopScene small(rules);
    REQUIRE(write_file(small.dir.path() / "a.py", std::string(2'000, 'x'), Durability::kLazy).ok());
    CHECK(small.run({chat({{"read_file", {{"path", "a.py"}}}})}).why == Why::kTooLarge);
  }
}

}  // namespace proctor
