#include "coordinator/cli/report_page.h"

#include <algorithm>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"

namespace proctor::cli {
namespace {

std::string kind_words(const Method& method) {
  switch (method.kind) {
    case Method::Kind::kNoop:
      return "noop";
    case Method::Kind::kReference:
      return "reference";
    case Method::Kind::kCommand:
      return method.container ? "container" : "command";
    case Method::Kind::kSingleShot:
      return method.call.model.empty() ? "single_shot" : "single_shot, model " + method.call.model;
    case Method::Kind::kToolLoop:
      return "tool_loop, model " + method.gateway->model().name;
  }
  return "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out.empty() ? "none" : out;
}

// "pilot: 8 runs; main (every task, 3 replicates, by rounds): 24 runs".
std::string stages_of(const FrozenCampaign& frozen) {
  const PlanShape& shape = frozen.plan.shape();
  std::string out;
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const PlanStage& stage = shape.stages[s];
    const auto draw = frozen.registration.stage_draws.find(stage.name);
    const std::uint64_t runs =
        frozen.plan.tasks_of(s).size() * shape.methods.size() * std::uint64_t{stage.replicates};
    out += (out.empty() ? "" : "; ") + stage.name;
    if (draw != frozen.registration.stage_draws.end()) out += " (" + describe(draw->second) + ")";
    out += ": " + counted(runs, "run");
  }
  return out;
}

// "2", or "1 of feasibility, 2 of full" where stages have their own.
std::string replicates_of(const FrozenCampaign& frozen) {
  const std::vector<PlanStage>& stages = frozen.plan.shape().stages;
  const auto as_all = [&](const PlanStage& s) {
    return s.replicates == frozen.registration.replicates;
  };
  if (std::ranges::all_of(stages, as_all)) return std::to_string(frozen.registration.replicates);
  std::string out;
  for (const PlanStage& stage : stages)
    out += (out.empty() ? "" : ", ") + std::to_string(stage.replicates) + " of " + stage.name;
  return out;
}

std::vector<PageFacts::Fact> asked_of(const FrozenCampaign& frozen) {
  const Registration& r = frozen.registration;
  return {{"campaign", r.campaign},
          {"tasks", std::to_string(r.contracts.size())},
          {"replicates of each stage", replicates_of(frozen)},
          {"stages", stages_of(frozen)},
          {"planned runs", std::to_string(frozen.plan.size())},
          {"reported by strata", joined(r.strata)},
          {"seed of the plan", std::to_string(r.seed)}};
}

// A cap with the line it came from: the envelope's or the cap's name in campaign.yaml.
std::vector<PageFacts::Fact> caps_of(const FrozenCampaign& frozen) {
  const Registration& r = frozen.registration;
  const std::string unit = " " + money_word(frozen.campaign.cost_model);
  std::vector<PageFacts::Fact> out;
  for (const auto& [name, amount] : r.envelopes)
    out.push_back({"envelope " + name, format_usd(MicroUsd::from_micros(amount)) + unit});
  for (const auto& [name, amount] : r.caps)
    out.push_back({"cap of a run: " + (name == "micro_usd" ? "usd" : name),
                   name == "micro_usd" ? format_usd(MicroUsd::from_micros(amount)) + unit
                                       : std::to_string(amount)});
  out.push_back({"new attempts after a failure of infrastructure",
                 std::to_string(frozen.campaign.infrastructure_retries)});
  return out;
}

std::vector<PageFacts::Fact> origins_of(const FrozenCampaign& frozen) {
  constexpr std::size_t kListed = 200;
  const Registration& r = frozen.registration;
  std::vector<PageFacts::Fact> out = {
      {"registered", to_rfc3339(r.at) + " by proctor " + r.tool_version},
      {"registration", frozen_digest(r).hex()},
      {"plan", r.plan.hex()},
      {"price table", r.cost_model_version + ", " + r.cost_model.hex()}};
  if (r.cost_inputs) out.push_back({"inputs of the projection", r.cost_inputs->hex()});
  for (const auto& [name, digest] : r.methods) out.push_back({"method " + name, digest.hex()});
  std::size_t n = 0;
  for (const auto& [id, digest] : r.contracts)
    if (++n <= kListed) out.push_back({"contract " + id, digest.hex()});
  if (kListed < n)
    out.push_back({"further contracts", std::to_string(n - kListed) + ", in registration.json"});
  return out;
}

}  // namespace

PageFacts page_facts(const FrozenCampaign& frozen) {
  PageFacts out;
  for (const Method& m : frozen.campaign.methods) out.methods.push_back({m.name, kind_words(m)});
  out.asked = asked_of(frozen);
  out.caps = caps_of(frozen);
  out.origins = origins_of(frozen);
  for (const Removal& r : frozen.registration.removals) out.removals.push_back({r.task, r.reason});
  if (!frozen.registration.seed_deviation.empty())
    out.provisional = "The plan was drawn with another seed than the planned one: " +
                      frozen.registration.seed_deviation;
  return out;
}

}  // namespace proctor::cli
