#include "common/plan/registration.h"

#include <algorithm>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/campaign.h"

namespace proctor {
namespace {
constexpr std::uint32_t kSchemaVersion = 1;
constexpr const char* kUnit = "unit";  // in `analysis`, where tasks share a repository
constexpr std::size_t kRegistrationBytes = std::size_t{1} << 30;  // a million contracts fit
constexpr Rule kName{.bytes = limits::kNameBytes};
constexpr Rule kDetail{.bytes = limits::kDetailBytes};
constexpr Rule kNatural{.natural = true};

struct PerStratum {
  std::uint32_t per_stratum = 0;
};
void fields(auto& v, Is<PerStratum> auto& p) {
  v("per_stratum", p.per_stratum);
}

// null: every task; a list of them; or how many of each stratum.
Json tasks_json(const StageDraw& draw) {
  if (draw.per_stratum) return to_json(PerStratum{*draw.per_stratum});
  return draw.tasks.empty() ? Json() : Json(draw.tasks);
}
bool read_tasks(const StageDraw&, const Json&) {
  return true;
}
bool read_tasks(StageDraw& draw, const Json& tasks) {
  if (const auto each = from_json<PerStratum>(tasks); each.ok())
    draw.per_stratum = each->per_stratum;
  if (tasks.is_array())
    for (const Json& task : tasks.list())
      if (task.is_string()) draw.tasks.push_back(task.string());
  return tasks_json(draw) == tasks;
}
}  // namespace

void fields(auto& v, Is<StageDraw> auto& d) {
  v("order", d.order);
  Json tasks = tasks_json(d);
  v("tasks", tasks);
  v.require(read_tasks(d, tasks), "tasks", "expected null, names of tasks or {per_stratum}");
  v("replicates", d.replicates, kOptional);
}

void fields(auto& v, Is<Registration> auto& r) {
  std::uint32_t version = kSchemaVersion;
  v("schema_version", version);
  v.require(version == kSchemaVersion, "schema_version", "expected 1");
  v("tool_version", r.tool_version, kName);
  v("registered_at_ms", r.at, kNatural);
  v("campaign", r.campaign, kName);
  v("seed", r.seed);
  v("seed_deviation", r.seed_deviation, kDetail);
  v("replicates", r.replicates);
  v("stages", r.stages, kName);
  v("strata", r.strata, kName);
  v("plan", r.plan);
  v("contracts", r.contracts);
  v("methods", r.methods);
  v("envelopes_micro_usd", r.envelopes, kNatural);
  v("caps", r.caps, kNatural);
  v("analysis", r.analysis, kDetail);
  v("limits", r.limits, {.optional = true, .natural = true});
  v("cost_model_inputs", r.cost_inputs, kOptional);
  v("stage_rules", r.stage_rules, {.bytes = limits::kDetailBytes, .optional = true});
  v("distrusted", r.distrusted, {.bytes = limits::kDetailBytes, .optional = true});
  v("stage_draws", r.stage_draws, kOptional);
  v("analysis_plan", r.analysis_plan, kOptional);
  v("derived_from", r.derived_from, {.bytes = limits::kNameBytes, .optional = true});
  v("rubric", r.rubric, kOptional);
  v.require(!r.rubric || (0 < *r.rubric && *r.rubric <= kRubricVersion), "rubric",
            "registered by a later proctor, whose rules of verdicts this one lacks");
  v.section("cost_model", [&](auto& c) {
    c("digest", r.cost_model);
    c("version", r.cost_model_version, kName);
  });
}

void fields(auto& v, Is<Removal> auto& r) {
  v("task", r.task, kName);
  v("reason", r.reason, kDetail);
  v("at_ms", r.at, kNatural);
  v("by", r.by, {.bytes = limits::kDetailBytes, .optional = true});
}

namespace {
struct RegistrationFile {
  Registration frozen;
  Digest digest;
};
void fields(auto& v, Is<RegistrationFile> auto& f) {
  v("frozen", f.frozen);
  v("digest", f.digest);
  v("removals", f.frozen.removals);
}

Result<std::string> frozen_text(const Registration& r) {
  return canonical_json(to_json<Registration>(r));
}

// Those of analysis_settings() that follow from a plan of analysis; nullopt: from the defaults.
std::map<std::string, std::string> plan_settings(const std::optional<AnalysisPlan>& registered) {
  const AnalysisPlan plan = registered.value_or(AnalysisPlan{});
  return {{"primary_endpoint", plan.estimand == AnalysisPlan::Estimand::kTaskMean
                                   ? "mean over tasks of their success rates over scorable runs"
                                   : "success rate over scorable runs"},
          {"interval", std::string(word_of(plan.interval)) + " over tasks; beside it Wilson's "
                                                             "over runs"},
          {"alpha", plan.alpha.to_text()}};
}
}  // namespace

AnalysisPlan registered_plan(const Campaign& campaign) {
  AnalysisPlan out = campaign.analysis.value_or(AnalysisPlan{});
  const std::vector<std::uint32_t> of = repositories_of(campaign);
  const bool shared = !of.empty() && *std::ranges::max_element(of) < of.size();
  if (!out.unit && shared) out.unit = AnalysisPlan::Unit::kRepository;
  return out;
}

AnalysisPlan registered_plan(const Registration& r) {
  AnalysisPlan out = r.analysis_plan.value_or(AnalysisPlan{});
  if (!out.unit && r.analysis.contains(kUnit)) out.unit = AnalysisPlan::Unit::kRepository;
  return out;
}

std::map<std::string, std::string> analysis_settings() {
  return {{"primary_endpoint", "success rate over scorable runs"},
          {"interval", "Wilson score"},
          {"alpha", "0.05"},
          {"acceptance_errors", "scorable, counted apart from failures, in the denominator"},
          {"invalid_runs", "outside the success rate, reported over attempted runs"}};
}

std::map<std::string, std::string> watch_settings(const BudgetWatch& watch) {
  std::string alerts;
  for (const std::uint32_t percent : watch.alerts)
    alerts += (alerts.empty() ? "" : ", ") + std::to_string(percent);
  const BudgetWatch::Dominance& d = watch.dominance;
  const std::string rule = std::string(word_of(d.action)) + " at " + std::to_string(d.percent) +
                           " % of a run's money with fewer than " + std::to_string(d.milestones) +
                           " milestones";
  return {
      {"budget_alerts", alerts.empty() ? "none" : alerts + " % of each envelope spent"},
      {"dominance", d.action == BudgetWatch::Dominance::Action::kOff ? std::string("off") : rule}};
}

namespace {
// The rates of the whole campaign, those that are set.
std::map<std::string, std::string> rate_settings(const Rates& rates) {
  std::map<std::string, std::string> out;
  for (const RateBucket& b : rates.buckets())
    out.emplace("rates." + b.name, std::to_string(b.limit) + " in any minute");
  return out;
}

// How often and how soon something is tried again; empty while that is the default: then a
// registration from before it says the same.
std::map<std::string, std::string> retry_settings(const Retries& r) {
  if (r == Retries{}) return {};
  // Nothing while it is the default, for the same reason.
  const std::string parked = r.park_after == Retries{}.park_after
                                 ? ""
                                 : "; tasks and methods are parked after " +
                                       std::to_string(r.park_after) + " equal failures";
  const auto ms = [](std::chrono::milliseconds d) { return std::to_string(d.count()) + " ms"; };
  return {{"retries", std::to_string(r.overload) + " after overload; waits from " + ms(r.backoff) +
                          ", " + ms(r.overload_backoff) + " after overload, to " +
                          ms(r.backoff_max) +
                          (r.escalate ? "; then a person decides" : "; then invalid") + parked +
                          "; workers stand back after " + std::to_string(r.quarantine_after) +
                          " failures for " + ms(r.quarantine) + " to " + ms(r.quarantine_max)}};
}

// The same for the rest that a verdict is made by (R145).
std::map<std::string, std::string> rubric_settings(const Campaign& c) {
  std::map<std::string, std::string> out;
  const auto share = [](std::uint64_t millionths) {
    return Millionths{static_cast<std::uint32_t>(millionths)}.to_text();
  };
  if (c.weights != RubricWeights{})
    out["rubric"] = "weights: minimal " + share(c.weights.minimal) + ", trace " +
                    share(c.weights.trace) + ", maint " + share(c.weights.maint);
  if (c.safety != SafetyPlan{})
    out["safety"] = std::string(c.safety.stop_run ? "a critical violation ends its run" : "") +
                    (c.safety.stop_run && c.safety.stop_after != 0 ? "; " : "") +
                    (c.safety.stop_after == 0
                         ? ""
                         : "the same one in runs of " + std::to_string(c.safety.stop_after) +
                               " tasks stops the campaign");
  if (c.rerun != 0)
    out["acceptance"] = "rerun " + std::to_string(c.rerun) + ", tie safety-then-correctness";
  if (!c.failure_modes.empty()) out["failure_modes"] = sha256(c.failure_modes).hex();
  return out;
}

// Those of the campaign that its `caps` have; the others are among its `limits`.
constexpr auto kAmongCaps =
    std::to_array<Word<Cap>>({{"micro_usd", Cap::kUsd},
                              {"tokens", Cap::kTokens},
                              {"tool_calls", Cap::kToolCalls},
                              {"failed_acceptance_cycles", Cap::kFailedCycles},
                              {"wall_ms", Cap::kWall}});

std::int64_t whole(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

// All that bounds a run or how often it is tried, of the campaign, its stages and its tasks.
std::map<std::string, std::int64_t> limits_of(const Campaign& campaign) {
  std::map<std::string, std::int64_t> out;
  constexpr std::string_view kCampaign = "campaign";
  const auto add = [&](const std::string& whose, const Caps& caps) {
    for (const Cap cap : kCaps)
      if (const auto value = cap_value(caps, cap);
          value && (whose != kCampaign || word_in(kAmongCaps, cap).empty()))
        out[whose + ":" + std::string(to_string(cap))] = whole(*value);
  };
  add(std::string(kCampaign), campaign.caps);
  for (const Stage& stage : campaign.stages) add("stage:" + stage.name, stage.caps);
  for (const auto& [task, caps] : campaign.task_caps) add("task:" + task, caps);
  out["infrastructure_retries"] = campaign.infrastructure_retries;
  out["isolation"] = campaign.isolation == Isolation::kKernel ? 0 : 1;
  return out;
}
}  // namespace

Result<Registration> make_registration(const Campaign& campaign, const Digest& plan, WallTime at) {
  Registration r;
  r.tool_version = std::string(kVersion);
  r.at = at;
  r.rubric = kRubricVersion;
  r.campaign = campaign.name;
  r.seed = campaign.seed;
  r.seed_deviation = campaign.seed_deviation;
  r.replicates = campaign.replicates;
  for (const Stage& stage : campaign.stages) {
    r.stages.push_back(stage.name);
    if (!stage.rules.empty()) r.stage_rules.emplace(stage.name, describe(stage.rules));
    if (!stage.draw.empty()) r.stage_draws.emplace(stage.name, stage.draw);
  }
  r.strata = campaign.strata;
  r.plan = plan;
  for (const Contract& contract : campaign.contracts)
    r.contracts.emplace(contract.id, contract.digest);
  for (const Method& method : campaign.methods) r.methods.emplace(method.name, method.digest);
  const Envelopes& e = campaign.envelopes;
  r.envelopes["global"] = e.global.micros();
  r.envelopes["run"] = e.run.micros();
  if (e.shared) r.envelopes[e.shared->scope()] = e.shared->cap.micros();
  if (e.task) r.envelopes["task"] = e.task->micros();
  for (const auto& [name, amount] : e.stage) r.envelopes["stage:" + name] = amount.micros();
  for (const auto& [id, amount] : e.tasks) r.envelopes["task:" + id] = amount.micros();
  for (const auto& [name, amount] : e.methods) r.envelopes["method:" + name] = amount.micros();
  for (const auto& [key, levels] : e.strata)
    for (const auto& [level, amount] : levels)
      r.envelopes["stratum:" + key + "=" + level] = amount.micros();
  for (const auto& [name, cap] : kAmongCaps)
    if (const auto value = cap_value(campaign.caps, cap)) r.caps[std::string(name)] = whole(*value);
  r.limits = limits_of(campaign);
  r.cost_model = campaign.cost_model.digest;
  r.cost_model_version = campaign.cost_model.version;
  if (campaign.cost_inputs) r.cost_inputs = campaign.cost_inputs->digest;
  r.analysis = plan_settings(campaign.analysis);
  r.analysis.merge(analysis_settings());
  r.analysis.merge(watch_settings(campaign.watch));
  r.analysis.merge(rate_settings(campaign.rates));
  r.analysis.merge(retry_settings(campaign.retries));
  r.analysis.merge(rubric_settings(campaign));
  r.analysis_plan = campaign.analysis;
  if (campaign.derived_from) {
    r.derived_from["campaign"] = campaign.derived_from->campaign;
    for (const auto& [task, digest] : campaign.derived_from->contracts)
      r.derived_from["contract:" + task] = digest;
  }
  if (registered_plan(campaign).is_over_repositories() && !registered_plan(r).unit)
    r.analysis[kUnit] = "repository";
  // What the hashed form cannot hold is refused here, once, so that the digest always exists.
  for (const auto* numbers : {&r.envelopes, &r.caps, &*r.limits})
    for (const auto& [name, n] : *numbers)
      if (static_cast<std::int64_t>(kExactIntegerMax) < n)
        return Error{Errc::kInvalid, "registration: " + name + ": more than 2^53 - 1"};
  auto canonical = frozen_text(r);
  if (!canonical.ok()) return in_context("registration", std::move(canonical).error());
  return r;
}

Digest frozen_digest(const Registration& registration) {
  return sha256(frozen_text(registration).value());
}

std::string campaign_id(const Registration& registration) {
  return registration.campaign + "-" + frozen_digest(registration).short_hex();
}

std::string to_json(const Registration& registration) {
  return to_json(RegistrationFile{registration, frozen_digest(registration)}).dump(2) + "\n";
}

Result<Registration> parse_registration(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {kRegistrationBytes, 8}));
  PROCTOR_TRY(RegistrationFile file, from_json<RegistrationFile>(json));
  Registration& r = file.frozen;
  PROCTOR_TRY(const std::string frozen, canonical_json(json["frozen"]));
  if (sha256(frozen) != file.digest)
    return Error{Errc::kCorrupt, "digest: found " + file.digest.short_hex() + ", expected " +
                                     sha256(frozen).short_hex() +
                                     ": the frozen part was changed after the freeze"};
  if (to_json<Registration>(r) != json["frozen"])
    return Error{Errc::kInvalid, "frozen: not as this version writes it"};
  for (const Removal& one : std::exchange(r.removals, {})) {
    const Status added = add_removal(r, one.task, one.reason, one.at, one.by);
    if (!added.ok()) return Error{Errc::kInvalid, "removals: " + added.error().detail};
  }
  return std::move(r);
}

