// What `proctor power` holds its own numbers against: sweeps that theory says must rise or fall,
// and identities that must hold.
#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "common/stats/power.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor {
namespace {

using aggregate::dumped;
using aggregate::Ordered;

enum class Direction : std::uint8_t { kUp, kDown, kFlat };
std::string_view word(Direction direction) {
  switch (direction) {
    case Direction::kUp:
      return "up";
    case Direction::kDown:
      return "down";
    case Direction::kFlat:
      return "flat";
  }
  return "flat";
}

constexpr double kRounding = 1e-9;

bool moves(double before, double after, Direction direction) {
  if (direction == Direction::kFlat) return std::fabs(after - before) <= kRounding;
  // Near 1 there is no room left to rise.
  const double step = direction == Direction::kUp ? after - before : before - after;
  return -kRounding <= step;
}

struct Sweep {
  const char* over;
  Direction direction;
  std::vector<double> values;
  std::function<double(double)> power;
};

Ordered sweep_json(const Sweep& sweep, Ordered at) {
  Ordered values = Ordered::array();
  bool ok = true;
  std::optional<double> before;
  for (const double x : sweep.values) {
    const double power = sweep.power(x);
    ok = ok && (!before || moves(*before, power, sweep.direction));
    before = power;
    values.push_back(Ordered::array({twelve_digits(x), twelve_digits(power)}));
  }
  at.erase(sweep.over);
  return {{"over", sweep.over},
          {"at", std::move(at)},
          {"direction", word(sweep.direction)},
          {"values", std::move(values)},
          {"ok", ok}};
}

Direction rho_direction(const Design& d) {
  const double slope = turning_correlation(d) - d.correlation;
  if (std::fabs(slope) <= kRounding) return Direction::kFlat;
  // Power falls with rho below the turning point, for there V rises with it.
  return 0 < slope ? Direction::kDown : Direction::kUp;
}

std::vector<Sweep> sweeps_of(const Design& d, std::uint64_t n, double effect) {
  const auto at = [n](const Design& design) { return power_of_t(design, n); };
  const auto with = [d, at](auto change) {
    return [d, at, change](double x) {
      Design other = d;
      change(other, x);
      return at(other);
    };
  };
  const double most_r = most_correlation(d.p_a, d.p_b), tasks = static_cast<double>(n);
  const double room = 1 - d.p_b;
  return {{"n",
           Direction::kUp,
           {std::ceil(tasks / 2) + 1, tasks + 1, 2 * tasks + 2},
           [d](double x) { return power_of_t(d, static_cast<std::uint64_t>(x)); }},
          {"k", Direction::kUp, {1, 2, 3, 5, 8}, with([](Design& o, double x) { o.runs = x; })},
          {"effect",
           Direction::kUp,
           {effect / 2, effect, effect + (room - effect) / 4, effect + (room - effect) / 2},
           with([](Design& o, double x) { o.p_a = o.p_b + x; })},
          {"r", Direction::kUp, {0, most_r / 2, most_r}, with([](Design& o, double x) {
             o.correlation = x;
           })},
          {"rho", rho_direction(d), {0.1, 0.3, 0.5, 0.7, 0.9}, with([](Design& o, double x) {
             o.icc = x;
           })}};
}

// Identities, each with what was found and what it must be.
class Checks {
 public:
  void add(const std::string& id, double found, double expected, double tolerance) {
    const bool ok = std::fabs(found - expected) <= tolerance;
    all_ = all_ && ok;
    out_.push_back({{"id", id},
                    {"found", twelve_digits(found)},
                    {"expected", twelve_digits(expected)},
                    {"tolerance", twelve_digits(tolerance)},
                    {"ok", ok}});
  }
  std::string text(const std::string& of) const {
    const Ordered out = {
        {"format", "proctor-sanity-1"}, {"of", of}, {"ok", all_}, {"checks", out_}};
    return dumped(out) + "\n";
  }

 private:
  bool all_ = true;
  Ordered out_ = Ordered::array();
};

void add_moments(Checks& checks, const Design& d) {
  double total = 0, mean = 0, squares = 0;
  const std::vector<double> chances = difference_chances(d);
  for (std::size_t i = 0; i < chances.size(); ++i) {
    const double x = (static_cast<double>(i) - d.runs) / d.runs;
    total += chances[i];
    mean += x * chances[i];
    squares += x * x * chances[i];
  }
  constexpr double kExact = 1e-12;
  checks.add("pmf_total", total, 1, kExact);
  checks.add("pmf_mean_is_delta", mean, d.p_a - d.p_b, kExact);
  checks.add("pmf_variance_is_v", squares - mean * mean, variance_of_task_difference(d), kExact);
}

}  // namespace

std::string render_power_sweeps_json(const PowerStudy& s, const std::string& of) {
  const Design worst = assumed_worst(s);
  const Ordered at = {{"effect", twelve_digits(s.input.effect)},
                      {"k", std::to_string(s.input.runs)},
                      {"n", std::to_string(s.tasks)},
                      {"r", twelve_digits(worst.correlation)},
                      {"rho", twelve_digits(worst.icc)}};
  Ordered sweeps = Ordered::array();
  bool ok = true;
  for (const Sweep& sweep : sweeps_of(worst, std::max<std::uint64_t>(2, s.tasks), s.input.effect)) {
    sweeps.push_back(sweep_json(sweep, at));
    ok = ok && sweeps.back().at("ok").get<bool>();
  }
  const Ordered out = {
      {"format", "proctor-monotonicity-1"}, {"of", of}, {"ok", ok}, {"sweeps", std::move(sweeps)}};
  return dumped(out) + "\n";
}

std::string render_power_checks_json(const PowerStudy& s, const std::string& of,
                                     const std::optional<SimulatedPower>& simulated,
                                     std::uint64_t campaigns) {
  Checks checks;
  Design worst = assumed_worst(s), once = worst, none = worst;
  once.runs = 1;
  const Discordance one = discordance(once);
  const double delta = one.only_a - one.only_b;
  checks.add("v1_is_psi_minus_delta2", variance_of_task_difference(once), one.sum() - delta * delta,
             kRounding);
  none.p_a = none.p_b;
  if (0 < variance_of_task_difference(none))
    checks.add("power_of_nothing_is_alpha", power_of(none, s.tasks), none.alpha, kRounding);
  if (worst.runs <= kMostExactRuns) add_moments(checks, worst);
  for (std::size_t i = 0; i < s.points.size(); ++i)
    if (s.points[i].exact)
      checks.add(fmt::format("exact_total[{}]", i), s.points[i].exact_total, 1, 1e-12);
  if (simulated && 0 < campaigns) {
    const double b = static_cast<double>(campaigns);
    double expected = power_of_t(worst, s.tasks);
    for (const PowerPoint& p : s.points)
      if (p.design && p.exact && p.design->icc == worst.icc) expected = *p.exact;
    constexpr double kErrors = 3;
    // Where power is nearly 0 or 1 the normal error says nothing: one more case either way.
    checks.add("simulation", static_cast<double>(simulated->rejected) / b, expected,
               kErrors * std::sqrt(expected * (1 - expected) / b) + 1 / b);
  }
  return checks.text(of);
}

}  // namespace proctor
