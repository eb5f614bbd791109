// Runs: outcomes of tasks under methods, and who ran what when.
#include <algorithm>
#include <array>
#include <map>

#include "common/base/system_clock.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {

constexpr std::size_t kRunLabel = 26;

struct Shares {
  std::uint64_t success = 0, failure = 0, error = 0, invalid = 0;
  std::uint64_t all() const { return success + failure + error + invalid; }
};

Shares& operator+=(Shares& a, const TaskCell& b) {
  a.success += b.success;
  a.failure += b.scorable - b.success - b.error;
  a.error += b.error;
  a.invalid += b.invalid;
  return a;
}

// One cell: its runs as parts of its height in a fixed order, with letters where there is room.
void append_cell(Canvas& canvas, const Shares& s, Point corner, double wide, double high) {
  if (s.all() == 0) {
    canvas.rect("none", {corner.x + 0.5, corner.y + 0.5}, wide - 1, high - 1);
    return;
  }
  double y = corner.y;
  for (std::size_t kind = 0; const std::uint64_t n : {s.success, s.failure, s.error, s.invalid}) {
    const std::size_t k = kind++;
    if (n == 0) continue;
    const double h = high * static_cast<double>(n) / static_cast<double>(s.all());
    canvas.rect(kOutcomeStyles[k], {corner.x, y}, wide, h);
    if (14 <= wide && 12 <= h)
      canvas.words_mid(kOutcomeInks[k], {corner.x + wide / 2, y + h / 2 + 4.5}, kOutcomeLetters[k]);
    y += h;
  }
}

}  // namespace

Markup mosaic_figure(Context& c) {
  const std::size_t tasks = c.cells.tasks.size(), methods = c.cells.methods.size();
  constexpr std::size_t kMethods = 24, kColumns = 400;
  if (tasks == 0 || kMethods < methods || c.report.total.ended() == 0) return {};
  // By the tasks' mean success over methods, best first.
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < tasks; ++i) {
    double sum = 0;
    std::size_t n = 0;
    for (std::size_t m = 0; m < methods; ++m)
      if (const TaskCell& cell = c.cells.at(i, m); 0 < cell.scorable) {
        sum += static_cast<double>(cell.success) / static_cast<double>(cell.scorable);
        ++n;
      }
    order.emplace_back(n == 0 ? 1.0 : -sum / static_cast<double>(n), i);
  }
  std::ranges::sort(order);
  const std::size_t columns = std::min(tasks, kColumns);
  const double left = 190, step = (kFigureWidth - 10 - left) / static_cast<double>(columns);
  const double wide = std::min(step, 96.0), gap = 8 < wide ? 2 : 0;
  constexpr double kTop = 12, kHigh = 56, kBetween = 8;
  Canvas canvas(kFigureWidth,
                static_cast<int>(kTop + (kHigh + kBetween) * static_cast<double>(methods)) +
                    (columns <= 16 ? 26 : 6));
  for (std::size_t m = 0; m < methods; ++m) {
    const double y = kTop + (kHigh + kBetween) * static_cast<double>(m);
    const MethodRate& r = c.analysis.rates[m];
    canvas.words(r.is_control ? Literal("quiet") : Literal("label"), {8, y + kHigh / 2 + 4},
                 text(r.method, kRunLabel));
    for (std::size_t column = 0; column < columns; ++column) {
      Shares s;
      for (std::size_t i = column * tasks / columns; i < (column + 1) * tasks / columns; ++i)
        s += c.cells.at(order[i].second, c.cells.method(r.method));
      append_cell(canvas, s, {left + wide * static_cast<double>(column), y}, wide - gap, kHigh);
    }
  }
  if (columns <= 16)
    for (std::size_t column = 0; column < columns; ++column)
      canvas.words_mid("quiet",
                       {left + wide * (static_cast<double>(column) + 0.5),
                        kTop + (kHigh + kBetween) * static_cast<double>(methods) + 12},
                       text(c.cells.tasks[order[column].second],
                            static_cast<std::size_t>(std::max(3.0, wide / 7.5 - 3))));
  const ReportRow& t = c.report.total;
  return c.figure(
      canvas, "Outcomes by task and method",
      number(t.success) + Markup(" successes, ") + number(t.failure) + Markup(" failures, ") +
          number(t.acceptance_error) + Markup(" acceptance errors, ") + number(t.invalid) +
          Markup(" invalid runs; every task stands in the appendix"),
      Markup("A column is ") + (columns < tasks ? Markup("several tasks") : Markup("a task")) +
          Markup(", those solved most often first; each cell is split by how its runs "
                 "ended, from above: S success, F failure, E acceptance error, V "
                 "invalid; dashed and empty: no run has ended."));
}

