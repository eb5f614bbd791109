#include "common/stats/sequential.h"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "common/base/result.h"
#include "common/stats/distributions.h"

namespace proctor {
namespace {
// Beyond so many standard deviations a density is 0 in double precision.
constexpr double kFar = 12;
constexpr unsigned kNodes = 20;

// A grid of Gauss-Legendre panels, each at most `width` wide: the density of a look is smooth on
// the scale of the increment, so such panels are exact to the last digits.
struct Grid {
  std::vector<double> at, weight;
};
Grid grid(double low, double high, double width) {
  using Rule = boost::math::quadrature::gauss<double, kNodes>;
  Grid out;
  const auto panels = static_cast<std::size_t>(std::ceil((high - low) / width));
  const double half = (high - low) / static_cast<double>(std::max<std::size_t>(1, panels)) / 2;
  for (std::size_t p = 0; p < panels; ++p) {
    const double centre = low + half * (2 * static_cast<double>(p) + 1);
    for (std::size_t i = Rule::abscissa().size(); i-- > 0;) {
      out.at.push_back(centre - half * Rule::abscissa()[i]);
      out.weight.push_back(half * Rule::weights()[i]);
    }
    for (std::size_t i = 0; i < Rule::abscissa().size(); ++i) {
      out.at.push_back(centre + half * Rule::abscissa()[i]);
      out.weight.push_back(half * Rule::weights()[i]);
    }
  }
  return out;
}

double normal_density(double x) {
  return std::exp(-x * x / 2) * 0.39894228040143267794;
}

double upper_tail(double x) {
  return std::erfc(x * 0.70710678118654752440) / 2;
}

// The score process B(t) = Z sqrt(t), with mean drift x t: its density among those that went on.
class Process {
 public:
  explicit Process(double drift) : drift_(drift) {}

  // The chances of passing a look at `fraction` beyond these bounds of Z.
  LookChance chances(double fraction, const LookBounds& bounds) const {
    const Step s = step_to(fraction);
    const double root = std::sqrt(fraction);
    LookChance out;
    for (std::size_t i = 0; i < grid_.at.size(); ++i) {
      const double mass = grid_.weight[i] * density_[i], from = grid_.at[i] + s.mean;
      if (bounds.high) out.high += mass * upper_tail((*bounds.high * root - from) / s.deviation);
      if (bounds.low) out.low += mass * upper_tail((from - *bounds.low * root) / s.deviation);
    }
    return out;
  }

  // Goes on past a look with these bounds.
  void pass(double fraction, const LookBounds& bounds) {
    const Step s = step_to(fraction);
    const double root = std::sqrt(fraction), far = kFar * root, mean = drift_ * fraction;
    const double low = std::max(mean - far, bounds.low ? *bounds.low * root : mean - far);
    const double high = std::min(mean + far, bounds.high ? *bounds.high * root : mean + far);
    Grid next = low < high ? grid(low, high, 2 * s.deviation) : Grid{};
    std::vector<double> density(next.at.size(), 0.0);
    for (std::size_t j = 0; j < next.at.size(); ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < grid_.at.size(); ++i)
        sum += grid_.weight[i] * density_[i] *
               normal_density((next.at[j] - grid_.at[i] - s.mean) / s.deviation);
      density[j] = sum / s.deviation;
    }
    grid_ = std::move(next);
    density_ = std::move(density);
    fraction_ = fraction;
  }

 private:
  struct Step {
    double mean = 0, deviation = 0;
  };
  Step step_to(double fraction) const {
    PROCTOR_ASSERT(fraction_ < fraction && fraction <= 1);
    return {drift_ * (fraction - fraction_), std::sqrt(fraction - fraction_)};
  }

  double drift_;
  double fraction_ = 0;
  // Before the first look everything stands at 0.
  Grid grid_{{0.0}, {1.0}};
  std::vector<double> density_{1.0};
};

// The x in [low, high] at which a falling function is 0, to the last digits.
template <class F>
double falling_root(double low, double high, const F& f) {
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || high <= middle) break;
    (0 < f(middle) ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

LookBounds symmetric(double z) {
  return {-z, z};
}
}  // namespace

std::vector<LookChance> look_chances(std::span<const double> fractions,
                                     std::span<const LookBounds> bounds, double drift) {
  PROCTOR_ASSERT(fractions.size() == bounds.size() && fractions.size() <= kMostLooks);
  Process process(drift);
  std::vector<LookChance> out;
  for (std::size_t k = 0; k < fractions.size(); ++k) {
    out.push_back(process.chances(fractions[k], bounds[k]));
    if (k + 1 < fractions.size()) process.pass(fractions[k], bounds[k]);
  }
  return out;
}

double spent(Spending rule, double fraction, double alpha) {
  PROCTOR_ASSERT(0 < alpha && alpha < 1 && 0 < fraction && fraction <= 1);
  if (rule == Spending::kPocock) return alpha * std::log1p((std::exp(1.0) - 1) * fraction);
  return 2 * upper_tail(normal_quantile_two_sided(alpha) / std::sqrt(fraction));
}

std::vector<std::optional<double>> lan_demets_bounds(std::span<const double> fractions,
                                                     Spending rule, double alpha) {
  PROCTOR_ASSERT(fractions.size() <= kMostLooks);
  std::vector<std::optional<double>> out;
  Process process(0);
  double spent_before = 0, fraction_before = 0;
  for (const double t : fractions) {
    if (t <= fraction_before) {
      out.emplace_back();
      continue;
    }
    const double until = spent(rule, t, alpha / 2), now = until - spent_before;
    std::optional<double> bound;
    // An early look may have so little to spend that no number of standard deviations is as rare.
    if (0 < now && now < process.chances(t, {{}, 0.0}).high &&
        process.chances(t, {{}, kFar}).high < now)
      bound = falling_root(0, kFar, [&](double z) {
        return process.chances(t, {{}, z}).high - now;
      });
    if (bound) spent_before = until;
    process.pass(t, bound ? symmetric(*bound) : LookBounds{});
    fraction_before = t;
    out.push_back(bound);
  }
  return out;
}
}  // namespace proctor
