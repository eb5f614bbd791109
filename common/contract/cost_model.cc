#include "common/contract/cost_model.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "common/base/text.h"
#include "common/contract/fields.h"

namespace proctor {
namespace {
__extension__ typedef unsigned __int128 Wide;

using Price = std::optional<std::uint64_t>;

// What the rows of one tier, threshold and region say.
struct Units {
  Price call{}, input{}, output{}, token{}, read{}, write{}, write_long{}, reasoning{};
  bool any = false;
};

struct Place {
  std::string_view tier, region;
  std::uint64_t above = 0;
};

class Rows {
 public:
  Rows(const CostModel& table, std::string_view provider, std::string_view model) {
    for (const PriceRow& r : table.rows)
      if (r.action_type == "llm_request" && r.provider == provider && r.model == model)
        rows_.push_back(&r);
  }
  bool empty() const { return rows_.empty(); }

  Units at(const Place& place) const {
    Units out;
    for (const PriceRow* r : rows_) {
      if (r->tier != place.tier || r->region != place.region || r->above != place.above) continue;
      out.any = true;
      Price* const to = r->unit == "call"                     ? &out.call
                        : r->unit == "input_token"            ? &out.input
                        : r->unit == "output_token"           ? &out.output
                        : r->unit == "token"                  ? &out.token
                        : r->unit == "cache_read_token"       ? &out.read
                        : r->unit == "cache_write_token"      ? &out.write
                        : r->unit == "cache_write_long_token" ? &out.write_long
                        : r->unit == "reasoning_token"        ? &out.reasoning
                                                              : nullptr;
      if (to != nullptr) *to = r->pico_usd;
    }
    if (!out.input) out.input = out.token;
    if (!out.output) out.output = out.token;
    return out;
  }

  std::set<std::uint64_t> thresholds(std::string_view tier) const {
    std::set<std::uint64_t> out;
    for (const PriceRow* r : rows_)
      if (r->tier == tier && 0 < r->above) out.insert(r->above);
    return out;
  }

 private:
  std::vector<const PriceRow*> rows_;
};

// What a less particular row says of another unit, in the proportion of the two prices of input,
// rounded up: nothing falls back to something cheaper.
Price scaled(const Price& price, std::uint64_t from, std::uint64_t to) {
  if (!price || from == 0 || to <= from) return price;
  const Wide product = Wide{*price} * to;
  const Wide out = product / from + (product % from == 0 ? 0 : 1);
  constexpr Wide kMost = Wide{1} << 62U;
  return static_cast<std::uint64_t>(std::min(out, kMost));
}

Tariff refined(const Tariff& less, const Units& more) {
  if (!more.any) return less;
  Tariff out = less;
  out.input_token = more.input.value_or(less.input_token);
  out.output_token = more.output.value_or(less.output_token);
  if (more.call) out.call = *more.call;
  const auto put = [&](Price& to, const Price& row) {
    to = row ? row : scaled(to, less.input_token, out.input_token);
  };
  put(out.cache_read, more.read);
  put(out.cache_write, more.write);
  put(out.cache_write_long, more.write_long);
  if (more.reasoning)
    out.reasoning = more.reasoning;
  else
    out.reasoning = scaled(less.reasoning, less.output_token, out.output_token);
  return out;
}
}  // namespace

// The rows of one model in the price table as one tariff: its plain prices, then those of the tier
// and the region that are asked for, and of calls with much input.
std::optional<Tariff> model_tariff(const CostModel& table, std::string_view provider,
                                   std::string_view model, const ActionName& action) {
  const Rows rows(table, provider, model);
  if (rows.empty()) return std::nullopt;
  // Of the rows in this order the later are the more particular.
  const auto in_region = [&](const Tariff& tariff, std::uint64_t above) {
    if (action.region.empty()) return tariff;
    return refined(tariff, rows.at({action.tier, action.region, above}));
  };
  const Units standard = rows.at({"", "", 0});
  if (!standard.any && action.tier.empty()) return std::nullopt;
  Tariff plain = refined(Tariff{}, standard);
  if (!action.tier.empty()) {
    const Units tier = rows.at({action.tier, "", 0});
    if (!tier.any) return std::nullopt;
    plain = refined(plain, tier);
  }
  Tariff out = in_region(plain, 0);
  for (const std::uint64_t above : rows.thresholds(action.tier)) {
    plain = refined(plain, rows.at({action.tier, "", above}));
    Tariff step = in_region(plain, above);
    step.above.clear();
    out.above.emplace_back(above, prices_at(step, 0));
  }
  return out;
}

namespace {
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

constexpr unsigned kMinuteDigits = 3;

Result<std::uint64_t> human_minute_price(const CostModel& prices) {
  const auto row = std::ranges::find_if(prices.rows, [](const PriceRow& r) {
    return r.action_type == kHumanAction && r.unit == kHumanUnit;
  });
  if (row != prices.rows.end()) return row->pico_usd;
  return Error{Errc::kNotFound, "the price table (" +
                                    (prices.abstract() ? "the built-in " + prices.version
                                                       : std::string("pilot_cost_model.csv")) +
                                    ") has no row human,minute"};
}

MicroUsd review_cost(std::uint64_t pico_per_minute, std::uint64_t milli_minutes) {
  Sum sum;
  sum.add(milli_minutes, pico_per_minute);
  return sum.in_micros(1'000);
}

Result<std::uint64_t> parse_minutes(std::string_view text) {
  PROCTOR_TRY(const std::uint64_t n, parse_decimal(text, kMinuteDigits, kReviewMilliMinutesMax));
  if (n == 0) return Error{Errc::kInvalid, "more than nothing"};
  return n;
}

std::string format_minutes(std::uint64_t milli_minutes) {
  return format_decimal(milli_minutes, kMinuteDigits);
}
}  // namespace proctor
