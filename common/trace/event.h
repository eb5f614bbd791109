#pragma once
// One event of a run's trace and the hash chain that ties it to all before it (R052, R083, R084;
// STATISTICS E11).  Pure but for each_event(): bytes in, bytes out.
//
//   body = canonical JSON (RFC 8785) of {actor, payload, prev, seq, t, type}
//   hash = SHA-256(body);  prev = hash of the event before, 64 zeros for the first
//   line = canonical JSON of body with "hash" added, then one '\n'
//
// A stored line has exactly one spelling: a reader rebuilds it and compares bytes, so that
// re-serialising never changes a hash and no byte is left unbound.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/result.h"

namespace proctor {

// Who acted (R083).
enum class Actor { kAgent, kHarness, kMonitor, kOperator };
std::string_view to_string(Actor a);
std::optional<Actor> actor_from(std::string_view text);

// Of one run.  An attempt that needs more is stopped by its recorder, not by a full disk.
inline constexpr std::uint64_t kEventsMax = 1'000'000;
inline constexpr std::size_t kEventLogBytes = limits::kEventLogBytes;
inline constexpr std::size_t kEventTypeBytes = 64;

struct Event {
  std::uint64_t seq = 0;
  std::uint64_t t = 0;  // microseconds since the first event
  Actor actor = Actor::kHarness;
  std::string type;  // lower-case words, digits and '_' joined by '.': "agent.start"
  Json payload;
  Digest prev;
};

struct SealedEvent {
  std::string line;  // with its '\n'
  Digest hash;
};
// kInvalid: a type of another shape, a payload that is not an object or cannot be hashed (floats,
// integers beyond 2^53, text that is not UTF-8).  kExhausted: longer than limits::kEventBytes.
Result<SealedEvent> seal_event(const Event& event);

// Follows a chain line by line.  After the first error it stays where the chain was whole.
class EventChain {
 public:
  // One line without its '\n'.  The event, or what is wrong with it: not canonical, a field of a
  // wrong kind, seq or prev that does not follow, t that does not grow, hash that is not its own.
  Result<Event> accept(std::string_view line);
  std::uint64_t length() const { return length_; }
  const Digest& head() const { return head_; }  // zeros before the first event

 private:
  std::uint64_t length_ = 0;
  std::uint64_t last_t_ = 0;
  Digest head_;
};

// The events of a run directory in their order, up to a line that is being written.  Errors: of
// read_file(); kCorrupt, "events.jsonl:LINE: WHY", a chain that is broken.
Status each_event(const fs::path& run_dir, const std::function<void(const Event&)>& take);

}  // namespace proctor
