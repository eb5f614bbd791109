#pragma once
// What runs used of models: tokens by kind, calls, and what the gateway did with them.  Pure.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/money.h"
#include "common/contract/cost_model.h"

namespace proctor {
struct ModelUse {
  std::uint64_t calls = 0;
  // All of it; its part that was in a cache, and that was put there.
  std::uint64_t input = 0, cached = 0, cache_written = 0;
  std::uint64_t output = 0, reasoning = 0;  // the second is part of the first
  // Answered by a recording, refused, and charged at what was reserved, with the money of the last.
  std::uint64_t replayed = 0, refused = 0, ceiling_calls = 0;
  MicroUsd at_ceiling;
  std::uint64_t waited_ms = 0;  // of all calls together
  std::uint64_t clamped = 0;    // calls whose limit of output was lowered
  std::uint64_t overruns = 0;   // billed above what was reserved, and charged no more than that
  std::uint64_t failed = 0;     // their provider did not answer them,
  std::uint64_t busy = 0;       // or had no room for them
  bool any() const { return 0 < calls + refused + failed + busy; }
};
// All but the money, by their names in JSON and in their order wherever they are shown.
inline constexpr std::array<std::pair<const char*, std::uint64_t ModelUse::*>, 14> kModelCounts{
    {{"calls", &ModelUse::calls},
     {"input_tokens", &ModelUse::input},
     {"cached_input_tokens", &ModelUse::cached},
     {"cache_written_tokens", &ModelUse::cache_written},
     {"output_tokens", &ModelUse::output},
     {"reasoning_tokens", &ModelUse::reasoning},
     {"replayed_calls", &ModelUse::replayed},
     {"refused_calls", &ModelUse::refused},
     {"ceiling_calls", &ModelUse::ceiling_calls},
     {"waited_ms", &ModelUse::waited_ms},
     {"clamped_calls", &ModelUse::clamped},
     {"overrun_calls", &ModelUse::overruns},
     {"failed_calls", &ModelUse::failed},
     {"busy_calls", &ModelUse::busy}}};
ModelUse operator+(const ModelUse& a, const ModelUse& b);
ModelUse model_use_of(const Usage& usage);

// Its columns in every CSV of the report, and the cells below them, in the same order.
std::span<const char* const> model_use_columns();
void append_model_use(std::vector<std::string>& cells, const ModelUse& use);
}  // namespace proctor
