#pragma once
// When two requests ask the same: as they are, or by what they mean.  Pure; any thread.
#include <optional>
#include <string>
#include <string_view>

namespace proctor {

enum class RequestForm {
  kPlain,
  // Texts by cassette_rules.h, and a list of one part of text as its text, which is how clients
  // write a message without and with a cache_control.
  kByRules,
};

// The request as one text for all spellings of it: members in order, no space between them, texts
// with one way of escaping, and without what changes from run to run and asks for nothing else:
// metadata, user, safety_identifier, prompt_cache_key, client_metadata, service_tier, store and
// stream_options, and cache_control wherever it is.  Empty: no JSON object.
std::string canonical_request(std::string_view body, RequestForm form = RequestForm::kPlain);

struct RequestDifference {
  std::string pointer;       // RFC 6901: "/messages/3/content"
  std::string ours, theirs;  // from a little before the first byte that differs, at most 200 bytes
};
// The first place, in the order of the canonical form, at which the two differ in that form.
std::optional<RequestDifference> first_difference(std::string_view ours, std::string_view theirs,
                                                  RequestForm form = RequestForm::kPlain);

}  // namespace proctor
