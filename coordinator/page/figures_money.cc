// Money: what success costs, and how the envelopes went down.
#include <functional>

#include "common/stats/amounts.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {
struct Spot {
  std::string method;
  double cost = 0, success = 0;
  std::optional<Interval> of_cost, of_success;
  bool front = false;
  std::optional<double> share;
};

std::vector<Spot> spots_of(const Context& c) {
  std::vector<Spot> out;
  for (const MethodRate& r : c.analysis.rates) {
    const MethodPrice& p = c.price_of(r.method);
    if (!r.rate.value || !p.of_run.value || r.is_control) continue;
    out.push_back({r.method, *p.of_run.value, *r.rate.value, p.of_run.interval, r.rate.interval,
                   p.undominated.value_or(false), p.undominated_share});
  }
  std::ranges::stable_sort(out, {}, &Spot::cost);
  return out;
}

std::string dollars(double amount) {
  return amount < 0.1 ? fmt::format("{:.3g}", amount) : fmt::format("{:.2f}", amount);
}
}  // namespace

Markup frontier_figure(Context& c) {
  const std::vector<Spot> spots = spots_of(c);
  constexpr std::size_t kMethods = 64;
  if (spots.size() < 2 || kMethods < spots.size()) return {};
  double least = 0, most = 0;
  for (const Spot& s : spots) {
    if (0 < s.cost) least = least == 0 ? s.cost : std::min(least, s.cost);
    most = std::max({most, s.cost, s.of_cost ? s.of_cost->high : 0});
  }
  if (most <= 0) return {};
  // Prices that lie far apart stand on a scale of ratios; what costs nothing then stands at its
  // edge.
  constexpr double kFar = 20;
  const bool is_log = 0 < least && kFar < most / least;
  constexpr double kLeft = 64, kRight = 610, kUp = 24, kDown = 300;
  const double lowest = is_log ? least / 2 : 0;
  const std::vector<double> ticks = round_ticks(most, 5);
  const Scale linear(0, is_log ? most : ticks.back() * 1.04, kLeft, kRight);
  const Scale ratio(is_log ? std::log(lowest) : 0, is_log ? std::log(most * 1.3) : 1, kLeft,
                    kRight);
  const auto x = [&](double cost) {
    if (!is_log) return linear.clamped(cost);
    return cost <= lowest ? kLeft : ratio.clamped(std::log(cost));
  };
  const Scale y(0, 1, kDown, kUp);
  Canvas canvas(kFigureWidth, 346);
  rate_axis(canvas, y, kLeft, kRight);
  if (is_log) {
    for (int e = static_cast<int>(std::floor(std::log10(lowest))); e <= 12; ++e) {
      const double at = std::pow(10, e);
      if (at < lowest || most * 1.3 < at) continue;
      canvas.line("grid", {x(at), kUp}, {x(at), kDown});
      canvas.words_mid("quiet", {x(at), kDown + 18}, text(dollars(at)));
    }
  } else {
    for (const double at : ticks)
      canvas.words_mid("quiet", {x(at), kDown + 18}, text(at == 0 ? "0" : dollars(at)));
  }
  canvas.words_mid("quiet", {(kLeft + kRight) / 2, kDown + 38},
                   Markup("cost of a run, ") + text(c.report.unit) +
                       (is_log ? Markup(" (scale of ratios)") : Markup()));
  std::vector<Point> steps;
  for (const Spot& s : spots) {
    if (!s.front) continue;
    if (!steps.empty()) steps.push_back({x(s.cost), steps.back().y});
    steps.push_back({x(s.cost), y.at(s.success)});
  }
  if (!steps.empty()) {
    steps.push_back({kRight, steps.back().y});
    canvas.polyline("steps", steps);
  }
  std::string desc;
  std::vector<std::pair<double, Markup>> names;
  for (const Spot& s : spots) {
    const Point at{x(s.cost), y.at(s.success)};
    if (s.of_cost) canvas.line("whisker", {x(s.of_cost->low), at.y}, {x(s.of_cost->high), at.y});
    if (s.of_success)
      canvas.line("whisker", {at.x, y.clamped(s.of_success->low)},
                  {at.x, y.clamped(s.of_success->high)});
    canvas.marker("dot", c.shape(s.method), at);
    Markup name = text(c.name(s.method, 30)) + " " +
                  text(aggregate::percent(s.success) + " % at " + dollars(s.cost));
    if (s.share) name << ", front " << text(aggregate::percent(*s.share) + " %");
    names.emplace_back(at.y, name);
    desc += (desc.empty() ? "" : "; ") + c.name(s.method) + " " + aggregate::percent(s.success) +
            " % at " + dollars(s.cost);
  }
  name_ends(canvas, std::move(names), kRight + 14, 16);
  return c.figure(
      canvas, "Success against cost", text(desc, 1'000),
      Markup("Up and to the left is better. Lines of a mark: intervals of both over tasks; dashed "
             "steps: methods that no other beats in both; \"front\": in what share of ") +
          number(c.report.details->draws) + " resampled campaigns a method is one of these.");
}

namespace {
struct Levels {
  double spent = 0, with_held = 0;
};

// Of each of so many parts of the time: what was spent at its end, and the most that was spent and
// reserved together in it, so that nothing that came near a cap is left out.
std::vector<Levels> levels_of(const std::vector<MoneyStep>& steps, std::int64_t from,
                              std::int64_t to, std::size_t parts) {
  std::vector<Levels> out(parts);
  std::int64_t spent = 0, held = 0;
  std::size_t next = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    const std::int64_t end = from + aggregate::scaled(to - from, static_cast<std::int64_t>(p) + 1,
                                                      static_cast<std::int64_t>(parts));
    std::int64_t most = spent + held;
    while (next < steps.size() && (steps[next].at <= end || p + 1 == parts)) {
      spent += steps[next].spent.micros();
      held += steps[next].reserved.micros();
      most = std::max(most, spent + held);
      ++next;
    }
    out[p] = {static_cast<double>(spent) / 1e6, static_cast<double>(most) / 1e6};
  }
  return out;
}
}  // namespace

Markup burndown_figure(Context& c) {
  if (c.money == nullptr) return {};
  const MoneyInput& money = *c.money;
  std::int64_t from = 0, to = 0;
  const auto see = [&](WallTime at) {
    if (at.raw() == 0) return;
    from = from == 0 ? at.raw() : std::min(from, at.raw());
    to = std::max(to, at.raw());
  };
  for (const MoneyInput::Attempt& a : money.attempts) {
    see(a.granted_at);
    see(a.settled_at);
  }
  if (from == 0 || to <= from || money.scopes[0].cap == kLedgerMax) return {};
  const MoneyView view = build_money(money);
  // Those that most was spent in, the whole campaign first; a small campaign shows few.
  std::vector<std::uint32_t> scopes;
  for (std::uint32_t s = 1; s < money.scopes.size(); ++s)
    if (view.envelopes[s].spent != MicroUsd::zero() && money.scopes[s].cap < money.scopes[0].cap)
      scopes.push_back(s);
  std::ranges::stable_sort(scopes, [&](std::uint32_t a, std::uint32_t b) {
    return view.envelopes[b].spent < view.envelopes[a].spent;
  });
  constexpr std::size_t kPanels = 6, kParts = 300, kBuckets = 60'000'000;
  // Each panel looks at every attempt.
  const std::size_t affordable =
      std::max<std::size_t>(1, kBuckets / std::max<std::size_t>(1, money.attempts.size() * 16));
  const std::size_t wanted = std::min(kPanels - 1, affordable - 1);
  if (wanted < scopes.size()) scopes.resize(wanted);
  scopes.insert(scopes.begin(), 0);
  constexpr double kLeft = 90, kRight = 780, kPanel = 110, kGap = 52, kTop = 34;
  Canvas canvas(kFigureWidth,
                static_cast<int>(kTop + (kPanel + kGap) * static_cast<double>(scopes.size())));
  double top = kTop;
  for (const std::uint32_t s : scopes) {
    // The figure ends with the attempts: reviews come later.
    const std::vector<Levels> levels = levels_of(money_steps(money, s, {}), from, to, kParts);
    const double cap = static_cast<double>(money.scopes[s].cap.micros()) / 1e6;
    double most = cap;
    for (const Levels& l : levels) most = std::max(most, l.with_held);
    const Scale y(0, most <= 0 ? 1 : most, top + kPanel, top);
    std::vector<Point> held{{kLeft, y.at(0)}}, spent{{kLeft, y.at(0)}};
    for (std::size_t p = 0; p < levels.size(); ++p) {
      const double x = kLeft + (kRight - kLeft) * static_cast<double>(p + 1) / kParts;
      const auto step_to = [&](std::vector<Point>& line, double level) {
        if (0.05 < std::abs(line.back().y - y.at(level))) {
          line.push_back({x, line.back().y});
          line.push_back({x, y.at(level)});
        }
      };
      step_to(held, levels[p].with_held);
      step_to(spent, levels[p].spent);
    }
    for (std::vector<Point>* line : {&held, &spent}) {
      line->push_back({kRight, line->back().y});
      line->push_back({kRight, y.at(0)});
    }
    canvas.words("strong", {kLeft, top - 10}, text(money.scopes[s].name, 60));
    canvas.polygon("held", held);
    canvas.polygon("spent", spent);
    canvas.line("cap", {kLeft, y.at(cap)}, {kRight, y.at(cap)});
    canvas.line("axis", {kLeft, y.at(0)}, {kRight, y.at(0)});
    canvas.words_end("quiet", {kLeft - 8, y.at(0) + 4}, "0");
    canvas.words("label", {kRight + 10, y.at(cap) + 4},
                 Markup("cap ") + money_of(money.scopes[s].cap));
    canvas.words("label", {kRight + 10, std::max(y.at(levels.back().spent) + 4, y.at(cap) + 20)},
                 Markup("spent ") + money_of(view.envelopes[s].spent));
    const double minutes = static_cast<double>(to - from) / 60'000;
    for (int part = 0; part <= 4; ++part)
      canvas.words_mid("quiet", {kLeft + (kRight - kLeft) * part / 4, top + kPanel + 16},
                       text(minutes < 3     ? fmt::format("{:.0f} s", minutes * 60 * part / 4)
                            : minutes < 180 ? fmt::format("{:.1f} min", minutes * part / 4)
                                            : fmt::format("{:.1f} h", minutes / 60 * part / 4)));
    top += kPanel + kGap;
  }
  return c.figure(canvas, "Money over time",
                  Markup("Spent ") + money_of(view.envelopes[0].spent) + " of " +
                      money_of(money.scopes[0].cap) + " " + text(c.report.unit),
                  Markup("Dark: spent; light above it: reserved for runs under way; line: the cap "
                         "as it holds now. The envelopes with most spending; all of them: ") +
                      command(c, "budget") + ".");
}

