#pragma once
// From what a check's process did and what its harness wrote to pass, fail or error (R048, R057).
// Pure; any thread.
//
// The question at each step is: did the check complete as specified?
//  1. It did not, whatever a file says: error.  Killed by a limit (time, memory), by a signal, or
//     cancelled; exit 126 or 127 (a tool that is missing or cannot be executed); exit 129 to 159
//     (a shell's or bubblewrap's way to say "killed by signal N - 128": all sandboxes must give
//     one suite one verdict).
//  2. exit_code: 0 is pass, everything else fail.
//  3. junit, tap: no result file, or one that is not whole and valid: error.  A harness that
//     finished leaves a whole file: a cut XML document does not parse, a TAP stream without its
//     planned tests does not either.
//  4. The file is whole: the harness ran to its end and its word counts.
//     - Required ids (fail_to_pass, pass_to_pass): each must be there (under its id, or as the only
//       test of its test_name()) and pass.  One that is failing, skipped or ABSENT is a fail: an
//       import error that keeps tests from being collected is something that the candidate patch
//       can cause, and a suite that vanished is not a pass.  It is no error either: nothing of the
//       infrastructure broke.  `why` names the ids nearest to one that is absent.
//     - With required ids and others_may_fail, nothing else counts, not even the exit code.
//     - Otherwise no other test may fail, the exit code must be 0 (a harness that says no without
//       naming a test still says no), and at least one test must have run.  Without required ids
//       others_may_fail has nothing to weigh against and is ignored.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/words.h"
#include "common/contract/contract.h"
#include "common/score/outcome.h"

namespace proctor {
// How the process of a check ended.
enum class ExecEnd { kExited, kSignalled, kTimedOut, kMemory, kDisk, kCpu, kCancelled };
constexpr auto words(ExecEnd) {
  using enum ExecEnd;
  return std::to_array<Word<ExecEnd>>({{"exited", kExited},
                                       {"signalled", kSignalled},
                                       {"timed_out", kTimedOut},
                                       {"memory", kMemory},
                                       {"disk", kDisk},
                                       {"cpu", kCpu},
                                       {"cancelled", kCancelled}});
}

// The exit codes by which a shell says that a program is missing or cannot be executed.
constexpr bool says_no_program(int exit_code) {
  return exit_code == 126 || exit_code == 127;
}

struct ExecFacts {
  ExecEnd end = ExecEnd::kExited;
  int exit_code = 0;  // kExited
  int signal = 0;     // kSignalled, for `why`
};

// Names of tests may come from the code that is judged, and each check's stand in the report and in
// the event log, both of which have a bound: a hundred of a usual length fit.
inline constexpr std::size_t kFailingIdsMax = 100, kFailingBytes = std::size_t{32} << 10;

struct CheckVerdict {
  CheckOutcome outcome = CheckOutcome::kError;
  std::string why;  // one line; for a pass too
  std::uint64_t passed = 0, failed = 0, skipped = 0;
  std::uint64_t absent = 0;  // required tests that did not run
  // Why it is no pass: required ids that did not pass, then others that fail.  At most
  // kFailingIdsMax, in kFailingBytes as they are written (the first in any case), in order of the
  // contract, then of id; `why` says how many there are.
  std::vector<std::string> failing;
};

// `result_file` is nothing when the check left none, or one larger than kResultFileBytes.
CheckVerdict judge(const Check& check, const ExecFacts& facts,
                   const std::optional<std::string>& result_file);
}  // namespace proctor
