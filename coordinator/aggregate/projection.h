#pragma once
// The expected cost of a campaign, alone and beside what was observed (R109).  Pure: no I/O, no
// clock.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/money.h"
#include "common/contract/cost_inputs.h"
#include "coordinator/aggregate/money.h"

namespace proctor {
// Projection beside what was observed, for the report: two columns that are never added.  Made by
// comparison().

struct ComparisonRow {
  std::string by;     // "total", "category", "envelope"
  std::string name;   // "all", "model", "task:json-lib"
  MicroUsd expected;  // of the whole plan
  MicroUsd of_paid;   // of the runs that were paid for at least once
  MicroUsd actual;    // metered and booked; of an envelope: charged
  // actual / of_paid in thousandths, rounded to the nearest; nothing where nothing was expected.
  std::optional<std::int64_t> ratio_thousandths;
};

struct Comparison {
  bool registered = false;  // the inputs were, before the first run
  bool abstract = false;    // in units of the built-in prices, not dollars
  std::string inputs;       // digest of the inputs, short
  std::uint64_t runs = 0, paid = 0;
  std::vector<ComparisonRow> rows;
};

// What a campaign is expected to cost, what it can cost at most, and how many runs its money admits
// at once, for every envelope, before anything ran (R109, R156, R161, R162).  From the plan, the
// envelopes, the price table and pilot_cost_model_inputs.json.  Amounts are exact in 128 bits, in
// 1e-18 USD, and every amount that is shown was rounded up once, from its exact sum; so the parts
// may show a few millionths more than their total.

struct ProjectionInput {
  struct Scope {
    std::string name;  // "global", "stage:NAME", "task:ID", ...
    MicroUsd cap;      // as registered
  };
  // Runs that are alike: same task, method and stage.
  struct Kind {
    std::string stage, task, method;
    std::vector<std::uint32_t> path;  // scopes, outermost first; each level once
    MicroUsd ask;                     // reserved for one attempt
    std::uint32_t usage = 0;          // index into `usages`
  };
  struct Run {
    std::uint32_t kind = 0;
    std::uint32_t replicate = 0;
  };
  std::string campaign;
  std::string prices;       // "pilot_cost_model.csv 12ab34cd56ef" or "fallback-1"
  bool abstract = false;    // the fallback: no dollars (R113)
  std::string inputs;       // digest of the inputs, short; empty: there are none
  bool registered = false;  // the campaign is; then `inputs_registered` says whether they are too
  bool inputs_registered = false;
  std::vector<Scope> scopes;                        // [0] is global
  std::vector<std::vector<ExpectedAction>> usages;  // of one run; empty without inputs
  std::vector<Kind> kinds;
  std::vector<Run> runs;           // in the plan's order
  std::uint64_t lost_micro = 0;    // lost attempts of one run, in millionths
  std::uint32_t attempts_max = 1;  // of one run, losses by infrastructure and overloads included
  std::uint32_t slots = 0;         // runs that the campaign's own workers take at a time
  bool reviews_priced = false;     // the price table has human,minute
};

struct EnvelopeProjection {
  std::string name;
  MicroUsd cap;
  std::uint64_t runs = 0;
  std::optional<MicroUsd> expected;  // of all its runs; nothing without inputs
  MicroUsd at_caps;                  // each run uses its whole cap, once
  MicroUsd at_most;                  // what attempts can spend here whatever fails: never above cap
  std::uint64_t at_once = 0;         // runs that can hold their reservation here at the same time
  // Runs that would be parked here, one run after another in the plan's order.
  std::uint64_t parked_expected = 0, parked_at_caps = 0;
};

// The first run that would be parked, and where.
struct Binding {
  std::uint32_t scope = 0;
  std::uint32_t run = 0;         // number in the plan
  std::uint64_t ran_before = 0;  // runs that were paid for by then
  MicroUsd short_by;
};

// One line of the table: an action of runs that are alike.
struct ProjectionLine {
  std::uint32_t kind = 0;
  std::uint64_t runs = 0;
  std::string action_type, unit, provider, model;
  CostCategory category = CostCategory::kExecution;
  std::uint64_t micro_units = 0;  // of one run
  std::string unit_price;         // exact decimal of USD
  ExpectedAction::Price price = ExpectedAction::Price::kRow;
  MicroUsd expected;  // of all these runs
};

struct Projection {
  std::vector<EnvelopeProjection> envelopes;
  std::array<MicroUsd, 4> by_category{};  // expected; by CostCategory
  std::vector<ProjectionLine> lines;      // none without inputs
  std::vector<MicroUsd> per_run;          // expected of one run, by kind
  std::optional<Binding> binds_expected, binds_at_caps;
  bool has_expected = false;
  // Kinds whose attempts are expected to cost more than they may: they would be stopped.
  std::vector<std::uint32_t> above_cap;
};

// A record of the table that stays in the campaign's folder: of an envelope, of a category or of a
// line.
struct ProjectionRecord {
  std::string_view level;
  std::string name;
  const ProjectionInput::Kind* kind = nullptr;
  const ProjectionLine* line = nullptr;
  const EnvelopeProjection* envelope = nullptr;
  std::string_view category{};
  std::uint64_t runs = 0;
  std::string per_run{};
  std::optional<MicroUsd> expected{};
};

// Requires: every index is in its range and every kind has the run's scopes at its levels.
Projection project(const ProjectionInput& input);

// Nothing without inputs.  Requires: both are of the same campaign, runs by number.
std::optional<Comparison> comparison(const ProjectionInput& input, const MoneyInput& money);

std::string render_projection_text(const ProjectionInput& input, const Projection& projection);
std::string render_projection_json(const ProjectionInput& input, const Projection& projection);
// pilot_cost_projection_table.csv.
std::string render_projection_csv(const ProjectionInput& input, const Projection& projection);
}  // namespace proctor
