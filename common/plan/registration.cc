#include "common/plan/registration.h"

#include <algorithm>
#include <array>

#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/campaign.h"

namespace proctor {
namespace {
constexpr int kSchemaVersion = 1;
constexpr const char* kUnit = "unit";  // in `analysis`, where tasks share a repository
constexpr std::int64_t kIntegerMax = (std::int64_t{1} << 53) - 1;
constexpr std::size_t kRegistrationBytes = std::size_t{1} << 30;  // a million contracts fit

Json hexes(const std::map<std::string, Digest>& digests) {
  Json out = Json::object();
  for (const auto& [name, digest] : digests) out[name] = digest.hex();
  return out;
}

// What a stage's draw goes by, whole but for what is the campaign's.
Json draw_json(const StageDraw& draw) {
  Json out{{"order", to_string(draw.order)}, {"tasks", nullptr}};
  if (draw.per_stratum) out["tasks"] = {{"per_stratum", *draw.per_stratum}};
  if (!draw.tasks.empty()) out["tasks"] = draw.tasks;
  if (draw.replicates) out["replicates"] = *draw.replicates;
  return out;
}

Json frozen_json(const Registration& r) {
  Json out{{"schema_version", kSchemaVersion},
           {"tool_version", r.tool_version},
           {"registered_at_ms", r.at.raw()},
           {"campaign", r.campaign},
           {"seed", r.seed},
           {"seed_deviation", r.seed_deviation},
           {"replicates", r.replicates},
           {"stages", r.stages},
           {"strata", r.strata},
           {"plan", r.plan.hex()},
           {"contracts", hexes(r.contracts)},
           {"methods", hexes(r.methods)},
           {"envelopes_micro_usd", r.envelopes},
           {"caps", r.caps},
           {"cost_model", {{"digest", r.cost_model.hex()}, {"version", r.cost_model_version}}},
           {"analysis", r.analysis}};
  if (r.limits) out["limits"] = *r.limits;
  if (r.cost_inputs) out["cost_model_inputs"] = r.cost_inputs->hex();
  if (!r.stage_rules.empty()) out["stage_rules"] = r.stage_rules;
  if (!r.distrusted.empty()) out["distrusted"] = r.distrusted;
  for (const auto& [stage, draw] : r.stage_draws) out["stage_draws"][stage] = draw_json(draw);
  if (r.analysis_plan) out["analysis_plan"] = to_json(*r.analysis_plan);
  return out;
}

// Takes the members of one JSON object by name; the first thing wrong is kept, and what was not
// asked for is wrong too.
class Fields {
 public:
  Fields(const Json& object, std::string path) : path_(std::move(path)), object_(object) {
    if (!object.is_object()) wrong("", object, "an object");
  }

  const Json& any(const std::string& name) {
    static const Json kNothing;
    ++asked_;
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (found != object_.end()) return *found;
    if (why_.empty()) why_ = path_ + name + ": found nothing, expected a value";
    return kNothing;
  }
  std::string text(const std::string& name, std::size_t bytes_max) {
    return text_of(name, any(name), bytes_max);
  }
  std::int64_t integer(const std::string& name, std::int64_t max) {
    return integer_of(name, any(name), max);
  }
  Digest digest(const std::string& name) { return digest_of(name, any(name)); }
  bool has(const std::string& name) const { return object_.is_object() && object_.contains(name); }
  std::vector<std::string> texts(const std::string& name) { return texts_of(name, any(name)); }
  std::vector<std::string> texts_of(const std::string& name, const Json& list) {
    std::vector<std::string> out;
    if (!list.is_array()) {
      wrong(name, list, "a list");
      return out;
    }
    for (const Json& item : list) out.push_back(text_of(name, item, limits::kNameBytes));
    return out;
  }
  template <class Value, class Read>
  std::map<std::string, Value> map(const std::string& name, Read read) {
    const Json& object = any(name);
    std::map<std::string, Value> out;
    if (!object.is_object()) {
      wrong(name, object, "an object");
      return out;
    }
    for (const auto& item : object.items())
      out.emplace(item.first, read(name + "." + printable(item.first, 120), item.second));
    return out;
  }
  std::map<std::string, Digest> digests(const std::string& name) {
    return map<Digest>(name,
                       [&](const std::string& at, const Json& v) { return digest_of(at, v); });
  }
  std::map<std::string, std::int64_t> integers(const std::string& name) {
    return map<std::int64_t>(
        name, [&](const std::string& at, const Json& v) { return integer_of(at, v, kIntegerMax); });
  }
  std::map<std::string, std::string> strings(const std::string& name) {
    return map<std::string>(name, [&](const std::string& at, const Json& v) {
      return text_of(at, v, limits::kDetailBytes);
    });
  }

