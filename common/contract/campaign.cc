#include "common/contract/campaign.h"

#include <algorithm>

namespace proctor {

MicroUsd Campaign::run_cap(const Contract& contract) const {
  const MicroUsd asked = contract.caps.usd ? *contract.caps.usd : caps.usd.value_or(envelopes.run);
  return std::min(asked, envelopes.run);
}

MicroUsd Campaign::task_envelope(const std::string& contract_id) const {
  const auto it = envelopes.tasks.find(contract_id);
  return it != envelopes.tasks.end() ? it->second : envelopes.task.value_or(envelopes.global);
}

MicroUsd Campaign::stage_envelope(const std::string& stage) const {
  const auto it = envelopes.stage.find(stage);
  return it != envelopes.stage.end() ? it->second : envelopes.global;
}

Caps Campaign::run_caps(const Contract& contract) const {
  const auto first = [](const auto& own, const auto& general) { return own ? own : general; };
  const Caps& own = contract.caps;
  Caps out;
  out.usd = run_cap(contract);
  out.tokens = first(own.tokens, caps.tokens);
  out.tool_calls = first(own.tool_calls, caps.tool_calls);
  out.failed_acceptance_cycles = first(own.failed_acceptance_cycles, caps.failed_acceptance_cycles);
  out.wall =
      std::min(contract.policy.wall, first(own.wall, caps.wall).value_or(contract.policy.wall));
  return out;
}

const Contract* Campaign::find_contract(const std::string& id) const {
  const auto it = std::ranges::find(contracts, id, &Contract::id);
  return it == contracts.end() ? nullptr : &*it;
}

const Method* Campaign::find_method(const std::string& method) const {
  const auto it = std::ranges::find(methods, method, &Method::name);
  return it == methods.end() ? nullptr : &*it;
}

Usage worst_case(const Contract& contract, std::chrono::milliseconds wall) {
  const auto ms = [](std::chrono::milliseconds d) { return static_cast<std::uint64_t>(d.count()); };
  Usage out;
  for (const SetupStep& s : contract.setup) out.setup_ms += 2 * ms(s.timeout);
  out.agent_ms = ms(wall);
  for (const Check& c : contract.checks) out.acceptance_ms += ms(c.timeout);
  return out;
}

}  // namespace proctor
