// Unknown outcomes one after the other in favour of one method, those first that move the
// difference most, until the verdict is another.  What is said is what was tried: so many suffice.
#include "coordinator/aggregate/tipping.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "common/stats/paired.h"
#include "coordinator/aggregate/lattice.h"

namespace proctor::aggregate {
namespace {

// Verdicts that may be tried for one direction: the more tasks, the dearer is each.
std::size_t verdicts_to_try(std::size_t tasks) {
  constexpr std::size_t kWork = std::size_t{1} << 22U, kLeast = 8, kMost = 256;
  const std::size_t squared = std::max<std::size_t>(1, tasks * tasks);
  return std::clamp(kWork / squared, kLeast, kMost);
}

struct Cells {
  std::vector<TaskCell> favoured, other;
};

// What became of one unknown outcome.
enum class Turn : std::uint8_t { kErrorSucceeds, kInvalidSucceeds, kInvalidFails };

void apply(Cells& cells, std::size_t task, Turn turn) {
  TaskCell& cell = turn == Turn::kInvalidFails ? cells.other[task] : cells.favoured[task];
  if (turn == Turn::kErrorSucceeds) {
    --cell.error;
  } else {
    --cell.invalid;
    ++cell.scorable;
  }
  cell.success += turn == Turn::kInvalidFails ? 0 : 1;
}

double rate_of(const TaskCell& c) {
  return static_cast<double>(c.success) / static_cast<double>(c.scorable);
}

bool is_common(const TaskCell& f, const TaskCell& o) {
  return 0 < f.scorable && 0 < o.scorable;
}

// The difference before any turn, for the favoured method; by runs with what it is made of.
struct Start {
  double mean = 0;
  Weighing weighing = Weighing::kTasks;
  Cluster favoured, other;  // all runs of the tasks that both have
};

// By runs: how far the difference of the two ratios moves when f and o become f1 and o1.
double gain_by_runs(const Start& start, const Cells& before, const Cells& after) {
  const bool was = is_common(before.favoured[0], before.other[0]);
  const auto rate = [&](const Cluster& all, const TaskCell& c, const TaskCell& c1) {
    return static_cast<double>(all.successes + c1.success - (was ? c.success : 0)) /
           static_cast<double>(all.runs + c1.scorable - (was ? c.scorable : 0));
  };
  return rate(start.favoured, before.favoured[0], after.favoured[0]) -
         rate(start.other, before.other[0], after.other[0]) - start.mean;
}

// By how much a turn moves the difference (by tasks: their sum) towards the favoured method; 0: it
// does not.
double gain(const Cells& cells, std::size_t task, Turn turn, const Start& start) {
  const double mean = start.mean;
  const TaskCell &f = cells.favoured[task], &o = cells.other[task];
  if (turn == Turn::kErrorSucceeds && f.error == 0) return 0;
  if (turn == Turn::kInvalidSucceeds && f.invalid == 0) return 0;
  if (turn == Turn::kInvalidFails && o.invalid == 0) return 0;
  Cells after{{f}, {o}};
  apply(after, 0, turn);
  const TaskCell &f1 = after.favoured[0], &o1 = after.other[0];
  if (start.weighing == Weighing::kRuns && is_common(f1, o1))
    return gain_by_runs(start, Cells{{f}, {o}}, after);
  // A task that both have runs of now: it comes in with its own difference.
  if (f.scorable == 0 || o.scorable == 0) {
    if (0 < f1.scorable && 0 < o1.scorable) return rate_of(f1) - rate_of(o1) - mean;
    if (f1.scorable + f1.invalid == 0 || o1.scorable + o1.invalid == 0) return 0;
    // Half of what both turns come to: that task as one run of each, or as one task.
    return (1 - mean) / 2 / static_cast<double>(1 + start.favoured.runs);
  }
  return (rate_of(f1) - rate_of(o1)) - (rate_of(f) - rate_of(o));
}

struct Step {
  double gain = 0;
  std::size_t task = 0;
  Turn turn = Turn::kErrorSucceeds;
  double lead = 0;  // what the other method is ahead by at this task
  // The largest gain first; of equal ones the task that is next to being even, because a test of
  // signs loses that one; then the first task.
  friend bool operator<(const Step& x, const Step& y) {
    return std::tuple(x.gain, y.lead, y.task) < std::tuple(y.gain, x.lead, x.task);
  }
};

double lead_of(const Cells& cells, std::size_t task) {
  constexpr double kNoLead = 2;  // after all that have one
  const TaskCell &f = cells.favoured[task], &o = cells.other[task];
  if (f.scorable == 0 || o.scorable == 0) return kNoLead;
  const double lead = rate_of(o) - rate_of(f);
  return 0 < lead ? lead : kNoLead;
}

Step best_of(const Cells& cells, std::size_t task, const Start& start) {
  const double lead = lead_of(cells, task);
  Step best{0, task, Turn::kErrorSucceeds, lead};
  for (const Turn turn : {Turn::kErrorSucceeds, Turn::kInvalidSucceeds, Turn::kInvalidFails})
    if (const double g = gain(cells, task, turn, start); best.gain < g)
      best = {g, task, turn, lead};
  return best;
}

std::vector<Step> path_of(Cells cells, const Start& start) {
  std::priority_queue<Step> open;
  const auto offer = [&](std::size_t task) {
    if (const Step step = best_of(cells, task, start); 0 < step.gain) open.push(step);
  };
  for (std::size_t i = 0; i < cells.favoured.size(); ++i) offer(i);
  std::vector<Step> path;
  while (!open.empty()) {
    const Step step = open.top();
    open.pop();
    path.push_back(step);
    apply(cells, step.task, step.turn);
    offer(step.task);
  }
  return path;
}

// Every number of runs that a task comes to on the path.
Lattice lattice_of(Cells cells, const std::vector<Step>& path) {
  Lattice out;
  const auto add = [&](std::size_t task) {
    out.add(cells.favoured[task].scorable);
    out.add(cells.other[task].scorable);
  };
  for (std::size_t i = 0; i < cells.favoured.size(); ++i) add(i);
  for (const Step& step : path) {
    apply(cells, step.task, step.turn);
    add(step.task);
  }
  return out;
}

// Tasks that no step of a part of the path touches: their signs are flipped once for all of it.
struct Fixed {
  SignFlips signs;
  std::vector<bool> has;  // by task
};

class Direction {
 public:
  Direction(const Sides& s, bool for_a, const AnalysisPlan& plan, const Family& family,
            std::size_t at)
      : cells_{for_a ? Column(s.a.begin(), s.a.end()) : Column(s.b.begin(), s.b.end()),
               for_a ? Column(s.b.begin(), s.b.end()) : Column(s.a.begin(), s.a.end())},
        blocks_(s.blocks),
        for_a_(for_a),
        plan_(plan),
        family_(family),
        at_(at) {
    path_ = path_of(cells_, start_of(s));
    lattice_ = lattice_of(cells_, path_);
    flips_once_ = family.asks_for_p() && lattice_.is_exact() &&
                  weighing_of(plan) == Weighing::kTasks && blocks_.empty();
  }

  // After the first `n` steps; `fixed` has some of the tasks.
  ContrastVerdict verdict_after(std::size_t n, const Fixed* fixed = nullptr) const {
    const Cells cells = after(n);
    const Sides sides = for_a_ ? Sides{cells.favoured, cells.other, blocks_}
                               : Sides{cells.other, cells.favoured, blocks_};
    Contrast c = judged_contrast(sides.a, sides.b, plan_, blocks_, flips_of(cells, fixed));
    if (!c.flips) return ContrastVerdict::kNone;
    c.adjusted = family_.adjusted(at_, sides, c.flips->p);
    return verdict_of(c, plan_);
  }

  // The fewest steps of those tried after which it is another: all of them where they are few, else
  // at even distances, and then within the first distance in which it turned.
  std::optional<std::size_t> turned(ContrastVerdict verdict) const {
    std::size_t low = 0, high = path_.size();
    std::optional<std::size_t> found;
    Fixed fixed{{}, std::vector<bool>(cells_.favoured.size())};
    const std::size_t tries =
        std::min(verdicts_to_try(cells_.favoured.size()), family_.most_questions(at_));
    while (low < high) {
      const std::size_t stride = std::max<std::size_t>(1, (high - low + tries - 1) / tries);
      const std::size_t end = high;
      if (flips_once_) fix(fixed, low, end);
      std::optional<std::size_t> here;
      for (std::size_t n = low; !here && n < end;) {
        n = std::min(n + stride, end);
        if ((found && n == *found) || verdict_after(n, &fixed) != verdict) here = n;
        if (!here) low = n;
      }
      if (!here) return found;
      found = here;
      if (stride == 1) return found;
      high = *here;
    }
    return found;
  }

