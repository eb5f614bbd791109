#include "coordinator/aggregate/family.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "common/base/result.h"
#include "common/stats/paired.h"
#include "common/stats/resample.h"

namespace proctor::aggregate {
namespace {
using Multiplicity = AnalysisPlan::Multiplicity;

// Additions that a report may spend on all replicates of a family, and on asking what would turn
// one verdict: a second or two, and some tenths.
constexpr double kFamilyWork = 2e10, kQuestionWork = 1e9;

bool is_common(const TaskCell& a, const TaskCell& b) {
  return 0 < a.scorable && 0 < b.scorable;
}

Lattice lattice_of(const Sides& s) {
  Lattice out;
  for (std::size_t i = 0; i < s.a.size(); ++i)
    if (is_common(s.a[i], s.b[i])) {
      out.add(s.a[i].scorable);
      out.add(s.b[i].scorable);
    }
  return out;
}

void round_to(WholeDifferences& whole, double largest) {
  double now = 0;
  for (const std::int64_t d : whole.of) now = std::max(now, std::fabs(static_cast<double>(d)));
  if (now <= largest) return;
  whole.exact = false;
  for (std::int64_t& d : whole.of) d = std::llround(static_cast<double>(d) * (largest / now));
}

// By runs: the score of "all runs of both have one rate p", p being the rate of them all, which is
// (s_a - n_a p) / N_a - (s_b - n_b p) / N_b at a task.  Scores sum to the difference whatever p is;
// where the two have equal shares of their runs at each task they are multiples of its differences,
// and elsewhere their flips are the test of Hemerik, Goeman & Finos (2020).
WholeDifferences run_scores(const Sides& s) {
  double runs_a = 0, runs_b = 0, won = 0, most = 0;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    if (!is_common(s.a[i], s.b[i])) continue;
    runs_a += static_cast<double>(s.a[i].scorable);
    runs_b += static_cast<double>(s.b[i].scorable);
    won += static_cast<double>(s.a[i].success + s.b[i].success);
    most = std::max(most, static_cast<double>(std::max(s.a[i].scorable, s.b[i].scorable)));
  }
  // Whole doubles while all products are below 2^53; scaled to that where they are not.
  constexpr double kWhole = 0x1p53;
  const double runs = runs_a + runs_b, largest = most * runs * runs;
  WholeDifferences out{{}, largest < kWhole};
  const double scale = out.exact ? 1 : kWhole / largest;
  std::int64_t unit = 0;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const auto excess = [&](const TaskCell& c) {
      return static_cast<double>(c.success) * runs - static_cast<double>(c.scorable) * won;
    };
    out.of.push_back(is_common(s.a[i], s.b[i])
                         ? std::llround((excess(s.a[i]) * runs_b - excess(s.b[i]) * runs_a) * scale)
                         : 0);
    unit = std::gcd(unit, out.of.back());
  }
  if (1 < unit)
    for (std::int64_t& d : out.of) d /= unit;
  out.of = block_sums(std::move(out.of), s.blocks);
  return out;
}

// Additions that flipping these signs exactly takes.
double flip_work(const std::vector<std::int64_t>& differences) {
  double reach = 0, steps = 0;
  for (const std::int64_t d : differences) {
    reach += std::fabs(static_cast<double>(d));
    steps += d == 0 ? 0 : 1;
  }
  return reach * steps;
}

// Whole numbers over blocks, in as many limbs of 15 bits as hold them.
class Columns {
 public:
  std::size_t add(std::vector<std::int64_t> values) {
    constexpr std::int64_t kLimb = std::int64_t{1} << 15U;
    at_.push_back({table_.columns.size(), 0});
    do {
      std::vector<std::int16_t> column;
      column.reserve(values.size());
      for (std::int64_t& value : values) {
        column.push_back(static_cast<std::int16_t>(value % kLimb));
        value /= kLimb;
      }
      table_.columns.push_back(std::move(column));
      ++at_.back().second;
    } while (std::ranges::any_of(values, [](std::int64_t v) { return 0 < v; }));
    return at_.size() - 1;
  }
  ResampledSums drawn(std::uint32_t draws) {
    table_.stratum_begin = {0};
    ResampledSums sums(draws, 1, table_.columns.size());
    resample(table_, 0, draws, sums);
    return sums;
  }
  double sum(const ResampledSums& sums, std::uint32_t replicate, std::size_t column) const {
    const auto [at, limbs] = at_[column];
    std::int64_t out = 0;
    for (std::size_t limb = limbs; 0 < limb--;)
      out = (out << 15) + sums.sum(replicate, 0, at + limb);
    return static_cast<double>(out);
  }

