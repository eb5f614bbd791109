#pragma once
// RunRecorder: writes one run directory (R119) as a run goes on; docs/run-directory.md.
//   manifest.json   written before the agent starts (R043-R047, R066)
//   events.jsonl    hash chain over canonical JSON (R052, R083, R084), one event a line
//   patch.diff      the candidate patch
//   acceptance/ID/  stdout, stderr, results (what the harness wrote), result.json of each check
//   report.json     last
// Events are buffered; they are in the file after write_manifest, flush and finish.  A failed write
// loses nothing: the rest of the buffer is tried again with the next call.
// What is written outlives the process, not the machine: an attempt under way ends with its
// machine anyway, and what is kept of it is the archive, which its packer syncs.
// Adapter (file system, clock).  Not thread-safe: one attempt, one thread.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/trace/event.h"
#include "common/trace/run_report.h"

namespace proctor {

// Microseconds of a clock that does not go back; where it starts does not matter.
using MicrosClock = std::function<std::uint64_t()>;

class RunRecorder {
 public:
  // The folder must not exist or be empty.  Without a clock: the machine's monotonic one.
  static Result<RunRecorder> create(const fs::path& dir, MicrosClock clock = {});
  // What reopen() needs and the files do not say.
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
  RunRecorder(RunRecorder&&) noexcept;
  RunRecorder& operator=(RunRecorder&&) noexcept;
  ~RunRecorder();

  const fs::path& dir() const;
  // Once, before any event of the agent (those are refused without it).  Its digest goes into the
  // chain as the event "manifest.written".
  Status write_manifest(const Json& manifest);
  // Appends {t, seq, type, actor, payload, prev, hash}.  `t` is microseconds since the first event,
  // made strictly increasing.  The payload must be canonical-JSON-able (no floats).  The seq.
  // kExhausted at the bounds of event.h; the chain is then still whole.
  Result<std::uint64_t> event(std::string_view type, Actor actor, const Json& payload);
  // Of all that was recorded, in the file or not: event() takes no more than event.h's bounds.
  struct Length {
    std::uint64_t events = 0;
    std::size_t bytes = 0;
  };
  Length length() const;
  // Everything recorded so far is in the file when it returns.  Call it before the agent starts.
  Status flush();
  // Once.
  Status write_patch(std::string_view diff);
  // Makes and returns acceptance/<id>/ (id made safe for a file name).
  Result<fs::path> check_dir(std::string_view check_id);
  // Fills manifest, patch, events, head and files of `report` and the digests of each check that
  // it left empty, writes result.json of each check that has none, then report.json.
  // The digest of report.json.  Nothing can be recorded afterwards.
  Result<Digest> finish(RunReport report);

 private:
  struct Impl;
  explicit RunRecorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor
