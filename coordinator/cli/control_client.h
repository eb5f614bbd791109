#pragma once
// The operator's end of the control socket (coordinator/shell/control_server.h).
#include <optional>
#include <string>

#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

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
