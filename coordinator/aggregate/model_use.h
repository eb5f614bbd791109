#pragma once
// What runs used of models: tokens by kind, calls, and what the gateway did with them.  Pure.
#include <array>
#include <cstdint>

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
// One of its counts: its name in JSON, where it and its counter of a Usage are, what people call it
// (empty: nothing) and what it means.
struct ModelCount {
  const char* name;
  std::uint64_t ModelUse::*count;
  std::uint64_t Usage::*counter;
  const char* word;
  const char* meaning;
};
// All but the money, in their order wherever they are shown.
inline constexpr std::array<ModelCount, 14> kModelCounts{
    {{"calls", &ModelUse::calls, &Usage::model_calls, "calls", "calls of models that were counted"},
     {"input_tokens", &ModelUse::input, &Usage::input_tokens, "input", "tokens of their input"},
     {"cached_input_tokens", &ModelUse::cached, &Usage::cached_input, "",
      "of these: those that the provider had in its cache"},
     {"cache_written_tokens", &ModelUse::cache_written, &Usage::cache_written, "",
      "of these: those that it put there"},
     {"output_tokens", &ModelUse::output, &Usage::output_tokens, "output",
      "tokens of their output"},
     {"reasoning_tokens", &ModelUse::reasoning, &Usage::reasoning_tokens, "",
      "of these: those of reasoning"},
     {"replayed_calls", &ModelUse::replayed, &Usage::replayed_calls, "replayed",
      "calls of models that a recording answered: counted, and free"},
     {"refused_calls", &ModelUse::refused, &Usage::refused_calls, "refused",
      "calls of models that the gateway refused"},
     {"ceiling_calls", &ModelUse::ceiling_calls, &Usage::ceiling_calls, "",
      "calls that were charged at all that was reserved"},
     {"waited_ms", &ModelUse::waited_ms, &Usage::waited_ms, "waited",
      "what calls of models waited in the gateway, all together"},
     {"clamped_calls", &ModelUse::clamped, &Usage::clamped_calls, "clamped",
      "calls of models whose limit of output the gateway lowered to what was left"},
     {"overrun_calls", &ModelUse::overruns, &Usage::overruns, "billed more",
      "calls that were billed above what was reserved, and charged no more than that"},
     {"failed_calls", &ModelUse::failed, &Usage::failed_calls, "failed",
      "calls that their provider did not answer"},
     {"busy_calls", &ModelUse::busy, &Usage::busy_calls, "no room",
      "calls that it had no room for"}}};
ModelUse operator+(const ModelUse& a, const ModelUse& b);
ModelUse model_use_of(const Usage& usage);
}  // namespace proctor
