// Recordings, what is kept, and what two requests have in common: whatever the bytes, what was read
// is written the same, one request has one canonical form, and pieces make up their body.
#include "common/trace/model_calls.h"
#include "tests/fuzz/fuzz.h"
#include "worker/gateway/body_peek.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/model_answer.h"
#include "worker/gateway/redactor.h"

namespace proctor::fuzz::gateway_cassette {

void check_request(std::string_view body) {
  const std::string canonical = canonical_request(body);
  if (!canonical.empty()) {
    PROCTOR_ASSERT(canonical_request(canonical) == canonical);
    PROCTOR_ASSERT(!first_difference(body, canonical));
  }
  const std::size_t half = body.size() / 2;
  const std::string_view ours = body.substr(0, half), theirs = body.substr(half);
  const std::string a = canonical_request(ours, RequestForm::kByRules),
                    b = canonical_request(theirs, RequestForm::kByRules);
  if (!a.empty() && !b.empty())
    PROCTOR_ASSERT((a == b) == !first_difference(ours, theirs, RequestForm::kByRules));
  if (!canonical.empty()) {
    PROCTOR_ASSERT(canonical_request(body, RequestForm::kByRules) ==
                   canonical_request(canonical, RequestForm::kByRules));
  }
  const auto found = first_difference(ours, theirs);
  if (found) PROCTOR_ASSERT(found->ours.size() <= 210 && found->theirs.size() <= 210);
  for (const ModelApi api : {ModelApi::kChat, ModelApi::kResponses, ModelApi::kMessages}) {
    PROCTOR_ASSERT(tool_calls_in(api, body).size() <= kToolCallsMax);
    StreamToolCalls stream(api);
    stream.on({"", std::string(body), ""});
    PROCTOR_ASSERT(stream.calls().size() <= 2 * kToolCallsMax);
    const auto peek = peek_body(api, body);
    if (!peek.ok()) continue;
    std::size_t at = 0;
    for (const JsonSpan& piece : pieces_of(body.size(), peek->cuts)) {
      PROCTOR_ASSERT(piece.at == at && 0 < piece.size);
      at += piece.size;
    }
    PROCTOR_ASSERT(at == body.size());
    for (const PeekedResult& r : peek->results)
      PROCTOR_ASSERT(r.content.at + r.content.size <= body.size());
  }
}

void target(std::string_view bytes) {
  const auto kind = take_byte(bytes) % 4U;
  if (kind == 0) {
    const auto calls = parse_cassette(bytes);
    if (!calls.ok()) return;
    const auto text = cassette_text(*calls);
    PROCTOR_ASSERT(text.ok() && parse_cassette(*text).value() == *calls);
  } else if (kind == 1) {
    const auto index = parse_segment_index(bytes);
    if (!index.ok()) return;
    std::uint64_t sum = 0, end = 0;
    for (const auto& [digest, place] : *index) {
      sum += place.bytes;
      end = std::max(end, place.offset + place.bytes);
    }
    PROCTOR_ASSERT(sum == end);
  } else if (kind == 2) {
    const std::string_view secret = bytes.substr(0, std::min<std::size_t>(bytes.size(), 6));
    const Redactor by({{"r", std::string(secret)}});
    const std::string once = by.apply(bytes);
    PROCTOR_ASSERT(once == by.apply(bytes));
    if (secret.size() == 6 && secret.find_first_of("[]:redact0123456789bf") == secret.npos)
      PROCTOR_ASSERT(once.find(secret) == std::string::npos);
  } else {
    check_request(bytes);
  }
}

}  // namespace proctor::fuzz::gateway_cassette