  Status finish() {
    if (!why_.empty()) return Error{Errc::kInvalid, why_};
    if (asked_ == object_.size()) return ok_status();
    return Error{Errc::kInvalid, (path_.empty() ? "top level" : path_) + ": found " +
                                     std::to_string(object_.size()) + " members, expected " +
                                     std::to_string(asked_)};
  }

 private:
  void wrong(const std::string& name, const Json& found, const std::string& expected) {
    if (!why_.empty()) return;
    why_ = path_ + name + ": found " + printable(found.dump(-1, Json::Utf8::kReplace), 80) +
           ", expected " + expected;
  }
  std::string text_of(const std::string& name, const Json& value, std::size_t bytes_max) {
    if (value.is_string() && value.string().size() <= bytes_max) return value.get<std::string>();
    wrong(name, value, "a text of at most " + std::to_string(bytes_max) + " bytes");
    return "";
  }
  std::int64_t integer_of(const std::string& name, const Json& value, std::int64_t max) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(max))
      return value.get<std::int64_t>();
    wrong(name, value, "a whole number from 0 to " + std::to_string(max));
    return 0;
  }
  Digest digest_of(const std::string& name, const Json& value) {
    if (value.is_string()) {
      const auto digest = Digest::from_hex(value.string());
      if (digest.ok()) return *digest;
    }
    wrong(name, value, "64 lower-case hex digits");
    return {};
  }

  std::string path_;
  const Json& object_;
  std::size_t asked_ = 0;
  std::string why_;
};

Result<StageDraw> stage_draw_of(const Json& json, const std::string& stage) {
  const std::string path = "frozen.stage_draws." + printable(stage, limits::kNameBytes) + ".";
  Fields f(json, path);
  StageDraw out;
  const std::string order = f.text("order", limits::kNameBytes);
  const Json& tasks = f.any("tasks");
  if (tasks.is_object()) {
    Fields of_tasks(tasks, path + "tasks.");
    out.per_stratum = static_cast<std::uint32_t>(of_tasks.integer("per_stratum", 0xFFFFFFFF));
    PROCTOR_CHECK_OK(of_tasks.finish());
  } else if (tasks.is_array()) {
    out.tasks = f.texts_of("tasks", tasks);
  }
  if (f.has("replicates"))
    out.replicates = static_cast<std::uint32_t>(f.integer("replicates", 0xFFFFFFFF));
  const auto word =
      std::ranges::find(kStageOrders, order, &decltype(kStageOrders)::value_type::first);
  if (word == kStageOrders.end() || (!tasks.is_null() && out.has_every_task()))
    return Error{Errc::kInvalid, path + ": found " + printable(json.dump(), 200) +
                                     ", expected order, tasks and replicates"};
  out.order = word->second;
  PROCTOR_CHECK_OK(f.finish());
  return out;
}

