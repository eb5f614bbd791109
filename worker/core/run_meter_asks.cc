// RunMeter: what is asked of it: whether it is a reservation at all, its price, and how much of a
// gateway's call there is room for.
#include <algorithm>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "worker/core/run_meter.h"

namespace proctor {

Status RunMeter::validate(const MeterReserve& r) const {
  const auto wrong = [](std::string why) { return Error{Errc::kInvalid, std::move(why)}; };
  if (r.id.empty() || limits::kNameBytes < r.id.size()) return wrong("id: expected 1 to 100 bytes");
  const Amount& m = r.most;
  if (kUsageCountMax < std::max({m.input_tokens, m.output_tokens, m.units, m.ms}))
    return wrong("a quantity above " + std::to_string(kUsageCountMax));
  if (r.action.type.empty()) return wrong("action: expected a name");
  const bool model = r.action.type == kLlmRequest;
  const bool known = model || r.action.type == kToolCall || r.action.type == kDependencyInstall ||
                     r.action.type == kAcceptanceCycle;
  if (!model && (!r.action.model.empty() || !r.action.provider.empty()))
    return wrong("model: only llm_request has one");
  if (!model && (0 < m.input_tokens || 0 < m.output_tokens))
    return wrong("tokens: only llm_request has them");
  if (known && (!r.action.unit.empty() || 0 < m.units))
    return wrong("unit: " + r.action.type + " is counted in calls");
  if (!known && r.action.unit.empty())
    return wrong("unit: expected that of the price table for " + printable(r.action.type, 100));
  if (model && 0 < m.ms) return wrong("ms: an llm_request is not time in a tool");
  return ok_status();
}

Result<Tariff> RunMeter::tariff_of(const ActionName& action) const {
  if (action.type == kToolCall) return Tariff{};  // through price(), like the worker's own
  if (action.type != kDependencyInstall && action.type != kAcceptanceCycle)
    return find_tariff(plan_.prices, action);
  // Counted whatever the table says; what it does not price costs its time only.
  ActionName call = action;
  call.unit = "call";
  const Result<Tariff> tariff = find_tariff(plan_.prices, call);
  return tariff.ok() && !tariff->defaulted ? *tariff : Tariff{};
}

MicroUsd RunMeter::price_of(const MeterReserve& request, const Tariff& tariff,
                            const Amount& amount) const {
  const ActionName& action = request.action;
  if (action.type == kToolCall) return further_price(plan_.prices, {.tool_calls = 1}).total();
  Quantities q{1,
               amount.input_tokens,
               amount.output_tokens,
               amount.units,
               amount.cache_read,
               amount.cache_write,
               amount.cache_write_long,
               amount.reasoning};
  if (action.type == kDependencyInstall || action.type == kAcceptanceCycle) q.units = 1;
  return charged_price(tariff, q, request.cache);
}

MicroUsd RunMeter::worst_of(const MeterReserve& r, const Tariff& tariff) const {
  Amount most = r.most;
  most.failed = true;  // of a cycle: the worst case
  if (r.action.type != kLlmRequest) return price_of(r, tariff, most);
  return worst_price(tariff, {1, most.input_tokens, most.output_tokens, most.units}, r.cache);
}

// The largest limit of each sample that fits what is free now, at most what is asked for; the least
// where even that does not.
std::uint64_t RunMeter::room_for_output(const MeterFit& call, const Tariff& tariff) const {
  const MeterReserve& r = call.request;
  MeterReserve tried = r;
  const Room tokens = room_of(Cap::kTokens, 0);
  const auto fits = [&](std::uint64_t limit) {
    tried.most.output_tokens = (limit + call.beside) * call.samples;
    return worst_of(tried, tariff) <= free() &&
           tokens.used + tokens.held + tried.most.input_tokens + tried.most.output_tokens <=
               tokens.limit;
  };
  std::uint64_t least = call.least;
  std::uint64_t most = std::max(least, r.most.output_tokens / call.samples - call.beside);
  while (least < most) {
    const std::uint64_t middle = most - (most - least) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return (least + call.beside) * call.samples;
}

Result<MeterAnswer> RunMeter::fit(const MeterFit& call, Instant now) {
  MeterReserve request = call.request;
  if (kUsageCountMax < std::max(request.most.input_tokens, request.most.output_tokens))
    return Error{Errc::kExhausted, "more tokens than any call may have"};
  PROCTOR_CHECK_OK(validate(request));
  if (entries_.contains(request.id))
    return Error{Errc::kConflict, "id: \"" + printable(request.id, 100) + "\" is in use"};
  if (agent_gone_) return Error{Errc::kInvalid, "the agent's part of the run is over"};
  if (call.samples == 0 || request.most.output_tokens / call.samples < call.beside)
    return Error{Errc::kInvalid, "a call of no samples, or of less than is billed anyway"};
  PROCTOR_TRY(const Tariff tariff, tariff_of(request.action));
  request.most.output_tokens = room_for_output(call, tariff);
  return enter(request, tariff, /*of_gateway=*/true, now);
}

}  // namespace proctor
