#include "common/contract/analysis_plan.h"

#include <algorithm>
#include <array>

#include "common/contract/fields.h"

namespace proctor {
namespace {
using Estimand = AnalysisPlan::Estimand;
using RateInterval = AnalysisPlan::RateInterval;
using Multiplicity = AnalysisPlan::Multiplicity;

constexpr std::uint64_t kWholeShare = 1'000'000;

std::string decimal(Millionths m) {
  return format_decimal(m.value, kMillionthDigits);
}

Error wrong(const std::string& member) {
  return {Errc::kInvalid, "analysis_plan." + member + ": not as this version writes it"};
}

Result<std::string> text_of(const Json& json, const char* member) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_string()) return wrong(member);
  return found->get<std::string>();
}

Result<Millionths> decimal_of(const Json& json, const char* member) {
  PROCTOR_TRY(const std::string text, text_of(json, member));
  const auto value = parse_decimal(text, kMillionthDigits, 1'000'000);
  if (!value.ok()) return wrong(member);
  return Millionths{static_cast<std::uint32_t>(*value)};
}

template <class E, std::size_t N>
Result<E> word_of(const Json& json, const char* member, const std::array<E, N>& all) {
  PROCTOR_TRY(const std::string text, text_of(json, member));
  for (const E e : all)
    if (to_string(e) == text) return e;
  return wrong(member);
}

Result<std::uint32_t> draws_of(const Json& bootstrap) {
  if (!bootstrap.is_object() || bootstrap.size() != 1 || !bootstrap.contains("draws"))
    return wrong("bootstrap");
  const Json& draws = bootstrap.at("draws");
  if (!draws.is_number_unsigned() || draws.get<std::uint64_t>() < kLeastPlanDraws ||
      kMostPlanDraws < draws.get<std::uint64_t>())
    return wrong("bootstrap.draws");
  return draws.get<std::uint32_t>();
}

Status read_weights(const Json& json, AnalysisPlan& plan) {
  if (!json.is_object() || json.size() != 1 || !json.begin()->is_object()) return wrong("weights");
  plan.weights_key = json.begin().key();
  std::uint64_t sum = 0;
  for (const auto& [level, share] : json.begin()->items()) {
    PROCTOR_TRY(plan.weights[level], decimal_of(*json.begin(), level.c_str()));
    sum += plan.weights[level].value;
  }
  if (sum != kWholeShare) return wrong("weights");
  return ok_status();
}

Result<std::vector<std::pair<std::string, std::string>>> pairs_of(const Json& json) {
  const auto found = json.find("contrasts");
  if (found == json.end() || !found->is_array()) return wrong("contrasts");
  std::vector<std::pair<std::string, std::string>> out;
  for (const Json& pair : *found) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      return wrong("contrasts");
    out.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return out;
}
}  // namespace

std::string_view to_string(Estimand estimand) {
  return estimand == Estimand::kTaskMean ? "task_mean" : "run_mean";
}

std::string_view to_string(RateInterval interval) {
  switch (interval) {
    case RateInterval::kKornGraubard:
      return "korn_graubard";
    case RateInterval::kT:
      return "t";
    case RateInterval::kWilson:
      return "wilson";
  }
  return "";
}

std::string_view to_string(Multiplicity multiplicity) {
  return multiplicity == Multiplicity::kHolm ? "holm" : "max_t";
}

std::string_view to_string(AnalysisPlan::Unit unit) {
  return unit == AnalysisPlan::Unit::kTask ? "task" : "repository";
}

std::string counted_units(AnalysisPlan::Unit unit, std::uint64_t n) {
  if (unit == AnalysisPlan::Unit::kTask) return std::to_string(n) + (n == 1 ? " task" : " tasks");
  return std::to_string(n) + (n == 1 ? " repository" : " repositories");
}

