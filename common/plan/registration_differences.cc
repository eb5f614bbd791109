// What a campaign would register otherwise than it did.
#include <optional>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/contract/campaign.h"
#include "common/plan/registration.h"

namespace proctor {
namespace {

std::string shown(const Digest& d) {
  return d.short_hex();
}
std::string shown(std::int64_t n) {
  return std::to_string(n);
}
std::string shown(const StageDraw& draw) {
  return printable(describe(draw));
}
std::string shown(const std::string& text) {
  return '"' + printable(text) + '"';
}
std::string shown(const std::vector<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) out += (out.size() == 1 ? "" : " ") + printable(name);
  return out + "]";
}

template <class T>
void compare(std::vector<std::string>& out, const std::string& what, const T& registered,
             const T& now) {
  if (registered != now)
    out.push_back(what + ": registered " + shown(registered) + ", now " + shown(now));
}

template <class T>
void compare_maps(std::vector<std::string>& out, const std::string& what,
                  const std::map<std::string, T>& registered, const std::map<std::string, T>& now) {
  for (const auto& [name, value] : registered) {
    const auto found = now.find(name);
    if (found == now.end())
      out.push_back(what + " " + printable(name) + ": registered " + shown(value) + ", now absent");
    else
      compare(out, what + " " + printable(name), value, found->second);
  }
  for (const auto& [name, value] : now)
    if (registered.count(name) == 0)
      out.push_back(what + " " + printable(name) + ": not registered, now " + shown(value));
}

// Member by member; a plan that was not registered promised the defaults.
void compare_plans(std::vector<std::string>& out, const std::optional<AnalysisPlan>& registered,
                   const std::optional<AnalysisPlan>& now) {
  // Members that stand in a registration only where they are not the default.
  const auto whole = [](const std::optional<AnalysisPlan>& plan) {
    Json json = to_json(plan.value_or(AnalysisPlan{}));
    json.emplace("multiplicity", to_string(AnalysisPlan{}.multiplicity));
    json.emplace("bootstrap", Json{{"draws", kDefaultDraws}});
    json.emplace("weights", Json::object());
    json.emplace("unit", "by default");
    return json;
  };
  const Json before = whole(registered), after = whole(now);
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [name, value] : before.items())
    compare(out, "analysis plan " + name, text(value), text(after.at(name)));
}

// A plan is compared member by member: what only repeats it is not compared again, nor what
// versions of before wrote whatever the plan was.
void leave_out_what_repeats(std::map<std::string, std::string>& settings,
                            const std::optional<AnalysisPlan>& plan) {
  static const std::map<std::string, std::string> kBefore{
      {"primary_endpoint", "success rate over scorable runs"},
      {"interval", "Wilson score"},
      {"alpha", "0.05"}};
  for (const auto& [name, words] : plan_settings(plan)) {
    const auto found = settings.find(name);
    if (found != settings.end() && (found->second == words || found->second == kBefore.at(name)))
      settings.erase(found);
  }
}

}  // namespace

std::vector<std::string> differences(const Registration& registered, const Registration& now) {
  std::vector<std::string> out;
  const auto number = [](std::uint32_t n) { return std::int64_t{n}; };
  compare(out, "campaign", registered.campaign, now.campaign);
  compare(out, "seed", number(registered.seed), number(now.seed));
  compare(out, "seed deviation", registered.seed_deviation, now.seed_deviation);
  compare(out, "replicates", number(registered.replicates), number(now.replicates));
  compare(out, "stages", registered.stages, now.stages);
  compare_maps(out, "rules of stage", registered.stage_rules, now.stage_rules);
  compare_maps(out, "tasks of stage", registered.stage_draws, now.stage_draws);
  compare(out, "strata", registered.strata, now.strata);
  compare(out, "plan", registered.plan, now.plan);
  compare_maps(out, "contract", registered.contracts, now.contracts);
  compare_maps(out, "method", registered.methods, now.methods);
  compare_maps(out, "envelope in micro-USD", registered.envelopes, now.envelopes);
  compare_maps(out, "cap", registered.caps, now.caps);
  if (registered.limits && now.limits) compare_maps(out, "limit", *registered.limits, *now.limits);
  compare(out, "cost model", registered.cost_model, now.cost_model);
  compare(out, "cost model version", registered.cost_model_version, now.cost_model_version);
  if (registered.cost_inputs && !now.cost_inputs)
    out.push_back("projection inputs: registered " + shown(*registered.cost_inputs) +
                  ", now absent");
  else if (registered.cost_inputs)
    compare(out, "projection inputs", *registered.cost_inputs, *now.cost_inputs);
  // A registration from before these settings existed promised what is the default now.
  std::map<std::string, std::string> analysis = registered.analysis;
  analysis.merge(watch_settings(BudgetWatch{}));
  std::map<std::string, std::string> analysis_now = now.analysis;
  // The unit that follows from the contracts, which are compared; none was there before.
  for (auto* settings : {&analysis, &analysis_now}) settings->erase("unit");
  leave_out_what_repeats(analysis, registered.analysis_plan);
  leave_out_what_repeats(analysis_now, now.analysis_plan);
  compare_maps(out, "analysis", analysis, analysis_now);
  compare_plans(out, registered.analysis_plan, now.analysis_plan);
  return out;
}

}  // namespace proctor
