// Several comparisons at one level.
#include "coordinator/aggregate/family.h"

#include <algorithm>
#include <cmath>

#include "common/base/assert.h"
#include "common/stats/multiplicity.h"
#include "common/stats/resample.h"
#include "coordinator/aggregate/lattice.h"

namespace proctor::aggregate {
namespace {

using Multiplicity = AnalysisPlan::Multiplicity;

// Additions that a report may spend on all replicates of a family, and on asking what would turn
// one verdict: a second or two, and some tenths.
constexpr double kFamilyWork = 2e10, kQuestionWork = 1e9;

bool is_common(const TaskCell& a, const TaskCell& b) {
  return 0 < a.scorable && 0 < b.scorable;
}

Lattice lattice_of(const Sides& s) {
  Lattice out;
  for (std::size_t i = 0; i < s.a.size(); ++i)
    if (is_common(s.a[i], s.b[i])) {
      out.add(s.a[i].scorable);
      out.add(s.b[i].scorable);
    }
  return out;
}

// Of each task, 0 where one of the two has no scorable run: flipping its sign changes nothing.
// Where runs have no small common multiple they are rounded to 2^-15.
std::vector<std::int64_t> small_differences(const Sides& s) {
  constexpr double kTo15Bits = 1.0 / (1 << 15);
  const Lattice lattice = lattice_of(s);
  std::vector<std::int64_t> out(s.a.size());
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const TaskCell &a = s.a[i], &b = s.b[i];
    if (!is_common(a, b)) continue;
    const std::int64_t d = lattice.of(a.success, a.scorable) - lattice.of(b.success, b.scorable);
    out[i] = lattice.is_exact() ? d : std::llround(static_cast<double>(d) * kTo15Bits);
  }
  return out;
}

// Whole numbers below 2^30 over tasks, in limbs of 15 bits where one does not hold them.
class Columns {
 public:
  std::size_t add(const std::vector<std::int64_t>& values) {
    constexpr std::int64_t kLimb = std::int64_t{1} << 15U;
    const bool two = std::ranges::any_of(values, [](std::int64_t v) { return kLimb <= v; });
    at_.push_back({table_.columns.size(), two});
    for (int limb = 0; limb < (two ? 2 : 1); ++limb) {
      std::vector<std::int16_t> column;
      column.reserve(values.size());
      for (const std::int64_t value : values) {
        const std::int64_t v = std::min(value, kLimb * kLimb - 1);
        column.push_back(static_cast<std::int16_t>(limb == 0 ? v % kLimb : v / kLimb));
      }
      table_.columns.push_back(std::move(column));
    }
    return at_.size() - 1;
  }
  ResampledSums drawn(std::uint32_t draws) {
    table_.stratum_begin = {0};
    ResampledSums sums(draws, 1, table_.columns.size());
    resample(table_, 0, draws, sums);
    return sums;
  }
  double sum(const ResampledSums& sums, std::uint32_t replicate, std::size_t column) const {
    const auto [at, two] = at_[column];
    const std::int64_t low = sums.sum(replicate, 0, at);
    return static_cast<double>(two ? low + (sums.sum(replicate, 0, at + 1) << 15) : low);
  }

 private:
  ResampleTable table_;
  std::vector<std::pair<std::size_t, bool>> at_;
};

// The two rates of a contrast as sums over tasks: part / whole of each side.
struct RateColumns {
  std::size_t part_a = 0, whole_a = 0, part_b = 0, whole_b = 0;
  double unit = 1;
};

RateColumns columns_of(const Sides& s, const AnalysisPlan& plan, Columns& columns) {
  const Lattice lattice = lattice_of(s);
  const bool by_task = plan.estimand == AnalysisPlan::Estimand::kTaskMean;
  std::vector<std::int64_t> part_a, whole_a, part_b, whole_b;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const TaskCell &a = s.a[i], &b = s.b[i];
    const bool common = is_common(a, b);
    const auto put = [&](const TaskCell& c, std::vector<std::int64_t>& part,
                         std::vector<std::int64_t>& whole) {
      part.push_back(!common   ? 0
                     : by_task ? lattice.of(c.success, c.scorable)
                               : static_cast<std::int64_t>(c.success));
      whole.push_back(!common ? 0 : by_task ? 1 : static_cast<std::int64_t>(c.scorable));
    };
    put(a, part_a, whole_a);
    put(b, part_b, whole_b);
  }
  RateColumns out;
  out.unit = by_task ? static_cast<double>(lattice.unit()) : 1;
  out.part_a = columns.add(part_a);
  out.part_b = columns.add(part_b);
  out.whole_a = columns.add(whole_a);
  out.whole_b = by_task ? out.whole_a : columns.add(whole_b);
  return out;
}

}  // namespace

