#pragma once
// Caps of one run (R106, R159): their names, and which of the values that were written down holds.
// The lead of a campaign governs its money, the author of a contract may only tighten it:
//
//   1. the most particular of task_caps.TASK, stages.STAGE.caps and caps of campaign.yaml;
//      without any, the default (usd: the run envelope, wall: 30m, others: no cap);
//   2. usd never above the run envelope;
//   3. the contract's own value where it is lower; wall also by its policy.wall.
//
// Pure; any thread.  Errors: none; check_campaign says what contradicts.
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "common/contract/contract.h"

namespace proctor {
// Beside caps, ceilings and thresholds wherever people read them (R106, R129).
inline constexpr std::string_view kCapsArePolicy =
    "Caps, ceilings and thresholds are choices of a campaign's policy; they are not claimed to be "
    "optimal.";

enum class Cap {
  kUsd,
  kTokens,
  kModelCalls,
  kToolCalls,
  kFailedCycles,
  kInstalls,
  kWall,
  kActive,
  kCallsPerMinute
};
inline constexpr std::array<Cap, 9> kCaps{
    Cap::kUsd,      Cap::kTokens, Cap::kModelCalls, Cap::kToolCalls,     Cap::kFailedCycles,
    Cap::kInstalls, Cap::kWall,   Cap::kActive,     Cap::kCallsPerMinute};
std::string_view to_string(Cap cap);  // the key in files: "usd", "model_calls"

// In micro-dollars, milliseconds or counts.
std::optional<std::uint64_t> cap_value(const Caps& caps, Cap cap);
void set_cap(Caps& caps, Cap cap, std::optional<std::uint64_t> value);
// "2.50 USD", "30m", "200", "none".
std::string format_cap(Cap cap, std::optional<std::uint64_t> value);

// Everything that a campaign says about caps.
struct CapRules {
  Caps campaign;
  std::map<std::string, Caps> stages;  // by name
  std::map<std::string, Caps> tasks;   // by contract id
  MicroUsd run;                        // the run envelope
};

enum class CapLevel { kDefault, kEnvelope, kCampaign, kStage, kTask, kContract, kPolicy };
struct CapSource {
  CapLevel level = CapLevel::kDefault;
  std::string field{};  // "stages.pilot.caps.tokens", in the file of its level
};
struct EffectiveCaps {
  Caps caps;  // usd and wall are never absent
  std::array<CapSource, kCaps.size()> sources;
  const CapSource& source(Cap cap) const { return sources[static_cast<std::size_t>(cap)]; }
};
EffectiveCaps effective_caps(const CapRules& rules, const std::string& stage,
                             const Contract& contract);

// "campaign.yaml:12: stages.pilot.caps.tokens", or "default".
std::string describe_source(const CapSource& source, const Origin& campaign,
                            const Origin& contract);
}  // namespace proctor