Status add_removal(Registration& registration, std::string_view task, std::string_view reason,
                   WallTime at, std::string_view by) {
  if (registration.contracts.count(std::string(task)) == 0)
    return Error{Errc::kNotFound, "task \"" + printable(task) + "\" is not in the registration"};
  if (is_removed(registration, task))
    return Error{Errc::kConflict, "task \"" + printable(task) + "\" is already removed"};
  if (reason.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Error{Errc::kInvalid, "removal of \"" + printable(task) + "\": expected a reason"};
  for (const auto& [key, text] : {std::pair{"reason", reason}, {"by", by}})
    if (limits::kDetailBytes < text.size() || !is_utf8(text))
      return Error{Errc::kInvalid, std::string(key) + ": expected UTF-8 of at most " +
                                       std::to_string(limits::kDetailBytes) + " bytes"};
  registration.removals.push_back({std::string(task), std::string(reason), at, std::string(by)});
  return ok_status();
}

bool is_removed(const Registration& registration, std::string_view task) {
  return std::ranges::find(registration.removals, task, &Removal::task) !=
         registration.removals.end();
}

// Differences between what a campaign registered and what it would register now.

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
    json.emplace("multiplicity", word_of(AnalysisPlan{}.multiplicity));
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
  const std::map<std::string, std::string> before = analysis_settings();
  for (const auto& [name, words] : plan_settings(plan)) {
    const auto found = settings.find(name);
    if (found != settings.end() && (found->second == words || found->second == before.at(name)))
      settings.erase(found);
  }
}
}  // namespace