Json to_json(const AnalysisPlan& plan) {
  Json contrasts = Json::array();
  for (const auto& [a, b] : plan.contrasts) contrasts.push_back({a, b});
  Json out = {{"baseline", plan.baseline},
              {"contrasts", std::move(contrasts)},
              {"estimand", to_string(plan.estimand)},
              {"interval", to_string(plan.interval)},
              {"alpha", decimal(plan.alpha)},
              {"min_effect", decimal(plan.min_effect)},
              {"non_inferiority", decimal(plan.non_inferiority)},
              {"pass_k", plan.pass_k}};
  if (plan.multiplicity != Multiplicity::kHolm) out["multiplicity"] = to_string(plan.multiplicity);
  if (plan.draws != kDefaultDraws) out["bootstrap"] = {{"draws", plan.draws}};
  for (const auto& [level, share] : plan.weights)
    out["weights"][plan.weights_key][level] = decimal(share);
  if (plan.unit) out["unit"] = to_string(*plan.unit);
  return out;
}

Result<AnalysisPlan> analysis_plan_of(const Json& json) {
  if (!json.is_object()) return wrong("");
  AnalysisPlan plan;
  PROCTOR_TRY(plan.baseline, text_of(json, "baseline"));
  PROCTOR_TRY(plan.contrasts, pairs_of(json));
  PROCTOR_TRY(plan.estimand,
              word_of(json, "estimand", std::array{Estimand::kTaskMean, Estimand::kRunMean}));
  PROCTOR_TRY(plan.interval, word_of(json, "interval",
                                     std::array{RateInterval::kKornGraubard, RateInterval::kT,
                                                RateInterval::kWilson}));
  PROCTOR_TRY(plan.alpha, decimal_of(json, "alpha"));
  PROCTOR_TRY(plan.min_effect, decimal_of(json, "min_effect"));
  PROCTOR_TRY(plan.non_inferiority, decimal_of(json, "non_inferiority"));
  if (plan.alpha.value == 0 || 500'000 <= plan.alpha.value) return wrong("alpha");
  if (plan.min_effect.value == 0) return wrong("min_effect");
  if (plan.non_inferiority.value == 0) return wrong("non_inferiority");
  const auto k = json.find("pass_k");
  if (k == json.end() || !k->is_array()) return wrong("pass_k");
  plan.pass_k.clear();
  for (const Json& item : *k) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() == 0 ||
        1'000'000 < item.get<std::uint64_t>())
      return wrong("pass_k");
    plan.pass_k.push_back(item.get<std::uint32_t>());
  }
  if (json.contains("multiplicity")) {
    PROCTOR_TRY(plan.multiplicity, word_of(json, "multiplicity",
                                           std::array{Multiplicity::kHolm, Multiplicity::kMaxT}));
  }
  if (json.contains("bootstrap")) {
    PROCTOR_TRY(plan.draws, draws_of(json.at("bootstrap")));
  }
  if (json.contains("weights")) {
    PROCTOR_CHECK_OK(read_weights(json.at("weights"), plan));
  }
  if (json.contains("unit")) {
    PROCTOR_TRY(plan.unit,
                word_of(json, "unit",
                        std::array{AnalysisPlan::Unit::kTask, AnalysisPlan::Unit::kRepository}));
  }
  // A member more would be a setting that this version does not follow.
  if (json.size() != to_json(plan).size()) return wrong("");
  return plan;
}

std::vector<std::pair<std::string, std::string>> contrasts_of(
    const AnalysisPlan& plan, const std::vector<std::string>& methods,
    const std::vector<bool>& is_noop) {
  if (!plan.contrasts.empty()) return plan.contrasts;
  std::vector<std::pair<std::string, std::string>> out;
  if (methods.empty()) return out;
  std::string baseline = plan.baseline;
  if (baseline.empty()) {
    const auto noop = std::ranges::find(is_noop, true);
    baseline =
        methods[noop == is_noop.end() ? 0 : static_cast<std::size_t>(noop - is_noop.begin())];
  }
  for (const std::string& method : methods)
    if (method != baseline) out.emplace_back(method, baseline);
  return out;
}
}  // namespace proctor
