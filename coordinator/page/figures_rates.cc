// Rates and their differences: forest, contrasts, differences task by task, several tries.
#include "common/base/system_clock.h"
#include "coordinator/page/sections.h"

namespace proctor::page {
namespace {
constexpr int kPlotFrom = 250, kPlotTo = 640, kLine = 24;
constexpr std::size_t kRateLabel = 34;
constexpr std::size_t kForestRows = 200;

std::string words_of(const std::optional<double>& value, const std::optional<Interval>& interval) {
  if (!value) return "no rate";
  return interval ? aggregate::percent_with_interval(value, interval)
                  : aggregate::percent(*value) + " %";
}

std::string signed_words(double difference) {
  const std::string size = aggregate::percent(std::abs(difference));
  if (size == "0.0") return size;
  return (difference < 0 ? "\xE2\x88\x92" : "+") + size;
}

// "+50", "0": of an axis.
Markup axis_points(int p) {
  return text((0 < p ? "+" : p < 0 ? "\xE2\x88\x92" : "") + std::to_string(std::abs(p)));
}

void whisker(Canvas& canvas, Literal style, const Scale& x, const Interval& interval, double y,
             double half) {
  canvas.whisker(style, x.clamped(interval.low), x.clamped(interval.high), y, half);
}

void percent_axis(Canvas& canvas, const Scale& x, double top, double bottom) {
  for (int p = 0; p <= 100; p += 25) {
    canvas.line("grid", {x.at(p / kPercent), top}, {x.at(p / kPercent), bottom});
    canvas.words_mid("quiet", {x.at(p / kPercent), top - 8},
                     number(static_cast<std::uint64_t>(p)) + " %");
  }
}

// Rows of the forest: those of all tasks, then the strata that differ; none of a control.
std::vector<std::size_t> forest_rows(const Context& c, ForestRows which) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < c.report.rows.size() && out.size() < kForestRows; ++i)
    if (!c.report.rows[i].is_control &&
        (c.report.rows[i].key.empty() ||
         (which == ForestRows::kWithStrata && !is_only_level(c.report, c.report.rows[i].key))))
      out.push_back(i);
  return out;
}

struct Estimated {
  std::optional<double> value;
  std::optional<Interval> interval, bounds;
};
Estimated estimated(const Context& c, const ReportRow& row) {
  if (!row.key.empty())
    return {row.by_task ? std::optional(row.by_task->mean) : std::nullopt, row.interval,
            row.bounds_by_task};
  const MethodRate& r = c.rate_of(row.method);
  return {r.rate.value, r.rate.interval, r.bounds};
}
}  // namespace

void rate_axis(Canvas& canvas, const Scale& y, double left, double right) {
  for (int p = 0; p <= 100; p += 25) {
    canvas.line("grid", {left, y.at(p / kPercent)}, {right, y.at(p / kPercent)});
    canvas.words_end("quiet", {left - 8, y.at(p / kPercent) + 4},
                     number(static_cast<std::uint64_t>(p)) + " %");
  }
}

void name_ends(Canvas& canvas, std::vector<std::pair<double, Markup>> names, double x,
               double apart) {
  std::ranges::stable_sort(names, {}, [](const auto& n) { return n.first; });
  double last = 0;
  for (const auto& [y, name] : names) {
    last = std::max(y + 4, last + apart);
    canvas.words("label", {x, last}, name);
  }
}

