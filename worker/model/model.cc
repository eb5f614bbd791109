#include "worker/model/model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/json_fields.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/base/words.h"

namespace proctor {
std::chrono::milliseconds wait_before_next(std::uint32_t failures,
                                           std::chrono::milliseconds backoff,
                                           std::chrono::milliseconds retry_after) {
  std::chrono::milliseconds wait = std::min(backoff, kModelWaitMost);
  for (std::uint32_t i = 1; i < failures && wait < kModelWaitMost; ++i) wait *= 2;
  return std::min(std::max(wait, retry_after), kModelWaitMost);
}

namespace {
using ReplyEnd = ModelReply::End;

constexpr JsonBounds kBounds{.bytes_max = kModelReplyBytes, .depth_max = 64};
constexpr int kOk = 200, kTooMany = 429;

// A question as chat completions have it.
struct ChatMessage {
  std::string role;
  Json content;
};
void fields(auto& v, Is<ChatMessage> auto& m) {
  v("role", m.role);
  v("content", m.content);
}
struct ChatRequest {
  std::string model;
  std::vector<ChatMessage> messages;
};
void fields(auto& v, Is<ChatRequest> auto& r) {
  v("model", r.model);
  v("messages", r.messages);
}

// Prompts and what programs write may hold bytes that are no UTF-8: they travel as U+FFFD.
std::string dumped(const Json& value) {
  return value.dump(-1, Json::Utf8::kReplace);
}

ModelReply read_choice(const std::string& body) {
  if (kModelReplyBytes < body.size())
    return {ReplyEnd::kUnreadable, {}, "the answer is larger than 16 MiB"};
  const Result<Json> document = parse_json(body, kBounds);
  if (!document.ok() || !document->is_object())
    return {ReplyEnd::kFailed, {}, "the answer is no JSON object"};
  const auto choices = document->find("choices");
  if (choices == document->end() || !choices->is_array() || choices->empty() ||
      !choices->front().is_object())
    return {ReplyEnd::kFailed, {}, "the answer has no choices"};
  const Json message = choices->front().value("message", Json::object());
  if (!message.is_object() || !message.contains("content") ||
      !(message["content"].is_string() || message["content"].is_null()))
    return {ReplyEnd::kFailed, {}, "the first choice has no message"};
  return {ReplyEnd::kAnswered, message["content"].is_string() ? message["content"].string() : ""};
}

// By the place of the failure among its kind.
constexpr std::array<std::pair<OwnFailure, ReplyEnd>, 4> kEnds{
    {{OwnFailure::kBusy, ReplyEnd::kBusy},
     {OwnFailure::kNoAccess, ReplyEnd::kNoAccess},
     {OwnFailure::kFailed, ReplyEnd::kFailed},
     {OwnFailure::kRefused, ReplyEnd::kRefused}}};
static_assert(!is_enumerator<static_cast<OwnFailure>(kEnds.size())>() &&
              std::ranges::all_of(kEnds, [](const auto& row) {
                return &row == &kEnds.at(static_cast<std::size_t>(row.first));
              }));

// How a call ended that has no answer.
ReplyEnd end_of(const OwnReply& answer) {
  if (answer.again) return *answer.again ? ReplyEnd::kNotNow : ReplyEnd::kNever;
  return kEnds.at(static_cast<std::size_t>(failure_of(answer.status))).second;
}
}  // namespace

std::string chat_body(const ModelRequest& request) {
  return dumped(
      to_json(ChatRequest{request.model, {{"system", request.system}, {"user", request.user}}}));
}

ModelReply read_chat_answer(const OwnReply& answer) {
  if (answer.status == kOk) return read_choice(answer.body);
  ModelReply out{end_of(answer)};
  out.cause = answer.status == 0 ? "the call ended without an answer"
                                 : "HTTP status " + std::to_string(answer.status);
  out.why = out.cause;
  if (!answer.body.empty()) out.why += ": " + printable(answer.body, 300);
  return out;
}

namespace {
Result<std::string> request_of(const ModelAccess& access, const ProgramTask& task,
                               std::string_view body) {
  PROCTOR_TRY(const Json json, parse_json(body));
  PROCTOR_TRY(const auto asked, from_json<ChatRequest>(json, "", Errc::kInvalid, Versions::kAny));
  if (asked.messages.size() < 2) return Error{Errc::kInvalid, "messages: fewer than two"};
  const Json limit = json.value(access.output_limit, Json());
  if (!limit.is_number_unsigned())
    return Error{Errc::kInvalid, access.output_limit + ": expected a whole number"};
  JsonWriter v;
  v("model", asked.model);
  v("task", task.task);
  v("sample", task.sample);
  v("system", asked.messages[0].content);
  v("user", asked.messages[1].content);
  v("max_output_tokens", limit);
  v("timeout_ms", access.total);
  return dumped(v.take()) + "\n";
}

// Its output, as chat completions have it; other output stays as it is.
std::string answer_in(const std::string& out) {
  const Result<Json> said = parse_json(out, kBounds);
  if (!said.ok() || !said->is_object() || !said->contains("text")) return out;
  JsonWriter choice, answer;
  choice.section("message", [&](JsonWriter& v) { v("content", said->at("text")); });
  answer("choices", Json::array({choice.take()}));
  if (const auto usage = said->find("usage"); usage != said->end() && usage->is_object())
    answer.section("usage", [&](JsonWriter& v) {
      v("prompt_tokens", usage->value("input_tokens", Json()));
      v("completion_tokens", usage->value("output_tokens", Json()));
    });
  return dumped(answer.take());
}
}  // namespace

Result<CassetteCall> ask_program(const ModelAccess& access, const ProgramTask& task,
                                 std::string_view body, const std::function<bool()>& stop) {
  CommandSpec spec;
  spec.argv = access.program;
  PROCTOR_TRY(spec.stdin_bytes, request_of(access, task, body));
  spec.timeout = access.total;
  spec.output_max = kModelReplyBytes + 1;  // one more than an answer may have
  spec.cancelled = stop;
  Result<CommandOutcome> outcome = run_command(spec);
  if (!outcome.ok()) return Error{Errc::kUnavailable, outcome.error().detail};
  CassetteCall out;
  out.answer = printable(outcome->describe(), 500);
  if (outcome->cancelled || outcome->timed_out) return out;
  if (outcome->exit_code == kModelBusyExit) out.status = kTooMany;
  if (outcome->success() || outcome->output_cut) {
    out.status = kOk;
    out.answer = answer_in(outcome->out);
  }
  return out;
}
}  // namespace proctor
