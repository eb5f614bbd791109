// Several comparisons at one level.
#include "coordinator/aggregate/family.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "common/base/result.h"
#include "common/stats/paired.h"
#include "common/stats/resample.h"
#include "common/stats/simultaneous.h"
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

void round_to(WholeDifferences& whole, double largest) {
  double now = 0;
  for (const std::int64_t d : whole.of) now = std::max(now, std::fabs(static_cast<double>(d)));
  if (now <= largest) return;
  whole.exact = false;
  for (std::int64_t& d : whole.of) d = std::llround(static_cast<double>(d) * (largest / now));
}

// By runs: the score of "all runs of both have one rate p", p being the rate of them all, which is
// (s_a - n_a p) / N_a - (s_b - n_b p) / N_b at a task.  Scores sum to the difference whatever p is;
// where the two have equal shares of their runs at each task they are multiples of its differences,
// and elsewhere their flips are the test of Hemerik, Goeman & Finos (2020).
WholeDifferences run_scores(const Sides& s) {
  double runs_a = 0, runs_b = 0, won = 0, most = 0;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    if (!is_common(s.a[i], s.b[i])) continue;
    runs_a += static_cast<double>(s.a[i].scorable);
    runs_b += static_cast<double>(s.b[i].scorable);
    won += static_cast<double>(s.a[i].success + s.b[i].success);
    most = std::max(most, static_cast<double>(std::max(s.a[i].scorable, s.b[i].scorable)));
  }
  // Whole doubles while all products are below 2^53; scaled to that where they are not.
  constexpr double kWhole = 0x1p53;
  const double runs = runs_a + runs_b, largest = most * runs * runs;
  WholeDifferences out{{}, largest < kWhole};
  const double scale = out.exact ? 1 : kWhole / largest;
  std::int64_t unit = 0;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const auto excess = [&](const TaskCell& c) {
      return static_cast<double>(c.success) * runs - static_cast<double>(c.scorable) * won;
    };
    out.of.push_back(is_common(s.a[i], s.b[i])
                         ? std::llround((excess(s.a[i]) * runs_b - excess(s.b[i]) * runs_a) * scale)
                         : 0);
    unit = std::gcd(unit, out.of.back());
  }
  if (1 < unit)
    for (std::int64_t& d : out.of) d /= unit;
  out.of = block_sums(std::move(out.of), s.blocks);
  return out;
}

// Additions that flipping these signs exactly takes.
double flip_work(const std::vector<std::int64_t>& differences) {
  double reach = 0, steps = 0;
  for (const std::int64_t d : differences) {
    reach += std::fabs(static_cast<double>(d));
    steps += d == 0 ? 0 : 1;
  }
  return reach * steps;
}

// Whole numbers over blocks, in as many limbs of 15 bits as hold them.
class Columns {
 public:
  std::size_t add(std::vector<std::int64_t> values) {
    constexpr std::int64_t kLimb = std::int64_t{1} << 15U;
    at_.push_back({table_.columns.size(), 0});
    do {
      std::vector<std::int16_t> column;
      column.reserve(values.size());
      for (std::int64_t& value : values) {
        column.push_back(static_cast<std::int16_t>(value % kLimb));
        value /= kLimb;
      }
      table_.columns.push_back(std::move(column));
      ++at_.back().second;
    } while (std::ranges::any_of(values, [](std::int64_t v) { return 0 < v; }));
    return at_.size() - 1;
  }
  ResampledSums drawn(std::uint32_t draws) {
    table_.stratum_begin = {0};
    ResampledSums sums(draws, 1, table_.columns.size());
    resample(table_, 0, draws, sums);
    return sums;
  }
  double sum(const ResampledSums& sums, std::uint32_t replicate, std::size_t column) const {
    const auto [at, limbs] = at_[column];
    std::int64_t out = 0;
    for (std::size_t limb = limbs; 0 < limb--;)
      out = (out << 15) + sums.sum(replicate, 0, at + limb);
    return static_cast<double>(out);
  }

 private:
  ResampleTable table_;
  std::vector<std::pair<std::size_t, std::size_t>> at_;  // the first of each, and how many
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
  const auto add = [&](std::vector<std::int64_t>& of_tasks) {
    return columns.add(block_sums(std::move(of_tasks), s.blocks));
  };
  out.part_a = add(part_a);
  out.part_b = add(part_b);
  out.whole_a = add(whole_a);
  out.whole_b = by_task ? out.whole_a : add(whole_b);
  return out;
}

}  // namespace

Weighing weighing_of(const AnalysisPlan& plan) {
  return plan.estimand == AnalysisPlan::Estimand::kTaskMean ? Weighing::kTasks : Weighing::kRuns;
}

std::span<const std::uint32_t> blocks_of(const AnalysisPlan& plan,
                                         std::span<const std::uint32_t> repositories) {
  return plan.is_over_repositories() ? repositories : std::span<const std::uint32_t>();
}

std::vector<std::int64_t> block_sums(std::vector<std::int64_t> of_tasks,
                                     std::span<const std::uint32_t> blocks) {
  if (blocks.empty()) return of_tasks;
  std::map<std::uint32_t, std::int64_t> sums;
  for (std::size_t i = 0; i < blocks.size(); ++i) sums[blocks[i]] += of_tasks[i];
  std::vector<std::int64_t> out;
  for (const auto& [block, sum] : sums) out.push_back(sum);
  return out;
}

WholeDifferences whole_differences(const Sides& s, Weighing weighing) {
  // Scores of unequal runs are large numbers: a thousandth of the largest is near enough then.
  constexpr double kExactWork = 0x1p24, kRounded = 0x1p10;
  if (weighing == Weighing::kRuns) {
    WholeDifferences out = run_scores(s);
    if (kExactWork < flip_work(out.of)) round_to(out, kRounded);
    return out;
  }
  const Lattice lattice = lattice_of(s);
  WholeDifferences out{{}, lattice.is_exact()};
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const TaskCell &a = s.a[i], &b = s.b[i];
    out.of.push_back(is_common(a, b)
                         ? lattice.of(a.success, a.scorable) - lattice.of(b.success, b.scorable)
                         : 0);
  }
  out.of = block_sums(std::move(out.of), s.blocks);
  return out;
}

Significance flips_of(const Sides& sides, Weighing weighing) {
  const WholeDifferences whole = whole_differences(sides, weighing);
  Significance out = sign_flip(whole.of);
  out.exact = out.exact && whole.exact;
  return out;
}

namespace {

// Common flips need them below 2^15.
std::vector<std::int64_t> small_differences(const Sides& s, Weighing weighing) {
  WholeDifferences out =
      weighing == Weighing::kRuns ? run_scores(s) : whole_differences(s, weighing);
  round_to(out, (1 << 15) - 1);
  return std::move(out.of);
}

}  // namespace

Family::Family(std::vector<Sides> sides, std::vector<double> p, Multiplicity rule,
               Weighing weighing)
    : sides_(std::move(sides)), p_(std::move(p)), rule_(rule), weighing_(weighing) {
  PROCTOR_ASSERT(sides_.size() == p_.size());
  if (rule_ == Multiplicity::kMaxT)
    for (const Sides& s : sides_) differences_.push_back(small_differences(s, weighing_));
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
  all[at] = small_differences(now, weighing_);
  return westfall_young(all).step_down[at];
}

std::size_t Family::most_questions(std::size_t at) const {
  constexpr std::size_t kMost = 256, kFewest = 8;
  constexpr double kFlipWork = 0x1p28;
  if (rule_ == Multiplicity::kHolm &&
      (weighing_ == Weighing::kRuns || !sides_[at].blocks.empty())) {
    // Each outcome moves the score of every task, or that of a block: all signs are flipped anew.
    const double each = std::max(1.0, flip_work(whole_differences(sides_[at], weighing_).of));
    return static_cast<std::size_t>(
        std::clamp<double>(kFlipWork / each, static_cast<double>(kFewest), kMost));
  }
  if (rule_ == Multiplicity::kHolm || differences_.empty()) return kMost;
  const double family = static_cast<double>(differences_.size());
  const double each = kDrawnFlips * family * static_cast<double>(differences_.front().size());
  const double most = kQuestionWork / each / family;
  return most < kFewest ? 0 : static_cast<std::size_t>(std::min<double>(kMost, most));
}

MaxT joint_intervals(std::span<const Sides> sides, std::span<const Estimate> estimates,
                     std::size_t units, const AnalysisPlan& plan) {
  PROCTOR_ASSERT(!sides.empty() && sides.size() == estimates.size());
  Columns columns;
  std::vector<RateColumns> of;
  std::vector<double> values, errors, replicates;
  for (std::size_t j = 0; j < sides.size(); ++j) {
    of.push_back(columns_of(sides[j], plan, columns));
    values.push_back(estimates[j].value.value_or(0));
    errors.push_back(estimates[j].standard_error.value_or(0));
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
  return max_t(values, errors, replicates, units, plan.alpha.real());
}

Adjustment adjustment_for(std::span<const Contrast> contrasts, std::size_t tasks,
                          const AnalysisPlan& plan) {
  Adjustment out;
  out.units = unit_words(plan);
  std::size_t fewest = tasks, family = 0;
  for (const Contrast& c : contrasts) {
    if (!c.flips) continue;
    ++family;
    fewest = std::min<std::size_t>(fewest, c.units);
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
