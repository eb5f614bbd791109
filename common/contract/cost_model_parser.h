#pragma once
// pilot_cost_model.csv (R110-R113): columns action_type, unit, unit_price and, if wanted, notes,
// provider and model; other columns are kept in the file and ignored here.  Prices are decimals of
// USD per unit, exact to the 12th digit after the point; zeros may follow.  The rows that price
// runs:
//
//   sandbox,minute            time of the sandbox in setup, agent and acceptance
//   tool_call,call            each tool call
//   llm_request,call          each request to a model, beside its tokens
//   llm_request,input_token   and output_token; llm_request,token stands for both where they miss
//   artifact_storage,gigabyte once per 1e9 bytes of an archived run directory
//   run,run                   flat, for each attempt that started
//
// llm_request rows may name a model (and its provider); "*" as the model is the default row for
// models without one, "*,*" that for actions without one.  Their units may also be
// cache_read_token, cache_write_token, cache_write_long_token and reasoning_token, and the columns
// tier, region and above say when a row holds.  Other rows price single actions that an
// agent reports (find_tariff).
#include <string>
#include <string_view>

#include "common/contract/cost_model.h"
#include "common/contract/document.h"

namespace proctor {
// Reports every error with its line; the result is whole only if `out` did not grow.
CostModel parse_cost_model(std::string_view csv, const std::string& file, Diagnostics& out);

// From rows that are known to be good, for a model that arrived in a bundle.
void apply_rows(CostModel& model);

// The prices where the file is absent: abstract units, of the size of a small cloud machine and a
// mid-priced model, constant within a study and named by its version (R113).
CostModel fallback_cost_model();

inline constexpr std::string_view kFileVersion = "file";
inline constexpr std::string_view kFallbackVersion = "fallback-1";
// The largest unit_price: a million dollars per unit, in 1e-12 USD.  Keeps products within 128
// bits.
inline constexpr std::uint64_t kPicoUsdMax = 1'000'000'000'000'000'000;
inline constexpr unsigned kPriceDigits = 12;
// Exact; kInvalid with what is expected.
Result<std::uint64_t> parse_price(std::string_view text);
}  // namespace proctor
