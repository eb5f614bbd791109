#include "coordinator/aggregate/power_study.h"

#include <fmt/format.h>
#include <cmath>
#include <functional>
#include <map>

#include "common/base/words.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor {
namespace {
// The power of one point as a function of the number of tasks and of the difference, whatever it
// was made of.
class Law {
 public:
  Law(const PowerInput& input, const std::vector<std::optional<double>>& bounds, bool pilot,
      double rho)
      : input_(input), bounds_(bounds), pilot_(pilot), rho_(rho) {}

  Design design(double difference, std::uint32_t runs) const {
    return {.p_a = std::min(1.0, input_.p + difference),
            .p_b = input_.p,
            .icc = rho_,
            .correlation = input_.r,
            .runs = static_cast<double>(runs),
            .alpha = input_.level()};
  }

  double variance(double difference, std::uint32_t runs) const {
    const double of_task = pilot_ ? input_.pilot->upper_at(runs)
                                  : variance_of_task_difference(design(difference, runs));
    if (!input_.repositories) return of_task;
    const auto& [tasks, spread] = *input_.repositories;
    return of_task / tasks + spread * spread;
  }

  // Where no outcome has a small enough p, no test that assumes a distribution helps.
  double power(double difference, std::uint64_t tasks) const {
    if (tasks < fewest_flip_tasks(input_.level())) return 0;
    if (input_.test == PowerInput::Test::kMcNemar)
      return mcnemar_power(discordance(design(difference, 1)), tasks, input_.level()).exact;
    return power_by_variance_t(difference, variance(difference, input_.runs), tasks,
                               input_.level());
  }

  std::optional<double> sequential(double difference, std::uint64_t tasks) const {
    if (!input_.looks) return std::nullopt;
    std::vector<double> variances;
    for (const std::uint32_t k : input_.looks->after) variances.push_back(variance(difference, k));
    return sequential_power(bounds_, variances, difference, tasks);
  }

  // Nothing: of McNemar's test, which is that of sign flips already; of a variance, which is no
  // law, nor is that of a repository; and where it would take too long.
  std::optional<double> flips(double difference, std::uint64_t tasks) const {
    if (pilot_ || input_.repositories || input_.test == PowerInput::Test::kMcNemar ||
        kMostExactRuns < input_.runs || !flip_power_is_short(tasks, input_.runs))
      return std::nullopt;
    // A difference that was not asked for may lie beyond what the methods' likeness admits.
    constexpr double kMostRate = 1 - 1e-9;
    Design d = design(difference, input_.runs);
    d.p_a = std::min(d.p_a, kMostRate);
    d.correlation = std::min(d.correlation, most_correlation(d.p_a, d.p_b));
    if (!settled_shares(d)) return std::nullopt;
    return exact_power_flips(difference_chances(d), tasks, input_.level());
  }

  bool shows(double difference, std::uint64_t tasks) const {
    return shows_by_formula(difference, tasks) &&
           input_.power <= flips(difference, tasks).value_or(1);
  }

  std::optional<std::uint64_t> tasks_needed() const {
    if (input_.test == PowerInput::Test::kMcNemar) return mcnemar_needed();
    std::uint64_t low = 1, high = 2;
    while (!shows_by_formula(input_.effect, high)) {
      low = high;
      if (kMostTasksAsked < (high *= 2)) return std::nullopt;
    }
    while (low + 1 < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      (shows_by_formula(input_.effect, middle) ? high : low) = middle;
    }
    return needed_from(high);
  }

  std::optional<double> smallest(std::uint64_t tasks) const {
    double low = 0, high = 1 - input_.p;
    if (!shows(high, tasks)) return std::nullopt;
    // Twelve digits; six where every data set is counted at each step.
    const int steps = flips(high, tasks) ? 20 : 42;
    for (int step = 0; step < steps; ++step) {
      const double middle = low + (high - low) / 2;
      (shows(middle, tasks) ? high : low) = middle;
    }
    return high;
  }

 private:
  bool shows_by_formula(double difference, std::uint64_t tasks) const {
    if (power(difference, tasks) < input_.power) return false;
    return input_.power <= sequential(difference, tasks).value_or(1);
  }

  // The power of sign flips goes up and down with the number of tasks: the number from which on it
  // is enough, as far as the formula's figure and a half reaches.
  std::uint64_t needed_from(std::uint64_t by_formula) const {
    std::uint64_t enough = by_formula + by_formula / 2 + 10;
    while (by_formula < enough && !flip_power_is_short(enough, input_.runs)) --enough;
    while (flip_power_is_short(enough, input_.runs) && !shows(input_.effect, enough)) ++enough;
    while (by_formula < enough && shows(input_.effect, enough - 1)) --enough;
    return enough;
  }

  // The power of an exact test goes up and down with the number of pairs: what is enough is the
  // number from which on it stays enough, as far as the formula's figure and a half reaches.
  std::optional<std::uint64_t> mcnemar_needed() const {
    const Discordance d = discordance(design(input_.effect, 1));
    const double about = mcnemar_tasks(d, input_.level(), input_.power);
    constexpr double kMostSearched = 20'000;  // beyond, the formula is exact enough
    if (static_cast<double>(kMostTasksAsked) < about) return std::nullopt;
    if (kMostSearched < about) return static_cast<std::uint64_t>(std::ceil(about));
    auto enough = static_cast<std::uint64_t>(std::ceil(about * 1.5)) + 10;
    while (2 < enough && input_.power <= mcnemar_power(d, enough - 1, input_.level()).exact)
      --enough;
    return enough;
  }

  const PowerInput& input_;
  const std::vector<std::optional<double>>& bounds_;
  bool pilot_;
  double rho_;
};

void add_exact(PowerPoint& point, const PowerInput& input, std::uint64_t tasks) {
  const bool few = input.runs <= kExactRuns && tasks <= kExactRuns / input.runs;
  if (!point.design || input.repositories || !(few || input.exact) || kMostExactRuns < input.runs)
    return;
  if (kMostExactCells < exact_cells(tasks, input.runs)) return;
  const auto exact = exact_power_t(difference_chances(*point.design), tasks, input.level());
  if (!exact) return;
  point.exact = exact->power;
  point.exact_total = exact->total;
}

PowerPoint point_of(const Law& law, const PowerInput& input, std::uint64_t tasks, bool pilot) {
  PowerPoint out;
  if (!pilot) out.design = law.design(input.effect, input.runs);
  out.variance = law.variance(input.effect, input.runs);
  out.power_normal = power_by_variance(input.effect, out.variance, tasks, input.level());
  out.power = law.power(input.effect, tasks);
  if (input.test == PowerInput::Test::kMcNemar)
    out.mid_p = mcnemar_power(discordance(*out.design), tasks, input.level()).mid_p;
  else
    add_exact(out, input, tasks);
  out.flips = law.flips(input.effect, tasks);
  out.sequential = law.sequential(input.effect, tasks);
  out.difference = law.smallest(tasks);
  return out;
}

void decide(PowerStudy& study) {
  for (std::size_t i = 1; i < study.points.size(); ++i)
    if (study.points[i].least() < study.points[study.worst].least()) study.worst = i;
  study.supported = study.input.power <= study.points[study.worst].least();
  if (study.supported) return;
  study.needs_tasks = 0;
  study.needs_difference = 0;
  for (const PowerPoint& p : study.points) {
    if (!p.tasks) study.needs_tasks.reset();
    if (!p.difference) study.needs_difference.reset();
    if (study.needs_tasks) study.needs_tasks = std::max(*study.needs_tasks, *p.tasks);
    if (study.needs_difference)
      study.needs_difference = std::max(*study.needs_difference, *p.difference);
  }
}
}  // namespace

Design assumed_worst(const PowerStudy& study) {
  const PowerPoint* worst = nullptr;
  for (const PowerPoint& p : study.points)
    if (p.design && (worst == nullptr || p.least() < worst->least())) worst = &p;
  PROCTOR_ASSERT(worst != nullptr);
  return *worst->design;
}