std::vector<std::string> differences(const Registration& registered, const Registration& now) {
  std::vector<std::string> out;
  compare(out, "campaign", registered.campaign, now.campaign);
  compare(out, "seed", registered.seed, now.seed);
  compare(out, "seed deviation", registered.seed_deviation, now.seed_deviation);
  compare(out, "replicates", registered.replicates, now.replicates);
  compare(out, "stages", registered.stages, now.stages);
  compare_maps(out, "rules of stage", registered.stage_rules, now.stage_rules);
  compare_maps(out, "tasks of stage", registered.stage_draws, now.stage_draws);
  compare(out, "strata", registered.strata, now.strata);
  compare(out, "plan", registered.plan, now.plan);
  compare_maps(out, "contract", registered.contracts, now.contracts);
  compare_maps(out, "method", registered.methods, now.methods);
  compare_maps(out, "derived from", registered.derived_from, now.derived_from);
  compare_maps(out, "envelope in micro-USD", registered.envelopes, now.envelopes);
  compare_maps(out, "cap", registered.caps, now.caps);
  if (registered.limits && now.limits) compare_maps(out, "limit", *registered.limits, *now.limits);
  compare(out, "cost model", registered.cost_model, now.cost_model);
  compare(out, "cost model version", registered.cost_model_version, now.cost_model_version);
  if (registered.cost_inputs && registered.cost_inputs != now.cost_inputs)
    out.push_back("projection inputs: registered " + shown(*registered.cost_inputs) + ", now " +
                  (now.cost_inputs ? shown(*now.cost_inputs) : "absent"));
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
