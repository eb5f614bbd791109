// The delta rule: what earlier calls cost bounds the next one, whatever a conversation looks like.
#include <doctest/doctest.h>

#include <random>

#include "common/base/json.h"
#include "worker/gateway/ceiling.h"

using namespace proctor;

namespace {

constexpr std::uint64_t kPerCall = 256;

CallShape shape(ModelApi api, const std::string& body) {
  const auto peek = peek_body(api, body);
  if (!peek.ok()) FAIL(peek.error().detail);
  auto out = shape_of(api, body, *peek, {});
  if (!out) FAIL("no shape");
  return *std::move(out);
}
CallShape chat(const std::string& messages, const std::string& more = "") {
  return shape(ModelApi::kChat, R"({"model":"m","messages":[)" + messages + "]" + more + "}");
}
CallShape messages(const std::string& list, const std::string& more = "") {
  return shape(ModelApi::kMessages,
               R"({"model":"m","max_tokens":9,"messages":[)" + list + "]" + more + "}");
}
CallShape responses(const std::string& input) {
  return shape(ModelApi::kResponses, R"({"model":"m","input":[)" + input + "]}");
}
// The rule adds so much to `first`, which had 1,000 tokens and answered with 10.
std::optional<std::uint64_t> added(const CallShape& first, const CallShape& next) {
  DeltaRule rule;
  rule.settled(first, {.input_tokens = 1'000, .output_tokens = 10});
  const auto bound = rule.bound(next);
  if (!bound) return std::nullopt;
  return *bound - 1'010 - kPerCall;
}

const std::string kA = R"({"role":"user","content":"hi"})", kB = R"({"role":"user","content":"b"})";

// Some tokenizer counts a text so: never more than its bytes.
std::uint64_t toy_tokens(const Json& value) {
  const std::string text = value.dump();
  const std::uint64_t grain = 1 + text.size() % 4;
  return (text.size() + grain - 1) / grain;
}
struct Toy {
  Json items = Json::array();  // {"text", "thinks", "marked"}
  Json tools = Json::array();
  std::string body() const {
    Json list = Json::array();
    for (const Json& item : items) {
      Json part = {{"type", item["thinks"].boolean() ? "thinking" : "text"}};
      part[item["thinks"].boolean() ? "thinking" : "text"] = item["text"];
      if (item["marked"].boolean()) part["cache_control"] = {{"type", "ephemeral"}};
      const bool plain = !item["thinks"].boolean() && !item["marked"].boolean();
      list.push_back({{"role", "user"}, {"content", plain ? item["text"] : Json::array({part})}});
    }
    Json out = {{"model", "m"}, {"max_tokens", 9}, {"messages", std::move(list)}};
    if (!tools.empty()) out["tools"] = tools;
    return out.dump();
  }
  // Reasoning counts in some turns alone.
  std::uint64_t tokens(bool with_reasoning) const {
    std::uint64_t out = tools.empty() ? 40 : 400;
    for (const Json& item : items)
      if (with_reasoning || !item["thinks"].boolean()) out += 4 + toy_tokens(item["text"]);
    for (const Json& tool : tools) out += 8 + 2 * toy_tokens(tool);
    return out;
  }
};

}  // namespace

TEST_SUITE("gateway delta") {
  TEST_CASE("what a call before had costs nothing more, and what is new its bytes") {
    CHECK(added(chat(kA), chat(kA)) == 0);
    CHECK(added(chat(kA + "," + kB), chat(kB)) == 0);
    CHECK(added(chat(kA), chat(kA + "," + kB)) == kB.size() + 16);
    CHECK(added(chat(kA), chat(kA + "," + kA)) == kA.size() + 16);  // each of them once
    const std::string parts =
        R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})";
    CHECK(added(chat(kA), chat(parts)) == parts.size() + 3 * 16);
    const std::string tool = R"({"type":"function","function":{"name":"f"}})";
    const std::string other = R"({"type":"function","function":{"name":"g"}})";
    const auto with = [](const std::string& tools) { return R"(,"tools":[)" + tools + "]"; };
    CHECK(added(chat(kA, with(tool)), chat(kA, with(other + "," + tool))) == 2 * other.size() + 16);
    // The same bytes are no tool.
    CHECK(added(chat(tool, with(other)), chat("", with(tool))) == 2 * tool.size() + 16);
  }

