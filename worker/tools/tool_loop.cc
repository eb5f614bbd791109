#include "worker/tools/tool_loop.h"

#include <utility>

#include "common/base/text.h"
#include "worker/tools/text_lines.h"

namespace proctor {
namespace {
constexpr std::uint64_t kTurnsKept = 10;
constexpr std::size_t kAnswerBytes = std::size_t{16} << 20, kAnswerDepth = 64;
constexpr std::size_t kCallsMost = 128, kBreakpoints = 2;

constexpr std::string_view kPrompt =
    "You work on a repository through tools. Nothing but their calls is seen by anybody. Read "
    "before you write: list_dir, read_file and search look at the workspace, and advance_stage "
    "goes on to the stages write and test. Make the change that the task asks for, and no other. "
    "Where the task names tests, run them. Call submit when the work is done.";
constexpr std::string_view kReminder =
    "Nothing was done: your answer asked for no tool. Go on with one, or call submit if the work "
    "is done.";

Error no_answer(std::string_view what) {
  return {Errc::kInvalid, "the model's answer has " + std::string(what)};
}

const Json* member(const Json& object, const char* key, Json::Kind kind) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->kind() != kind ? nullptr : &*at;
}
std::string text_of(const Json& object, const char* key) {
  const Json* value = member(object, key, Json::Kind::kString);
  return value == nullptr ? std::string() : value->get<std::string>();
}

Json marked(Json block) {
  block["cache_control"] = {{"type", "ephemeral"}};
  return block;
}
Json text_block(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

// A result, or what is written in its place.
bool is_result(const Json& item) {
  return item.contains("tool_call_id") || item.contains("tool_use_id");
}

Json tools_of(ToolLoopRules::Api api) {
  Json out = Json::array();
  for (const Json& tool : tool_list_json()) {
    const Json &name = tool.at("name"), &what = tool.at("description"),
               &schema = tool.at("inputSchema");
    if (api == ToolLoopRules::Api::kMessages) {
      out.push_back({{"name", name}, {"description", what}, {"input_schema", schema}});
      continue;
    }
    Json function = {{"name", name}, {"description", what}, {"parameters", schema}};
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (api == ToolLoopRules::Api::kMessages) out.back() = marked(out.back());
  return out;
}

// As the items lie, results of one turn each apart; the API wants them in one message of the user.
Json messages_of(const std::vector<Json>& items) {
  Json out = Json::array();
  for (const Json& item : items) {
    if (!is_result(item)) {
      out.push_back(item);
      continue;
    }
    const bool more = !out.empty() && out.back().at("role") == "user";
    if (!more) out.push_back({{"role", "user"}, {"content", Json::array()}});
    out.back().at("content").push_back(item);
  }
  std::size_t marks = kBreakpoints;
  for (std::size_t at = out.size(); 0 < at-- && 0 < marks;) {
    if (out[at].at("role") != "user") continue;
    Json& last = out[at].at("content").back();
    last = marked(std::move(last));
    --marks;
  }
  return out;
}
}  // namespace

std::string_view ToolLoop::prompt() {
  return kPrompt;
}

ToolLoop::ToolLoop(ToolLoopRules rules, std::string briefing) : rules_(std::move(rules)) {
  const Json content = rules_.api == ToolLoopRules::Api::kMessages
                           ? Json::array({text_block(briefing)})
                           : Json(std::move(briefing));
  items_.push_back({{"role", "user"}, {"content", content}});
  item_turns_.push_back(0);
}

Json ToolLoop::body() const {
  Json out = {{"model", rules_.model}, {"tools", tools_of(rules_.api)}};
  if (rules_.api == ToolLoopRules::Api::kMessages) {
    out["system"] = Json::array({marked(text_block(rules_.prompt))});
    out["max_tokens"] = rules_.output;
    out["messages"] = messages_of(items_);
    return out;
  }
  out["max_completion_tokens"] = rules_.output;
  out["messages"] = Json::array({{{"role", "system"}, {"content", rules_.prompt}}});
  for (const Json& item : items_) out["messages"].push_back(item);
  return out;
}

bool ToolLoop::leave_out_oldest() {
  constexpr std::string_view kFront = "[", kBack = " bytes of output left out]";
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (turns_ < item_turns_[i] + kTurnsKept) return false;
    if (!is_result(items_[i])) continue;
    const std::string said = text_of(items_[i], "content");
    if (said.starts_with(kFront) && said.ends_with(kBack)) continue;
    std::string instead(kFront);
    instead += std::to_string(said.size());
    instead += kBack;
    if (said.size() <= instead.size()) continue;
    left_out_ += said.size();
    items_[i]["content"] = std::move(instead);
    return true;
  }
  return false;
}

Result<std::string> ToolLoop::request() {
  if (!has_turns())
    return Error{Errc::kExhausted, "all " + std::to_string(turns_) + " turns are used"};
  for (;;) {
    std::string out = body().dump(-1, Json::Utf8::kReplace);
    if (out.size() <= rules_.request_bytes) {
      ++turns_;
      return out;
    }
    if (!leave_out_oldest())
      return Error{Errc::kExhausted,
                   "the conversation has " + std::to_string(out.size()) + " bytes"};
  }
}

Result<std::vector<ToolLoop::Asked>> ToolLoop::on_answer(std::string_view body) {
  PROCTOR_TRY(const Json answer,
              parse_json(body, {.bytes_max = kAnswerBytes, .depth_max = kAnswerDepth}));
  auto asked =
      rules_.api == ToolLoopRules::Api::kMessages ? messages_answer(answer) : chat_answer(answer);
  if (!asked.ok()) return asked;
  item_turns_.resize(items_.size(), turns_);
  if (kCallsMost < asked->size()) return no_answer("more calls of tools than are made");
  if (!asked->empty()) {
    reminded_ = false;
    return asked;
  }
  done_ = std::exchange(reminded_, true);
  if (done_) return asked;
  const Json content = rules_.api == ToolLoopRules::Api::kMessages
                           ? Json::array({text_block(kReminder)})
                           : Json(kReminder);
  items_.push_back({{"role", "user"}, {"content", content}});
  item_turns_.push_back(turns_);
  return asked;
}

Result<std::vector<ToolLoop::Asked>> ToolLoop::chat_answer(const Json& answer) {
  const Json* choices = member(answer, "choices", Json::Kind::kArray);
  if (choices == nullptr || choices->empty()) return no_answer("no choices");
  const Json* message = member(choices->front(), "message", Json::Kind::kObject);
  if (message == nullptr) return no_answer("no message");
  Json said = {{"role", "assistant"}, {"content", text_of(*message, "content")}};
  std::vector<Asked> out;
  if (const Json* calls = member(*message, "tool_calls", Json::Kind::kArray)) {
    for (const Json& call : *calls) {
      const Json* function = member(call, "function", Json::Kind::kObject);
      const std::string id = text_of(call, "id");
      if (function == nullptr || id.empty()) return no_answer("a call of a tool that is none");
      const std::string written = text_of(*function, "arguments");
      auto arguments = written.empty() ? Result<Json>(Json::object()) : parse_json(written);
      out.push_back(
          {id, text_of(*function, "name"), arguments.ok() ? std::move(arguments).value() : Json()});
    }
    if (!out.empty()) said["tool_calls"] = *calls;
  }
  items_.push_back(std::move(said));
  return out;
}

Result<std::vector<ToolLoop::Asked>> ToolLoop::messages_answer(const Json& answer) {
  const Json* content = member(answer, "content", Json::Kind::kArray);
  if (content == nullptr) return no_answer("no content");
  std::vector<Asked> out;
  for (const Json& block : *content) {
    if (text_of(block, "type") != "tool_use") continue;
    const std::string id = text_of(block, "id");
    if (id.empty()) return no_answer("a call of a tool that is none");
    const Json* input = member(block, "input", Json::Kind::kObject);
    out.push_back({id, text_of(block, "name"), input == nullptr ? Json() : *input});
  }
  // The API takes no empty turn back.
  Json said = content->empty() ? Json::array({text_block("(nothing)")}) : *content;
  items_.push_back({{"role", "assistant"}, {"content", std::move(said)}});
  return out;
}

void ToolLoop::on_result(const Asked& asked, const McpResult& result) {
  const std::string text = as_text(result.text.empty() ? "(nothing)" : result.text);
  if (rules_.api == ToolLoopRules::Api::kMessages)
    items_.push_back({{"type", "tool_result"},
                      {"tool_use_id", asked.id},
                      {"content", text},
                      {"is_error", result.failed}});
  else
    items_.push_back({{"role", "tool"}, {"tool_call_id", asked.id}, {"content", text}});
  item_turns_.push_back(turns_);
}

ToolLoopEnd run_tool_loop(ToolLoop& loop, ToolSession& session, const AskModel& ask) {
  using Why = ToolLoopEnd::Why;
  for (;;) {
    const std::uint64_t before = loop.turns();
    const auto request = loop.request();
    if (!request.ok())
      return {loop.has_turns() ? Why::kTooLarge : Why::kTurns, request.error().detail};
    PROCTOR_ASSERT(loop.turns() == before + 1);
    const auto answer = ask(*request);
    if (!answer.ok()) return {Why::kModel, answer.error().detail};
    const auto asked = loop.on_answer(*answer);
    if (!asked.ok()) return {Why::kModel, asked.error().detail};
    if (loop.done()) return {Why::kSilent, "the model asked for no tool, and was reminded"};
    for (const ToolLoop::Asked& one : *asked) {
      McpResult result;
      if (find_tool(one.tool) == nullptr)
        result = {"there is no tool " + printable(one.tool, 60), true, nullptr};
      else
        result = session.call({one.id, true, one.tool, one.arguments});
      loop.on_result(one, result);
      if (session.submitted()) return {Why::kSubmitted, ""};
      const Json* refused = member(result.structured, "refused", Json::Kind::kObject);
      if (refused != nullptr && refused->value("final", false)) return {Why::kRefused, result.text};
    }
  }
}
}  // namespace proctor