Markup forest_figure(Context& c, ForestRows which) {
  const std::vector<std::size_t> rows = forest_rows(c, which);
  if (rows.empty()) return {};
  constexpr double kTop = 40;
  std::vector<std::pair<double, std::size_t>> lines;  // where each row is
  std::vector<std::pair<double, std::string>> groups;
  double y = kTop;
  std::string last = "\n";
  for (const std::size_t at : rows) {
    const ReportRow& row = c.report.rows[at];
    const std::string group = row.key.empty() ? "all tasks" : row.key + "=" + row.value;
    if (group != last) {
      if (last != "\n") y += 8;
      y += kLine;
      groups.emplace_back(y, group);
      last = group;
    }
    y += kLine;
    lines.emplace_back(y, at);
  }
  const double bottom = y + 12;
  Canvas canvas(kFigureWidth, static_cast<int>(bottom) + 8);
  const Scale x(0, 1, kPlotFrom, kPlotTo);
  percent_axis(canvas, x, kTop - 4, bottom);
  for (const auto& [at, name] : groups) canvas.words("strong", {8, at}, text(name, kRateLabel));
  std::string desc;
  for (const auto& [base, at] : lines) {
    const ReportRow& row = c.report.rows[at];
    canvas.words("label", {24, base}, text(c.name(row.method, kRateLabel)));
    const double middle = base - 4.5;
    const auto [value, interval, bounds] = estimated(c, row);
    if (!value) {
      canvas.words("quiet", {kPlotFrom + 6, base}, "no scorable run");
      continue;
    }
    if (bounds) whisker(canvas, "bound", x, *bounds, middle + 6, 3);
    if (interval) whisker(canvas, "whisker", x, *interval, middle, 5);
    canvas.marker("dot", c.shape(row.method), {x.clamped(*value), middle});
    canvas.words("label", {kPlotTo + 16, base},
                 text(words_of(value, interval) + "  " +
                      counted(row.by_task ? row.by_task->tasks : 0, "task")) +
                     ", " + number(row.success) + "/" + number(row.scorable()));
    if (row.key.empty())
      desc += (desc.empty() ? "" : "; ") + c.name(row.method) + " " + words_of(value, interval);
  }
  return c.figure(canvas,
                  which == ForestRows::kAllTasks
                      ? Markup("Success rates ") + text(over_words(c.analysis.plan))
                      : Markup("Success rates by stratum"),
                  text(desc, 1'000),
                  "Mark: success rate, of strata over tasks; solid whisker: its interval; dashed: "
                  "where it lies whatever errors and invalid runs would have been. Controls are in "
                  "the table alone. Numbers: tasks, and successes of scorable runs.");
}

Markup contrast_figure(Context& c) {
  const std::span<const Contrast> contrasts = of_agents(c.analysis.contrasts);
  if (contrasts.empty()) return {};
  constexpr double kTop = 40;
  const double bottom = kTop + kLine * static_cast<double>(contrasts.size()) + 12;
  Canvas canvas(kFigureWidth, static_cast<int>(bottom) + 8);
  const Scale x(-1, 1, kPlotFrom, kPlotTo);
  const double effect = c.analysis.plan.min_effect.real();
  canvas.rect("band", {x.at(-effect), kTop - 4}, x.at(effect) - x.at(-effect), bottom - kTop + 4);
  for (int p = -100; p <= 100; p += 50) {
    canvas.line("grid", {x.at(p / kPercent), kTop - 4}, {x.at(p / kPercent), bottom});
    canvas.words_mid("quiet", {x.at(p / kPercent), kTop - 12}, axis_points(p));
  }
  canvas.line("reference", {x.at(0), kTop - 4}, {x.at(0), bottom});
  double base = kTop + 14;
  std::string desc;
  for (const Contrast& contrast : contrasts) {
    constexpr std::size_t kBoth = kRateLabel - 7;  // the minus sign, and a mark at each
    const std::size_t of_a = kBoth - std::min(contrast.b.size(), kBoth / 2);
    const std::size_t of_b = kBoth - std::min(contrast.a.size(), of_a);
    canvas.words("label", {8, base},
                 text(c.name(contrast.a, of_a) + " \xE2\x88\x92 " + c.name(contrast.b, of_b)));
    const Estimate& d = contrast.difference.estimate;
    if (d.value) {
      const double middle = base - 4.5;
      if (contrast.bounds) whisker(canvas, "bound", x, contrast.bounds->identified, middle + 6, 3);
      if (contrast.simultaneous) whisker(canvas, "joint", x, *contrast.simultaneous, middle - 6, 3);
      if (d.interval) whisker(canvas, "whisker", x, *d.interval, middle, 5);
      canvas.marker("dot", c.shape(contrast.a), {x.clamped(*d.value), middle});
      desc += (desc.empty() ? "" : "; ") + c.name(contrast.a) + " less " + c.name(contrast.b) +
              " " + signed_words(*d.value) + " points, " + verdict_words(contrast);
      Markup between;
      if (d.interval) {
        const Interval shown = aggregate::shown_difference(*d.interval);
        between = Markup(" [") + text(signed_words(shown.low)) + ", " +
                  text(signed_words(shown.high)) + "]";
      }
      canvas.words("label", {kPlotTo + 16, base},
                   text(signed_words(*d.value)) + between + "  " + text(verdict_words(contrast)));
    } else {
      canvas.words("quiet", {kPlotFrom + 6, base}, "nothing to compare");
    }
    base += kLine;
  }
  return c.figure(
      canvas, "Differences between methods, in points", text(desc, 1'000),
      "To the right of 0 the first method is better. Mark and solid whisker: difference with its "
      "interval; thin above it, where the plan asks for max-t: the interval that holds together "
      "with the others; dashed: bounds; shaded: differences too small to matter, by the plan. "
      "Whiskers that reach an edge go on beyond it or end there; the table has the numbers.");
}

namespace {
struct TaskDifference {
  double d = 0;
  std::size_t task = 0;
};

std::vector<TaskDifference> differences_of(const Context& c, const Contrast& x) {
  std::vector<TaskDifference> out;
  const std::size_t a = c.cells.method(x.a), b = c.cells.method(x.b);
  for (std::size_t i = 0; i < c.cells.tasks.size(); ++i) {
    const TaskCell &of_a = c.cells.at(i, a), &of_b = c.cells.at(i, b);
    if (of_a.scorable == 0 || of_b.scorable == 0) continue;
    out.push_back({of_a.share() - of_b.share(), i});
  }
  std::ranges::stable_sort(out, {}, &TaskDifference::d);
  return out;
}

// Above so many tasks bars are too thin: how many tasks there are of each difference.
Markup differences_histogram(Context& c, const Contrast& x,
                             const std::vector<TaskDifference>& tasks, const Markup& title,
                             const Markup& desc) {
  constexpr std::size_t kBins = 41;
  std::vector<std::size_t> bins(kBins);
  for (const TaskDifference& t : tasks)
    ++bins[static_cast<std::size_t>(std::lround((t.d + 1) / 2 * (kBins - 1)))];
  const std::size_t most = std::ranges::max(bins);
  Canvas canvas(kFigureWidth, 240);
  const Scale across(-1, 1, 60, kFigureWidth - 40), up(0, static_cast<double>(most), 200, 30);
  const double wide = (kFigureWidth - 100.0) / (kBins - 1) - 2;
  for (std::size_t b = 0; b < kBins; ++b) {
    if (bins[b] == 0) continue;
    const double d = static_cast<double>(b) / (kBins - 1) * 2 - 1;
    const double y = up.at(static_cast<double>(bins[b]));
    canvas.rect(d < 0   ? Literal("worse")
                : d > 0 ? Literal("better")
                        : Literal("invalid"),
                {across.at(d) - wide / 2, y}, wide, 200 - y);
  }
  canvas.line("axis", {50, 200}, {kFigureWidth - 10.0, 200});
  for (int p = -100; p <= 100; p += 50)
    canvas.words_mid("quiet", {across.at(p / kPercent), 218}, axis_points(p));
  canvas.words("quiet", {8, 34}, number(most) + " tasks");
  return c.figure(canvas, title, desc,
                  Markup("Tasks by difference, in points: left of 0 ") + text(c.name(x.b)) +
                      " did better, right of it " + text(c.name(x.a)) + ".");
}
}  // namespace

Markup differences_figure(Context& c, const Contrast& x) {
  const std::vector<TaskDifference> tasks = differences_of(c, x);
  if (tasks.size() < 2) return {};
  const Markup title = Markup("Task by task: ") + text(c.name(x.a)) + " less " + text(c.name(x.b));
  const Markup desc = text(c.name(x.a)) + " better in " + number(x.a_better) + ", " +
                      text(c.name(x.b)) + " better in " + number(x.b_better) + " of " +
                      number(tasks.size()) + " tasks";
  constexpr std::size_t kBars = 300;
  if (kBars < tasks.size()) return differences_histogram(c, x, tasks, title, desc);
  constexpr double kLeft = 60, kUp = 30, kDown = 210;
  Canvas canvas(kFigureWidth, 250);
  const Scale y(-1, 1, kDown, kUp);
  for (int p = -100; p <= 100; p += 50) {
    canvas.line("grid", {kLeft, y.at(p / kPercent)}, {kFigureWidth - 10.0, y.at(p / kPercent)});
    canvas.words_end("quiet", {kLeft - 8, y.at(p / kPercent) + 4}, axis_points(p));
  }
  const double step = (kFigureWidth - 10 - kLeft) / static_cast<double>(tasks.size());
  const double wide = std::min(step * 0.8, 44.0);
  constexpr std::size_t kNamed = 12;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double d = tasks[i].d, middle = kLeft + step * (static_cast<double>(i) + 0.5);
    const double from = std::min(y.at(d), y.at(0)), to = std::max(y.at(d), y.at(0));
    if (d == 0)
      canvas.marker("invalid", 0, {middle, y.at(0)});
    else
      canvas.rect(d < 0 ? Literal("worse") : Literal("better"), {middle - wide / 2, from}, wide,
                  to - from);
    if (tasks.size() <= kNamed)
      canvas.words_mid(
          "quiet", {middle, kDown + 20},
          text(c.cells.tasks[tasks[i].task], static_cast<std::size_t>(std::max(6.0, step / 8))));
  }
  canvas.line("axis", {kLeft, y.at(0)}, {kFigureWidth - 10.0, y.at(0)});
  return c.figure(canvas, title, desc,
                  Markup("A bar is a task, in points: upward ") + text(c.name(x.a)) +
                      " did better, downward " + text(c.name(x.b)) +
                      "; a dot: both alike. Every task stands in the appendix.");
}

Markup pass_figure(Context& c) {
  std::uint32_t most = 0;
  for (const MethodRate& r : c.analysis.rates)
    for (std::size_t i = 0; i < r.pass.size(); ++i)
      if (0 < r.pass[i].tasks) most = std::max(most, c.analysis.plan.pass_k[i]);
  constexpr std::size_t kMethods = 8;
  if (most < 2 || kMethods < c.analysis.rates.size()) return {};
  constexpr double kLeft = 60, kRight = 700, kUp = 24, kDown = 230;
  Canvas canvas(kFigureWidth, 270);
  const Scale x(1, most, kLeft + 10, kRight), y(0, 1, kDown, kUp);
  rate_axis(canvas, y, kLeft, kRight + 10);
  for (const std::uint32_t k : c.analysis.plan.pass_k)
    if (k <= most) canvas.words_mid("quiet", {x.at(k), kDown + 20}, number(k));
  canvas.words_mid("quiet", {(kLeft + kRight) / 2, kDown + 38}, "tries (k)");
  std::vector<std::pair<double, Markup>> names;
  std::string desc;
  for (const MethodRate& r : c.analysis.rates) {
    std::vector<Point> any, every;
    for (std::size_t i = 0; i < r.pass.size(); ++i) {
      const double k = c.analysis.plan.pass_k[i];
      if (most < c.analysis.plan.pass_k[i]) continue;
      if (const auto& v = r.pass[i].at_least_one.value) any.push_back({x.at(k), y.clamped(*v)});
      if (const auto& v = r.pass[i].all.value) every.push_back({x.at(k), y.clamped(*v)});
    }
    if (any.empty() || r.is_control) continue;
    canvas.polyline("curve", any);
    canvas.polyline("steps", every);
    for (const Point& p : any) canvas.marker("dot", c.shape(r.method), p);
    for (const Point& p : every) canvas.marker("dot", c.shape(r.method), p);
    names.emplace_back(any.back().y, text(c.name(r.method, kRateLabel)) + ", at least one");
    if (!every.empty())
      names.emplace_back(every.back().y, text(c.name(r.method, kRateLabel)) + ", all");
    desc += (desc.empty() ? "" : "; ") + c.name(r.method);
  }
  if (names.empty()) return {};
  name_ends(canvas, std::move(names), kRight + 18, 15);
  return c.figure(canvas, "How likely a task is solved when it is tried k times",
                  Markup("pass@k and pass^k of ") + text(desc, 1'000) + "; see the table",
                  "Solid: at least one of k tries succeeds (pass@k). Dashed: all k do (pass^k). "
                  "Far apart: runs of a task come out differently.");
}

// Runs: outcomes of tasks under methods, and who ran what when.

namespace {
constexpr std::size_t kRunLabel = 26;

// One cell: its runs as parts of its height in a fixed order, with letters where there is room.
void append_cell(Canvas& canvas, const TaskCell& s, Point corner, double wide, double high) {
  const std::uint64_t all = s.scorable + s.invalid, failure = s.scorable - s.success - s.error;
  if (all == 0) {
    canvas.rect("none", {corner.x + 0.5, corner.y + 0.5}, wide - 1, high - 1);
    return;
  }
  double y = corner.y;
  for (std::size_t kind = 0; const std::uint64_t n : {s.success, failure, s.error, s.invalid}) {
    const std::size_t k = kind++;
    if (n == 0) continue;
    const double h = high * static_cast<double>(n) / static_cast<double>(all);
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
        sum += cell.share();
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
                 text(c.name(r.method, kRunLabel)));
    for (std::size_t column = 0; column < columns; ++column) {
      TaskCell sum;
      for (std::size_t i = column * tasks / columns; i < (column + 1) * tasks / columns; ++i)
        for (const auto count :
             {&TaskCell::scorable, &TaskCell::success, &TaskCell::error, &TaskCell::invalid})
          sum.*count += c.cells.at(order[i].second, c.cells.method(r.method)).*count;
      append_cell(canvas, sum, {left + wide * static_cast<double>(column), y}, wide - gap, kHigh);
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
  return c.figure(canvas, "Outcomes by task and method",
                  number(t.success) + " successes, " + number(t.failure) + " failures, " +
                      number(t.acceptance_error) + " acceptance errors, " + number(t.invalid) +
                      " invalid runs; every task stands in the appendix",
                  Markup("A column is ") +
                      (columns < tasks ? Markup("several tasks") : Markup("a task")) +
                      ", those solved most often first; each cell is split by how its runs ended, "
                      "from above: S success, F failure, E acceptance error, V invalid; dashed and "
                      "empty: no run has ended.");
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
  Markup caption =
      single ? Markup(
                   "A bar is a run by the attempt that counts, coloured as in the figure of "
                   "outcomes; runs of one worker at the same time lie below each other.")
             : Markup("How busy each worker was, against its own busiest time.");
  caption << " Time since " << text(to_rfc3339(WallTime(from))) << ".";
  if (shown < workers.size())
    caption << " " << number(workers.size() - shown) << Markup(" more workers are not shown.");
  return c.figure(canvas, "Workers over time",
                  number(bars) + " runs on " + number(workers.size()) + " workers in " +
                      text(span_words(to - from)),
                  caption);
}
}  // namespace proctor::page
