#pragma once
// report.json: what one attempt ended as, bound to its evidence (R053, R054, R111, R116, R191).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"

namespace proctor {

struct CheckReport {
  std::string id;
  std::string kind, gate;
  std::optional<CheckOutcome> outcome;  // nothing: it never ran
  int exit_code = 0;
  std::uint64_t wall_ms = 0;
  std::string why;  // one line: the failing test, the limit that was hit
};

struct RunReport {
  // identity
  std::string campaign;        // its id
  std::string run_name;        // task/method/rN
  AttemptId attempt;
  std::string task, method;
  std::uint32_t replicate = 0;
  Digest contract, method_digest;
  std::string commit, tree;
  // ending
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  std::uint64_t evidence_seq = 0;   // event that triggered the termination
  std::vector<CheckReport> checks;
  std::vector<std::string> violations;  // protected paths changed, files refused
  // what it cost
  Usage usage;
  Cost cost;
  Digest cost_model;
  // evidence
  Digest manifest, patch;
  std::uint64_t events = 0;   // length of the chain: a cut tail shows
  Digest head;                // of the chain
  std::int64_t started_ms = 0, finished_ms = 0;  // wall time, for people
};

}  // namespace proctor