Status read_frozen(const Json& json, Registration& r) {
  Fields f(json, "frozen.");
  const std::int64_t version = f.integer("schema_version", 1000);
  r.tool_version = f.text("tool_version", limits::kNameBytes);
  r.at = WallTime(f.integer("registered_at_ms", kIntegerMax));
  r.campaign = f.text("campaign", limits::kNameBytes);
  r.seed = static_cast<std::uint32_t>(f.integer("seed", 0xFFFFFFFF));
  r.seed_deviation = f.text("seed_deviation", limits::kDetailBytes);
  r.replicates = static_cast<std::uint32_t>(f.integer("replicates", 0xFFFFFFFF));
  r.stages = f.texts("stages");
  r.strata = f.texts("strata");
  r.plan = f.digest("plan");
  r.contracts = f.digests("contracts");
  r.methods = f.digests("methods");
  r.envelopes = f.integers("envelopes_micro_usd");
  r.caps = f.integers("caps");
  r.analysis = f.strings("analysis");
  if (f.has("limits")) r.limits = f.integers("limits");
  if (f.has("cost_model_inputs")) r.cost_inputs = f.digest("cost_model_inputs");
  if (f.has("stage_rules")) r.stage_rules = f.strings("stage_rules");
  if (f.has("distrusted")) r.distrusted = f.strings("distrusted");
  if (f.has("stage_draws")) {
    const Json& draws = f.any("stage_draws");
    if (!draws.is_object()) return Error{Errc::kInvalid, "frozen.stage_draws: expected an object"};
    for (const auto& item : draws.items()) {
      PROCTOR_TRY(StageDraw draw, stage_draw_of(item.second, item.first));
      r.stage_draws.emplace(item.first, std::move(draw));
    }
  }
  if (f.has("analysis_plan")) {
    PROCTOR_TRY(r.analysis_plan, analysis_plan_of(f.any("analysis_plan")));
  }
  Fields cost(f.any("cost_model"), "frozen.cost_model.");
  PROCTOR_CHECK_OK(f.finish());
  r.cost_model = cost.digest("digest");
  r.cost_model_version = cost.text("version", limits::kNameBytes);
  PROCTOR_CHECK_OK(cost.finish());
  if (version != kSchemaVersion)
    return Error{Errc::kInvalid, "frozen.schema_version: found " + std::to_string(version) +
                                     ", expected " + std::to_string(kSchemaVersion)};
  return ok_status();
}
}  // namespace

std::map<std::string, std::string> plan_settings(const std::optional<AnalysisPlan>& registered) {
  const AnalysisPlan plan = registered.value_or(AnalysisPlan{});
  const std::string level = to_json(plan).at("alpha").get<std::string>();
  return {{"primary_endpoint", plan.estimand == AnalysisPlan::Estimand::kTaskMean
                                   ? "mean over tasks of their success rates over scorable runs"
                                   : "success rate over scorable runs"},
          {"interval", std::string(to_string(plan.interval)) + " over tasks; beside it Wilson's "
                                                               "over runs"},
          {"alpha", level}};
}

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
  const std::string rule = std::string(to_string(d.action)) + " at " + std::to_string(d.percent) +
                           " % of a run's money with fewer than " + std::to_string(d.milestones) +
                           " milestones";
  return {
      {"budget_alerts", alerts.empty() ? "none" : alerts + " % of each envelope spent"},
      {"dominance", d.action == BudgetWatch::Dominance::Action::kOff ? std::string("off") : rule}};
}

std::map<std::string, std::string> rate_settings(const Rates& rates) {
  std::map<std::string, std::string> out;
  for (const RateBucket& b : rates.buckets())
    out.emplace("rates." + b.name, std::to_string(b.limit) + " in any minute");
  return out;
}

// Nothing while they are the default: then a registration from before them says the same.
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

