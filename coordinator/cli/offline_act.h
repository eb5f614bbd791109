#pragma once
// What is decided and explained while no coordinator runs: by the same scheduler, made again from
// the journal.
#include <string>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {

// Decides an act and writes it into the journal, under its lock, so that the next life stands by
// it.  kConflict: a coordinator has just begun.  kUnavailable: an act that needs a running one.
Result<ControlAnswer> act_offline(const std::string& folder, const ControlRequest& request);

// Why the run is where it is, as a coordinator would say it now; {"code": ..., ...}.  kNotFound:
// nothing of the campaign has run yet.
Result<Json> explain_offline(const FrozenCampaign& frozen, RunId run);

}  // namespace proctor::cli
