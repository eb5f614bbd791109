#pragma once
// Verification of a run directory: its files and digests, its model calls, its circuit breakers.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/contract/cost_model.h"
#include "common/trace/breakers.h"
#include "common/trace/event.h"
#include "common/trace/judgement.h"
#include "common/trace/model_calls.h"
#include "common/trace/run_report.h"

namespace proctor {
// Folds a run's trace once more through its circuit breakers: each must have tripped behind the
// event that trips it, with the same signals, and none elsewhere (R104).  Pure; one thread.
class BreakerAudit {
 public:
  using Problem = std::function<void(std::string_view file, std::string what, std::uint64_t line)>;
  explicit BreakerAudit(Problem problem) : problem_(std::move(problem)) {}
  void on(const TraceEvent& event, std::uint64_t line);
  // Has one of them ended the run?
  bool stopped() const { return stopped_; }

 private:
  void alert(const TraceEvent& event, std::uint64_t line);
  void intervention(const TraceEvent& event, std::uint64_t line);
  void nothing_due(std::uint64_t line);

  Problem problem_;
  std::optional<BreakerFold> fold_;  // of the present session of the gateway
  std::deque<BreakerTrip> due_;      // tripped, and not told yet
  std::string stage_;                // when they did
  std::optional<std::pair<BreakerTrip, std::uint64_t>> told_;  // whose intervention is next
  bool stopped_ = false;
};

// The calls of models in a run's trace, held against what was kept of them: every piece
// has its digest, every body is what its pieces make, every answer has its request, and the sums
// that the gateway told at its end are those of its calls.  Adapter (reads files); one thread.
class ModelCallAudit {
 public:
  // `line` 0: of the file as a whole.
  using Problem = std::function<void(std::string_view file, std::string what, std::uint64_t line)>;
  ModelCallAudit(fs::path run_dir, Problem problem)
      : dir_(std::move(run_dir)), problem_(std::move(problem)) {}
  void on(const TraceEvent& event, std::uint64_t line);

 private:
  void request(const Json& payload, std::uint64_t line);
  void response(const Json& payload, std::uint64_t line);
  void closed(const Json& payload, std::uint64_t line);
  void check_body(const std::string& claimed, const std::vector<std::string>& pieces,
                  std::uint64_t line);
  const SegmentReader* reader();
  fs::path dir_;
  Problem problem_;
  std::optional<SegmentReader> reader_;
  bool unreadable_ = false;
  std::set<std::uint64_t> open_;  // requests without an answer yet
  std::uint64_t charged_ = 0, hashed_ = 0;
  // Workers of before kept each text in a file of its own, which the report lists.
  bool in_pieces_ = false;
  bool all_listed_ = true;  // no call of this session is without an event of its own
};

// Recomputes everything that a run directory claims about itself (`proctor verify RUN`; R047, R058,
// R084, Invariant 1).  Adapter (reads files); any thread.
//
// How it is bound: the journal holds the digest of report.json; report.json holds digest and length
// of every other file, the digests of manifest, patch and of each check's streams once more where
// they belong, and length and head of the event chain.  So one changed, added, cut or removed byte
// shows, if the caller knows the report's digest; without it the report vouches for itself.

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
  bool judged = false;      // its manifest has the rules, and its gates were computed again
  bool ok() const { return problems.empty(); }
};
inline constexpr std::size_t kProblemsMax = 1000;

// Price of a usage under the campaign's cost model; empty: the cost is only summed.
using PriceFunction = std::function<Cost(const Usage&)>;

// By which a campaign judges runs of this task under this contract; null: it has no such one.
using RulesFunction = std::function<const JudgeRules*(const RunReport& report)>;

// Gates, score, tags and violations are computed again from the events, by `rules`; empty: by those
// of the manifest, which has none where an older worker wrote it.
VerifyResult verify_run(const fs::path& dir, const std::optional<Digest>& expected_report,
                        const PriceFunction& price = {}, const RulesFunction& rules = {});
}  // namespace proctor
