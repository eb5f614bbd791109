#include "common/stats/heterogeneity.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {
using Groups = std::vector<std::vector<double>>;

// Values with the strata's sizes: how far the strata lie apart under any arrangement.
class Arrangement {
 public:
  explicit Arrangement(const Groups& groups) {
    for (std::size_t h = 0; h < groups.size(); ++h) {
      values_.insert(values_.end(), groups[h].begin(), groups[h].end());
      labels_.insert(labels_.end(), groups[h].size(), h);
      sizes_.push_back(static_cast<double>(groups[h].size()));
    }
    // Sums of squares of deviations: what is added to all values would cost digits.
    const double mean = mean_of(values_);
    for (double& v : values_) v -= mean;
  }
  double between() const {
    std::vector<double> sums(sizes_.size(), 0.0);
    for (std::size_t i = 0; i < values_.size(); ++i) sums[labels_[i]] += values_[i];
    double out = 0;
    for (std::size_t h = 0; h < sums.size(); ++h) out += sums[h] * sums[h] / sizes_[h];
    return out;
  }
  bool next() { return std::ranges::next_permutation(labels_).found; }
  void sort() { std::ranges::sort(labels_); }
  std::vector<std::size_t>& labels() { return labels_; }
  // Number of arrangements; nothing above `limit`.
  std::optional<std::uint64_t> count(std::uint64_t limit) const {
    double out = 1, placed = 0;
    for (const double size : sizes_)
      for (double i = 1; i <= size; i += 1) {
        out = out * (placed += 1) / i;
        if (static_cast<double>(limit) * 2 < out) return std::nullopt;
      }
    const auto whole = static_cast<std::uint64_t>(std::llround(out));
    return whole <= limit ? std::optional(whole) : std::nullopt;
  }

 private:
  std::vector<double> values_;
  std::vector<std::size_t> labels_;
  std::vector<double> sizes_;
};

void shuffle(std::vector<std::size_t>& labels, PhiloxWords& words) {
  for (std::size_t i = labels.size(); 1 < i; --i)
    std::swap(labels[i - 1], labels[static_cast<std::size_t>(((words.next() >> 32U) * i) >> 32U)]);
}
}  // namespace

std::optional<Significance> heterogeneity(std::span<const std::vector<double>> strata,
                                          std::uint64_t seed) {
  Groups groups;
  for (const std::vector<double>& s : strata)
    if (!s.empty()) groups.push_back(s);
  if (groups.size() < 2) return std::nullopt;
  Arrangement a(groups);
  const double seen = a.between();
  if (!(0 < seen)) return std::nullopt;
  // Arrangements that lie as far apart differ in the last bits of their sums.
  const double least = seen * (1 - 1e-12);
  std::uint64_t far = 0;
  if (const auto all = a.count(kExactArrangements)) {
    a.sort();
    do far += least <= a.between() ? 1 : 0;
    while (a.next());
    return Significance{seen, static_cast<double>(far) / static_cast<double>(*all), {}, true};
  }
  for (std::uint32_t b = 0; b < kDrawnArrangements; ++b) {
    a.sort();
    PhiloxWords words(seed, Stream::kPermutation, b);
    shuffle(a.labels(), words);
    far += least <= a.between() ? 1 : 0;
  }
  return Significance{
      seen, static_cast<double>(far + 1) / static_cast<double>(kDrawnArrangements + 1), {}, false};
}

// Trends in time, and association with groups.

namespace {
// The form of a symmetric matrix that is not negative: its pivots are eliminated largest first, and
// what is 0 but for rounding is left out, with its row.
struct Quadratic {
  double value = 0;  // v' M^- v
  std::size_t rank = 0;
};

Quadratic inverse_form(std::vector<std::vector<double>> m, std::vector<double> v) {
  constexpr double kRounding = 1e-9;
  Quadratic out;
  double largest = 0;
  for (std::size_t i = 0; i < v.size(); ++i) largest = std::max(largest, m[i][i]);
  std::vector<bool> used(v.size(), false);
  for (std::size_t step = 0; step < v.size(); ++step) {
    std::size_t pivot = v.size();
    for (std::size_t i = 0; i < v.size(); ++i)
      if (!used[i] && (pivot == v.size() || m[pivot][pivot] < m[i][i])) pivot = i;
    if (m[pivot][pivot] <= kRounding * largest) break;
    used[pivot] = true;
    ++out.rank;
    out.value += square(v[pivot]) / m[pivot][pivot];
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (used[i]) continue;
      const double factor = m[i][pivot] / m[pivot][pivot];
      v[i] -= factor * v[pivot];
      for (std::size_t j = 0; j < v.size(); ++j) m[i][j] -= factor * m[pivot][j];
    }
  }
  return out;
}