namespace {
// All that bounds a run or how often it is tried, of the campaign, its stages and its tasks.
std::map<std::string, std::int64_t> limits_of(const Campaign& campaign) {
  std::map<std::string, std::int64_t> out;
  constexpr std::string_view kCampaign = "campaign";
  // Those of the campaign that stand among its `caps`.
  constexpr std::array kTold{Cap::kUsd, Cap::kTokens, Cap::kToolCalls, Cap::kFailedCycles,
                             Cap::kWall};
  const auto add = [&](const std::string& whose, const Caps& caps) {
    for (const Cap cap : kCaps)
      if (const auto value = cap_value(caps, cap);
          value && (whose != kCampaign || std::ranges::find(kTold, cap) == kTold.end()))
        out[whose + ":" + std::string(to_string(cap))] =
            static_cast<std::int64_t>(std::min<std::uint64_t>(*value, INT64_MAX));
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
  const auto cap = [&](const char* name, const std::optional<std::uint64_t>& value) {
    if (value) r.caps[name] = static_cast<std::int64_t>(std::min<std::uint64_t>(*value, INT64_MAX));
  };
  if (campaign.caps.usd) r.caps["micro_usd"] = campaign.caps.usd->micros();
  cap("tokens", campaign.caps.tokens);
  cap("tool_calls", campaign.caps.tool_calls);
  cap("failed_acceptance_cycles", campaign.caps.failed_acceptance_cycles);
  if (campaign.caps.wall) r.caps["wall_ms"] = campaign.caps.wall->count();
  r.limits = limits_of(campaign);
  r.cost_model = campaign.cost_model.digest;
  r.cost_model_version = campaign.cost_model.version;
  if (campaign.cost_inputs) r.cost_inputs = campaign.cost_inputs->digest;
  r.analysis = plan_settings(campaign.analysis);
  r.analysis.merge(analysis_settings());
  r.analysis.merge(watch_settings(campaign.watch));
  r.analysis.merge(rate_settings(campaign.rates));
  r.analysis.merge(retry_settings(campaign.retries));
  r.analysis_plan = campaign.analysis;
  if (registered_plan(campaign).is_over_repositories() && !registered_plan(r).unit)
    r.analysis[kUnit] = "repository";
  // What the hashed form cannot hold is refused here, once, so that the digest always exists.
  auto canonical = canonical_json(frozen_json(r));
  if (!canonical.ok()) return in_context("registration", std::move(canonical).error());
  return r;
}

Digest frozen_digest(const Registration& registration) {
  const auto canonical = canonical_json(frozen_json(registration));
  PROCTOR_ASSERT(canonical.ok());
  return sha256(*canonical);
}

std::string campaign_id(const Registration& registration) {
  return registration.campaign + "-" + frozen_digest(registration).short_hex();
}

std::string to_json(const Registration& registration) {
  Json removals = Json::array();
  for (const Removal& r : registration.removals) {
    removals.push_back({{"task", r.task}, {"reason", r.reason}, {"at_ms", r.at.raw()}});
    if (!r.by.empty()) removals.back()["by"] = r.by;
  }
  const Json file = {{"frozen", frozen_json(registration)},
                     {"digest", frozen_digest(registration).hex()},
                     {"removals", removals}};
  return file.dump(2) + "\n";
}

Result<Registration> parse_registration(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {kRegistrationBytes, 8}));
  Fields top(json, "");
  const Json& frozen = top.any("frozen");
  const Digest digest = top.digest("digest");
  const Json& removals = top.any("removals");
  PROCTOR_CHECK_OK(top.finish());
  Registration r;
  PROCTOR_CHECK_OK(read_frozen(frozen, r));
  PROCTOR_TRY(const std::string canonical, canonical_json(frozen));
  if (sha256(canonical) != digest)
    return Error{Errc::kCorrupt, "digest: found " + digest.short_hex() + ", expected " +
                                     sha256(canonical).short_hex() +
                                     ": the frozen part was changed after the freeze"};
  if (!removals.is_array()) return Error{Errc::kInvalid, "removals: expected a list"};
  for (const Json& item : removals) {
    Fields f(item, "removals[" + std::to_string(r.removals.size()) + "].");
    const std::string task = f.text("task", limits::kNameBytes);
    const std::string reason = f.text("reason", limits::kDetailBytes);
    const WallTime at(f.integer("at_ms", kIntegerMax));
    const std::string by = f.has("by") ? f.text("by", limits::kDetailBytes) : "";
    PROCTOR_CHECK_OK(f.finish());
    auto added = add_removal(r, task, reason, at, by);
    if (!added.ok()) return Error{Errc::kInvalid, "removals: " + added.error().detail};
  }
  return r;
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