  TEST_CASE("calls with other settings say nothing of each other") {
    const CallShape plain = chat(kA);
    CHECK_FALSE(added(plain, chat(kA, R"(,"reasoning_effort":"high")")));
    CHECK_FALSE(added(plain, chat(kA, R"(,"tools":[{"type":"function"}])")));
    CHECK_FALSE(added(plain, responses(kA)));
    CHECK_FALSE(added(messages(kA, R"(,"system":"a")"), messages(kA, R"(,"system":"b")")));
    CHECK(added(messages(kA, R"(,"system":[{"type":"text","text":"a"}])"),
                messages(kA, R"(,"system":[{"type":"text","text":"b"}])")) == 26 + 16);
    CHECK(added(plain,
                chat(kA, R"(,"max_tokens":7,"stream":true,"metadata":{"a":"b"},"user":"u")")) == 0);
    const std::string hidden =
        R"({"model":"m","max_tokens":9,"messages":[],"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}})";
    CHECK_FALSE(shape_of(ModelApi::kMessages, hidden, *peek_body(ModelApi::kMessages, hidden), {}));
    const std::string embedded = R"({"model":"m","input":["a"]})";
    CHECK_FALSE(
        shape_of(ModelApi::kEmbeddings, embedded, *peek_body(ModelApi::kEmbeddings, embedded), {}));
  }

  TEST_CASE("marks of caches may move, and cost their own bytes where they are") {
    const std::string mark = R"(,"cache_control":{"type":"ephemeral"})";
    const auto said = [](const std::string& content) {
      return R"({"role":"user","content":)" + content + "}";
    };
    const std::string plain = said(R"("long text")");
    const std::string marked = said(R"([{"type":"text","text":"long text")" + mark + "}]");
    CHECK(added(messages(marked), messages(plain)) == 0);
    CHECK(added(messages(plain), messages(marked)) == marked.size() - plain.size());
    const std::string two = R"([{"type":"text","text":"a"},{"type":"text","text":"b")";
    CHECK(added(messages(said(two + "}]")), messages(said(two + mark + "}]"))) == mark.size());
    const std::string first =
        R"({"role":"user","cache_control": {"type":"ephemeral"},"content":"a"})";
    CHECK(added(messages(first), messages(R"({"role":"user","content":"a"})")) == 0);
    // A member that is longer than a mark is none.
    const std::string words = R"({"role":"user","content":"a","cache_control":{"type":")" +
                              std::string(500, 'x') + "\"}}";
    CHECK(added(messages(R"({"role":"user","content":"a"})"), messages(words)) ==
          words.size() + 16);
    const std::string quoted = said(R"("\"cache_control\":{\"type\":\"ephemeral\"}")");
    CHECK(added(messages(said("\"\"")), messages(quoted)) == quoted.size() + 16);
  }

  TEST_CASE("reasoning is new in every call, and so is a tool that a reference prints") {
    const std::string thought = R"({"type":"reasoning","summary":[],"encrypted_content":"gAAA"})";
    CHECK(added(responses(thought), responses(thought)) == thought.size() + 16);
    const std::string block =
        R"({"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"}]})";
    CHECK(added(messages(block), messages(block)) == block.size() + 2 * 16);
    const std::string member = R"({"role":"assistant","content":"a","reasoning_content":"b"})";
    CHECK(added(chat(member), chat(member)) == member.size() + 16);
    const std::string refers =
        R"({"role":"user","content":[{"type":"tool_reference","tool_name":"f"}]})";
    const auto tools = [](const std::string& more) {
      return R"(,"tools":[{"name":"f","input_schema":{}})" + more + "]";
    };
    CHECK(added(messages(refers, tools("")), messages(refers, tools(""))) == 0);
    CHECK_FALSE(added(messages(refers, tools("")),
                      messages(refers, tools(R"(,{"name":"g","input_schema":{}})"))));
  }

  TEST_CASE("the closest of the last 64 calls bounds, and one that is forgotten does not") {
    DeltaRule rule;
    rule.settled(chat(kA), {.input_tokens = 10, .output_tokens = 1});
    rule.settled(chat(kA + "," + kB), {.input_tokens = 500, .output_tokens = 1});
    CHECK(rule.bound(chat(kA)) == 11 + kPerCall);
    for (int i = 0; i < 63; ++i) rule.settled(chat(kB), {.input_tokens = 1'000});
    CHECK(rule.bound(chat(kA)) == 501 + kPerCall);
  }

  TEST_CASE("a model is trusted after eight calls, and later after one that was not bounded") {
    DeltaTrust trust;
    for (int i = 0; i < 8; ++i) {
      CHECK_FALSE(trust.holds());
      trust.seen(10, 10);
    }
    CHECK(trust.holds());
    trust.seen(10, 11);
    for (int i = 0; i < 32; ++i) {
      CHECK_FALSE(trust.holds());
      trust.seen(10, 9);
    }
    CHECK(trust.holds());
    for (int i = 0; i < 9; ++i) trust.seen(10, 11);
    for (int i = 0; i < 511; ++i) trust.seen(10, 9);
    CHECK_FALSE(trust.holds());
    trust.seen(10, 9);
    CHECK(trust.holds());
  }

  TEST_CASE("no conversation has more tokens than the rule says") {
    std::size_t bounded = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
      std::mt19937 random(seed);  // NOLINT: the same numbers every time are wanted
      const auto text = [&] {
        return std::string(random() % 300, static_cast<char>('a' + random() % 26));
      };
      DeltaRule rule;
      Toy toy;
      for (int turn = 0; turn < 30; ++turn) {
        const auto pick = [&](const Json& of) { return random() % of.size(); };
        for (auto i = random() % 3; i < 3; ++i)
          toy.items.push_back({{"text", text()}, {"thinks", random() % 4 == 0}, {"marked", false}});
        if (random() % 6 == 0)
          toy.tools.push_back({{"name", text()}, {"input_schema", Json::object()}});
        if (random() % 8 == 0) toy.items.push_back(toy.items[pick(toy.items)]);
        if (random() % 8 == 0) std::swap(toy.items[pick(toy.items)], toy.items[pick(toy.items)]);
        Json kept = Json::array();
        for (Json& item : toy.items) {
          item["marked"] = random() % 5 == 0;
          if (random() % 20 != 0) kept.push_back(item);
        }
        if (random() % 6 == 0 && !kept.empty()) toy.items = kept;
        const std::string body = toy.body();
        const CallShape now = shape(ModelApi::kMessages, body);
        const std::uint64_t tokens = toy.tokens(random() % 2 == 0);
        if (const auto bound = rule.bound(now)) {
          ++bounded;
          CAPTURE(seed);
          CAPTURE(turn);
          CHECK(tokens <= *bound);
        }
        rule.settled(now, {.input_tokens = tokens, .output_tokens = random() % 100});
      }
    }
    CHECK(4'000 < bounded);
  }
}
