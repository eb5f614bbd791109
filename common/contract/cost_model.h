#pragma once
// The price table (R110-R113) and the one function that turns metered quantities into money.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/money.h"

namespace proctor {

// What is metered about one attempt.  Cumulative totals, integers only.
struct Usage {
  std::uint64_t setup_ms = 0;  // sandbox time by phase
  std::uint64_t agent_ms = 0;
  std::uint64_t acceptance_ms = 0;
  std::uint64_t cpu_ms = 0;
  std::uint64_t tool_calls = 0;
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t model_calls = 0;
  std::uint64_t stored_bytes = 0;  // of the archived run directory
  friend bool operator==(const Usage&, const Usage&) = default;
};

// Equation (4): C = C_LM + C_exec + C_human + C_overhead.
struct Cost {
  MicroUsd model;
  MicroUsd execution;
  MicroUsd human;
  MicroUsd overhead;
  MicroUsd total() const { return model + execution + human + overhead; }
  friend bool operator==(const Cost&, const Cost&) = default;
};

// One row of pilot_cost_model.csv.  The price is an exact decimal: `pico` = 1e-12 USD per unit.
struct PriceRow {
  std::string action_type;  // sandbox, tool_call, llm_request, artifact_storage, run
  std::string unit;         // minute, call, input_token, output_token, gigabyte, run, ...
  std::uint64_t pico_usd = 0;
  std::string notes;
};

// Prices in 1e-12 USD per unit.  Rows with other (action_type, unit) pairs are kept and unused.
struct CostModel {
  std::vector<PriceRow> rows;
  Digest digest;        // of the file's bytes (R111), or of the fallback's text
  std::string version;  // "file" or "fallback-1" (R113)
  std::uint64_t sandbox_minute = 0;
  std::uint64_t tool_call = 0;
  std::uint64_t model_call = 0;
  std::uint64_t input_token = 0;
  std::uint64_t output_token = 0;
  std::uint64_t stored_gigabyte = 0;  // one-time, per 1e9 bytes
  std::uint64_t run = 0;              // flat overhead of each attempt that started
};

// Multiplies in 128 bits and rounds every category up once (R113, ARCHITECTURE section 5).
Cost price(const CostModel& model, const Usage& usage);

}  // namespace proctor
