#include "worker/gateway/refusal.h"

#include <algorithm>
#include <array>

#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/base/words.h"

namespace proctor {
namespace {
using Cause = Refusal::Cause;

bool is_anthropic(ModelApi api) {
  return api == ModelApi::kMessages || api == ModelApi::kCountTokens;
}

// Status, the type of the error in either style, and its code.
struct Form {
  Cause cause;
  int status;
  const char *type, *anthropic, *code;
};
constexpr int kBad = 400, kDenied = 401, kForbidden = 403, kNone = 404, kMethod = 405, kLarge = 413,
              kLater = 429;
constexpr const char* kInvalid = "invalid_request_error";
// By the place of the cause among its kind.
constexpr std::array kForms{
    Form{Cause::kFinal, kDenied, "insufficient_quota", "permission_error", "budget_exceeded"},
    Form{Cause::kNotNow, kLater, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"},
    Form{Cause::kToken, kDenied, kInvalid, "authentication_error", "invalid_api_key"},
    Form{Cause::kUnknownModel, kNone, kInvalid, "not_found_error", "model_not_found"},
    Form{Cause::kPolicy, kBad, kInvalid, kInvalid, "not_allowed"},
    Form{Cause::kTooLarge, kLarge, kInvalid, "request_too_large", "request_too_large"},
    Form{Cause::kUnknownRoute, kNone, kInvalid, "not_found_error", "unknown_route"},
    Form{Cause::kWrongMethod, kMethod, kInvalid, kInvalid, "wrong_method"},
    Form{Cause::kGate, kBad, kInvalid, kInvalid, "bad_request"},
};
static_assert(!is_enumerator<static_cast<Cause>(kForms.size())>() &&
              std::ranges::all_of(kForms, [](const Form& row) {
                return &row == &kForms.at(static_cast<std::size_t>(row.cause));
              }));

Form form_of(ModelApi api, const Refusal& r, bool litellm) {
  const bool responses = api == ModelApi::kResponses;
  Form out = kForms.at(static_cast<std::size_t>(r.cause));
  // Of every other status some program tries again: see the page.
  if (r.cause == Cause::kFinal && is_anthropic(api)) out.status = kForbidden;
  if (r.cause == Cause::kFinal && responses && !litellm) out.status = kLater;
  if (r.cause == Cause::kUnknownModel && responses) out.status = kBad;
  if (r.cause == Cause::kGate) out.status = r.status;
  return out;
}

std::string dumped(JsonWriter&& body) {
  return body.take().dump(-1, Json::Utf8::kReplace);
}

JsonWriter entry(ModelApi style, std::string_view model) {
  JsonWriter v;
  v("id", model);
  if (is_anthropic(style)) {
    v("type", "model");
    v("display_name", model);
    v("created_at", "1970-01-01T00:00:00Z");
  } else {
    v("object", "model");
    v("created", 0);
    v("owned_by", "proctor");
  }
  return v;
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
  JsonWriter body;
  if (is_anthropic(api)) {
    body("type", "error");
    body("request_id", request);
  }
  body.section("error", [&](JsonWriter& error) {
    error("message", text);
    error("type", is_anthropic(api) ? form.anthropic : form.type);
    if (is_anthropic(api)) return;
    error("param", r.param.empty() ? Json() : Json(r.param));
    error("code", r.code.empty() ? form.code : r.code);
  });
  out.body = dumped(std::move(body));
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
  for (const GatewayModel& m : models) data.push_back(entry(style, m.name).take());
  JsonWriter v;
  v("data", data);
  if (is_anthropic(style)) {
    v("first_id", models.front().name);
    v("last_id", models.back().name);
    v("has_more", false);
  } else {
    v("object", "list");
  }
  return dumped(std::move(v));
}

std::string model_entry(ModelApi style, std::string_view model) {
  return dumped(entry(style, model));
}
}  // namespace proctor
