#include "common/stats/simultaneous.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "common/base/result.h"
#include "common/stats/amounts.h"

namespace proctor {
namespace {
std::vector<std::size_t> ascending(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  return order;
}
}  // namespace

std::vector<double> adjust_holm(std::span<const double> p) {
  const std::vector<std::size_t> order = ascending(p);
  std::vector<double> out(p.size());
  double below = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    below = std::max(below, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    out[order[i]] = below;
  }
  return out;
}

std::vector<RankSet> rank_sets(std::span<const std::optional<Interval>> differences,
                               std::size_t methods) {
  PROCTOR_ASSERT(differences.size() == methods * methods);
  std::vector<RankSet> out;
  for (std::size_t i = 0; i < methods; ++i) {
    RankSet ranks{1, methods};
    for (std::size_t j = 0; j < methods; ++j) {
      const std::optional<Interval>& d = differences[i * methods + j];
      if (i == j || !d) continue;
      if (d->high < 0) ++ranks.best;
      if (0 < d->low) --ranks.worst;
    }
    out.push_back(ranks);
  }
  return out;
}

namespace {
__extension__ typedef unsigned __int128 Wide;

// |sum| / sqrt(squares) of one contrast under one assignment of signs, compared without rounding:
// ties between flips are frequent and must count.
struct Statistic {
  std::uint64_t sum = 0;      // |sum|, at most 2^35
  std::uint64_t squares = 0;  // at most 2^50
};
bool at_least(const Statistic& a, const Statistic& b) {
  // A contrast of zeros is never larger than another.
  if (a.squares == 0 || b.squares == 0) return b.squares == 0;
  return Wide{b.sum} * b.sum * a.squares <= Wide{a.sum} * a.sum * b.squares;
}

std::uint64_t magnitude(std::int64_t x) {
  return x < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
}

// The bits of a word, low ones first, from `at` on, as far as there are tasks.
void spread_bits(std::uint64_t word, std::vector<std::int16_t>& minus, std::size_t at) {
  using Eight = std::array<std::int16_t, 8>;
  static const std::vector<Eight> bits_of_byte = [] {
    std::vector<Eight> out(256);
    for (unsigned byte = 0; byte < 256; ++byte)
      for (unsigned i = 0; i < 8; ++i) out[byte][i] = static_cast<std::int16_t>(byte >> i & 1U);
    return out;
  }();
  for (std::size_t end = std::min(minus.size(), at + 64); at < end; word >>= 8U) {
    const Eight& bits = bits_of_byte[word & 0xFFU];
    const std::size_t count = std::min<std::size_t>(bits.size(), end - at);
    std::copy_n(bits.begin(), count, minus.begin() + static_cast<std::ptrdiff_t>(at));
    at += count;
  }
}

class Flips {
 public:
  explicit Flips(std::span<const std::vector<std::int64_t>> contrasts)
      : dot_(best_weighted_sum()), flipped_(contrasts.size()) {
    for (const std::vector<std::int64_t>& d : contrasts) {
      std::int64_t sum = 0;
      std::uint64_t squares = 0;
      for (const std::int64_t x : d) {
        sum += x;
        squares += magnitude(x) * magnitude(x);
      }
      seen_.push_back({magnitude(sum), squares});
      sums_.push_back(sum);
      narrow_.emplace_back(d.begin(), d.end());
    }
    order_.resize(contrasts.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
      return at_least(seen_[a], seen_[b]) && !at_least(seen_[b], seen_[a]);
    });
    down_.resize(contrasts.size());
  }

  // One assignment: 1 for each task that changes its sign, else 0.
  void count(const std::vector<std::int16_t>& minus) {
    for (std::size_t j = 0; j < narrow_.size(); ++j) {
      const std::int64_t sum = sums_[j] - 2 * dot_(minus.data(), narrow_[j].data(), minus.size());
      flipped_[j] = {magnitude(sum), seen_[j].squares};
    }
    // From the smallest statistic upwards: the largest of those not larger than the contrast's own.
    Statistic largest;
    for (std::size_t at = order_.size(); at-- > 0;) {
      const std::size_t j = order_[at];
      if (at_least(flipped_[j], largest)) largest = flipped_[j];
      down_[j] += at_least(largest, seen_[j]) ? 1 : 0;
    }
  }

  std::vector<double> result(std::uint64_t flips, std::uint64_t identity) const {
    std::vector<double> out(narrow_.size());
    double above = 0;
    for (const std::size_t j : order_) {
      above = std::max(
          above, static_cast<double>(down_[j] + identity) / static_cast<double>(flips + identity));
      out[j] = above;
    }
    return out;
  }

 private:
  WeightedSum* dot_;
  std::vector<std::vector<std::int16_t>> narrow_;  // the contrasts
  std::vector<std::int64_t> sums_;
  std::vector<Statistic> seen_, flipped_;
  std::vector<std::size_t> order_;  // by falling statistic
  std::vector<std::uint64_t> down_;
};
}  // namespace

MaxT max_t(std::span<const double> estimates, std::span<const double> errors,
           std::span<const double> replicates, std::size_t tasks, double alpha) {
  const std::size_t family = estimates.size();
  PROCTOR_ASSERT(0 < family && errors.size() == family && 2 <= tasks);
  PROCTOR_ASSERT(!replicates.empty() && replicates.size() % family == 0);
  MaxT out;
  out.intervals.resize(family);
  if (std::ranges::none_of(errors, [](double se) { return 0 < se; })) return out;
  std::vector<double> largest;
  for (std::size_t b = 0; b < replicates.size(); b += family) {
    double most = 0;
    for (std::size_t j = 0; j < family; ++j)
      if (0 < errors[j])
        most = std::max(most, std::fabs(replicates[b + j] - estimates[j]) / errors[j]);
    largest.push_back(most);
  }
  const double n = static_cast<double>(tasks);
  out.critical = *real_quantile(std::move(largest), 1 - alpha) * std::sqrt(n / (n - 1));
  for (std::size_t j = 0; j < family; ++j)
    if (const double half = out.critical * errors[j]; 0 < errors[j])
      out.intervals[j] = Interval{estimates[j] - half, estimates[j] + half};
  return out;
}

std::vector<double> westfall_young(std::span<const std::vector<std::int64_t>> contrasts,
                                   std::uint64_t seed) {
  if (contrasts.empty()) return {};
  const std::size_t tasks = contrasts.front().size();
  PROCTOR_ASSERT(tasks <= kMostTasks);
  for (const auto& d : contrasts) {
    PROCTOR_ASSERT(d.size() == tasks);
    for (const std::int64_t x : d) PROCTOR_ASSERT(magnitude(x) < (std::uint64_t{1} << 15U));
  }
  Flips flips(contrasts);
  std::vector<std::int16_t> minus(tasks);
  if (tasks <= kExactFlipTasks) {
    const std::uint64_t all = std::uint64_t{1} << tasks;
    for (std::uint64_t signs = 0; signs < all; ++signs) {
      spread_bits(signs, minus, 0);
      flips.count(minus);
    }
    return flips.result(all, 0);
  }
  for (std::uint32_t b = 0; b < kDrawnFlips; ++b) {
    PhiloxWords words(seed, Stream::kPermutation, b);
    for (std::size_t at = 0; at < tasks; at += 64) spread_bits(words.next(), minus, at);
    flips.count(minus);
  }
  return flips.result(kDrawnFlips, 1);
}
}  // namespace proctor
