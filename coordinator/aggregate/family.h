#pragma once
// The comparisons of a plan as one family: p values that are adjusted together, intervals that hold
// together, and outcomes that would turn a verdict.  Private to the room.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "common/stats/simultaneous.h"
#include "coordinator/aggregate/analysis.h"

namespace proctor::aggregate {
// Shares of tasks as whole numbers of one unit: exact while the numbers of runs have a small common
// multiple, and to 2^-30 beyond.
class Lattice {
 public:
  void add(std::uint64_t runs) {
    if (runs != 0 && unit_ <= kExact) unit_ = std::lcm(unit_, runs);
  }
  bool is_exact() const { return unit_ <= kExact; }
  std::int64_t unit() const { return is_exact() ? static_cast<std::int64_t>(unit_) : kFine; }
  std::int64_t of(std::uint64_t part, std::uint64_t runs) const {
    if (is_exact()) return static_cast<std::int64_t>(unit_ / runs * part);
    return std::llround(static_cast<double>(part) / static_cast<double>(runs) *
                        static_cast<double>(kFine));
  }

 private:
  static constexpr std::uint64_t kExact = (std::uint64_t{1} << 15U) - 1;
  static constexpr std::int64_t kFine = std::int64_t{1} << 30U;
  std::uint64_t unit_ = 1;
};

// The two columns of a contrast, tasks in the same order; they outlive what is made of them.
struct Sides {
  std::span<const TaskCell> a, b;
  // The block of each task, whose sign is flipped and which is drawn as one; empty: each is its
  // own.
  std::span<const std::uint32_t> blocks{};
};

Weighing weighing_of(const AnalysisPlan& plan);
// The plan's blocks, where `repositories` are known.
std::span<const std::uint32_t> blocks_of(const AnalysisPlan& plan,
                                         std::span<const std::uint32_t> repositories);
// Sums over the tasks of each block, in the order of its number.
std::vector<std::int64_t> block_sums(std::vector<std::int64_t> of_tasks,
                                     std::span<const std::uint32_t> blocks);

// What each block adds to the difference, in whole numbers of one unit whose signs are flipped; a
// task where one side has no scorable run adds 0.  Their sum has the sign of the difference by
// `weighing`.
struct WholeDifferences {
  std::vector<std::int64_t> of;
  bool exact = true;  // false: rounded
};
WholeDifferences whole_differences(const Sides& sides, Weighing weighing);
// The sign-flip test of the estimand.
Significance flips_of(const Sides& sides, Weighing weighing);

// The contrasts that have a p, in their order, adjusted as `rule` says.
class Family {
 public:
  Family(std::vector<Sides> sides, std::vector<double> p, AnalysisPlan::Multiplicity rule,
         Weighing weighing);

  std::vector<double> adjusted() const;
  // Of contrast `at`, had it these cells and this p, the others as they are.
  double adjusted(std::size_t at, const Sides& now, double p) const;
  // Else the p of a contrast's own sign flips is not looked at.
  bool asks_for_p() const { return rule_ == AnalysisPlan::Multiplicity::kHolm; }
  // How often that may be asked for contrast `at` and one direction before a report takes long;
  // 0: a single time takes too long.
  std::size_t most_questions(std::size_t at) const;

 private:
  std::vector<Sides> sides_;
  std::vector<double> p_;
  AnalysisPlan::Multiplicity rule_;
  Weighing weighing_;
  std::vector<std::vector<std::int64_t>> differences_;  // of max_t: by contrast and block
};

// By joint replicates of the blocks: all contrasts under the same weights.  `units`: the fewest
// that one of them has.
MaxT joint_intervals(std::span<const Sides> sides, std::span<const Estimate> estimates,
                     std::size_t units, const AnalysisPlan& plan);

// What the plan's rule comes to for these contrasts, in whose order `sides` are.
Adjustment adjustment_for(std::span<const Contrast> contrasts, std::size_t tasks,
                          const AnalysisPlan& plan);

// How many outcomes that nobody knows would turn the verdict of contrast `at` of the family; what
// is known of the others stays as it is.  Requires: columns of equal length; `verdict` is what they
// show at the family's adjustment.
Tipping tipping_of(const Sides& sides, const AnalysisPlan& plan, const Family& family,
                   std::size_t at, ContrastVerdict verdict);
}  // namespace proctor::aggregate
