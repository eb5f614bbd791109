#pragma once
// Resampled tasks: random words, weighted sums, and the replicates that they make.
// Pure; thread-safe.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace proctor {
// Philox4x64-10 (Salmon et al. 2011), the counter-based generator that NumPy offers under this
// name: an auditor repeats every draw with
//   np.random.Philox(key=[seed, stream], counter=[0, replicate, 0, 0]).random_raw(count)
// A replicate depends on its number alone, so neither threads nor their order change a byte.

using PhiloxBlock = std::array<std::uint64_t, 4>;

// The block of one key and one counter.
PhiloxBlock philox(const PhiloxBlock& counter, const std::array<std::uint64_t, 2>& key);

// Purposes for which a campaign draws, apart from its plan: each has a stream of its own.
enum class Stream : std::uint64_t { kBootstrap = 1, kPermutation = 2, kExamples = 3 };

// The words of one replicate, in order.
class PhiloxWords {
 public:
  PhiloxWords(std::uint64_t seed, Stream stream, std::uint64_t replicate);
  std::uint64_t next();

 private:
  std::array<std::uint64_t, 2> key_;
  std::uint64_t replicate_;
  std::uint64_t block_ = 0;
  std::size_t at_ = 4;
  PhiloxBlock words_{};
};

// Sum of weight x value over tasks: the inner loop of resampling.

// Requires: |values| < 2^15; weights as one of the laws below draws them, or of 0 and 1.
using WeightedSum = std::int64_t(const std::int16_t* weights, const std::int16_t* values,
                                 std::size_t count);
std::int64_t weighted_sum_plain(const std::int16_t* weights, const std::int16_t* values,
                                std::size_t count);
// By the vector instructions of this machine, where it has some that are known here.
WeightedSum* best_weighted_sum();

// Resampling tasks with all their runs: how often each task is drawn in a replicate, and the sums
// of whole-number columns under those weights.  The same weights serve all methods, rows and
// statistics of a replicate, which makes differences, ranks and frontiers joint.  Everything is in
// integers: any machine and any number of threads gives the same bytes.

// The seed of every plan.
inline constexpr std::uint64_t kResampleSeed = 20260307;

// Up to this many tasks a replicate draws tasks with replacement; beyond it each task is drawn by
// Poisson's law of mean 1, whose standard error differs by less than 0.4 %.
inline constexpr std::size_t kMultinomialTasks = 4096;
// Tasks that a report can have.
inline constexpr std::size_t kMostTasks = std::size_t{1} << 20U;

enum class WeightLaw : std::uint8_t { kMultinomial, kPoisson };
WeightLaw weight_law(std::size_t tasks);
std::string_view name(WeightLaw law);

// How often each task is drawn in replicate `replicate`.  Requires: 0 < weights.size() <=
// kMostTasks.
void draw_weights(std::span<std::int16_t> weights, std::uint64_t replicate,
                  std::uint64_t seed = kResampleSeed);

// Columns over tasks, in strata: the tasks of a stratum stand together.
struct ResampleTable {
  std::vector<std::size_t> stratum_begin;          // first task of each stratum, ascending from 0
  std::vector<std::vector<std::int16_t>> columns;  // each as long as there are tasks, values >= 0
  std::size_t tasks() const { return columns.empty() ? 0 : columns.front().size(); }
  std::size_t strata() const { return stratum_begin.size(); }
};

// Sums of weight x value of every replicate, stratum and column, and the sum of weights.
class ResampledSums {
 public:
  ResampledSums(std::size_t draws, std::size_t strata, std::size_t columns);
  std::int64_t sum(std::size_t replicate, std::size_t stratum, std::size_t column) const {
    return sums_[index(replicate, stratum, column)];
  }
  std::int64_t weight(std::size_t replicate, std::size_t stratum) const {
    return sums_[index(replicate, stratum, columns_)];
  }
  std::span<std::int64_t> cells(std::size_t replicate, std::size_t stratum);
  std::size_t draws() const { return draws_; }
  // In the order (replicate, stratum, column), the weights as the last column: what an auditor
  // takes the digest of.
  std::span<const std::int64_t> all() const { return sums_; }

 private:
  std::size_t index(std::size_t replicate, std::size_t stratum, std::size_t column) const {
    return (replicate * strata_ + stratum) * (columns_ + 1) + column;
  }
  std::size_t draws_, strata_, columns_;
  std::vector<std::int64_t> sums_;
};

// Which code sums: the vector instructions of this machine, or plain code.  Both give equal sums.
enum class Kernel : std::uint8_t { kBest, kPlain };
// Replicates `first` and the `count` - 1 after it into `out`, whose cells are 0.  Threads that have
// ranges of their own may do this at once.
void resample(const ResampleTable& table, std::size_t first, std::size_t count, ResampledSums& out,
              Kernel kernel = Kernel::kBest, std::uint64_t seed = kResampleSeed);
}  // namespace proctor