Family::Family(std::vector<Sides> sides, std::vector<double> p, Multiplicity rule)
    : sides_(std::move(sides)), p_(std::move(p)), rule_(rule) {
  PROCTOR_ASSERT(sides_.size() == p_.size());
  if (rule_ == Multiplicity::kMaxT)
    for (const Sides& s : sides_) differences_.push_back(small_differences(s));
}

std::vector<double> Family::adjusted() const {
  return rule_ == Multiplicity::kMaxT ? westfall_young(differences_).step_down : adjust_holm(p_);
}

double Family::adjusted(std::size_t at, const Sides& now, double p) const {
  if (rule_ == Multiplicity::kHolm) {
    std::vector<double> all = p_;
    all[at] = p;
    return adjust_holm(all)[at];
  }
  std::vector<std::vector<std::int64_t>> all = differences_;
  all[at] = small_differences(now);
  return westfall_young(all).step_down[at];
}

std::size_t Family::most_questions() const {
  constexpr std::size_t kMost = 256, kFewest = 8;
  if (rule_ == Multiplicity::kHolm || differences_.empty()) return kMost;
  const double family = static_cast<double>(differences_.size());
  const double each = kDrawnFlips * family * static_cast<double>(differences_.front().size());
  const double most = kQuestionWork / each / family;
  return most < kFewest ? 0 : static_cast<std::size_t>(std::min<double>(kMost, most));
}

MaxT joint_intervals(std::span<const Sides> sides, std::span<const Estimate> estimates,
                     const AnalysisPlan& plan) {
  PROCTOR_ASSERT(!sides.empty() && sides.size() == estimates.size());
  Columns columns;
  std::vector<RateColumns> of;
  std::vector<double> values, errors, replicates;
  std::size_t tasks = sides.front().a.size();
  for (std::size_t j = 0; j < sides.size(); ++j) {
    of.push_back(columns_of(sides[j], plan, columns));
    values.push_back(estimates[j].value.value_or(0));
    errors.push_back(estimates[j].standard_error.value_or(0));
    std::size_t common = 0;
    for (std::size_t i = 0; i < sides[j].a.size(); ++i)
      common += is_common(sides[j].a[i], sides[j].b[i]) ? 1 : 0;
    tasks = std::min(tasks, common);
  }
  const ResampledSums sums = columns.drawn(plan.draws);
  for (std::uint32_t b = 0; b < plan.draws; ++b)
    for (std::size_t j = 0; j < of.size(); ++j) {
      const auto sum = [&](std::size_t column) { return columns.sum(sums, b, column); };
      const double whole_a = sum(of[j].whole_a), whole_b = sum(of[j].whole_b);
      // A draw without any of its tasks says nothing about a contrast.
      replicates.push_back(0 < whole_a && 0 < whole_b
                               ? (sum(of[j].part_a) / whole_a - sum(of[j].part_b) / whole_b) /
                                     of[j].unit
                               : values[j]);
    }
  return max_t(values, errors, replicates, tasks, plan.alpha.real());
}

Adjustment adjustment_for(std::span<const Contrast> contrasts, std::size_t tasks,
                          const AnalysisPlan& plan) {
  Adjustment out;
  std::size_t fewest = tasks, family = 0;
  for (const Contrast& c : contrasts) {
    if (!c.flips) continue;
    ++family;
    fewest = std::min<std::size_t>(fewest, c.tasks);
  }
  if (plan.multiplicity == Multiplicity::kHolm || family == 0) return out;
  const double work = static_cast<double>(family) * static_cast<double>(tasks) *
                      static_cast<double>(kDrawnFlips + plan.draws);
  if (fewest < kMaxTTasks)
    out.instead = Adjustment::Instead::kFewTasks;
  else if (kMostTasks < tasks || kFamilyWork < work)
    out.instead = Adjustment::Instead::kTooLarge;
  else
    out.used = Multiplicity::kMaxT;
  return out;
}

}  // namespace proctor::aggregate