// How long runs take and what they cost, by outcome; and when success comes.

namespace {
constexpr double kTimeLeft = 60, kTimeRight = 940;
constexpr int kBinsOfDecade = 10;

struct Sample {
  double value = 0;  // above 0
  std::size_t kind = 0;
};

Markup histogram(Context& c, const std::vector<Sample>& samples, const Markup& title,
                 const Markup& unit, const std::function<std::string(double)>& shown) {
  if (samples.size() < 2) return {};
  double least = samples.front().value, most = least;
  std::vector<double> values;
  for (const Sample& s : samples) {
    least = std::min(least, s.value);
    most = std::max(most, s.value);
    values.push_back(s.value);
  }
  const auto bin_of = [](double v) {
    return static_cast<int>(std::floor(std::log10(v) * kBinsOfDecade + 1e-9));
  };
  const int first = bin_of(least), last = std::max(bin_of(most), first + 2);
  constexpr int kBins = 400;
  if (kBins < last - first) return {};
  std::vector<std::array<std::uint64_t, 4>> bins(static_cast<std::size_t>(last - first) + 1);
  for (const Sample& s : samples) ++bins[static_cast<std::size_t>(bin_of(s.value) - first)][s.kind];
  std::uint64_t highest = 0;
  for (const auto& bin : bins) highest = std::max(highest, bin[0] + bin[1] + bin[2] + bin[3]);
  constexpr double kUp = 34, kDown = 190;
  Canvas canvas(kFigureWidth, 240);
  const Scale y(0, static_cast<double>(highest), kDown, kUp);
  const double wide = std::min(60.0, (kTimeRight - kTimeLeft) / static_cast<double>(bins.size()));
  const auto x = [&](double v) {
    return kTimeLeft + (std::log10(v) * kBinsOfDecade - first) * wide;
  };
  for (std::size_t b = 0; b < bins.size(); ++b) {
    double level = 0;
    for (std::size_t kind = 0; kind < 4; ++kind) {
      const double n = static_cast<double>(bins[b][kind]);
      if (n == 0) continue;
      const double from = y.at(level + n), to = y.at(level);
      canvas.rect(kOutcomeStyles[kind], {kTimeLeft + wide * static_cast<double>(b), from}, wide - 1,
                  to - from);
      if (14 <= to - from && 14 <= wide)
        canvas.words_mid(kOutcomeInks[kind],
                         {kTimeLeft + wide * (static_cast<double>(b) + 0.5), (from + to) / 2 + 4},
                         kOutcomeLetters[kind]);
      level += n;
    }
  }
  canvas.line("axis", {kTimeLeft - 4, kDown}, {kTimeRight, kDown});
  const int every = bins.size() <= 12 ? 2 : bins.size() <= 40 ? 5 : 10;
  for (int b = first; b <= last + 1; ++b)
    if (b % every == 0)
      canvas.words_mid("quiet", {kTimeLeft + (b - first) * wide, kDown + 18},
                       text(shown(std::pow(10, static_cast<double>(b) / kBinsOfDecade))));
  canvas.words_mid("quiet", {(kTimeLeft + kTimeRight) / 2, kDown + 38}, unit);
  canvas.words("quiet", {8, kUp - 16}, number(highest) + " runs");
  const double median = real_quantile(values, 0.5).value(),
               high = real_quantile(values, 0.9).value();
  canvas.line("reference", {x(median), kUp - 4}, {x(median), kDown});
  canvas.words_mid("label", {x(median), kUp - 9}, Markup("median ") + text(shown(median)));
  if (80 < std::abs(x(high) - x(median))) {
    canvas.line("reference", {x(high), kUp - 4}, {x(high), kDown});
    canvas.words_mid("label", {std::min(x(high), kTimeRight - 60), kUp - 9},
                     Markup("90 % up to ") + text(shown(high)));
  }
  return c.figure(canvas, title,
                  number(samples.size()) + " ended runs, median " + text(shown(median)) +
                      ", nine of ten up to " + text(shown(high)),
                  "Bars: how many ended runs of agents, ten parts to each power of ten, split by "
                  "outcome as in the figure of outcomes (from below: S, F, E, V).");
}

std::string short_number(double v) {
  return v < 10 ? fmt::format("{:.2g}", v) : fmt::format("{:.0f}", v);
}
}  // namespace

