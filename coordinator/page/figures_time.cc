// How long runs take and what they cost, by outcome; and when success comes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "common/stats/amounts.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
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
  canvas.words("quiet", {8, kUp - 16}, number(highest) + Markup(" runs"));
  const double median = real_quantile(values, 0.5).value(),
               high = real_quantile(values, 0.9).value();
  canvas.line("reference", {x(median), kUp - 4}, {x(median), kDown});
  canvas.words_mid("label", {x(median), kUp - 9}, Markup("median ") + text(shown(median)));
  if (80 < std::abs(x(high) - x(median))) {
    canvas.line("reference", {x(high), kUp - 4}, {x(high), kDown});
    canvas.words_mid("label", {std::min(x(high), kTimeRight - 60), kUp - 9},
                     Markup("90 % up to ") + text(shown(high)));
  }
  return c.figure(
      canvas, title,
      number(samples.size()) + Markup(" ended runs, median ") + text(shown(median)) +
          Markup(", nine of ten up to ") + text(shown(high)),
      "Bars: how many ended runs of agents, ten parts to each power of ten, split by outcome as "
      "in the figure of outcomes (from below: S, F, E, V).");
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
         histogram(c, costs, "Cost of runs", text(c.report.unit) + Markup(" of a run"),
                   [](double v) {
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
  for (int p = 0; p <= 100; p += 25) {
    canvas.line("grid", {kTimeLeft, y.at(p / 100.0)}, {kEnd, y.at(p / 100.0)});
    canvas.words_end("quiet", {kTimeLeft - 8, y.at(p / 100.0) + 4},
                     number(static_cast<std::uint64_t>(p)) + Markup(" %"));
  }
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
    names.emplace_back(line.back().y, text(curve.method, 30));
  }
  std::ranges::stable_sort(names, {}, [](const auto& n) { return n.first; });
  double last = 0;
  for (const auto& [at, name] : names) {
    last = std::max(at + 4, last + 15);
    canvas.words("label", {kEnd + 14, last}, name);
  }
  return c.figure(canvas, "Share of scorable runs that have succeeded by a time",
                  "Every curve ends at the method's success rate over runs; see the table of "
                  "times",
                  "Cumulative incidence: a run that failed will never succeed, so it competes "
                  "and is not censored. Invalid runs are left out.");
}

}  // namespace proctor::page
