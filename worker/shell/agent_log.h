#pragma once
// AgentLog: what an agent does while it works, as events of its run's log.  Calls, tools and
// messages of its own are as many and as long as it likes, so they have a share of the log: at its
// end the agent must go, as at a cap, and the rest of the log is there for how it is judged.  A
// full log would be a trace that could not be written, and so a run that nobody judges.
// Not thread-safe: whoever guards the recorder guards this.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/trace/event.h"

namespace proctor {

class AgentLog {
 public:
  struct Bounds {
    // Of the whole log, when the agent must go.
    std::size_t bytes = kEventLogBytes / 8 * 5;
    std::uint64_t events = kEventsMax / 10 * 8;
    // What it had begun by then is told as far as this goes; beyond nothing of it is.
    std::size_t bytes_most = kEventLogBytes / 8 * 6;
    std::uint64_t events_most = kEventsMax / 10 * 9;
  };
  AgentLog() = default;
  explicit AgentLog(const Bounds& bounds) : bounds_(bounds) {}

  struct Noted {
    std::uint64_t seq = 0;  // of the event, or of the one that says why there is none
    std::string full{};     // once: why the agent must go, which `evidence` says
    std::uint64_t evidence = 0;
  };
  // An event that is longer than any may be ends the agent's share as well.  The error is the
  // host's: the file cannot be written.
  Result<Noted> note(RunRecorder& log, std::string_view type, Actor actor, const Json& payload);

 private:
  Result<Noted> fill(RunRecorder& log, std::string why, Noted noted);
  Bounds bounds_{};
  std::uint64_t full_ = 0;  // the event that said so; no log's first is
};

}  // namespace proctor
