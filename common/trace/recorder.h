#pragma once
// RunRecorder: writes one run directory (R119) as a run goes on.
//   manifest.json   written and synced before the agent starts (R043-R047, R066)
//   events.jsonl    hash chain over canonical JSON (R052, R083, R084), one event a line
//   patch.diff      the candidate patch
//   acceptance/ID/  stdout, stderr, result.json of each check
//   report.json     last
// Not thread-safe: one attempt, one thread.
#include <memory>
#include <string>
#include <string_view>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/trace/run_report.h"

namespace proctor {

enum class Actor { kAgent, kHarness, kMonitor, kOperator };

class RunRecorder {
 public:
  // The folder must not exist or be empty.
  static Result<RunRecorder> create(const fs::path& dir);
  RunRecorder(RunRecorder&&) noexcept;
  RunRecorder& operator=(RunRecorder&&) noexcept;
  ~RunRecorder();

  const fs::path& dir() const;
  // Once, first.
  Status write_manifest(const Json& manifest);
  // Appends {t, seq, type, actor, payload, prev, hash}.  `t` is microseconds since the first event,
  // made strictly increasing.  The payload must be canonical-JSON-able (no floats).  The seq.
  Result<std::uint64_t> event(std::string_view type, Actor actor, const Json& payload);
  Status write_patch(std::string_view diff);
  // Makes and returns acceptance/<id>/ (id made safe for a file name).
  Result<fs::path> check_dir(std::string_view check_id);
  // Fills manifest, patch, events and head of `report`, writes report.json, syncs.  The digest of its bytes.
  Result<Digest> finish(RunReport report);

 private:
  struct Impl;
  explicit RunRecorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor
