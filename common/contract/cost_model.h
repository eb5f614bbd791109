#pragma once
// The price table (R110-R113) and the one function that turns metered quantities into money.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/money.h"
#include "common/base/result.h"

namespace proctor {
// The metered quantities of one attempt.  Cumulative totals, integers only.
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
  // Model use that was priced call by call, each with the price of its model: its money in
  // micro-dollars, and its part of model_calls, input_tokens and output_tokens.
  std::uint64_t priced_micros = 0;
  std::uint64_t priced_calls = 0;
  std::uint64_t priced_input = 0;
  std::uint64_t priced_output = 0;
  std::uint64_t other_micros = 0;  // actions of every other kind, priced one by one
  std::uint64_t tool_ms = 0;       // active execution: time inside tools (R117)
  std::uint64_t dependency_installs = 0;
  std::uint64_t failed_cycles = 0;  // acceptance cycles of the agent's own that failed (R159)
  std::uint64_t memory_peak = 0;    // bytes, the largest of all phases
  // The part of the above that rests on the agent's word alone.
  std::uint64_t reported_micros = 0;
  std::uint64_t reported_tokens = 0;
  std::uint64_t reported_calls = 0;  // model calls, tool calls, installs, cycles, others
  std::uint64_t defaulted = 0;       // charges at a default row of the price table
  std::uint64_t overruns = 0;        // charges that were cut to what had been reserved
  // Among the input tokens those that a provider had in its cache, and those that it put there;
  // among the output tokens those of reasoning.
  std::uint64_t cached_input = 0;
  std::uint64_t cache_written = 0;
  std::uint64_t reasoning_tokens = 0;
  // Calls of models that were charged at all that was reserved, for their use was not said, and
  // their part of priced_micros.
  std::uint64_t ceiling_calls = 0;
  std::uint64_t ceiling_micros = 0;
  // Counts of calls at the gateway: refused ones, the time that the others waited for room, those
  // whose limit of output was lowered, and those that a recording answered, without money.
  std::uint64_t refused_calls = 0;
  std::uint64_t waited_ms = 0;
  std::uint64_t clamped_calls = 0;
  std::uint64_t replayed_calls = 0;
  // Calls at the gateway that their provider did not answer: by an error of its own or not at all,
  // and for want of room (429, 503, 529).
  std::uint64_t failed_calls = 0;
  std::uint64_t busy_calls = 0;
  friend bool operator==(const Usage&, const Usage&) = default;
};

// One counter of a Usage: its name in every form, and the version of wire messages that brought it.
struct UsageCounter {
  const char* name;
  std::uint64_t Usage::*member;
  std::uint32_t since;
};
// All of them, in their order in messages and journals: only ever appended to.
inline constexpr auto kUsageCounters =
    std::to_array<UsageCounter>({{"setup_ms", &Usage::setup_ms, 1},
                                 {"agent_ms", &Usage::agent_ms, 1},
                                 {"acceptance_ms", &Usage::acceptance_ms, 1},
                                 {"cpu_ms", &Usage::cpu_ms, 1},
                                 {"tool_calls", &Usage::tool_calls, 1},
                                 {"input_tokens", &Usage::input_tokens, 1},
                                 {"output_tokens", &Usage::output_tokens, 1},
                                 {"model_calls", &Usage::model_calls, 1},
                                 {"stored_bytes", &Usage::stored_bytes, 1},
                                 {"priced_micros", &Usage::priced_micros, 2},
                                 {"priced_calls", &Usage::priced_calls, 2},
                                 {"priced_input", &Usage::priced_input, 2},
                                 {"priced_output", &Usage::priced_output, 2},
                                 {"other_micros", &Usage::other_micros, 2},
                                 {"tool_ms", &Usage::tool_ms, 2},
                                 {"dependency_installs", &Usage::dependency_installs, 2},
                                 {"failed_cycles", &Usage::failed_cycles, 2},
                                 {"memory_peak", &Usage::memory_peak, 2},
                                 {"reported_micros", &Usage::reported_micros, 2},
                                 {"reported_tokens", &Usage::reported_tokens, 2},
                                 {"reported_calls", &Usage::reported_calls, 2},
                                 {"defaulted", &Usage::defaulted, 2},
                                 {"overruns", &Usage::overruns, 2},
                                 {"cached_input", &Usage::cached_input, 8},
                                 {"cache_written", &Usage::cache_written, 8},
                                 {"reasoning_tokens", &Usage::reasoning_tokens, 8},
                                 {"ceiling_calls", &Usage::ceiling_calls, 8},
                                 {"ceiling_micros", &Usage::ceiling_micros, 8},
                                 {"refused_calls", &Usage::refused_calls, 8},
                                 {"waited_ms", &Usage::waited_ms, 8},
                                 {"clamped_calls", &Usage::clamped_calls, 8},
                                 {"replayed_calls", &Usage::replayed_calls, 8},
                                 {"failed_calls", &Usage::failed_calls, 11},
                                 {"busy_calls", &Usage::busy_calls, 11}});
static_assert(sizeof(Usage) == kUsageCounters.size() * sizeof(std::uint64_t),
              "each counter has its row");

// Those of a meter: the counters behind the first nine.
inline constexpr std::size_t kUnmetered = 9;
inline constexpr auto kMeteredCounters = std::span(kUsageCounters).subspan<kUnmetered>();
// Does a record have so many of them?  It has all until a version, and no more than its usage
// needs, so that a record of before the later ones keeps its bytes.
constexpr bool is_metered_size(std::size_t n) {
  return n == 0 || n == kMeteredCounters.size() ||
         kMeteredCounters[n - 1].since != kMeteredCounters[n].since;
}
static_assert(is_metered_size(14) && is_metered_size(23) && is_metered_size(25));

// How many of them a record of this usage has.
constexpr std::size_t metered_said(const Usage& usage) {
  std::size_t needed = 0;
  for (std::size_t i = 0; i < kMeteredCounters.size(); ++i)
    if (usage.*kMeteredCounters[i].member != 0) needed = i + 1;
  while (!is_metered_size(needed)) ++needed;
  return needed;
}

// No counter of a Usage is above it: a price of a million dollars times it fits 128 bits.
inline constexpr std::uint64_t kUsageCountMax = 1'000'000'000'000;

void fields(auto& v, Is<Usage> auto& usage) {
  for (const auto& [name, member, since] : kUsageCounters)
    v(name, usage.*member, {.most = kUsageCountMax, .since = since});
}

// Equation (4): C = C_LM + C_exec + C_human + C_overhead.
struct Cost {
  MicroUsd model;
  MicroUsd execution;
  MicroUsd human;
  MicroUsd overhead;
  MicroUsd total() const { return model + execution + human + overhead; }
  friend bool operator==(const Cost&, const Cost&) = default;
  friend Cost operator+(const Cost& a, const Cost& b) {
    return {a.model + b.model, a.execution + b.execution, a.human + b.human,
            a.overhead + b.overhead};
  }
};

// One row of pilot_cost_model.csv.  The price is an exact decimal: `pico` = 1e-12 USD per unit.
struct PriceRow {
  std::string action_type;  // sandbox, tool_call, llm_request, artifact_storage, run
  std::string unit;         // minute, call, input_token, output_token, gigabyte, run, ...
  std::uint64_t pico_usd = 0;
  std::string notes;
  // Whose price it is: empty for every model that no row names, "*" for the default row.
  std::string provider{};
  std::string model{};
  // When it holds, of an llm_request row: at this tier of service, for calls with more input than
  // `above` in all, in this region.  Empty and 0: always.
  std::string tier{};
  std::string region{};
  std::uint64_t above = 0;
};

inline constexpr const char* kAnyWord = "*";  // in a default row

// Prices in 1e-12 USD per unit: the named ones hold for runs, the rows for single actions.
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
  // Without a file the amounts are abstract units, not dollars (R113); they are never added up with
  // an observed bill (R109).
  bool abstract() const { return version != "file"; }
};

// Multiplies in 128 bits and rounds every category up once (R113, MONEY 1-7).  Money that was
// priced call by call is added as it is.
Cost price(const CostModel& model, const Usage& usage);
// The most that `more` adds to what an attempt has cost already: price() without the flat price.
// price(a + b) <= price(a) + further_price(b), because rounding up once is never more than twice.
Cost further_price(const CostModel& model, const Usage& more);

