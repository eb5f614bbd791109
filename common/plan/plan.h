#pragma once
// The randomization plan of a campaign, and NumPy's random numbers by which it is drawn.
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/contract/stages.h"

namespace proctor {
// NumPy's legacy generator `numpy.random.RandomState(seed)`, bit for bit, as far as plans need it.
// A plan drawn here can be drawn again by anyone with Python: NEP 19 freezes these streams.
// The bits are those of std::mt19937 (init_genrand by an integer); what NumPy adds is how a bounded
// number is made of them: masked rejection, one 32-bit draw per try.
// Pure; not thread-safe; cannot fail.  Oracles: STATISTICS E11 and the real NumPy in tests.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : bits_(seed) {}

  // randint(0, 2**32, dtype="uint32"): one draw, all 32 bits.
  std::uint32_t next_u32() { return static_cast<std::uint32_t>(bits_()); }
  // random_sample(): two draws, 53 bits, in [0, 1).
  double random_sample();
  // A number in [0, max]; nothing is drawn when max is 0.
  std::uint32_t interval(std::uint32_t max);
  // permutation(n): a shuffled 0..n-1.
  std::vector<std::uint32_t> permutation(std::uint32_t n);
  // permutation(n) into storage that a caller with a million blocks reuses.
  void permutation_into(std::span<std::uint32_t> out);

  // shuffle(x) of a sequence.
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); 1 < i; --i)
      std::swap(items[i - 1], items[interval(static_cast<std::uint32_t>(i - 1))]);
  }

 private:
  std::mt19937 bits_;
};

// The randomization plan: which run comes when (R071, R126, R164, R172, R175).
// A PlanShape says what is to be run; draw_plan() orders it with NumPy's RandomState(seed) and
// nothing else, so that docs/plan.md can give a few lines of Python that draw it again.
//
// How: a stage with so many tasks of each stratum first draws which those are.  A *round* is one
// replicate of one stage.  In each round the stage's tasks of every stratum are
// permuted, the strata are interleaved in proportion to their sizes, and each task becomes a block
// of all methods in permuted order.  So every method meets every task equally often, close together
// in time, and strata are spread evenly.  At the end one 32-bit draw per run gives its seed.
//
// Owns its tables and rows; immutable after drawing or reading.  Pure: no I/O, no clock.

struct Campaign;

struct PlanTask {
  std::string id;
  Digest digest;                    // of the contract
  std::vector<std::string> strata;  // one value per key of the shape
  friend bool operator==(const PlanTask&, const PlanTask&) = default;
};

struct PlanStage {
  std::string name;
  std::uint32_t replicates = 1;  // of each of its tasks under every method
  // Which tasks those are, and how they follow one another (stages.h).
  std::optional<std::uint32_t> per_stratum{};
  std::vector<std::string> tasks{};
  StageOrder order = StageOrder::kRounds;
  bool has_every_task() const { return !per_stratum && tasks.empty(); }
  friend bool operator==(const PlanStage&, const PlanStage&) = default;
};

struct PlanShape {
  std::vector<PlanTask> tasks;
  std::vector<std::string> methods;
  std::vector<PlanStage> stages;  // in the order in which they run
  std::vector<std::string> strata_keys;
  std::uint32_t seed = kPlannedSeed;
  friend bool operator==(const PlanShape&, const PlanShape&) = default;
};

// Every contract gets its values of the campaign's strata (an absent one is "none": the campaign's
// own validation refuses it).
PlanShape shape_of(const Campaign& campaign);

// One run, 16 bytes: a million of them are queued at once.  Its order is its position.
struct PlanRow {
  std::uint32_t task = 0;       // index into Plan::shape().tasks
  std::uint32_t replicate = 0;  // from 1, counted through the stages
  std::uint32_t seed = 0;       // given to the run
  std::uint16_t method = 0;     // index into Plan::shape().methods
  std::uint16_t stage = 0;      // index into Plan::shape().stages
  friend bool operator==(const PlanRow&, const PlanRow&) = default;
};
static_assert(sizeof(PlanRow) == 16);

class Plan {
 public:
  // Tasks by id, methods by name: the order of the draw does not depend on that of a file.
  const PlanShape& shape() const { return shape_; }
  std::span<const PlanRow> rows() const { return rows_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
  // The tasks of the stage of that index, as indices into shape().tasks, ascending.
  std::span<const std::uint32_t> tasks_of(std::size_t stage) const { return stage_tasks_[stage]; }

  // Requires: run < size().
  const PlanRow& row(RunId run) const;
  const PlanTask& task(RunId run) const { return shape_.tasks[row(run).task]; }
  const std::string& method(RunId run) const { return shape_.methods[row(run).method]; }
  const std::string& stage(RunId run) const { return shape_.stages[row(run).stage].name; }
  // "json-lib/noop/r2": the name that people and files use.
  std::string run_name(RunId run) const;
  // "stage:pilot/task:json-lib": where its money comes from, below the global envelope.
  std::string envelope(RunId run) const;
  // The run of that name.  Linear; for operators' commands.
  std::optional<RunId> find(std::string_view run_name) const;

  friend bool operator==(const Plan&, const Plan&) = default;

 private:
  friend Result<Plan> draw_plan(PlanShape shape);
  friend Result<Plan> parse_plan(std::string_view file, std::string_view csv, PlanShape shape);
  Plan(PlanShape shape, std::vector<std::vector<std::uint32_t>> stage_tasks,
       std::vector<PlanRow> rows)
      : shape_(std::move(shape)), stage_tasks_(std::move(stage_tasks)), rows_(std::move(rows)) {}
  PlanShape shape_;
  std::vector<std::vector<std::uint32_t>> stage_tasks_;  // by stage
  std::vector<PlanRow> rows_;
};

// Fails with kInvalid: nothing to run, a stratum key that is a column of the file, more than
// limits::kPlanRows runs.  Requires: names and stages as a campaign's parser has them.
Result<Plan> draw_plan(PlanShape shape);

// pilot_randomization_plan.csv: a header and one record per run.
std::string to_csv(const Plan& plan);

// Reads it back, against the tables the campaign has now.  Hostile input: kInvalid with
// "file:line: field: found ..., expected ...".  The order may be any, but it must be 0..n-1 and
// name every run of the shape exactly once.
Result<Plan> parse_plan(std::string_view file, std::string_view csv, PlanShape shape);

// The header of the file for these stratum keys.
std::vector<std::string> plan_columns(const PlanShape& shape);
}  // namespace proctor
