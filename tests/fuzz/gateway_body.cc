// A request's body: what we read where it lies is what a parser reads, and an edit changes what it
// names and nothing else.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "tests/fuzz/fuzz.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/policy.h"

namespace proctor::fuzz::gateway_body {

// Lenient where parse_json() is strict, and so judges what that refuses, too.
using Reference = nlohmann::json;

// All members and elements, as often as they are there, against a parser's.
void check_values(const JsonText& text, JsonSpan span, const Reference& value) {
  if (text.kind(span) == '{') {
    const auto members = text.members(span);
    if (!members.ok()) return;  // a key twice, half a surrogate pair
    PROCTOR_ASSERT(value.is_object() && members->size() == value.size());
    for (const JsonMember& m : *members) check_values(text, m.value, value.at(m.key));
  } else if (text.kind(span) == '[') {
    const auto elements = text.elements(span);
    PROCTOR_ASSERT(elements.ok() && value.is_array() && elements->size() == value.size());
    for (std::size_t i = 0; i < elements->size(); ++i) check_values(text, (*elements)[i], value[i]);
  } else if (const auto said = text.text(span)) {
    PROCTOR_ASSERT(value.is_string() && value.get<std::string>() == *said);
  } else if (const auto count = text.count(span)) {
    PROCTOR_ASSERT(value.is_number_unsigned() && value.get<std::uint64_t>() == *count);
  }
}

void check_call(ModelApi api, std::string_view body, const Reference& before) {
  const auto peek = peek_body(api, body);
  if (!peek.ok()) return;
  PROCTOR_ASSERT(before.is_object() && before["model"] == peek->model);
  const GatewayModel model{peek->model, {}, {}, {}};
  ModelAccess access;
  access.send_as = "sent";
  PolicyVerdict verdict = judge_request(api, body, *peek, model, access);
  if (verdict.refusal) return;
  const TokenCeiling ceiling = ceiling_of(api, *peek, body.size(), model, access);
  PROCTOR_ASSERT(ceiling.least <= ceiling.asked && ceiling.input <= access.max_input);
  for (const PeekedItem& item : peek->item_at)
    PROCTOR_ASSERT(item.at.at + item.at.size <= body.size());
  if (const auto shape = shape_of(api, body, *peek, access)) {
    DeltaRule rule;
    rule.settled(*shape, {});
    PROCTOR_ASSERT(rule.bound(*shape).has_value());
  }
  if (0 < ceiling.asked)
    if (auto edit = limit_edit(api, *peek, access, ceiling.least)) verdict.edits.push_back(*edit);
  Reference after = Reference::parse(spliced(body, verdict.edits), nullptr, false);
  PROCTOR_ASSERT(after.is_object() && after["model"] == "sent");
  if (std::ranges::find(verdict.edits, "input.tools", &Splice::member) != verdict.edits.end())
    return;
  Reference expected = before;
  for (Reference* each : {&after, &expected})
    for (const char* key : {"model", "tools", "stream_options", "max_tokens",
                            "max_completion_tokens", "max_output_tokens"})
      each->erase(key);
  PROCTOR_ASSERT(after == expected);
}

void target(std::string_view bytes) {
  constexpr ModelApi kApis[] = {ModelApi::kChat,      ModelApi::kCompletions,
                                ModelApi::kResponses, ModelApi::kEmbeddings,
                                ModelApi::kMessages,  ModelApi::kCountTokens};
  const ModelApi api = kApis[take_byte(bytes) % 6U];
  const auto text = JsonText::read(bytes);
  const Reference parsed = Reference::parse(bytes, nullptr, false);
  // A number that no double holds is one to us: it is passed on unread.
  if (!text.ok()) return;
  if (parsed.is_discarded()) {
    PROCTOR_ASSERT(bytes.find_first_of("0123456789u") != std::string_view::npos);
    return;
  }
  if (parse_json(bytes, {.bytes_max = 1U << 20U, .depth_max = 60}).ok())
    check_values(*text, text->root(), parsed);
  check_call(api, bytes, parsed);
}

}  // namespace proctor::fuzz::gateway_body
