#pragma once
// `proctor verify`, the part about evidence: what the journal says of an attempt must lie under
// runs/, archive and run directory both, byte for byte; and nothing may lie there that the journal
// does not know.  Reads files; reports problems through `problem(where, what)`.
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "common/trace/verify.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {

class EvidenceAudit {
 public:
  using Problem = std::function<void(const std::string& where, const std::string& what)>;
  // `frozen` outlives the audit.
  EvidenceAudit(const FrozenCampaign& frozen, PriceFunction price, Problem problem);

  // Attempts of the plan, in any order.  What its run directory says of itself, where it must have
  // one: no value for an attempt without a result, and for one that is invalid and left nothing.
  std::optional<VerifyResult> add(const AttemptRecord& attempt);
  // After all attempts: what else lies under runs/.  The journal of a running campaign is asked
  // once more before anything is called unknown.
  Status finish(JournalReader& journal);

  // Invalid attempts that left no evidence, as the journal says too.
  std::uint64_t without() const { return without_; }

 private:
  void know(const AttemptRecord& attempt);
  bool check_places(const AttemptRecord& attempt, const std::string& name);
  void check_archive(const AttemptRecord& attempt, const std::string& name);
  void check_identity(const AttemptRecord& attempt, const RunReport& report,
                      const std::string& name);
  std::set<std::string> unknown() const;

  const FrozenCampaign& frozen_;
  PriceFunction price_;
  Problem problem_;
  std::set<std::string> known_;    // relative to runs/: run directories and archives
  std::set<std::string> folders_;  // on the way to them, and to those of any run of the plan
  std::uint64_t without_ = 0;
};

}  // namespace proctor::cli
