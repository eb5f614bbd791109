#pragma once
// The plan of analysis: which comparisons a campaign is for and how they are computed, registered
// before the first run and never changed after (docs/analysis.md).  Comparisons that are not
// in it are exploratory.  Pure; thread-safe.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {
// An exact decimal between 0 and 1, in millionths: alpha, margins.
inline constexpr unsigned kMillionthDigits = 6;
struct Millionths {
  std::uint32_t value = 0;
  double real() const { return static_cast<double>(value) / 1e6; }
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

std::string_view to_string(AnalysisPlan::Estimand estimand);
std::string_view to_string(AnalysisPlan::RateInterval interval);
std::string_view to_string(AnalysisPlan::Multiplicity multiplicity);
std::string_view to_string(AnalysisPlan::Unit unit);
// "1 repository", "6 tasks".
std::string counted_units(AnalysisPlan::Unit unit, std::uint64_t n);

// As a registration holds it: every setting, decimals as texts; those that came later
// (multiplicity, bootstrap, weights, unit) where they are not the default, so that older
// registrations keep their bytes.  Reading fails with kInvalid and the member that is not as it
// should be.
Json to_json(const AnalysisPlan& plan);
Result<AnalysisPlan> analysis_plan_of(const Json& json);

// The pairs a - b that the plan compares, in its order, for these methods in theirs; `is_noop` says
// which methods are no-ops.
std::vector<std::pair<std::string, std::string>> contrasts_of(
    const AnalysisPlan& plan, const std::vector<std::string>& methods,
    const std::vector<bool>& is_noop);
}  // namespace proctor
