#include "worker/shell/agent_log.h"

namespace proctor {

Result<AgentLog::Noted> AgentLog::note(RunRecorder& log, std::string_view type, Actor actor,
                                       const Json& payload) {
  const RunRecorder::Length before = log.length();
  if (full_ != 0 && (bounds_.bytes_most <= before.bytes || bounds_.events_most <= before.events))
    return Noted{full_};
  Noted noted{full_};
  if (Result<std::uint64_t> seq = log.event(type, actor, payload); seq.ok())
    noted.seq = *seq;
  else if (seq.error().code != Errc::kExhausted)
    return std::move(seq).error();
  else
    return fill(log, "its event " + std::string(type) + " is too long", noted);
  const RunRecorder::Length length = log.length();
  if (length.bytes < bounds_.bytes && length.events < bounds_.events) return noted;
  return fill(
      log, std::to_string(length.events) + " events of " + std::to_string(length.bytes) + " bytes",
      noted);
}

Result<AgentLog::Noted> AgentLog::fill(RunRecorder& log, std::string why, Noted noted) {
  if (full_ != 0) return noted;
  why = "the agent was stopped at the limit of what is recorded of its calls: " + why;
  PROCTOR_TRY(full_, log.event("trace.full", Actor::kHarness,
                               Json{{"why", why},
                                    {"bytes", log.length().bytes},
                                    {"events", log.length().events}}));
  if (noted.seq == 0) noted.seq = full_;
  noted.full = std::move(why);
  noted.evidence = full_;
  return noted;
}

}  // namespace proctor