 private:
  ResampleTable table_;
  std::vector<std::pair<std::size_t, std::size_t>> at_;  // the first of each, and how many
};

// The two rates of a contrast as sums over tasks: part / whole of each side.
struct RateColumns {
  std::size_t part_a = 0, whole_a = 0, part_b = 0, whole_b = 0;
  double unit = 1;
};

RateColumns columns_of(const Sides& s, const AnalysisPlan& plan, Columns& columns) {
  const Lattice lattice = lattice_of(s);
  const bool by_task = plan.estimand == AnalysisPlan::Estimand::kTaskMean;
  std::vector<std::int64_t> part_a, whole_a, part_b, whole_b;
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const TaskCell &a = s.a[i], &b = s.b[i];
    const bool common = is_common(a, b);
    const auto put = [&](const TaskCell& c, std::vector<std::int64_t>& part,
                         std::vector<std::int64_t>& whole) {
      part.push_back(!common   ? 0
                     : by_task ? lattice.of(c.success, c.scorable)
                               : static_cast<std::int64_t>(c.success));
      whole.push_back(!common ? 0 : by_task ? 1 : static_cast<std::int64_t>(c.scorable));
    };
    put(a, part_a, whole_a);
    put(b, part_b, whole_b);
  }
  RateColumns out;
  out.unit = by_task ? static_cast<double>(lattice.unit()) : 1;
  const auto add = [&](std::vector<std::int64_t>& of_tasks) {
    return columns.add(block_sums(std::move(of_tasks), s.blocks));
  };
  out.part_a = add(part_a);
  out.part_b = add(part_b);
  out.whole_a = add(whole_a);
  out.whole_b = by_task ? out.whole_a : add(whole_b);
  return out;
}
}  // namespace

Weighing weighing_of(const AnalysisPlan& plan) {
  return plan.estimand == AnalysisPlan::Estimand::kTaskMean ? Weighing::kTasks : Weighing::kRuns;
}

std::span<const std::uint32_t> blocks_of(const AnalysisPlan& plan,
                                         std::span<const std::uint32_t> repositories) {
  return plan.is_over_repositories() ? repositories : std::span<const std::uint32_t>();
}

std::vector<std::int64_t> block_sums(std::vector<std::int64_t> of_tasks,
                                     std::span<const std::uint32_t> blocks) {
  if (blocks.empty()) return of_tasks;
  std::map<std::uint32_t, std::int64_t> sums;
  for (std::size_t i = 0; i < blocks.size(); ++i) sums[blocks[i]] += of_tasks[i];
  std::vector<std::int64_t> out;
  for (const auto& [block, sum] : sums) out.push_back(sum);
  return out;
}

WholeDifferences whole_differences(const Sides& s, Weighing weighing) {
  // Scores of unequal runs are large numbers: a thousandth of the largest is near enough then.
  constexpr double kExactWork = 0x1p24, kRounded = 0x1p10;
  if (weighing == Weighing::kRuns) {
    WholeDifferences out = run_scores(s);
    if (kExactWork < flip_work(out.of)) round_to(out, kRounded);
    return out;
  }
  const Lattice lattice = lattice_of(s);
  WholeDifferences out{{}, lattice.is_exact()};
  for (std::size_t i = 0; i < s.a.size(); ++i) {
    const TaskCell &a = s.a[i], &b = s.b[i];
    out.of.push_back(is_common(a, b)
                         ? lattice.of(a.success, a.scorable) - lattice.of(b.success, b.scorable)
                         : 0);
  }
  out.of = block_sums(std::move(out.of), s.blocks);
  return out;
}

Significance flips_of(const Sides& sides, Weighing weighing) {
  const WholeDifferences whole = whole_differences(sides, weighing);
  Significance out = sign_flip(whole.of);
  out.exact = out.exact && whole.exact;
  return out;
}

namespace {
// Common flips need them below 2^15.
std::vector<std::int64_t> small_differences(const Sides& s, Weighing weighing) {
  WholeDifferences out =
      weighing == Weighing::kRuns ? run_scores(s) : whole_differences(s, weighing);
  round_to(out, (1 << 15) - 1);
  return std::move(out.of);
}
}  // namespace

