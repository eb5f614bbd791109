#include "common/contract/caps.h"

#include "common/contract/fields.h"

namespace proctor {
namespace {
constexpr std::chrono::milliseconds kDefaultWall{1'800'000};  // R106

std::optional<std::uint64_t> as_ms(const std::optional<std::chrono::milliseconds>& d) {
  if (!d) return std::nullopt;
  return static_cast<std::uint64_t>(d->count());
}

// Where each is in Caps, and its key in files; the odd types are told apart by the functions below.
using Count = std::optional<std::uint64_t> Caps::*;
constexpr std::array<std::pair<Count, std::string_view>, kCaps.size()> kTable{
    {{nullptr, "usd"},
     {&Caps::tokens, "tokens"},
     {&Caps::model_calls, "model_calls"},
     {&Caps::tool_calls, "tool_calls"},
     {&Caps::failed_acceptance_cycles, "failed_acceptance_cycles"},
     {&Caps::dependency_installs, "dependency_installs"},
     {nullptr, "wall"},
     {nullptr, "active"},
     {&Caps::calls_per_minute, "calls_per_minute"}}};
Count count_of(Cap cap) {
  return kTable[static_cast<std::size_t>(cap)].first;
}

struct Choice {
  std::optional<std::uint64_t> value;
  CapSource source;
};

void take(Choice& choice, const Caps& caps, Cap cap, CapLevel level, const std::string& where) {
  const auto value = cap_value(caps, cap);
  if (value) choice = {value, {level, where + "." + std::string(to_string(cap))}};
}

void tighten(Choice& choice, std::optional<std::uint64_t> value, CapLevel level,
             const std::string& field) {
  if (value && (!choice.value || *value < *choice.value)) choice = {value, {level, field}};
}
}  // namespace

std::string_view to_string(Cap cap) {
  return kTable[static_cast<std::size_t>(cap)].second;
}

std::optional<std::uint64_t> cap_value(const Caps& caps, Cap cap) {
  if (const auto member = count_of(cap)) return caps.*member;
  if (cap == Cap::kWall) return as_ms(caps.wall);
  if (cap == Cap::kActive) return as_ms(caps.active);
  if (!caps.usd) return std::nullopt;
  return static_cast<std::uint64_t>(caps.usd->micros());
}

void set_cap(Caps& caps, Cap cap, std::optional<std::uint64_t> value) {
  if (const auto member = count_of(cap)) {
    caps.*member = value;
    return;
  }
  const auto n = static_cast<std::int64_t>(value.value_or(0));
  if (cap == Cap::kUsd) {
    caps.usd = value ? std::optional(MicroUsd::from_micros(n)) : std::nullopt;
  } else {
    (cap == Cap::kWall ? caps.wall : caps.active) =
        value ? std::optional(std::chrono::milliseconds(n)) : std::nullopt;
  }
}

std::string format_cap(Cap cap, std::optional<std::uint64_t> value) {
  if (!value) return "none";
  if (cap == Cap::kUsd)
    return format_usd(MicroUsd::from_micros(static_cast<std::int64_t>(*value))) + " USD";
  if (cap == Cap::kWall || cap == Cap::kActive)
    return format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(*value)));
  return std::to_string(*value);
}

EffectiveCaps effective_caps(const CapRules& rules, const std::string& stage,
                             const Contract& contract) {
  EffectiveCaps out;
  const auto at_stage = rules.stages.find(stage);
  const auto at_task = rules.tasks.find(contract.id);
  for (const Cap cap : kCaps) {
    Choice choice;
    const auto envelope = static_cast<std::uint64_t>(rules.run.micros());
    if (cap == Cap::kUsd) choice = {envelope, {CapLevel::kEnvelope, "budget.run"}};
    if (cap == Cap::kWall) choice.value = as_ms(kDefaultWall);
    take(choice, rules.campaign, cap, CapLevel::kCampaign, "caps");
    if (at_stage != rules.stages.end())
      take(choice, at_stage->second, cap, CapLevel::kStage, "stages." + stage + ".caps");
    if (at_task != rules.tasks.end())
      take(choice, at_task->second, cap, CapLevel::kTask, "task_caps." + contract.id);
    if (cap == Cap::kUsd) tighten(choice, envelope, CapLevel::kEnvelope, "budget.run");
    tighten(choice, cap_value(contract.caps, cap), CapLevel::kContract,
            "caps." + std::string(to_string(cap)));
    // The policy's time is the contract's idea of the task, not a budget: where both are equal it
    // is the one that is named.
    if (const auto wall = as_ms(contract.policy.wall);
        cap == Cap::kWall && *wall <= choice.value.value_or(*wall))
      choice = {wall, {CapLevel::kPolicy, "policy.wall"}};
    set_cap(out.caps, cap, choice.value);
    out.sources[static_cast<std::size_t>(cap)] = std::move(choice.source);
  }
  return out;
}

std::string describe_source(const CapSource& source, const Origin& campaign,
                            const Origin& contract) {
  const bool in_contract = source.level == CapLevel::kContract || source.level == CapLevel::kPolicy;
  const Origin& origin = in_contract ? contract : campaign;
  const auto at = origin.at.find(source.field);
  if (source.level == CapLevel::kDefault || at == origin.at.end()) return "default";
  return origin.file + ":" + std::to_string(at->second.line) + ": " + source.field;
}
}  // namespace proctor
