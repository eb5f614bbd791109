#pragma once
// `proctor verify`, the part about a member's own part of an envelope that campaigns share: what
// Redis holds as its part, from which all others admit, against its own journal.  Pure.
#include <functional>
#include <optional>
#include <string>

#include "common/ledger/redis_ledger.h"
#include "coordinator/core/records.h"

namespace proctor::cli {

// What of the envelope a campaign takes: spent by what is settled, reserved by what is under way.
struct OwnPart {
  MicroUsd spent, reserved;
  MicroUsd held() const { return spent + reserved; }
};
OwnPart own_part(const RestoredState& state);

using SharedProblem = std::function<void(const std::string& where, const std::string& what)>;

// The campaign `self`, the envelope "shared:NAME", and `fields`, the hash that Redis has of it.
// `exact`: the part as of the instant at which Redis was read; none where the life that Redis knows
// is not the journal's last, so that what is "here" may have moved since.  `after`: the journal,
// read after Redis.  The value, for one line: what was compared, or why it was not.
std::string compare_part(const std::string& self, const std::string& envelope,
                         const RedisLedger::Fields& fields, const std::optional<OwnPart>& exact,
                         const RestoredState& after, const SharedProblem& problem);

}  // namespace proctor::cli
