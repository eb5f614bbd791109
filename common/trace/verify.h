#pragma once
// Recomputes everything that a run directory claims about itself (`proctor verify RUN`; R047, R058,
// R084, Invariant 1).  Adapter (reads files); any thread.
//
// What binds what: the journal holds the digest of report.json; report.json holds digest and length
// of every other file, the digests of manifest, patch and of each check's streams once more where
// they belong, and length and head of the event chain.  So one changed, added, cut or removed byte
// shows, if the caller knows the report's digest; without it the report vouches for itself.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/contract/cost_model.h"
#include "common/trace/run_report.h"

namespace proctor {

struct VerifyProblem {
  std::string file;        // relative to the run directory
  std::uint64_t line = 0;  // from 1; 0: the file as a whole
  std::string what;
};
// "events.jsonl:17: hash is not that of the event"
std::string to_string(const VerifyProblem& problem);

struct VerifyResult {
  std::vector<VerifyProblem> problems;  // at most kProblemsMax
  std::optional<RunReport> report;      // when it could be read
  std::uint64_t files = 0, events = 0;  // how many were checked
  bool unreadable = false;  // this host could not read all of it, which says nothing of it
  bool ok() const { return problems.empty(); }
};
inline constexpr std::size_t kProblemsMax = 1000;

// Price of a usage under the campaign's cost model; empty: the cost is only summed.
using PriceFunction = std::function<Cost(const Usage&)>;

VerifyResult verify_run(const fs::path& dir, const std::optional<Digest>& expected_report,
                        const PriceFunction& price = {});

}  // namespace proctor