 private:
  using Column = std::vector<TaskCell>;

  Start start_of(const Sides& s) const {
    const auto now = judged_contrast(s.a, s.b, plan_, blocks_).difference.estimate.value;
    Start out{now ? (for_a_ ? *now : -*now) : 0, weighing_of(plan_), {}, {}};
    if (out.weighing == Weighing::kTasks) return out;
    for (std::size_t i = 0; i < cells_.favoured.size(); ++i) {
      const TaskCell &f = cells_.favoured[i], &o = cells_.other[i];
      if (!is_common(f, o)) continue;
      out.favoured = {out.favoured.runs + f.scorable, out.favoured.successes + f.success};
      out.other = {out.other.runs + o.scorable, out.other.successes + o.success};
    }
    return out;
  }

  Cells after(std::size_t n) const {
    Cells cells = cells_;
    for (std::size_t i = 0; i < n; ++i) apply(cells, path_[i].task, path_[i].turn);
    return cells;
  }

  std::int64_t difference(const Cells& cells, std::size_t task) const {
    const TaskCell &f = cells.favoured[task], &o = cells.other[task];
    if (f.scorable == 0 || o.scorable == 0) return 0;
    return lattice_.of(f.success, f.scorable) - lattice_.of(o.success, o.scorable);
  }

  // The tasks, of those that are not fixed yet, that steps from `low` to `end` leave as they are.
  void fix(Fixed& fixed, std::size_t low, std::size_t end) const {
    std::vector<bool> leave = fixed.has;
    for (std::size_t i = low; i < end; ++i) leave[path_[i].task] = true;
    const Cells cells = after(low);
    std::vector<std::int64_t> differences;
    for (std::size_t i = 0; i < leave.size(); ++i) {
      if (leave[i]) continue;
      differences.push_back(difference(cells, i));
      fixed.has[i] = true;
    }
    fixed.signs.add(differences);
  }

  // Nothing: they are to be flipped one and all, for the path has no lattice that is small enough.
  std::optional<Significance> flips_of(const Cells& cells, const Fixed* fixed) const {
    if (!family_.asks_for_p()) return Significance{};
    if (fixed == nullptr || !flips_once_) return std::nullopt;
    std::vector<std::int64_t> others;
    for (std::size_t i = 0; i < fixed->has.size(); ++i)
      if (!fixed->has[i]) others.push_back(difference(cells, i));
    const Significance flips = fixed->signs.with(others);
    return flips.exact ? std::optional(flips) : std::nullopt;
  }

  Cells cells_;
  std::span<const std::uint32_t> blocks_;
  bool for_a_;
  const AnalysisPlan& plan_;
  const Family& family_;
  std::size_t at_;
  std::vector<Step> path_;
  Lattice lattice_;
  bool flips_once_ = false;  // signs of tasks that no step touches are flipped for all of them
};

}  // namespace

Tipping tipping_of(const Sides& sides, const AnalysisPlan& plan, const Family& family,
                   std::size_t at, ContrastVerdict verdict) {
  Tipping out;
  for (const auto& column : {sides.a, sides.b})
    for (const TaskCell& cell : column) out.unknown += cell.error + cell.invalid;
  if (out.unknown == 0) return out;
  out.tried = 0 < family.most_questions(at);
  if (!out.tried) return out;
  for (const bool for_a : {true, false}) {
    const Direction direction(sides, for_a, plan, family, at);
    const std::optional<std::size_t> n = direction.turned(verdict);
    if (!n || (out.turned && *out.turned <= *n)) continue;
    out.turned = *n;
    out.for_a = for_a;
    out.becomes = direction.verdict_after(*n);
  }
  return out;
}

}  // namespace proctor::aggregate
