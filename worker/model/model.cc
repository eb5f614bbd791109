#include "worker/model/model.h"

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {

using ReplyEnd = ModelReply::End;

constexpr JsonBounds kBounds{.bytes_max = kModelReplyBytes, .depth_max = 64};

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

// How a call ended that has no answer.
ReplyEnd end_of(const OwnReply& answer) {
  if (answer.again) return *answer.again ? ReplyEnd::kNotNow : ReplyEnd::kNever;
  switch (failure_of(answer.status)) {
    case OwnFailure::kBusy:
      return ReplyEnd::kBusy;
    case OwnFailure::kNoAccess:
      return ReplyEnd::kNoAccess;
    case OwnFailure::kFailed:
      return ReplyEnd::kFailed;
    case OwnFailure::kRefused:
      return ReplyEnd::kRefused;
  }
  return ReplyEnd::kFailed;
}

}  // namespace

std::string chat_body(const ModelRequest& request) {
  // Prompts may hold bytes that are no UTF-8 (lone surrogates): they travel as U+FFFD.
  return Json{{"model", request.model},
              {"messages",
               {{{"role", "system"}, {"content", request.system}},
                {{"role", "user"}, {"content", request.user}}}}}
      .dump(-1, Json::Utf8::kReplace);
}

ModelReply read_chat_answer(const OwnReply& answer) {
  constexpr int kOk = 200;
  if (answer.status == kOk) return read_choice(answer.body);
  ModelReply out{end_of(answer)};
  out.cause = answer.status == 0 ? "the call ended without an answer"
                                 : "HTTP status " + std::to_string(answer.status);
  out.why = out.cause;
  if (!answer.body.empty()) out.why += ": " + printable(answer.body, 300);
  return out;
}

}  // namespace proctor
