#pragma once
// One event of a run's trace, the hash chain that ties it to all before it (R052, R083, R084;
// STATISTICS E11), and the recorder of a run directory.  Pure but for each_event() and RunRecorder:
// bytes in, bytes out.
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
#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/trace/run_report.h"

namespace proctor {
// The one that acted (R083).
enum class Actor { kAgent, kHarness, kMonitor, kOperator };
constexpr auto words(Actor) {
  using enum Actor;
  return std::to_array<Word<Actor>>(
      {{"agent", kAgent}, {"harness", kHarness}, {"monitor", kMonitor}, {"operator", kOperator}});
}

// Bounds of one run.  An attempt that needs more is stopped by its recorder, not by a full disk.
inline constexpr std::uint64_t kEventsMax = 1'000'000;
inline constexpr std::size_t kEventLogBytes = limits::kEventLogBytes;
inline constexpr std::size_t kEventTypeBytes = 64;

struct TraceEvent {
  std::uint64_t seq = 0;
  std::uint64_t t = 0;  // microseconds since the first event
  Actor actor = Actor::kHarness;
  std::string type;  // lower-case words, digits and '_' joined by '.': "agent.start"
  Json payload;
  Digest prev;
};

// As a line has it, with its own hash.
struct EventLine : TraceEvent {
  Digest hash;
};
void fields(auto& v, Is<EventLine> auto& e) {
  v("actor", e.actor);
  v("hash", e.hash);
  v("payload", e.payload);
  v("prev", e.prev);
  v("seq", e.seq);
  v("t", e.t);
  v("type", e.type);
}

struct SealedEvent {
  std::string line;  // with its '\n'
  Digest hash;
};
// kInvalid: a type of another shape, a payload that is not an object or cannot be hashed (floats,
// integers beyond 2^53, text that is not UTF-8).  kExhausted: longer than limits::kEventBytes.
Result<SealedEvent> seal_event(const TraceEvent& event);

// Follows a chain line by line.  After the first error it stays where the chain was whole.
class EventChain {
 public:
  // One line without its '\n'.  The event, or what is wrong with it: not canonical, a field of a
  // wrong kind, seq or prev that does not follow, t that does not grow, hash that is not its own.
  Result<TraceEvent> accept(std::string_view line);
  std::uint64_t length() const { return length_; }
  const Digest& head() const { return head_; }  // zeros before the first event

 private:
  std::uint64_t length_ = 0;
  std::uint64_t last_t_ = 0;
  Digest head_;
};

// The events of a run directory in their order, up to a line that is being written.  Errors: of
// read_file(); kCorrupt, "events.jsonl:LINE: WHY", a chain that is broken.
Status each_event(const fs::path& run_dir, const std::function<void(const TraceEvent&)>& take);

// Microseconds of a clock that does not go back; where it starts does not matter.
using MicrosClock = std::function<std::uint64_t()>;

// RunRecorder: writes one run directory (R119) as a run goes on; docs/run-directory.md.
//   manifest.json   written before the agent starts (R043-R047, R066)
//   events.jsonl    hash chain over canonical JSON (R052, R083, R084), one event a line
//   patch.diff      the candidate patch
//   acceptance/ID/  stdout, stderr, results (what the harness wrote), result.json of each check
//   report.json     last
// Events are buffered; they are in the file after write_manifest, flush and finish.  A failed write
// loses nothing: the rest of the buffer is tried again with the next call.
// Written bytes outlive the process, not the machine: an attempt under way ends with its
// machine anyway, and what is kept of it is the archive, which its packer syncs.
// Adapter (file system, clock).  Not thread-safe: one attempt, one thread.
class RunRecorder {
 public:
  // The folder must not exist or be empty.  Without a clock: the machine's monotonic one.
  static Result<RunRecorder> create(const fs::path& dir, MicrosClock clock = {});
  // Facts that reopen() needs and the files do not say.
  struct Mark {
    std::uint64_t events = 0;
    std::uint64_t origin = 0;  // of the clock
    std::optional<Digest> patch;
    Digest manifest;
  };
  // After flush().  Requires that the manifest is written.
  Mark mark() const;
  // Goes on where a process of this machine, killed since, had stopped: the chain as far as it is
  // whole, or only the events that `mark` counts.  kCorrupt: there are fewer.
  enum class Keep { kAll, kMarked };
  static Result<RunRecorder> reopen(const fs::path& dir, const Mark& mark, Keep keep,
                                    MicrosClock clock = {});
  RunRecorder(RunRecorder&&) noexcept = default;
  RunRecorder& operator=(RunRecorder&&) noexcept = default;
  ~RunRecorder();

  const fs::path& dir() const { return dir_; }
  // Once, before any event of the agent (those are refused without it).  Its digest goes into the
  // chain as the event "manifest.written".
  Status write_manifest(const Json& manifest);
  // Appends {t, seq, type, actor, payload, prev, hash}.  `t` is microseconds since the first event,
  // made strictly increasing.  The payload must be canonical-JSON-able (no floats).  The seq.
  // kExhausted beyond kEventsMax or kEventLogBytes; the chain is then still whole.
  Result<std::uint64_t> event(std::string_view type, Actor actor, const Json& payload);
  // Length of all that was recorded, in the file or not: event() takes no more than these bounds.
  struct Length {
    std::uint64_t events = 0;
    std::size_t bytes = 0;
  };
  Length length() const { return {seq_, logged_}; }
  // Everything recorded so far is in the file when it returns.  Call it before the agent starts.
  Status flush();
  // Once.
  Status write_patch(std::string_view diff);
  // Makes and returns acceptance/<id>/ (id made safe for a file name).
  Result<fs::path> check_dir(std::string_view check_id);
  // Fills manifest, patch, events, head and files of `report` and the digests of each check that
  // it left empty, writes result.json of each check that has none, then report.json.
  // The digest of report.json.  It is the end of the recording.
  Result<Digest> finish(RunReport report);

 private:
  RunRecorder(const fs::path& dir, MicrosClock clock);
  Result<std::uint64_t> append(std::string_view type, Actor actor, const Json& payload);
  Status complete_checks(RunReport& report) const;
  Status remove_empty_folders() const;
  Status collect_files(RunReport& report) const;

  fs::path dir_;
  MicrosClock clock_;
  UniqueFd log_;
  std::string buffer_;  // whole lines, or the rest of one after a short write
  std::size_t logged_ = 0;
  std::uint64_t seq_ = 0;
  std::optional<std::uint64_t> origin_;  // clock at the first event
  std::uint64_t last_t_ = 0;
  Digest head_;
  std::optional<Digest> manifest_, patch_;
  bool finished_ = false;
};
void fields(auto& v, Is<RunRecorder::Mark> auto& m) {
  v("events", m.events);
  v("origin", m.origin);
  v("patch", m.patch);
  v("manifest", m.manifest);
}
}  // namespace proctor
