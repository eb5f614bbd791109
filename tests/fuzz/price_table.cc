// pilot_cost_model.csv, and pilot_cost_model_inputs.json behind a NUL: errors name their line, and
// a price is never beyond what 128 bits multiply.
#include "common/contract/cost_inputs.h"
#include "common/contract/cost_model_parser.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::price_table {

void target(std::string_view bytes) {
  const std::string_view csv = take_part(bytes, '\0');
  Diagnostics out;
  const CostModel model = parse_cost_model(csv, "prices.csv", out);
  check_diagnostics(out, csv);
  if (!out.empty()) return;
  for (const auto& row : model.rows) PROCTOR_ASSERT(row.pico_usd <= kPicoUsdMax);
  if (bytes.empty()) return;
  const CostInputs inputs = parse_cost_inputs(
      bytes, "inputs.json", {model, 3, true, {"add", "sum"}, {"noop", "agent"}}, out);
  check_diagnostics(out, bytes);
  if (!out.empty()) return;
  for (const auto& [name, index] : inputs.by_name) PROCTOR_ASSERT(index < inputs.usage.size());
  inputs.find("sum", "noop");
}

}  // namespace proctor::fuzz::price_table
