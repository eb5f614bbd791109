#include "common/contract/cost_model.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/contract/call_price.h"
#include "common/contract/model_prices.h"

namespace proctor {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t kTwiceMost = std::uint64_t{1} << 62;  // above any price of a table

// quantity * price in 1e-12 USD, over a common divisor.  Saturates: a quantity beyond all measure
// is charged at the ceiling, never at what is left after an overflow.
class Sum {
 public:
  void add(Wide quantity, std::uint64_t pico_usd) {
    Wide product = 0;
    if (__builtin_mul_overflow(quantity, Wide{pico_usd}, &product) ||
        __builtin_add_overflow(total_, product, &total_))
      overflow_ = true;
  }
  // Rounds up once.
  MicroUsd in_micros(std::uint64_t divisor) const {
    constexpr std::uint64_t kPicoPerMicro = 1'000'000;
    const Wide unit = Wide{divisor} * kPicoPerMicro;
    const Wide most = static_cast<Wide>(kLedgerMax.micros());
    const Wide micros = total_ / unit + (total_ % unit == 0 ? 0 : 1);
    return MicroUsd::from_micros(
        static_cast<std::int64_t>(overflow_ ? most : std::min(micros, most)));
  }
  // Brings a sum over 1 to one over `factor`.
  void scale(std::uint64_t factor) {
    if (__builtin_mul_overflow(total_, Wide{factor}, &total_)) overflow_ = true;
  }

 private:
  Wide total_ = 0;
  bool overflow_ = false;
};

// Requires: no more than the ledger can hold, which add() sees to.
MicroUsd micros(std::uint64_t n) {
  return MicroUsd::from_micros(static_cast<std::int64_t>(
      std::min<std::uint64_t>(n, static_cast<std::uint64_t>(kLedgerMax.micros()))));
}

std::uint64_t rest(std::uint64_t all, std::uint64_t part) {
  return all - std::min(all, part);
}

MicroUsd capped(MicroUsd a, MicroUsd b) {  // each at most kLedgerMax: the sum fits 63 bits
  return std::min(a + b, kLedgerMax);
}

Cost price_with(const CostModel& model, const Usage& usage, std::uint64_t flat) {
  constexpr std::uint64_t kMsPerMinute = 60'000;
  constexpr std::uint64_t kBytesPerGigabyte = 1'000'000'000;
  Sum lm;
  lm.add(rest(usage.model_calls, usage.priced_calls), model.model_call);
  lm.add(rest(usage.input_tokens, usage.priced_input), model.input_token);
  lm.add(rest(usage.output_tokens, usage.priced_output), model.output_token);
  Sum execution;
  execution.add(usage.tool_calls, model.tool_call);
  execution.scale(kMsPerMinute);
  execution.add(Wide{usage.setup_ms} + usage.agent_ms + usage.acceptance_ms, model.sandbox_minute);
  Sum overhead;
  overhead.add(1, flat);
  overhead.scale(kBytesPerGigabyte);
  overhead.add(usage.stored_bytes, model.stored_gigabyte);
  return Cost{capped(lm.in_micros(1), micros(usage.priced_micros)),
              capped(execution.in_micros(kMsPerMinute), micros(usage.other_micros)),
              MicroUsd::zero(), overhead.in_micros(kBytesPerGigabyte)};
}

bool names_models(const CostModel& model) {
  return std::ranges::any_of(model.rows, [](const PriceRow& r) {
    return r.action_type == "llm_request" && (!r.model.empty() || !r.provider.empty());
  });
}

Result<Tariff> tariff_of_model(const CostModel& table, const ActionName& a) {
  using Pair = std::pair<std::string_view, std::string_view>;
  const bool named = !a.model.empty() || !a.provider.empty();
  if (named)
    for (const Pair& p : {Pair{a.provider, a.model}, Pair{"", a.model}, Pair{a.provider, ""}}) {
      if (p.first.empty() && p.second.empty()) continue;
      if (auto tariff = model_tariff(table, p.first, p.second, a)) return *tariff;
    }
  if (!names_models(table))
    if (auto tariff = model_tariff(table, "", "", a)) return *tariff;
  if (auto tariff = model_tariff(table, "", kAnyWord, a)) {
    tariff->defaulted = true;
    return *tariff;
  }
  const std::string who =
      !named
          ? "a model without a name"
          : "the model \"" + printable(a.model, 100) + "\"" +
                (a.provider.empty() ? ""
                                    : " of the provider \"" + printable(a.provider, 100) + "\"") +
                (a.tier.empty() ? "" : " at the tier \"" + printable(a.tier, 100) + "\"");
  return Error{Errc::kInvalid,
               "no price for " + who +
                   ": the price table has neither llm_request rows for it nor a default row "
                   "(llm_request with the model *)"};
}

// Of a call that asked for `cache`: charged and reserved by these.
TokenPrices as_asked(const Tariff& tariff, TokenPrices p, CacheUse cache) {
  if (cache == CacheUse::kNone && !tariff.cache_write) p.cache_write = p.input;
  if (cache != CacheUse::kHours) p.cache_write_long = p.cache_write;
  return p;
}

}  // namespace

