#pragma once
// Cassettes of recorded calls: rules of canonical form, the match, the player (docs/cassettes.md).
// Pure but for the player; any thread.
#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/contract/models_file.h"
#include "common/trace/model_calls.h"

namespace proctor {
// Placeholders for the parts of a request's texts that change from run to run and from day to day:
// a recording of yesterday answers today's run.
struct CassetteRule {
  std::string_view name;
  std::string_view pattern;  // RE2, without capturing groups; matches no empty text
  std::string_view with;     // the placeholder; empty: the match stays as it is
};

// A text is read once, from left to right.  The match that begins first counts; of several that
// begin at one place, that of the rule listed first.  docs/cassettes.md has the same table.
inline constexpr std::array<CassetteRule, 19> kCassetteRules{{
    {"billing header", R"(\Ax-anthropic-billing-header:[^\n]*)", "<billing>"},
    {"kernel", R"(\bLinux [0-9]+\.[0-9]+[^\n<"]*)", "<kernel>"},
    {"UUID", R"(\b(?:[A-Za-z]+_)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)", "<id>"},
    {"identifier of a call, tool or session",
     R"(\b(?:call|chatcmpl|ctco?|fco?|msg|resp|rs|session|srvtoolu|toolu)[_-][0-9A-Za-z]{16,}\b)",
     "<id>"},
    {"Codex's chunk", R"re(\b[Cc]hunk[ _](?:ID|id)"?: ?"?[0-9a-f]+\b"?)re", "<chunk>"},
    {"Codex's counts",
     R"re(\b(?:[Oo]riginal[ _]token[ _]count|session[ _](?:ID|id))"?:? ?[0-9]+\b)re", "<count>"},
    {"member of a duration",
     R"(\b(?:wall_time|duration|elapsed)(?:_s|_ms|_seconds)?"?[:=] ?[0-9]+(?:\.[0-9]+)?\b)",
     "<duration>"},
    {"temporary path", R"(\B/(?:var/)?tmp/[^\s"'`<>(){}\[\]:;,|\\]+)", "<path>"},
    {"port of this host", R"(\b(?:127\.0\.0\.1|0\.0\.0\.0|localhost):[0-9]{2,5}\b)", "<port>"},
    {"process",
     R"(/proc/[0-9]+|\b(?:pid|PID)[ =:]+[0-9]+|(?m:^\[[0-9]+\] [0-9]+$)|==[0-9]+==|\b[0-9]+ (?:Aborted|Killed|Segmentation fault|Terminated)\b)",
     "<process>"},
    {"ISO date",
     R"(\b[0-9]{4}[-/][01][0-9][-/][0-3][0-9](?:[T ][0-2][0-9][:-][0-5][0-9](?:[:-][0-5][0-9](?:[.,][0-9]+)?)?(?: ?(?:Z|UTC|GMT|[+-][0-2][0-9]:?[0-5][0-9]))?)?\b)",
     "<date>"},
    {"English date",
     R"(\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?(?:[0-9]{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|ember|ober)?,? [0-9]{4}|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|ember|ober)? +[0-9]{1,2})(?:(?:,? +| at )(?:[0-9]{4}|[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?|UTC|GMT))*\b)",
     "<date>"},
    {"time of day",
     R"(\b[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?(?: ?[AaPp][Mm])?| ?[AaPp][Mm])(?: (?:UTC|GMT))?\b)",
     "<time>"},
    {"duration",
     R"(\b[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)? ?(?:[nu]s|ms|s|secs?|seconds?|mins?|minutes?|hours?)\b|\b[0-9]+m ?[0-9.]+s\b)",
     "<duration>"},
    {"time since 1970", R"(\b1[6-9][0-9]{8}(?:[0-9]{3}){0,3}(?:\.[0-9]+)?\b)", "<time>"},
    {"pointer", R"(\b0x[0-9a-f]{9,16}\b)", "<pointer>"},
    {"short hash of git",
     R"((?m:^[0-9a-f]{7} )|\b[0-9a-f]{7}\.\.[0-9a-f]{7}\b|\[[0-9A-Za-z_/.-]+(?: \(root-commit\))? [0-9a-f]{7}\])",
     "<hash>"},
    {"any other number", R"(\b[0-9]+\b)", ""},
    {"hash", R"(\b[0-9a-f]{7,}\b)", "<hash>"},
}};

std::string by_cassette_rules(std::string_view text);

// When two requests ask the same: as they are, or by what they mean.
enum class RequestForm {
  kPlain,
  // Texts by kCassetteRules, and a list of one part of text as its text, which is how clients
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

// Answers the calls of one session from a recording: each recorded call once, found as the models
// file says.  A call that is not in it is a divergence, and the first place is named at which it
// differs from the recorded call that begins most like it.  Thread-safe.
class CassettePlayer {
 public:
  // From several recorded runs: the calls of `run`, if it is among them, else all in their order.
  CassettePlayer(std::vector<CassetteCall> calls, const std::string& run, CassetteMatch match);

  struct Hit {
    std::uint64_t number = 0;  // from 1, in the recording
    const CassetteCall* call = nullptr;
  };
  struct Miss {
    std::uint64_t expected = 0;  // the recorded call that begins most like it; 0: none was left
    std::string pointer, ours, theirs;
    std::string text;  // for people
  };
  // `redact` strikes secrets out of both bodies before a part of them is shown.
  using Redact = std::function<std::string(std::string_view)>;
  std::variant<Hit, Miss> take(ModelApi api, std::string_view body, const Redact& redact = {});
  // Calls that nobody asked for so far.
  std::size_t unused() const;

 private:
  struct Entry {
    CassetteCall call;
    std::uint64_t number = 0;
    std::string key;       // by which it is found
    std::string by_rules;  // RequestForm::kByRules; empty until another day's request asks for it
    bool used = false;
  };
  std::string key_of(std::string_view body) const;
  Entry* find_by_rules(std::string_view route, const std::string& form);
  Miss miss(std::string_view route, std::string_view body, const std::string& form,
            const Redact& redact) const;
  CassetteMatch match_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};
}  // namespace proctor