Result<PowerStudy> study_power(const PowerInput& input) {
  PROCTOR_ASSERT(input.test != PowerInput::Test::kMcNemar ||
                 (input.runs == 1 && !input.looks && !input.pilot));
  PowerStudy study;
  study.input = input;
  if (input.looks) {
    study.looks_at = input.looks->fractions();
    study.bounds = input.looks->bounds(input.level());
  }
  std::vector<std::pair<Law, bool>> laws{{Law(input, study.bounds, false, input.rho_low), false}};
  if (input.rho_low < input.rho_high)
    laws.emplace_back(Law(input, study.bounds, false, input.rho_high), false);
  if (input.pilot) laws.emplace_back(Law(input, study.bounds, true, 0), true);
  std::vector<std::optional<std::uint64_t>> needed;
  std::uint64_t most = 2;
  for (const auto& [law, pilot] : laws) {
    needed.push_back(law.tasks_needed());
    if (needed.back()) most = std::max(most, *needed.back());
  }
  if (!input.tasks && std::ranges::any_of(needed, [](const auto& n) { return !n.has_value(); }))
    return Error{Errc::kInvalid, fmt::format("no {} tasks show a difference of {} with a power of "
                                             "{}: ask for a larger difference",
                                             kMostTasksAsked, twelve_digits(input.effect),
                                             twelve_digits(input.power))};
  study.tasks = input.tasks.value_or(most);
  study.fewest_tasks = std::max<std::uint64_t>(2, fewest_flip_tasks(input.level()));
  for (std::size_t i = 0; i < laws.size(); ++i) {
    study.points.push_back(point_of(laws[i].first, input, study.tasks, laws[i].second));
    study.points.back().tasks = needed[i];
  }
  decide(study);
  const Design worst = assumed_worst(study);
  for (const std::int64_t budget : input.budgets)
    if (const auto best = best_for_budget(worst, input.costs, budget, input.tasks_max, input.power))
      study.curve.push_back(*best);
  return study;
}

std::string twelve_digits(double value) {
  if (value == 0) return "0";
  constexpr int kDigits = 12, kMostDecimals = 30;
  const int magnitude = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  const int decimals = std::clamp(kDigits - 1 - magnitude, 0, kMostDecimals);
  std::string out = fmt::format("{:.{}f}", value, decimals);
  if (out.find('.') == std::string::npos) return out;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

// Checks of `proctor power` on its own numbers: sweeps that theory says must rise or fall,
// and identities that must hold.

namespace {
using aggregate::filled;
using aggregate::listed;

enum class Direction : std::uint8_t { kUp, kDown, kFlat };
constexpr auto words(Direction) {
  return std::to_array<Word<Direction>>(
      {{"up", Direction::kUp}, {"down", Direction::kDown}, {"flat", Direction::kFlat}});
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

// `at`: what the others are held at, members of JSON text by name.
std::string sweep_json(const Sweep& sweep, std::map<std::string_view, std::string> at, bool& ok) {
  std::vector<std::string> values;
  bool moves_so = true;
  std::optional<double> before;
  for (const double x : sweep.values) {
    const double power = sweep.power(x);
    moves_so = moves_so && (!before || moves(*before, power, sweep.direction));
    before = power;
    values.push_back(filled("[#,#]", {x, power}));
  }
  ok = ok && moves_so;
  at.erase(sweep.over);
  std::string others;
  for (const auto& [name, value] : at)
    others += filled(others.empty() ? "$:$" : ",$:$", {name, value});
  return filled(R"({"over":$,"at":{@},"direction":$,"values":@,"ok":$})",
                {sweep.over, others, word_of(sweep.direction), listed(values), moves_so});
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
    out_.push_back(filled(R"({"id":$,"found":#,"expected":#,"tolerance":#,"ok":$})",
                          {id, found, expected, tolerance, ok}));
  }
  std::string text(const std::string& of) const {
    return filled(R"({"format":"proctor-sanity-1","of":$,"ok":$,"checks":@})",
                  {of, all_, listed(out_)}) +
           "\n";
  }

 private:
  bool all_ = true;
  std::vector<std::string> out_;
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
  const std::map<std::string_view, std::string> at = {
      std::pair("effect", twelve_digits(s.input.effect)),
      std::pair("k", std::to_string(s.input.runs)), std::pair("n", std::to_string(s.tasks)),
      std::pair("r", twelve_digits(worst.correlation)), std::pair("rho", twelve_digits(worst.icc))};
  bool ok = true;
  const std::string sweeps =
      listed(sweeps_of(worst, std::max<std::uint64_t>(2, s.tasks), s.input.effect),
             [&](const Sweep& sweep) { return sweep_json(sweep, at, ok); });
  return filled(R"({"format":"proctor-monotonicity-1","of":$,"ok":$,"sweeps":@})",
                {of, ok, sweeps}) +
         "\n";
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
