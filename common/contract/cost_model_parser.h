#pragma once
// pilot_cost_model.csv (R110-R113): columns action_type, unit, unit_price and, if wanted, notes;
// other columns are ignored, other rows are kept and unused.  Prices are decimals of USD per unit
// with at most 12 digits after the point.  The rows that price runs:
//
//   sandbox,minute            time of the sandbox in setup, agent and acceptance
//   tool_call,call            each tool call
//   llm_request,call          each request to a model, beside its tokens
//   llm_request,input_token   and output_token; llm_request,token stands for both where they miss
//   artifact_storage,gigabyte once per 1e9 bytes of an archived run directory
//   run,run                   flat, for each attempt that started
#include <string>
#include <string_view>

#include "common/contract/cost_model.h"
#include "common/contract/diagnostic.h"

namespace proctor {

// Reports every error with its line; the result is whole only if `out` did not grow.
CostModel parse_cost_model(std::string_view csv, const std::string& file, Diagnostics& out);

// From rows that are known to be good, for a model that arrived in a bundle.
void apply_rows(CostModel& model);

// What holds when the file is absent: abstract units, of the size of a small cloud machine and a
// mid-priced model, constant within a study and named by its version (R113).
CostModel fallback_cost_model();

inline constexpr std::string_view kFileVersion = "file";
inline constexpr std::string_view kFallbackVersion = "fallback-1";
// Of unit_price: a million dollars per unit, in 1e-12 USD.  Keeps products within 128 bits.
inline constexpr std::uint64_t kPicoUsdMax = 1'000'000'000'000'000'000;
inline constexpr unsigned kPriceDigits = 12;

}  // namespace proctor
