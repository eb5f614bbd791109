#pragma once
// Acts of an operator and why a run is where it is: from the coordinator that runs, else by the
// journal.
#include <string>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
// Decisions and explanations while no coordinator runs: by the same scheduler, made again from the
// journal.

// Decides an act and writes it into the journal, under its lock, so that the next life stands by
// it.  kConflict: a coordinator has just begun.  kUnavailable: an act that needs a running one.
Result<ControlAnswer> act_offline(const std::string& folder, const ControlRequest& request);

// Why the run is where it is, as a coordinator would say it now; {"code": ..., ...}.  kNotFound:
// nothing of the campaign has run yet.
Result<Json> explain_offline(const FrozenCampaign& frozen, RunId run);

// Acts of an operator: asked of the coordinator that runs, else written into the journal for the
// next one.

struct Acted {
  ControlAnswer answer;
  bool live = false;  // a coordinator did it
};
struct ActArgs {
  std::string folder;
  ControlRequest request;
  bool json = false;
};
// Asks for it and prints what came of it; the exit code.  kUnavailable: a coordinator runs and does
// not answer.  kInvalid, kNotFound: what was asked does not fit this campaign.
Result<int> act_and_tell(const ActArgs& args);
// Prints what came of it; the exit code.
int tell(const ControlRequest& request, const Acted& acted, bool json);
}  // namespace proctor::cli
