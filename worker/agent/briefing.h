#pragma once
// What the agent is told, as one text (R067, R068): the issue, then, apart from it, the obligations
// of acceptance, then the limits.  Pure.  Names checks but never their commands, test ids, files or
// the reference patch: those belong to the acceptance workspace.
#include <chrono>
#include <string>
#include <string_view>

#include "common/contract/caps.h"

namespace proctor {

// `network`: all that this agent may reach, by the contract and by its method.
// `caps`: the effective ones; those on money and time apart, which an agent cannot count itself.
// `model_at`: the variable with the address of its method's gateway; empty: its program has none.
std::string briefing_text(const Contract& contract, const NetworkAccess& network,
                          std::chrono::milliseconds wall, const Caps& caps = {},
                          std::string_view model_at = {});

}  // namespace proctor