Markup histogram_figures(Context& c) {
  std::vector<Sample> times, costs;
  for (const RunRecord& run : c.report.runs) {
    if (run.state != RunRecord::State::kEnded || run.is_control()) continue;
    const auto kind = static_cast<std::size_t>(run.outcome);
    if (run.wall_ms != 0) times.push_back({static_cast<double>(run.wall_ms) / 1000, kind});
    if (0 < run.cost.total().micros())
      costs.push_back({static_cast<double>(run.cost.total().micros()) / 1e6, kind});
  }
  return histogram(c, times, "Time of runs", "seconds, from start to report", short_number) +
         histogram(c, costs, "Cost of runs", text(c.report.unit) + " of a run", [](double v) {
           return v < 0.1 ? fmt::format("{:.1g}", v) : fmt::format("{:.2f}", v);
         });
}

Markup until_success_figure(Context& c) {
  constexpr std::size_t kMethods = 8, kPoints = 200;
  struct Curve {
    std::string method;
    std::vector<CurvePoint> points;
  };
  std::vector<Curve> curves;
  double most = 0;
  for (const std::uint32_t at : c.methods) {
    if (c.report.rows[at].is_control) continue;
    std::vector<Lifetime> runs;
    for (const std::uint32_t i : c.report.rows[at].runs) {
      const RunRecord& run = c.report.runs[i];
      if (run.state != RunRecord::State::kEnded || run.outcome == RunOutcome::kInvalid ||
          run.wall_ms == 0)
        continue;
      const double seconds = static_cast<double>(run.wall_ms) / 1000;
      most = std::max(most, seconds);
      runs.push_back(
          {seconds, run.outcome == RunOutcome::kSuccess ? Ending::kSuccess : Ending::kFailure});
    }
    if (runs.empty()) continue;
    curves.push_back({c.report.rows[at].method, cumulative_incidence(runs)});
  }
  if (curves.empty() || kMethods < curves.size() || most <= 0) return {};
  constexpr double kEnd = 700, kUp = 20, kDown = 220;
  const std::vector<double> ticks = round_ticks(most, 5);
  const Scale x(0, ticks.back(), kTimeLeft, kEnd), y(0, 1, kDown, kUp);
  Canvas canvas(kFigureWidth, 266);
  rate_axis(canvas, y, kTimeLeft, kEnd);
  for (const double at : ticks)
    canvas.words_mid("quiet", {x.at(at), kDown + 18}, text(short_number(at)));
  canvas.words_mid("quiet", {(kTimeLeft + kEnd) / 2, kDown + 38}, "seconds since the run began");
  std::vector<std::pair<double, Markup>> names;
  for (const Curve& curve : curves) {
    std::vector<Point> line{{x.at(0), y.at(0)}};
    const std::size_t every = std::max<std::size_t>(1, curve.points.size() / kPoints);
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      if (i % every != 0 && i + 1 != curve.points.size()) continue;
      const CurvePoint& p = curve.points[i];
      line.push_back({x.at(p.at), line.back().y});
      line.push_back({x.at(p.at), y.clamped(p.value)});
    }
    line.push_back({kEnd, line.back().y});
    canvas.polyline("curve", line);
    canvas.marker("dot", c.shape(curve.method), line.back());
    names.emplace_back(line.back().y, text(c.name(curve.method, 30)));
  }
  name_ends(canvas, std::move(names), kEnd + 14, 15);
  return c.figure(canvas, "Share of scorable runs that have succeeded by a time",
                  "Every curve ends at the method's success rate over runs; see the table of times",
                  "Cumulative incidence: a run that failed will never succeed, so it competes and "
                  "is not censored. Invalid runs are left out.");
}
}  // namespace proctor::page