Family::Family(std::vector<Sides> sides, std::vector<double> p, Multiplicity rule,
               Weighing weighing)
    : sides_(std::move(sides)), p_(std::move(p)), rule_(rule), weighing_(weighing) {
  PROCTOR_ASSERT(sides_.size() == p_.size());
  if (rule_ == Multiplicity::kMaxT)
    for (const Sides& s : sides_) differences_.push_back(small_differences(s, weighing_));
}

std::vector<double> Family::adjusted() const {
  return rule_ == Multiplicity::kMaxT ? westfall_young(differences_) : adjust_holm(p_);
}

double Family::adjusted(std::size_t at, const Sides& now, double p) const {
  if (rule_ == Multiplicity::kHolm) {
    std::vector<double> all = p_;
    all[at] = p;
    return adjust_holm(all)[at];
  }
  std::vector<std::vector<std::int64_t>> all = differences_;
  all[at] = small_differences(now, weighing_);
  return westfall_young(all)[at];
}

std::size_t Family::most_questions(std::size_t at) const {
  constexpr std::size_t kMost = 256, kFewest = 8;
  constexpr double kFlipWork = 0x1p28;
  if (rule_ == Multiplicity::kHolm &&
      (weighing_ == Weighing::kRuns || !sides_[at].blocks.empty())) {
    // Each outcome moves the score of every task, or that of a block: all signs are flipped anew.
    const double each = std::max(1.0, flip_work(whole_differences(sides_[at], weighing_).of));
    return static_cast<std::size_t>(
        std::clamp<double>(kFlipWork / each, static_cast<double>(kFewest), kMost));
  }
  if (rule_ == Multiplicity::kHolm || differences_.empty()) return kMost;
  const double family = static_cast<double>(differences_.size());
  const double each = kDrawnFlips * family * static_cast<double>(differences_.front().size());
  const double most = kQuestionWork / each / family;
  return most < kFewest ? 0 : static_cast<std::size_t>(std::min<double>(kMost, most));
}

MaxT joint_intervals(std::span<const Sides> sides, std::span<const Estimate> estimates,
                     std::size_t units, const AnalysisPlan& plan) {
  PROCTOR_ASSERT(!sides.empty() && sides.size() == estimates.size());
  Columns columns;
  std::vector<RateColumns> of;
  std::vector<double> values, errors, replicates;
  for (std::size_t j = 0; j < sides.size(); ++j) {
    of.push_back(columns_of(sides[j], plan, columns));
    values.push_back(estimates[j].value.value_or(0));
    errors.push_back(estimates[j].standard_error.value_or(0));
  }
  const ResampledSums sums = columns.drawn(plan.draws);
  for (std::uint32_t b = 0; b < plan.draws; ++b)
    for (std::size_t j = 0; j < of.size(); ++j) {
      const auto sum = [&](std::size_t column) { return columns.sum(sums, b, column); };
      const double whole_a = sum(of[j].whole_a), whole_b = sum(of[j].whole_b);
      // A draw without any of its tasks says nothing about a contrast.
      replicates.push_back(0 < whole_a && 0 < whole_b
                               ? (sum(of[j].part_a) / whole_a - sum(of[j].part_b) / whole_b) /
                                     of[j].unit
                               : values[j]);
    }
  return max_t(values, errors, replicates, units, plan.alpha.real());
}

Adjustment adjustment_for(std::span<const Contrast> contrasts, std::size_t tasks,
                          const AnalysisPlan& plan) {
  Adjustment out;
  out.units = unit_words(plan);
  std::size_t fewest = tasks, family = 0;
  for (const Contrast& c : contrasts) {
    if (!c.flips) continue;
    ++family;
    fewest = std::min<std::size_t>(fewest, c.units);
  }
  if (plan.multiplicity == Multiplicity::kHolm || family == 0) return out;
  const double work = static_cast<double>(family) * static_cast<double>(tasks) *
                      static_cast<double>(kDrawnFlips + plan.draws);
  if (fewest < kMaxTTasks)
    out.instead = Adjustment::Instead::kFewTasks;
  else if (kMostTasks < tasks || kFamilyWork < work)
    out.instead = Adjustment::Instead::kTooLarge;
  else
    out.used = Multiplicity::kMaxT;
  return out;
}

// Unknown outcomes one after the other in favour of one method, those first that move the
// difference most, until the verdict is another.  What is said is what was tried: so many suffice.

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
