#pragma once
// What the agent is told, as one text (R067, R068): the issue, then, apart from it, the obligations
// of acceptance, then the limits.  Pure.  Names checks but never their commands, test ids, files or
// the reference patch: those belong to the acceptance workspace.
#include <chrono>
#include <string>

#include "common/contract/contract.h"

namespace proctor {

std::string briefing_text(const Contract& contract, std::chrono::milliseconds wall);

}  // namespace proctor
