#pragma once
// Acts of an operator: asked of the coordinator that runs, else written into the journal for the
// next one.
#include <string>

#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {

struct Acted {
  ControlAnswer answer;
  bool live = false;  // a coordinator did it
};
// kUnavailable: a coordinator runs and does not answer.  kInvalid, kNotFound: what was asked does
// not fit this campaign.
Result<Acted> act_on(const std::string& folder, const ControlRequest& request);

// Prints what came of it; the exit code.
int tell(const ControlRequest& request, const Acted& acted, bool json);

}  // namespace proctor::cli
