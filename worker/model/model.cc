#include "worker/model/model.h"

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {

using Said = ModelReply::End;

constexpr JsonBounds kBounds{.bytes_max = kModelReplyBytes, .depth_max = 64};

ModelReply read_choice(const std::string& body) {
  if (kModelReplyBytes < body.size())
    return {Said::kUnreadable, {}, "the answer is larger than 16 MiB"};
  const Result<Json> document = parse_json(body, kBounds);
  if (!document.ok() || !document->is_object())
    return {Said::kFailed, {}, "the answer is no JSON object"};
  const auto choices = document->find("choices");
  if (choices == document->end() || !choices->is_array() || choices->empty() ||
      !choices->front().is_object())
    return {Said::kFailed, {}, "the answer has no choices"};
  const Json message = choices->front().value("message", Json::object());
  if (!message.is_object() || !message.contains("content") ||
      !(message["content"].is_string() || message["content"].is_null()))
    return {Said::kFailed, {}, "the first choice has no message"};
  return {Said::kAnswered, message["content"].is_string() ? message["content"].string() : ""};
}

// Of an answer that is none.
Said end_of(const OwnReply& answer) {
  constexpr int kDenied = 401, kUnpaid = 402, kForbidden = 403, kAbsent = 404, kSlow = 408,
                kTooMany = 429, kServer = 500, kAway = 503, kOverloaded = 529;
  if (answer.again) return *answer.again ? Said::kNotNow : Said::kNever;
  switch (answer.status) {
    case kTooMany:
    case kAway:
    case kOverloaded:
      return Said::kBusy;
    case kDenied:
    case kUnpaid:
    case kForbidden:
    case kAbsent:
      return Said::kNoAccess;
    default:
      return answer.status == 0 || answer.status == kSlow || kServer <= answer.status
                 ? Said::kFailed
                 : Said::kRefused;
  }
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
