#include "worker/model/chat_protocol.h"

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr JsonBounds kBounds{.bytes_max = kModelReplyBytes, .depth_max = 64};
constexpr std::uint64_t kTokensMost = 1'000'000'000;  // more is no count of one call

std::optional<std::uint64_t> count_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
  const auto n = it->get<std::uint64_t>();
  return n <= kTokensMost ? std::optional(n) : std::nullopt;
}

std::optional<ModelUsage> usage_of(const Json& document, const char* input, const char* output) {
  const auto it = document.find("usage");
  if (it == document.end() || !it->is_object()) return std::nullopt;
  const auto in = count_of(*it, input);
  const auto out = count_of(*it, output);
  if (!in || !out) return std::nullopt;
  return ModelUsage{*in, *out};
}

// Prompts may hold bytes that are no UTF-8 (lone surrogates): they travel as U+FFFD.
std::string dumped(const Json& value) {
  return value.dump(-1, Json::Utf8::kReplace);
}

void read_choice(const Json& document, ModelReply& reply) {
  const auto choices = document.find("choices");
  if (choices == document.end() || !choices->is_array() || choices->empty() ||
      !choices->front().is_object()) {
    reply.why = "the answer has no choices";
    return;
  }
  const Json message = choices->front().value("message", Json::object());
  if (!message.is_object() || !message.contains("content") ||
      !(message["content"].is_string() || message["content"].is_null())) {
    reply.why = "the first choice has no message";
    return;
  }
  reply.end = ModelReply::End::kAnswered;
  if (message["content"].is_string()) reply.text = message["content"].get<std::string>();
}

}  // namespace

std::string chat_body(const ModelRequest& request, const std::string& output_limit) {
  return dumped({{"model", request.model},
                 {"messages",
                  {{{"role", "system"}, {"content", request.system}},
                   {{"role", "user"}, {"content", request.user}}}},
                 {output_limit, request.max_output_tokens}});
}

ModelReply read_chat_answer(HttpAnswer answer) {
  constexpr long kOk = 200, kTimeout = 408, kTooMany = 429, kAway = 503, kServer = 500;
  constexpr long kDenied = 401, kUnpaid = 402, kForbidden = 403, kAbsent = 404;
  ModelReply reply;
  reply.raw = std::move(answer.body);
  reply.retry_after = answer.retry_after;
  if (answer.status == kOk) {
    const Result<Json> document = parse_json(reply.raw, kBounds);
    if (!document.ok() || !document->is_object()) {
      reply.why = "the answer is no JSON object (" +
                  printable(answer.content_type.empty() ? "no content type" : answer.content_type) +
                  ")";
      return reply;
    }
    reply.usage = usage_of(*document, "prompt_tokens", "completion_tokens");
    read_choice(*document, reply);
    return reply;
  }
  reply.cause = "HTTP status " + std::to_string(answer.status);
  reply.why = reply.cause + ": " + printable(reply.raw, 300);
  reply.billed = kServer <= answer.status && answer.status != kAway;
  if (answer.status == kTooMany || answer.status == kAway)
    reply.end = ModelReply::End::kBusy;
  else if (answer.status == kDenied || answer.status == kUnpaid || answer.status == kForbidden ||
           answer.status == kAbsent)
    reply.end = ModelReply::End::kNoAccess;
  else if (answer.status < kServer && answer.status != kTimeout)
    reply.end = ModelReply::End::kRefused;
  return reply;
}

std::string program_request(const ModelRequest& r) {
  return dumped({{"model", r.model},
                 {"task", r.task},
                 {"sample", r.sample},
                 {"system", r.system},
                 {"user", r.user},
                 {"max_output_tokens", r.max_output_tokens},
                 {"timeout_ms", r.timeout.count()}}) +
         "\n";
}

void read_program_answer(std::string_view out, ModelReply& reply) {
  const Result<Json> document = parse_json(out, kBounds);
  if (!document.ok() || !document->is_object() || !document->contains("text") ||
      !(*document)["text"].is_string()) {
    reply.why = "the program wrote no JSON object with a text";
    return;
  }
  reply.end = ModelReply::End::kAnswered;
  reply.text = (*document)["text"].get<std::string>();
  reply.usage = usage_of(*document, "input_tokens", "output_tokens");
}

}  // namespace proctor
