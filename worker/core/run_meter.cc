#include "worker/core/run_meter.h"

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr Millis kMinute{60'000};

std::uint64_t micros_of(MicroUsd amount) {
  return static_cast<std::uint64_t>(amount.micros());
}
MicroUsd usd(std::uint64_t micros) {
  return MicroUsd::from_micros(static_cast<std::int64_t>(micros));
}
std::uint64_t ms_of(Millis d) {
  return static_cast<std::uint64_t>(std::max<Millis::rep>(d.count(), 0));
}
std::size_t at(Cap cap) {
  return static_cast<std::size_t>(cap);
}
// The largest number up to `most` that fits; `least` where none does.
std::uint64_t largest(std::uint64_t least, std::uint64_t most, const auto& fits) {
  while (least < most) {
    const std::uint64_t middle = most - (most - least) / 2;
    if (fits(middle))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

// Adds to one counter: kUsageCountMax is far beyond any run, and the wire refuses more.
void add(std::uint64_t& counter, std::uint64_t n) {
  counter = std::min(kUsageCountMax, counter + std::min(n, kUsageCountMax));
}

// 20,000 entries of at most 2e12 each are far from 2^64; what is shown is bounded by add().
void add_use(Usage& to, const Usage& use) {
  for (const auto& [name, counter, since] : kUsageCounters) add(to.*counter, use.*counter);
}
}  // namespace

RunMeter::RunMeter(MeterPlan plan) : plan_(std::move(plan)) {
  limit_ = std::clamp(plan_.ask, MicroUsd::zero(), usd(kUsageCountMax));
  if (plan_.caps.usd) limit_ = std::clamp(*plan_.caps.usd, MicroUsd::zero(), limit_);
  headroom_ = further_price(plan_.prices, plan_.headroom).total();
}

MicroUsd RunMeter::cost() const {
  return price(plan_.prices, usage_).total();
}
MicroUsd RunMeter::spent() const {
  return std::min(cost(), limit_ - held());
}
MicroUsd RunMeter::overrun() const {
  return cost() - spent();
}
MicroUsd RunMeter::headroom() const {
  const MicroUsd left = limit_ - held() - spent();
  if (!agent_gone_) return std::min(headroom_, left);
  const MicroUsd used = std::max(cost(), before_acceptance_) - before_acceptance_;
  return std::min(left, headroom_ - std::min(headroom_, used));
}
MicroUsd RunMeter::free() const {
  return limit_ - held() - spent() - headroom();
}

std::uint64_t RunMeter::used(Cap cap) const {
  if (cap == Cap::kUsd) return micros_of(spent());
  if (cap == Cap::kWall) return usage_.agent_ms;
  return used_[at(cap)];
}
std::uint64_t RunMeter::held(Cap cap) const {
  return cap == Cap::kUsd ? micros_of(held()) : holding_[at(cap)];
}

void RunMeter::check() const {
  PROCTOR_ASSERT(MicroUsd::zero() <= spent() && MicroUsd::zero() <= held());
  PROCTOR_ASSERT(MicroUsd::zero() <= headroom() && MicroUsd::zero() <= free());
  PROCTOR_ASSERT(spent() + held() + headroom() + free() == limit_);
  for (const Cap cap : kCaps) {
    const auto limit = cap_value(plan_.caps, cap);
    if (cap == Cap::kUsd || cap == Cap::kWall || cap == Cap::kCallsPerMinute || !limit) continue;
    PROCTOR_ASSERT(used_[at(cap)] + holding_[at(cap)] <= *limit);
  }
}

void RunMeter::go_on(const Usage& so_far, std::optional<Millis> program) {
  PROCTOR_ASSERT(!program_runs_ && !agent_gone_ && entries_.empty());
  goes_on_ = true;
  usage_ = so_far;
  used_[at(Cap::kModelCalls)] = so_far.model_calls;
  used_[at(Cap::kTokens)] = so_far.input_tokens + so_far.output_tokens;
  used_[at(Cap::kToolCalls)] = so_far.tool_calls;
  used_[at(Cap::kInstalls)] = so_far.dependency_installs;
  used_[at(Cap::kFailedCycles)] = so_far.failed_cycles;
  used_[at(Cap::kActive)] = so_far.tool_ms;
  if (program) {
    program_runs_ = true;
    program_hold_ =
        std::min(limit_, further_price(plan_.prices, {.agent_ms = ms_of(*program)}).total());
    money_bounds_time_ = plan_.caps.wall && *program < *plan_.caps.wall;
  }
  check();
}

// RunMeter: the worker's own measurements.

void RunMeter::executed(MeterPhase phase, const Execution& e) {
  std::uint64_t& counter = phase == MeterPhase::kSetup   ? usage_.setup_ms
                           : phase == MeterPhase::kAgent ? usage_.agent_ms
                                                         : usage_.acceptance_ms;
  add(counter, ms_of(e.wall));
  add(usage_.cpu_ms, ms_of(e.cpu));
  usage_.memory_peak = std::min(kUsageCountMax, std::max(usage_.memory_peak, e.memory_peak));
  check();
}

std::optional<Millis> RunMeter::start_program() {
  PROCTOR_ASSERT(!program_runs_ && !agent_gone_);
  if (stop_) return std::nullopt;
  const Room calls = room_of(Cap::kToolCalls, 1);
  if (calls.limit < calls.used + calls.wanted) {
    reach(calls);
    return std::nullopt;
  }
  const MicroUsd call = further_price(plan_.prices, {.tool_calls = 1}).total();
  const auto price_for = [&](std::uint64_t ms) {
    return call + further_price(plan_.prices, {.agent_ms = ms}).total();
  };
  PROCTOR_ASSERT(plan_.caps.wall.has_value());
  const std::uint64_t wanted = ms_of(*plan_.caps.wall);
  // The longest time that can be paid for.
  const std::uint64_t least =
      largest(0, wanted, [&](std::uint64_t ms) { return price_for(ms) <= free(); });
  if (least == 0 && (0 < wanted || free() < call)) {
    reach(money_room(price_for(1)));
    return std::nullopt;
  }
  money_bounds_time_ = least < wanted;
  add(usage_.tool_calls, 1);
  ++used_[at(Cap::kToolCalls)];
  program_hold_ = further_price(plan_.prices, {.agent_ms = least}).total();
  program_runs_ = true;
  check();
  return Millis(static_cast<Millis::rep>(least));
}

void RunMeter::program_ended(const Execution& e) {
  program_hold_ = MicroUsd::zero();
  program_runs_ = false;
  executed(MeterPhase::kAgent, e);
}

std::optional<MeterStop> RunMeter::time_is_up(bool wall_is_policy) {
  if (money_bounds_time_) {
    order_stop("usd", "budget_exceeded: usd: no more time can be paid for");
  } else if (!wall_is_policy) {
    order_stop("wall", "budget_exceeded: wall: the agent was stopped after its " +
                           format_cap(Cap::kWall, cap_value(plan_.caps, Cap::kWall)));
  }
  return stop_;
}

void RunMeter::agent_gone() {
  if (agent_gone_) return;
  // Nobody will say what these came to: unknown cost is never zero.
  for (auto& [id, entry] : entries_) {
    if (entry.state != State::kHeld) continue;
    settle_at_ceiling(entry);
  }
  std::erase_if(entries_, [](const auto& e) { return e.second.of_gateway; });
  of_gateway_ = 0;
  agent_gone_ = true;
  before_acceptance_ = cost();
  check();
}

void RunMeter::stored(std::uint64_t bytes) {
  usage_.stored_bytes = std::max(usage_.stored_bytes, std::min(bytes, kUsageCountMax));
  check();
}

void RunMeter::order_stop(std::string cap, std::string reason) {
  if (!stop_) stop_ = MeterStop{std::move(cap), std::move(reason)};
}

// RunMeter: requests of agents and gateways, and how they are settled.

RunMeter::Counts RunMeter::counts_of(const ActionName& action, const Amount& amount) {
  Counts out{};
  const auto one = [&](Cap cap) { out[at(cap)] = 1; };
  if (action.type == kLlmRequest) {
    one(Cap::kModelCalls);
    out[at(Cap::kTokens)] = amount.input_tokens + amount.output_tokens;
  }
  if (action.type == kToolCall) one(Cap::kToolCalls);
  if (action.type == kDependencyInstall) one(Cap::kInstalls);
  if (action.type == kAcceptanceCycle && amount.failed) one(Cap::kFailedCycles);
  out[at(Cap::kActive)] = amount.ms;
  return out;
}

RunMeter::Room RunMeter::room_of(Cap cap, std::uint64_t wanted) const {
  return {cap, std::min(kUsageCountMax, cap_value(plan_.caps, cap).value_or(kUsageCountMax)),
          used_[at(cap)], holding_[at(cap)], wanted};
}

// The headroom and the time of the program do not come back while the agent lives.
RunMeter::Room RunMeter::money_room(MicroUsd wanted) const {
  return {Cap::kUsd, micros_of(limit_), micros_of(limit_ - held_ - free()), micros_of(held_),
          micros_of(wanted)};
}

void RunMeter::reach(const Room& r) {
  const std::string word(to_string(r.cap));
  const bool money = r.cap == Cap::kUsd;
  order_stop(word, "budget_exceeded: " + word + ": " + format_cap(r.cap, r.used) + " of " +
                       format_cap(r.cap, r.limit) +
                       (money ? " spent or kept for acceptance" : " used") +
                       ", the next call needs " + format_cap(r.cap, r.wanted));
}

std::optional<MeterDenied> RunMeter::denial(const Entry& entry, Instant now) {
  const auto denied = [](const Room& r, bool final, std::string why) {
    return MeterDenied{std::string(to_string(r.cap)),
                       r.used + (final ? 0 : r.held) + r.wanted - r.limit, 0, final,
                       std::move(why)};
  };
  std::optional<MeterDenied> for_now;
  for (const Cap cap : kCaps) {
    if (cap == Cap::kWall || cap == Cap::kCallsPerMinute) continue;
    const Room r = cap == Cap::kUsd ? money_room(entry.held) : room_of(cap, entry.counts[at(cap)]);
    if (r.wanted == 0 || r.used + r.held + r.wanted <= r.limit) continue;
    const std::string cap_text =
        "the cap of " + format_cap(cap, r.limit) + " on " + std::string(to_string(cap));
    if (!entry.of_gateway && 0 < r.limit && r.limit < r.wanted) {
      if (!for_now)
        for_now = denied(r, false, format_cap(cap, r.wanted) + " is more than " + cap_text);
    } else if (r.limit < r.used + r.wanted) {
      reach(r);
      return denied(r, true, stop_->reason);
    } else if (!for_now) {
      for_now = denied(r, false, cap_text + " is taken up by open reservations");
    }
  }
  return for_now ? for_now : beyond_rate(entry.request.action, now);
}

std::optional<MeterDenied> RunMeter::beyond_rate(const ActionName& action, Instant now) {
  const auto later = [](Millis wait, std::string why) {
    return MeterDenied{std::string(to_string(Cap::kCallsPerMinute)), 0, ms_of(wait), false,
                       std::move(why)};
  };
  while (!granted_at_.empty() && granted_at_.front() + kMinute <= now) granted_at_.pop_front();
  const auto& most = plan_.caps.calls_per_minute;
  if (most && *most <= granted_at_.size()) {
    const Millis wait = *most == 0 ? kMinute : granted_at_.front() + kMinute - now;
    return later(wait,
                 std::to_string(*most) + " calls in the last minute, as many as the cap allows");
  }
  if (plan_.gate)
    if (auto wait = plan_.gate(action, now))
      return later(wait->retry_after, std::move(wait->reason));
  if (most) granted_at_.push_back(now);
  return std::nullopt;
}

Result<MeterAnswer> RunMeter::reserve(const MeterReserve& request, Instant now) {
  PROCTOR_CHECK_OK(validate(request));
  if (const auto known = entries_.find(request.id); known != entries_.end()) {
    if (known->second.request == request) return known->second.answer;
    return Error{Errc::kConflict,
                 "id: \"" + printable(request.id, 100) + "\" was used for another reservation"};
  }
  if (agent_gone_) return Error{Errc::kInvalid, "the agent's part of the run is over"};
  PROCTOR_TRY(const Tariff tariff, tariff_of(request.action));
  if (kIdsMax <= entries_.size() - of_gateway_)
    return Error{Errc::kExhausted, "more than " + std::to_string(kIdsMax) + " reservations"};
  return enter(request, tariff, /*of_gateway=*/false, now);
}

MeterAnswer RunMeter::enter(const MeterReserve& request, const Tariff& tariff, bool of_gateway,
                            Instant now) {
  Entry entry;
  entry.request = request;
  entry.tariff = tariff;
  entry.of_gateway = of_gateway;
  Amount most = request.most;
  most.failed = true;  // of a cycle: the worst case
  entry.counts = counts_of(request.action, most);
  entry.held = worst_of(request, tariff);
  std::optional<MeterDenied> no;
  if (stop_) {
    no = MeterDenied{stop_->cap, 0, 0, true, stop_->reason};
  } else {
    no = denial(entry, now);
  }
  if (no) {
    entry.held = MicroUsd::zero();
    entry.counts = {};
    entry.answer = *std::move(no);
    if (of_gateway) return entry.answer;
  } else {
    entry.state = State::kHeld;
    entry.answer = MeterGranted{entry.held, tariff.defaulted, request.most.output_tokens};
    hold(entry, true);
  }
  MeterAnswer answer = entry.answer;
  if (of_gateway) ++of_gateway_;
  entries_.emplace(request.id, std::move(entry));
  check();
  return answer;
}

MeterCharged RunMeter::settle(Entry& e, const MeterCharge& charge) {
  const Amount& actual = charge.actual;
  const Basis basis = charge.replayed && !charge.priced ? Basis::kReplay : Basis::kUsage;
  Amount most = e.request.most;
  MicroUsd there = e.held;
  if (most.input_tokens < charge.widest_input) {
    const Room tokens = room_of(Cap::kTokens, 0);
    most.input_tokens +=
        std::min(charge.widest_input - most.input_tokens, tokens.limit - tokens.used - tokens.held);
    there = there + free();
  }
  // The parts are cut to their wholes by price().
  const Amount cut{std::min(actual.input_tokens, most.input_tokens),
                   std::min(actual.output_tokens, most.output_tokens),
                   std::min(actual.units, most.units),
                   std::min(actual.ms, most.ms),
                   actual.failed,
                   actual.cache_read,
                   actual.cache_write,
                   actual.cache_write_long,
                   actual.reasoning};
  const MicroUsd priced =
      basis == Basis::kReplay ? MicroUsd::zero() : price_of(e.request, e.tariff, cut);
  return settled(e, cut, actual, {std::min(there, priced), cut != actual || there < priced}, basis);
}

MeterCharged RunMeter::settle_at_ceiling(Entry& e) {
  Amount most = e.request.most;
  most.failed = true;
  return settled(e, most, most, {e.held, false}, Basis::kCeiling);
}

MeterCharged RunMeter::settled(Entry& e, const Amount& cut, const Amount& actual, MeterCharged out,
                               Basis basis) {
  hold(e, false);
  const Counts used = counts_of(e.request.action, cut);
  for (std::size_t i = 0; i < kCaps.size(); ++i) used_[i] += used[i];
  e.state = State::kCharged;
  e.actual = actual;
  e.paid = out;
  add_use(usage_, use_of(e, cut, out.charged, basis));
  if (e.request.action.type == kAcceptanceCycle && !cut.failed) add(milestones_, 1);
  if (out.overrun) add(usage_.overruns, 1);
  check();
  return out;
}

void RunMeter::hold(const Entry& e, bool held) {
  const auto change = [held](auto& whole, const auto& part) {
    whole = held ? whole + part : whole - part;
  };
  change(held_, e.held);
  for (std::size_t i = 0; i < kCaps.size(); ++i) change(holding_[i], e.counts[i]);
  Amount worst = e.request.most;
  worst.failed = true;  // of a cycle
  const Usage use = use_of(e, worst, e.held, Basis::kCeiling);
  for (const auto& [name, counter, since] : kUsageCounters)
    change(holding_use_.*counter, use.*counter);
  change(open_, std::size_t{1});
}

Usage RunMeter::ceiling() const {
  Usage out = usage_;
  add_use(out, holding_use_);
  return out;
}

Usage RunMeter::use_of(const Entry& e, const Amount& a, MicroUsd charged, Basis basis) {
  Usage u;
  const std::string& type = e.request.action.type;
  const std::uint64_t micros = micros_of(charged);
  if (type == kLlmRequest) {
    u.model_calls = u.priced_calls = 1;
    u.input_tokens = u.priced_input = a.input_tokens;
    u.output_tokens = u.priced_output = a.output_tokens;
    u.priced_micros = micros;
    // Parts of what was counted, so that no share is above 1.
    u.cached_input = std::min(a.cache_read, a.input_tokens);
    u.cache_written = std::min(a.cache_write + a.cache_write_long, a.input_tokens - u.cached_input);
    u.reasoning_tokens = std::min(a.reasoning, a.output_tokens);
    u.ceiling_calls = basis == Basis::kCeiling ? 1 : 0;
    u.ceiling_micros = basis == Basis::kCeiling ? micros : 0;
    u.replayed_calls = basis == Basis::kReplay ? 1 : 0;
  } else if (type == kToolCall) {
    u.tool_calls = 1;
  } else {
    u.other_micros = micros;
  }
  u.dependency_installs = type == kDependencyInstall ? 1 : 0;
  u.failed_cycles = type == kAcceptanceCycle && a.failed ? 1 : 0;
  u.tool_ms = a.ms;
  const bool unpriced =
      wrote_unpriced(e.tariff, a.cache_write + a.cache_write_long, e.request.cache);
  u.defaulted = e.tariff.defaulted || unpriced ? 1 : 0;
  if (e.request.witness != Witness::kSelfReported) return u;
  u.reported_micros = micros;
  u.reported_tokens = a.input_tokens + a.output_tokens;
  u.reported_calls = 1;
  return u;
}

Result<MeterAnswer> RunMeter::charge(const MeterCharge& request) {
  const auto it = entries_.find(request.id);
  if (goes_on_ && it == entries_.end()) return MeterAnswer(MeterCharged{});
  if (it == entries_.end() || it->second.state == State::kDenied)
    return Error{Errc::kNotFound,
                 "id: nothing is reserved as \"" + printable(request.id, 100) + "\""};
  Entry& e = it->second;
  const Amount& a = request.actual;
  if (kUsageCountMax < std::max({a.input_tokens, a.output_tokens, a.units, a.ms, a.cache_read,
                                 a.cache_write, a.cache_write_long, a.reasoning}))
    return Error{Errc::kInvalid, "a quantity above " + std::to_string(kUsageCountMax)};
  if (e.state == State::kReleased)
    return Error{Errc::kConflict, "id: \"" + printable(request.id, 100) + "\" was released"};
  if (e.state == State::kCharged) {
    if (e.actual == request.actual) return MeterAnswer(*e.paid);
    return Error{Errc::kConflict,
                 "id: \"" + printable(request.id, 100) + "\" was charged with other amounts"};
  }
  const MeterCharged out = request.unknown ? settle_at_ceiling(e) : settle(e, request);
  if (request.replayed && request.priced) add(usage_.replayed_calls, 1);
  if (e.of_gateway) {
    entries_.erase(it);
    --of_gateway_;
  }
  return MeterAnswer(out);
}

void RunMeter::count_calls(const CallCounts& seen) {
  add(usage_.refused_calls, seen.refused);
  add(usage_.waited_ms, seen.waited_ms);
  add(usage_.clamped_calls, seen.clamped);
  add(usage_.failed_calls, seen.failed);
  add(usage_.busy_calls, seen.busy);
}

Result<MeterAnswer> RunMeter::release(const MeterRelease& request) {
  const auto it = entries_.find(request.id);
  if (goes_on_ && it == entries_.end()) return MeterAnswer(MeterReleased{});
  if (it == entries_.end() || it->second.state == State::kDenied)
    return Error{Errc::kNotFound,
                 "id: nothing is reserved as \"" + printable(request.id, 100) + "\""};
  Entry& e = it->second;
  if (e.state == State::kCharged)
    return Error{Errc::kConflict, "id: \"" + printable(request.id, 100) + "\" was charged"};
  if (e.state == State::kReleased) return MeterAnswer(MeterReleased{});
  hold(e, false);
  e.state = State::kReleased;
  if (e.of_gateway) {
    entries_.erase(it);
    --of_gateway_;
  }
  check();
  return MeterAnswer(MeterReleased{});
}

// RunMeter: what is asked of it: whether it is a reservation at all, its price, and how much of a
// gateway's call there is room for.
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
  const std::uint64_t most =
      std::max(call.least, r.most.output_tokens / call.samples - call.beside);
  const std::uint64_t least = largest(call.least, most, fits);
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
