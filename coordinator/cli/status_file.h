#pragma once
// Where a campaign stands, for who looks from outside.  Of one that a coordinator runs, that one
// says so once a second in its status file.  Of one that nobody runs the journal says it: the file
// is older than whatever was done without a coordinator (a raise, a requeue, a cancel).
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {

// A journal at one moment, and the campaign by it; the view has begun.
struct HeldCampaign {
  JournalReader journal;
  CampaignView view;
};

struct SeenStatus {
  enum class Stands : std::uint8_t { kRuns, kComplete, kStopped, kGone };
  StatusSnapshot status;
  Stands stands = Stands::kRuns;
  // What it was read from; null: from the file, of a coordinator that lives or left nothing better.
  std::shared_ptr<HeldCampaign> held;
  std::string doubt;  // why this is a dead coordinator's word alone; empty: it is not
};

class StatusReader {
 public:
  explicit StatusReader(fs::path folder) : folder_(std::move(folder)) {}

  // As it is now.  Nothing: the campaign has not been run yet.  kNotFound: no campaign is there.
  Result<std::optional<SeenStatus>> look();
  // As it was registered, which does not change: read once, when it is first asked for.
  const Result<FrozenCampaign>& campaign();

 private:
  Result<std::shared_ptr<HeldCampaign>> hold();
  Result<std::optional<SeenStatus>> by_journal(const std::optional<StatusSnapshot>& last,
                                               const std::string& owner);

  fs::path folder_;
  std::optional<Result<FrozenCampaign>> campaign_;
};

// What the coordinator that has the journal now said last; nothing: none has it, or it has not said
// anything yet.
std::optional<StatusSnapshot> live_status(const StateFolder& folder);

}  // namespace proctor::cli