// Runs of one stratum stand together, in the order given.
template <class Run>
std::vector<const Run*> sorted_by_stratum(std::span<const Run> runs) {
  std::vector<const Run*> out;
  out.reserve(runs.size());
  for (const Run& run : runs) out.push_back(&run);
  std::ranges::stable_sort(out, {}, [](const Run* run) { return run->stratum; });
  return out;
}

// Calls `visit` with the runs of each stratum.
template <class Run, class Visit>
void each_stratum(std::span<const Run> runs, const Visit& visit) {
  const std::vector<const Run*> sorted = sorted_by_stratum(runs);
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end]->stratum == sorted[begin]->stratum) ++end;
    visit(std::span(sorted).subspan(begin, end - begin));
  }
}

template <class Run>
double successes_of(std::span<const Run* const> runs) {
  double sum = 0;
  for (const Run* run : runs) sum += run->success ? 1 : 0;
  return sum;
}
}  // namespace

Trend stratified_trend(std::span<const TimedOutcome> runs) {
  Trend out;
  double covered = 0, times = 0, variance = 0;
  bool has_two = false;
  each_stratum(runs, [&](std::span<const TimedOutcome* const> of) {
    const double n = static_cast<double>(of.size());
    if (of.size() < 2) return;
    has_two = true;
    const double rate = successes_of(of) / n;
    double mean = 0;
    for (const TimedOutcome* run : of) mean += run->at / n;
    double together = 0, spread = 0;
    for (const TimedOutcome* run : of) {
      together += ((run->success ? 1 : 0) - rate) * (run->at - mean);
      spread += square(run->at - mean);
    }
    times += spread;
    covered += together;
    // Of the sum, were the outcomes dealt out anew among the stratum's times.
    const double here = n * rate * (1 - rate) * spread / (n - 1);
    variance += here;
    out.strata += 0 < here ? 1 : 0;
  });
  if (0 < times) out.slope = covered / times;
  if (!(0 < variance)) {
    out.why = runs.empty() ? Why::kNothing : has_two ? Why::kNoVariance : Why::kTooFew;
    return out;
  }
  const double statistic = covered * covered / variance;
  out.test = Significance{statistic, chi_squared_upper_tail(statistic, 1), 1, false};
  return out;
}

Association stratified_association(std::span<const GroupedOutcome> runs, std::size_t groups) {
  PROCTOR_ASSERT(groups <= kMostGroups);
  Association out;
  out.groups.resize(groups);
  std::vector<double> excess(groups, 0.0), size(groups, 0.0);
  std::vector<std::vector<double>> covariance(groups, std::vector<double>(groups, 0.0));
  bool has_two = false;
  std::vector<std::uint32_t> here;  // groups that have a run of the stratum
  each_stratum(runs, [&](std::span<const GroupedOutcome* const> of) {
    const double n = static_cast<double>(of.size()), s = successes_of(of);
    for (const std::uint32_t g : here) size[g] = 0;
    here.clear();
    for (const GroupedOutcome* run : of) {
      PROCTOR_ASSERT(run->group < groups);
      GroupTally& tally = out.groups[run->group];
      ++tally.runs;
      tally.successes += run->success ? 1 : 0;
      tally.expected += s / n;
      if (size[run->group] == 0) here.push_back(run->group);
      size[run->group] += 1;
      excess[run->group] += (run->success ? 1 : 0) - s / n;
    }
    if (of.size() < 2) return;
    has_two = true;
    const double scale = s * (n - s) / (n * n * (n - 1));
    if (!(0 < scale) || here.size() < 2) return;
    ++out.strata;
    for (const std::uint32_t i : here) {
      covariance[i][i] += scale * n * size[i];
      for (const std::uint32_t j : here) covariance[i][j] -= scale * size[i] * size[j];
    }
  });
  if (out.strata == 0) {
    out.why = runs.empty() ? Why::kNothing : has_two ? Why::kNoVariance : Why::kTooFew;
    return out;
  }
  const Quadratic q = inverse_form(covariance, excess);
  const double df = static_cast<double>(q.rank);
  out.test = Significance{q.value, chi_squared_upper_tail(q.value, df), df, false};
  return out;
}
}  // namespace proctor
