#include "common/contract/model_prices.h"

#include <algorithm>
#include <set>

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

}  // namespace proctor
