#include "coordinator/shell/control_protocol.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/text.h"

namespace proctor {
namespace {
using Verdict = ControlAnswer::Verdict;

constexpr std::array<std::pair<Verdict, std::string_view>, 5> kVerdicts{
    {{Verdict::kDone, "done"},
     {Verdict::kUnchanged, "unchanged"},
     {Verdict::kRefused, "refused"},
     {Verdict::kInvalid, "invalid"},
     {Verdict::kUnavailable, "unavailable"}}};

// The texts of a request, by key.
constexpr std::array<std::pair<std::string_view, std::string ControlRequest::*>, 11> kTexts{
    {{"act", &ControlRequest::act},
     {"runs", &ControlRequest::runs},
     {"worker", &ControlRequest::worker},
     {"reason", &ControlRequest::reason},
     {"by", &ControlRequest::by},
     {"scope", &ControlRequest::scope},
     {"to", &ControlRequest::to},
     {"stage", &ControlRequest::stage},
     {"digest", &ControlRequest::digest},
     {"criterion", &ControlRequest::criterion},
     {"minutes", &ControlRequest::minutes}}};

std::string one_line(const Json& json) {
  return json.dump(-1, Json::Utf8::kReplace) + "\n";
}

Error wrong(const std::string& what) {
  return {Errc::kInvalid, what};
}
}  // namespace

std::string encode(const ControlRequest& request) {
  Json out = Json::object();
  for (const auto& [key, field] : kTexts)
    if (!(request.*field).empty()) out[std::string(key)] = request.*field;
  if (request.now) out["now"] = true;
  if (request.invalid) out["invalid"] = true;
  if (request.taken) out["taken"] = true;
  return one_line(out);
}

std::string encode(const ControlAnswer& answer) {
  Json out = {{"verdict", to_string(answer.verdict)}, {"text", answer.text}};
  if (!answer.explanation.is_null()) out["explanation"] = answer.explanation;
  return one_line(out);
}

Result<ControlRequest> parse_control_request(std::string_view line) {
  constexpr JsonBounds kBounds{.bytes_max = kControlLineBytes, .depth_max = 2};
  const Result<Json> parsed = parse_json(line, kBounds);
  if (!parsed.ok()) return wrong("request: " + parsed.error().detail);
  if (!parsed->is_object()) return wrong("request: expected an object");
  ControlRequest out;
  for (const auto& [key, value] : parsed->items()) {
    const auto text = std::ranges::find(
        kTexts, key, &std::pair<std::string_view, std::string ControlRequest::*>::first);
    if (text != kTexts.end()) {
      if (!value.is_string()) return wrong(key + ": expected a text");
      out.*(text->second) = value.get<std::string>();
    } else if (key == "now" || key == "invalid" || key == "taken") {
      if (!value.is_boolean()) return wrong(key + ": expected true or false");
      (key == "now" ? out.now : key == "invalid" ? out.invalid : out.taken) = value.get<bool>();
    } else {
      return wrong("request: there is no key " + printable(key));
    }
  }
  if (out.act.empty()) return wrong("act: expected what is to be done, as in pause");
  return out;
}

Result<ControlAnswer> parse_control_answer(std::string_view line) {
  constexpr JsonBounds kBounds{.bytes_max = kControlAnswerBytes, .depth_max = 16};
  const auto broken = [](const std::string& what) {
    return Error{Errc::kCorrupt, "the coordinator's answer: " + what};
  };
  const Result<Json> parsed = parse_json(line, kBounds);
  if (!parsed.ok()) return broken(parsed.error().detail);
  const Json& j = *parsed;
  if (!j.is_object() || !j.contains("verdict") || !j["verdict"].is_string() ||
      !j.contains("text") || !j["text"].is_string())
    return broken("expected verdict and text");
  ControlAnswer out;
  const auto verdict = j["verdict"].get<std::string>();
  const auto known =
      std::ranges::find(kVerdicts, verdict, &std::pair<Verdict, std::string_view>::second);
  if (known == kVerdicts.end()) return broken("there is no verdict " + printable(verdict));
  out.verdict = known->first;
  out.text = j["text"].get<std::string>();
  if (j.contains("explanation")) out.explanation = j["explanation"];
  return out;
}

Verdict verdict_of(OperatorAnswer::Verdict verdict) {
  switch (verdict) {
    case OperatorAnswer::Verdict::kDone:
      return Verdict::kDone;
    case OperatorAnswer::Verdict::kUnchanged:
      return Verdict::kUnchanged;
    case OperatorAnswer::Verdict::kRefused:
      break;
  }
  return Verdict::kRefused;
}

std::string_view to_string(Verdict verdict) {
  for (const auto& [v, name] : kVerdicts)
    if (v == verdict) return name;
  PROCTOR_ASSERT(false);
  return {};
}
}  // namespace proctor
