#pragma once
// pilot_cost_model_inputs.json (R109, R156): what a run is expected to use, before anything ran.
// From it and the price table comes the projection (coordinator/aggregate/projection.h).  It is
// a person's forecast: it enforces nothing, and it is never added to what was observed.
//
//   {"lost_attempts_per_run": 0.02,
//    "usage": [{"task": "json-lib", "method": "my-agent",
//               "actions": [{"action_type": "sandbox", "unit": "minute", "per_run": 3.5}]}]}
//
// An entry holds for all tasks or methods that it does not name; the most particular one holds
// whole (task and method, task, method, neither).  Quantities are decimals, exact to a millionth of
// a unit.  Pure; any thread.  Reading is of hostile bytes: every error has line, field,
// what was found and what was expected.
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/words.h"
#include "common/contract/cost_model.h"
#include "common/contract/document.h"

namespace proctor {
inline constexpr const char* kCostInputsFile = "pilot_cost_model_inputs.json";

// The parts of a cost, in the order of R158.
enum class CostCategory : std::uint8_t { kModel, kExecution, kHuman, kOverhead };
inline constexpr std::array<const char*, 4> kCostCategories{"model", "execution", "human",
                                                            "overhead"};

// One action that a run is expected to take, with its price.
struct ExpectedAction {
  enum class Price : std::uint8_t {
    kRow,      // of a row of its own
    kDefault,  // of a default row
    kNone,     // counted, and free in this table
  };
  std::string action_type, unit, provider, model;
  std::uint64_t micro_units = 0;  // of one run, in millionths of the unit; at most 1e18
  std::uint64_t pico_usd = 0;     // for one unit; at most 1e18
  Price price = Price::kRow;
  CostCategory category = CostCategory::kExecution;
};
constexpr auto words(ExpectedAction::Price) {
  return std::to_array<Word<ExpectedAction::Price>>(
      {{"row", ExpectedAction::Price::kRow},
       {"default_row", ExpectedAction::Price::kDefault},
       {"free", ExpectedAction::Price::kNone}});
}

struct CostInputs {
  Digest digest;                 // of the file's bytes
  std::uint64_t lost_micro = 0;  // attempts of one run that are lost, in millionths
  std::vector<std::vector<ExpectedAction>> usage;
  // By (task, method), "" for all; the value is an index into `usage`.
  std::map<std::pair<std::string, std::string>, std::size_t> by_name;

  // The entry of a run.  Null: no entry holds for it.
  const std::vector<ExpectedAction>* find(const std::string& task, const std::string& method) const;
};

// Things to which the file may refer.  Names are checked only where they are all known.
struct CostInputsContext {
  const CostModel& prices;
  std::uint32_t infrastructure_retries = 0;
  bool names_known = false;
  std::vector<std::string_view> tasks, methods;
};

// The result is whole only if `out` did not grow.
CostInputs parse_cost_inputs(std::string_view json, const std::string& file,
                             const CostInputsContext& context, Diagnostics& out);
}  // namespace proctor
