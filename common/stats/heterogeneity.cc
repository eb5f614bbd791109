#include "common/stats/heterogeneity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/stats/distributions.h"
#include "common/stats/moments.h"

namespace proctor {
namespace {

using Groups = std::vector<std::vector<double>>;

void meta_analysis(const Groups& groups, Heterogeneity& out) {
  double weights = 0, squares = 0, sum = 0;
  std::vector<double> weight, mean;
  for (const std::vector<double>& g : groups) {
    if (g.size() < 2 || !(0 < variance_of(g))) {
      out.why = Why::kNoVariance;
      return;
    }
    weight.push_back(static_cast<double>(g.size()) / variance_of(g));
    mean.push_back(mean_of(g));
    weights += weight.back();
    squares += weight.back() * weight.back();
    sum += weight.back() * mean.back();
  }
  const double df = static_cast<double>(groups.size() - 1), centre = sum / weights;
  double q = 0, unequal = 0;
  for (std::size_t h = 0; h < groups.size(); ++h) {
    q += weight[h] * square(mean[h] - centre);
    unequal += square(1 - weight[h] / weights) / static_cast<double>(groups[h].size() - 1);
  }
  out.q = Significance{q, chi_squared_upper_tail(q, df), df, false};
  out.i_squared = 0 < q ? std::max(0.0, (q - df) / q) : 0;
  out.tau_squared = std::max(0.0, (q - df) / (weights - squares / weights));
  const double k = df + 1, spread = k * k - 1;
  const double f = q / df / (1 + 2 * (k - 2) / spread * unequal), df2 = spread / (3 * unequal);
  out.welch = Significance{f, f_upper_tail(f, df, df2), df2, false};
}

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

std::optional<Significance> permute(const Groups& groups, std::uint64_t seed) {
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

}  // namespace

Heterogeneity heterogeneity(std::span<const std::vector<double>> strata, std::uint64_t seed) {
  Groups groups;
  for (const std::vector<double>& s : strata)
    if (!s.empty()) groups.push_back(s);
  Heterogeneity out;
  if (groups.size() < 2) {
    out.why = Why::kTooFew;
    return out;
  }
  meta_analysis(groups, out);
  out.permutation = permute(groups, seed);
  return out;
}

}  // namespace proctor