// One action of an agent, as the table names it.
struct ActionName {
  std::string type;                 // llm_request, or any action_type of the table
  std::string provider{}, model{};  // of an llm_request
  std::string unit{};               // of any other type
  std::string tier{}, region{};  // of an llm_request: as its rows name them; empty: standard, any
  friend bool operator==(const ActionName&, const ActionName&) = default;
};
// The prices of tokens of one model, in 1e-12 USD: plain input, input that its provider had in its
// cache, or put there for minutes or for hours, output, and the reasoning in it.
struct TokenPrices {
  std::uint64_t input = 0, cache_read = 0, cache_write = 0, cache_write_long = 0;
  std::uint64_t output = 0, reasoning = 0;
};
// Prices of one action, in 1e-12 USD.
struct Tariff {
  std::uint64_t call = 0;
  std::uint64_t input_token = 0;
  std::uint64_t output_token = 0;
  std::uint64_t unit = 0;  // of ActionName::unit
  bool defaulted = false;  // by a default row
  // Prices of tokens beside plain ones.  Without a row: reading costs what input does, reasoning
  // what output does, writing twice the input.
  std::optional<std::uint64_t> cache_read{}, cache_write{}, cache_write_long{}, reasoning{};
  // The prices of whole calls with more input than this, ascending.
  std::vector<std::pair<std::uint64_t, TokenPrices>> above{};
};
struct Quantities {
  std::uint64_t calls = 0;
  std::uint64_t input_tokens = 0;   // all of them, the cached and written ones too
  std::uint64_t output_tokens = 0;  // likewise, with the reasoning
  std::uint64_t units = 0;
  // Parts of the input, and of the output.  Parts larger than their whole are cut to it.
  std::uint64_t cache_read = 0, cache_write = 0, cache_write_long = 0;
  std::uint64_t reasoning = 0;
};
// How long its provider may be made to keep input of a call in a cache.
enum class CacheUse { kNone, kMinutes, kHours };

// The rows that fit an action best.  A model: rows that name provider and model, the model, the
// provider, then the default row; the rows that name neither hold only in a table that names no
// model at all.  Another action: its row, then the default row.  A unit without a row of its own
// beside rows that fit is free.
// kInvalid: the table has no price for it; the text names the row that is missing.
Result<Tariff> find_tariff(const CostModel& model, const ActionName& action);
// One metered amount, rounded up once, at the threshold that its input passes.
MicroUsd price(const Tariff& tariff, const Quantities& amount);
// The most that a call of at most so much can come to, whatever part of it is cached, written as
// `cache` says, or reasoning, and however little of it is used.
MicroUsd worst_price(const Tariff& tariff, const Quantities& most, CacheUse cache);
// The prices of tokens in a call of so much input.
TokenPrices prices_at(const Tariff& tariff, std::uint64_t input_tokens);

// The unit of a campaign's amounts.  The only place that decides it: without a price table
// of its own a campaign is priced in abstract units, which are no dollars (R113, R109).
inline std::string money_word(bool abstract) {
  return abstract ? "units" : "USD";
}
inline std::string money_word(const CostModel& prices) {
  return money_word(prices.abstract());
}

// The charge of a call of a model, and what was reserved for it: both go by the same
// prices of the same parts, so that no bill within the reserved tokens passes worst_price().

// As price(), of a call that asked its provider to write `cache` into its cache.  Tokens that a
// provider writes unasked cost what the table's row says, and without one what input does: a
// provider that bills it otherwise has no price here.  A call that asked for minutes does not pay
// for hours.
// charged_price(t, q, cache) <= worst_price(t, most, cache) where no part of q is above that of
// `most`.
MicroUsd charged_price(const Tariff& tariff, const Quantities& amount, CacheUse cache);
// So many tokens were written without being asked for, and no row prices that.
bool wrote_unpriced(const Tariff& tariff, std::uint64_t written, CacheUse cache);

// The cost of a reviewer's time: the human part of R158 (R174).  Priced by the row
// human,minute of the price table and by no other; a default row does not price people.
// Pure; any thread.

inline constexpr const char* kHumanAction = "human";
inline constexpr const char* kHumanUnit = "minute";
// The most that one review may be: a million minutes.
inline constexpr std::uint64_t kReviewMilliMinutesMax = 1'000'000'000;

// In 1e-12 USD for a minute.  kNotFound names the row that is missing.
Result<std::uint64_t> human_minute_price(const CostModel& prices);
// The cost of thousandths of a minute, in 128 bits, rounded up once.  Requires: at most
// kReviewMilliMinutesMax.
MicroUsd review_cost(std::uint64_t pico_per_minute, std::uint64_t milli_minutes);
// "12", "7.5": a positive decimal with at most three digits after the point.
Result<std::uint64_t> parse_minutes(std::string_view text);
std::string format_minutes(std::uint64_t milli_minutes);
}  // namespace proctor
