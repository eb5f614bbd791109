#pragma once
// The report of one attempt, and the times that it may have.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"

namespace proctor {
// Which times an attempt may say of itself: one rule for what arrives and for `proctor verify`.
// Pure; any thread.

// Clocks of workers and coordinators differ, and are put right now and then.
inline constexpr std::int64_t kClockSlackMs = 24LL * 3'600'000;

// Why these are not the times of an attempt; empty: they may be.  A time of 0 is not known.  Where
// its result came before it was granted, the coordinator's clock was set back in between, and
// either time may be of before or after that.
inline std::string wrong_times(std::int64_t started_ms, std::int64_t finished_ms,
                               WallTime granted = WallTime(0), WallTime received = WallTime(0)) {
  if (started_ms <= 0) return "started_ms: not a time";
  if (finished_ms < started_ms) return "finished_ms: before started_ms";
  const bool set_back = granted.raw() != 0 && received.raw() != 0 && received < granted;
  const WallTime first = set_back ? received : granted, last = set_back ? granted : received;
  if (first.raw() != 0 && started_ms < first.raw() - kClockSlackMs)
    return "started_ms: more than a day before the attempt was granted";
  if (last.raw() != 0 && last.raw() + kClockSlackMs < finished_ms)
    return "finished_ms: more than a day after its result came";
  return "";
}

// report.json: what one attempt ended as, bound to its evidence (R053, R054, R111, R116, R191).
// Data and its one spelling: canonical JSON (RFC 8785) and a final '\n', so that the digest of a
// report is what `sha256sum report.json` prints.  Pure; every field is described in
// docs/run-directory.md and schemas/report.schema.json.

class JsonFields;

struct CheckReport {
  std::string id{};
  std::string kind{}, gate{};
  std::optional<CheckOutcome> outcome{};  // nothing: it never ran
  int exit_code = 0;
  std::uint64_t wall_ms = 0;
  std::string why{};  // one line: the failing test, the limit that was hit
  // how it was run and read
  std::string command{};
  std::uint64_t timeout_ms = 0;
  std::string reader{};  // exit_code, junit, tap
  std::string ended{};   // exited, signalled, timed_out, memory, disk, cpu, cancelled, not_run
  std::uint64_t passed = 0, failed = 0, skipped = 0;  // tests in the result file
  std::vector<std::string> failing{};                 // required or failing ids, bounded
  // Digests of acceptance/<id>/stdout, stderr and results; nullopt where there is no such file.
  // RunRecorder::finish fills what is left empty.
  std::optional<Digest> stdout_digest{}, stderr_digest{}, result_digest{};
  friend bool operator==(const CheckReport&, const CheckReport&) = default;
};

// The name among the checks, the first of them, of a setup that failed with the candidate's patch.
inline constexpr std::string_view kSetupCheck = "setup";
// The name among the checks of services that did not get ready for the check they were to serve:
// where the candidate's code was among them.
std::string services_check(std::string_view check);
// The outcomes by which decide() goes.  Checks that a failed setup or failed services kept from
// running have no outcome of their own: theirs decides.  Else one that never ran is evidence that
// is missing.
std::vector<std::optional<CheckOutcome>> deciding_outcomes(const std::vector<CheckReport>& checks);

// One of patch, build, functional, safety (R131-R140).
struct GateReport {
  std::string gate;
  std::string outcome;  // pass, fail, error, not_run
  std::string why;
  friend bool operator==(const GateReport&, const GateReport&) = default;
};

// A file of the run directory, report.json apart.
struct EvidenceFile {
  std::string path;  // relative, '/'-separated
  std::uint64_t bytes = 0;
  Digest digest;
  friend bool operator==(const EvidenceFile&, const EvidenceFile&) = default;
};

struct RunReport {
  // identity
  std::string campaign;  // its id
  std::string run_name;  // task/method/rN
  AttemptId attempt;
  std::string task, method;
  std::uint32_t replicate = 0;
  Digest contract, method_digest;
  std::string commit, tree;
  // ending
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  std::uint64_t evidence_seq = 0;  // event that triggered the termination
  std::vector<CheckReport> checks;
  std::vector<GateReport> gates;
  PatchEnd application{};  // how the candidate patch fitted; empty: there was none to apply
  std::vector<std::string> violations;  // protected paths changed, files refused
  std::vector<std::string> deviations;  // from the protocol: another seed (R072)
  std::uint64_t failed_cycles = 0;      // failed acceptance cycles of the agent (R159, R191)
  bool replayable = true;               // false: a phase had the network (R075)
  // what it cost
  Usage usage;
  Cost cost;
  Digest cost_model;
  std::string cost_model_version;  // "file" or the fallback's id (R116)
  // evidence
  Digest manifest, patch;
  std::uint64_t events = 0;                      // length of the chain: a cut tail shows
  Digest head;                                   // of the chain
  std::vector<EvidenceFile> files;               // sorted by path; every file but report.json
  std::int64_t started_ms = 0, finished_ms = 0;  // wall time, for people
  friend bool operator==(const RunReport&, const RunReport&) = default;
};

inline constexpr std::size_t kReportBytes = std::size_t{32} << 20;

// The bytes of report.json.  Never fails: text that is not UTF-8 or too long is made printable and
// cut, numbers beyond 2^53 - 1 are written as that.
std::string report_bytes(const RunReport& report);
// Strict: exactly the bytes report_bytes would write.  kInvalid names the field.
Result<RunReport> parse_report(std::string_view bytes);

Json to_json(const CheckReport& check);
Json to_json(const Usage& usage);
// The usage that to_json() wrote, as field `key` of `parent`; 2^53 - 1 at most of each.
Result<Usage> usage_from(JsonFields& parent, const char* key);
Json to_json(const Cost& cost);
}  // namespace proctor