namespace {

std::string span_words(std::int64_t ms) {
  if (ms < 120'000) return std::to_string(ms / 1000) + " s";
  if (ms < 7'200'000) return std::to_string(ms / 60'000) + " min";
  return std::to_string(ms / 3'600'000) + " h";
}

}  // namespace

Markup workers_figure(Context& c) {
  std::map<std::string, std::vector<std::uint32_t>> workers;
  std::int64_t from = 0, to = 0;
  std::size_t bars = 0;
  for (std::uint32_t i = 0; i < c.report.runs.size(); ++i) {
    const RunRecord& run = c.report.runs[i];
    if (run.state != RunRecord::State::kEnded || run.started_ms == 0 || run.worker.empty())
      continue;
    workers[run.worker].push_back(i);
    from = from == 0 ? run.started_ms : std::min(from, run.started_ms);
    to = std::max(to, run.started_ms + static_cast<std::int64_t>(run.wall_ms));
    ++bars;
  }
  constexpr std::size_t kWorkers = 40, kBars = 2'000, kBins = 120;
  if (bars == 0 || to <= from) return {};
  const bool single = bars <= kBars;
  constexpr double kLeft = 190, kTop = 14, kHigh = 26;
  const std::size_t shown = std::min(kWorkers, workers.size());
  const double bottom = kTop + (kHigh + 6) * static_cast<double>(shown);
  Canvas canvas(kFigureWidth, static_cast<int>(bottom) + 30);
  const Scale x(0, static_cast<double>(to - from), kLeft, kFigureWidth - 14);
  double y = kTop;
  std::size_t n = 0;
  for (auto& [name, runs] : workers) {
    if (kWorkers < ++n) break;
    canvas.words("label", {8, y + 17}, text(name, kRunLabel));
    if (single) {
      std::ranges::sort(runs, {}, [&](std::uint32_t i) { return c.report.runs[i].started_ms; });
      // Slots of a worker lie below each other: which it had is nobody's to say, how many is.
      std::vector<std::int64_t> slots;
      std::vector<std::pair<std::size_t, std::uint32_t>> placed;
      for (const std::uint32_t i : runs) {
        const RunRecord& run = c.report.runs[i];
        auto slot = std::ranges::find_if(
            slots, [&](std::int64_t until) { return until <= run.started_ms; });
        if (slot == slots.end()) slot = slots.insert(slots.end(), 0);
        *slot = run.started_ms + static_cast<std::int64_t>(run.wall_ms);
        placed.emplace_back(static_cast<std::size_t>(slot - slots.begin()), i);
      }
      const double high = kHigh / static_cast<double>(slots.size());
      for (const auto& [slot, i] : placed) {
        const RunRecord& run = c.report.runs[i];
        const double begin = x.at(static_cast<double>(run.started_ms - from));
        const double end =
            x.at(static_cast<double>(run.started_ms - from) + static_cast<double>(run.wall_ms));
        canvas.rect(kOutcomeStyles[static_cast<std::size_t>(run.outcome)],
                    {begin, y + high * static_cast<double>(slot)}, std::max(1.0, end - begin - 0.6),
                    high - (4 < high ? 1 : 0));
      }
    } else {
      // Runs at work in each part of the time, against the most there ever were.
      std::vector<double> work(kBins);
      const double bin = static_cast<double>(to - from) / kBins;
      for (const std::uint32_t i : runs) {
        const RunRecord& run = c.report.runs[i];
        const double begin = static_cast<double>(run.started_ms - from);
        const double end = begin + static_cast<double>(run.wall_ms);
        for (auto b = static_cast<std::size_t>(begin / bin);
             b < kBins && static_cast<double>(b) * bin < end; ++b)
          work[b] += std::min(end, static_cast<double>(b + 1) * bin) -
                     std::max(begin, static_cast<double>(b) * bin);
      }
      const double most = std::max(1.0, std::ranges::max(work));
      for (std::size_t b = 0; b < kBins; ++b) {
        if (work[b] <= 0) continue;
        const double begin = x.at(static_cast<double>(b) * bin);
        const double high = kHigh * work[b] / most;
        canvas.rect("spent", {begin, y + kHigh - high},
                    x.at(static_cast<double>(b + 1) * bin) - begin, high);
      }
    }
    canvas.line("grid", {kLeft, y + kHigh + 3}, {kFigureWidth - 14.0, y + kHigh + 3});
    y += kHigh + 6;
  }
  for (int part = 0; part <= 4; ++part) {
    const std::int64_t at = (to - from) * part / 4;
    canvas.words_mid("quiet", {x.at(static_cast<double>(at)) - (part == 4 ? 14 : 0), bottom + 18},
                     text(span_words(at)));
  }
  Markup caption = single ? Markup(
                                "A bar is a run by the attempt that counts, coloured as in the "
                                "figure of outcomes; runs of one worker at the same time lie "
                                "below each other.")
                          : Markup("How busy each worker was, against its own busiest time.");
  caption << Markup(" Time since ") << text(to_rfc3339(WallTime(from))) << Markup(".");
  if (shown < workers.size())
    caption << Markup(" ") << number(workers.size() - shown)
            << Markup(
                   " more workers are not "
                   "shown.");
  return c.figure(canvas, "Workers over time",
                  number(bars) + Markup(" runs on ") + number(workers.size()) +
                      Markup(" workers in ") + text(span_words(to - from)),
                  caption);
}

}  // namespace proctor::page
