#include "worker/gateway/refusal.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/text.h"

namespace proctor {
namespace {
using Cause = Refusal::Cause;

bool is_anthropic(ModelApi api) {
  return api == ModelApi::kMessages || api == ModelApi::kCountTokens;
}

// Status, the type of the error in either style, and its code.
struct Form {
  int status;
  const char* type;
  const char* anthropic;
  const char* code;
};

Form form_of(ModelApi api, const Refusal& r, bool litellm) {
  constexpr int kBad = 400, kDenied = 401, kForbidden = 403, kNone = 404, kMethod = 405,
                kLarge = 413, kLater = 429;
  const bool responses = api == ModelApi::kResponses;
  switch (r.cause) {
    case Cause::kFinal:
      // Of every other status some program tries again: see the page.
      return {is_anthropic(api)       ? kForbidden
              : responses && !litellm ? kLater
                                      : kDenied,
              "insufficient_quota", "permission_error", "budget_exceeded"};
    case Cause::kNotNow:
      return {kLater, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"};
    case Cause::kToken:
      return {kDenied, "invalid_request_error", "authentication_error", "invalid_api_key"};
    case Cause::kUnknownModel:
      return {responses ? kBad : kNone, "invalid_request_error", "not_found_error",
              "model_not_found"};
    case Cause::kPolicy:
      return {kBad, "invalid_request_error", "invalid_request_error", "not_allowed"};
    case Cause::kTooLarge:
      return {kLarge, "invalid_request_error", "request_too_large", "request_too_large"};
    case Cause::kUnknownRoute:
      return {kNone, "invalid_request_error", "not_found_error", "unknown_route"};
    case Cause::kWrongMethod:
      return {kMethod, "invalid_request_error", "invalid_request_error", "wrong_method"};
    case Cause::kGate:
      break;
  }
  return {r.status, "invalid_request_error", "invalid_request_error", "bad_request"};
}

std::string dumped(const Json& body) {
  return body.dump(-1, Json::Utf8::kReplace);
}

Json entry(ModelApi style, std::string_view model) {
  if (!is_anthropic(style))
    return {{"id", model}, {"object", "model"}, {"created", 0}, {"owned_by", "proctor"}};
  return {{"type", "model"},
          {"id", model},
          {"display_name", model},
          {"created_at", "1970-01-01T00:00:00Z"}};
}
}  // namespace

OwnAnswer make_refusal(ModelApi api, const Refusal& r, bool litellm, std::uint64_t id) {
  constexpr std::uint64_t kSecond = 1'000, kMostSeconds = 60;
  const Form form = form_of(api, r, litellm);
  OwnAnswer out;
  out.status = form.status;
  const std::uint64_t seconds =
      std::clamp<std::uint64_t>((r.wait_ms + kSecond - 1) / kSecond, 1, kMostSeconds);
  std::string text = "proctor: " + printable(r.text, 1'000);
  if (r.cause == Cause::kNotNow) {
    text += "; try again in " + std::to_string(seconds) + "s";
    out.headers = "retry-after: " + std::to_string(seconds) +
                  "\r\nretry-after-ms: " + std::to_string(seconds * kSecond) +
                  "\r\nx-should-retry: true\r\n";
  } else {
    out.headers = "x-should-retry: false\r\n";
  }
  out.last = r.cause == Cause::kFinal || r.cause == Cause::kGate || r.cause == Cause::kTooLarge;
  const std::string request = "prq_" + std::to_string(id);
  if (is_anthropic(api)) {
    out.body = dumped({{"type", "error"},
                       {"error", {{"type", form.anthropic}, {"message", text}}},
                       {"request_id", request}});
  } else {
    Json error = {{"message", text},
                  {"type", form.type},
                  {"param", nullptr},
                  {"code", r.code.empty() ? form.code : r.code}};
    if (!r.param.empty()) error["param"] = r.param;
    out.body = dumped({{"error", std::move(error)}});
  }
  out.headers += std::string(kOwnHeader) + ": 1\r\nrequest-id: " + request +
                 "\r\nx-request-id: " + request + "\r\n";
  return out;
}

std::string to_bytes(const OwnAnswer& a, bool head_only) {
  std::string out =
      "HTTP/1.1 " + std::to_string(a.status) + (a.status < 300 ? " OK" : " Refused") + "\r\n";
  if (!a.type.empty()) out += "content-type: " + a.type + "\r\n";
  out += "content-length: " + std::to_string(a.body.size()) + "\r\n";
  out += a.headers;
  if (a.last) out += "connection: close\r\n";
  out += "\r\n";
  if (!head_only) out += a.body;
  return out;
}

std::string model_list(ModelApi style, const std::vector<GatewayModel>& models) {
  Json data = Json::array();
  for (const GatewayModel& m : models) data.push_back(entry(style, m.name));
  if (!is_anthropic(style)) return dumped({{"object", "list"}, {"data", std::move(data)}});
  return dumped({{"first_id", models.front().name},
                 {"last_id", models.back().name},
                 {"has_more", false},
                 {"data", std::move(data)}});
}

std::string model_entry(ModelApi style, std::string_view model) {
  return dumped(entry(style, model));
}
}  // namespace proctor
