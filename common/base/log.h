#pragma once
// The process's own log (spdlog, stderr).  Not evidence: what an auditor needs goes into the
// journal or a run's trace.  Never pass a secret here; see ids.h.
#include <string_view>

namespace proctor::log {
enum class Level { kDebug, kInfo, kWarn, kError };

// `who` prefixes every line: "coordinator", "worker w1".  Call once, before threads.
void init(std::string_view who, Level least);
void debug(std::string_view text);
void info(std::string_view text);
void warn(std::string_view text);
void error(std::string_view text);
// As warn, but one text once a minute, then with how often it was left out; no more than 100
// different ones a minute, for strangers may choose them.  Any thread.
void warn_seldom(std::string_view text);
}  // namespace proctor::log
