#pragma once
// A running coordinator as other processes see it: its start, its status file, its control socket.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/owned.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/state_folder.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {
// The mark of a coordinator that starts, before it has the journal: it shares a lock of the
// campaign's registration from its first moment to its last.  The kernel takes the mark away,
// whatever ends the process.

// Held as long as it lives.  Nothing where no campaign is registered, or its file system has no
// locks: then nobody sees it start, and all else goes on.
std::optional<UniqueFd> mark_start(const StateFolder& folder);

bool is_starting(const StateFolder& folder);

// Where a campaign is, for who looks from outside.  A coordinator that runs it says so once a
// second in its status file.  While none runs the journal says it: the file is older than whatever
// was done without a coordinator (a raise, a requeue, a cancel).

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

// The operator's end of the control socket (coordinator/shell/control_server.h).

// Asks the campaign's coordinator and waits for its answer; says on standard error after two
// seconds for whom.  Nothing: no coordinator runs (nobody has the journal open).  kUnavailable: one
// runs and does not answer, or ended before it did; the words say whether an act may still be done.
Result<std::optional<ControlAnswer>> ask_coordinator(const StateFolder& folder,
                                                     const ControlRequest& request);

// The name of whoever runs this process.
std::string user_name();

// The folder of a campaign, without reading it.  kNotFound: no campaign is there.
Result<StateFolder> campaign_folder(const std::string& folder);
}  // namespace proctor::cli
