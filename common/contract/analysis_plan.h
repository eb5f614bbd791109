#pragma once
// The plan of analysis: which comparisons a campaign is for and how they are computed, registered
// before the first run and never changed after (docs/analysis.md).  Comparisons that are not
// in it are exploratory.  Pure; thread-safe.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/fields.h"
#include "common/base/words.h"

namespace proctor {
// An exact decimal between 0 and 1, in millionths: alpha, margins.
inline constexpr unsigned kMillionthDigits = 6;
struct Millionths {
  std::uint32_t value = 0;
  double real() const { return static_cast<double>(value) / 1e6; }
  std::string to_text() const;  // "0.05"
  bool from_text(std::string_view text);
  friend bool operator==(const Millionths&, const Millionths&) = default;
};

// Replicates that a plan may register, and how many there are without one.
inline constexpr std::uint32_t kLeastPlanDraws = 1'000, kDefaultDraws = 2'000,
                               kMostPlanDraws = 20'000;

struct AnalysisPlan {
  // The estimand of one number per method: every task counts equally, or every run.
  enum class Estimand : std::uint8_t { kTaskMean, kRunMean };
  // The interval of a single rate over tasks (common/stats/clustered.h).
  enum class RateInterval : std::uint8_t { kKornGraubard, kT, kWilson };
  // How the comparisons are adjusted for being several: each by its own p (Holm), or by the largest
  // of all under sign flips and resampled tasks that they have in common.
  enum class Multiplicity : std::uint8_t { kHolm, kMaxT };
  // The units that comparisons take for independent: tasks, or repositories with all their tasks.
  enum class Unit : std::uint8_t { kTask, kRepository };

  // Every other method is compared with it, unless `contrasts` names pairs; empty: the first
  // baseline of the campaign (kind noop), else its first method.
  std::string baseline;
  std::vector<std::pair<std::string, std::string>> contrasts;
  Estimand estimand = Estimand::kTaskMean;
  RateInterval interval = RateInterval::kKornGraubard;
  Millionths alpha{50'000};            // below 0.5
  Millionths min_effect{100'000};      // what matters
  Millionths non_inferiority{50'000};  // what would be worse by too much
  std::vector<std::uint32_t> pass_k{1, 2, 4};
  Multiplicity multiplicity = Multiplicity::kHolm;
  std::uint32_t draws = kDefaultDraws;  // replicates wherever tasks are resampled
  // The share of each level of one key of strata, together exactly 1, that the tasks represent;
  // empty: every task represents itself.
  std::string weights_key;
  std::map<std::string, Millionths> weights;
  // Without a value it was not written, and a report takes tasks (common/plan/registration.h,
  // registered_plan).
  std::optional<Unit> unit;
  bool is_over_repositories() const { return unit == Unit::kRepository; }
  friend bool operator==(const AnalysisPlan&, const AnalysisPlan&) = default;
};

constexpr auto words(AnalysisPlan::Estimand) {
  return std::to_array<Word<AnalysisPlan::Estimand>>(
      {{"task_mean", AnalysisPlan::Estimand::kTaskMean},
       {"run_mean", AnalysisPlan::Estimand::kRunMean}});
}
constexpr auto words(AnalysisPlan::RateInterval) {
  return std::to_array<Word<AnalysisPlan::RateInterval>>(
      {{"korn_graubard", AnalysisPlan::RateInterval::kKornGraubard},
       {"t", AnalysisPlan::RateInterval::kT},
       {"wilson", AnalysisPlan::RateInterval::kWilson}});
}
constexpr auto words(AnalysisPlan::Multiplicity) {
  return std::to_array<Word<AnalysisPlan::Multiplicity>>(
      {{"holm", AnalysisPlan::Multiplicity::kHolm}, {"max_t", AnalysisPlan::Multiplicity::kMaxT}});
}
constexpr auto words(AnalysisPlan::Unit) {
  return std::to_array<Word<AnalysisPlan::Unit>>(
      {{"repository", AnalysisPlan::Unit::kRepository}, {"task", AnalysisPlan::Unit::kTask}});
}
// "1 repository", "6 tasks".
std::string counted_units(AnalysisPlan::Unit unit, std::uint64_t n);

// As a registration holds it: every setting, decimals as texts; those that came later
// (multiplicity, bootstrap, weights, unit) where they are not the default, so that older
// registrations keep their bytes.
struct PlanBootstrap {
  std::uint32_t draws = kDefaultDraws;
  friend bool operator==(const PlanBootstrap&, const PlanBootstrap&) = default;
};
void fields(auto& v, Is<PlanBootstrap> auto& b) {
  v("draws", b.draws, {.most = kMostPlanDraws});
  v.require(kLeastPlanDraws <= b.draws, "draws", "fewer than 1000");
}
// By key of strata, of which there is one: the share of each level.
using PlanWeights = std::map<std::string, std::map<std::string, Millionths>>;
PlanWeights weights_of(const AnalysisPlan& plan);
// False where they are no weights.
bool set_weights(AnalysisPlan& plan, const PlanWeights& weights);
inline bool set_weights(const AnalysisPlan&, const PlanWeights&) {
  return true;
}

void fields(auto& v, Is<AnalysisPlan> auto& p) {
  v("baseline", p.baseline);
  v("contrasts", p.contrasts);
  v("estimand", p.estimand);
  v("interval", p.interval);
  v("alpha", p.alpha);
  v.require(0 < p.alpha.value && p.alpha.value < 500'000, "alpha",
            "expected more than 0, below 0.5");
  v("min_effect", p.min_effect);
  v.require(0 < p.min_effect.value, "min_effect", "expected more than 0");
  v("non_inferiority", p.non_inferiority);
  v.require(0 < p.non_inferiority.value, "non_inferiority", "expected more than 0");
  v("pass_k", p.pass_k, {.most = 1'000'000});
  v.require(std::ranges::count(p.pass_k, 0U) == 0, "pass_k", "expected more than 0");
  v("multiplicity", p.multiplicity, kOptional);
  PlanBootstrap bootstrap{p.draws};
  v("bootstrap", bootstrap, kOptional);
  keep(p.draws, bootstrap.draws);
  PlanWeights weights = weights_of(p);
  v("weights", weights, kOptional);
  v.require(set_weights(p, weights), "weights",
            "expected one key of strata with shares that are together 1");
  v("unit", p.unit, kOptional);
}

// The pairs a - b that the plan compares, in its order, for these methods in theirs; `is_noop` says
// which methods are no-ops.
std::vector<std::pair<std::string, std::string>> contrasts_of(
    const AnalysisPlan& plan, const std::vector<std::string>& methods,
    const std::vector<bool>& is_noop);
}  // namespace proctor