Cost price(const CostModel& model, const Usage& usage) {
  return price_with(model, usage, model.run);
}

Cost further_price(const CostModel& model, const Usage& more) {
  return price_with(model, more, 0);
}

Result<Tariff> find_tariff(const CostModel& table, const ActionName& a) {
  if (a.type == "llm_request") return tariff_of_model(table, a);
  for (const bool fallback : {false, true}) {
    const std::string_view type = fallback ? kAnyWord : std::string_view(a.type);
    const std::string_view unit = fallback ? kAnyWord : std::string_view(a.unit);
    const auto it = std::ranges::find_if(table.rows, [&](const PriceRow& r) {
      return r.action_type == type && r.unit == unit && r.model.empty() && r.provider.empty();
    });
    if (it != table.rows.end()) return Tariff{.unit = it->pico_usd, .defaulted = fallback};
  }
  return Error{Errc::kInvalid,
               "no price for \"" + printable(a.type, 100) + "," + printable(a.unit, 100) +
                   "\": the price table has neither that row nor a default row *,*"};
}

MicroUsd price(const Tariff& tariff, const Quantities& amount) {
  return charged_price(tariff, amount, CacheUse::kHours);
}

bool wrote_unpriced(const Tariff& tariff, std::uint64_t written, CacheUse cache) {
  return cache == CacheUse::kNone && !tariff.cache_write && 0 < written;
}

MicroUsd charged_price(const Tariff& tariff, const Quantities& amount, CacheUse cache) {
  const TokenPrices p = as_asked(tariff, prices_at(tariff, amount.input_tokens), cache);
  std::uint64_t plain = amount.input_tokens;
  const auto take = [&plain](std::uint64_t part) {
    const std::uint64_t n = std::min(plain, part);
    plain -= n;
    return n;
  };
  Sum sum;
  sum.add(amount.calls, tariff.call);
  // The dearest first, so that parts larger than their whole are cut where it costs least.
  sum.add(take(amount.cache_write_long), p.cache_write_long);
  sum.add(take(amount.cache_write), p.cache_write);
  sum.add(take(amount.cache_read), p.cache_read);
  sum.add(plain, p.input);
  const std::uint64_t reasoning = std::min(amount.reasoning, amount.output_tokens);
  sum.add(reasoning, p.reasoning);
  sum.add(amount.output_tokens - reasoning, p.output);
  sum.add(amount.units, tariff.unit);
  return sum.in_micros(1);
}

MicroUsd worst_price(const Tariff& tariff, const Quantities& most, CacheUse cache) {
  const auto at = [&](const TokenPrices& table) {
    const TokenPrices p = as_asked(tariff, table, cache);
    Sum sum;
    sum.add(most.calls, tariff.call);
    sum.add(most.input_tokens,
            std::max({p.input, p.cache_read, p.cache_write, p.cache_write_long}));
    sum.add(most.output_tokens, std::max(p.output, p.reasoning));
    sum.add(most.units, tariff.unit);
    return sum.in_micros(1);
  };
  MicroUsd worst = at(prices_at(tariff, 0));
  for (const auto& [above, prices] : tariff.above)
    if (above < most.input_tokens) worst = std::max(worst, at(prices));
  return worst;
}

TokenPrices prices_at(const Tariff& t, std::uint64_t input_tokens) {
  const auto twice = [](std::uint64_t price) {
    return price < kTwiceMost ? price * 2 : kTwiceMost * 2;
  };
  const std::uint64_t write = t.cache_write.value_or(twice(t.input_token));
  TokenPrices out{
      t.input_token,  t.cache_read.value_or(t.input_token),
      write,          t.cache_write_long.value_or(std::max(write, twice(t.input_token))),
      t.output_token, t.reasoning.value_or(t.output_token)};
  for (const auto& [above, prices] : t.above)
    if (above < input_tokens) out = prices;
  return out;
}

}  // namespace proctor
