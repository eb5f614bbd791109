#pragma once
// Placeholders for the parts of a request's texts that change from run to run and from day to day:
// a recording of yesterday answers today's run.  Pure; any thread.
#include <array>
#include <string>
#include <string_view>

namespace proctor {

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

}  // namespace proctor
