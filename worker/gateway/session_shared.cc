#include "worker/gateway/session_shared.h"

#include <algorithm>

#include "common/base/json_fields.h"
#include "common/base/text.h"

namespace proctor {
std::chrono::milliseconds SessionBreakers::now() const {
  if (hooks_.now) return hooks_.now();
  return std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - began_);
}

SessionBreakers::Told SessionBreakers::tell(std::string_view type, GatewayHooks::By by,
                                            Json payload) {
  if (!on_) return {hooks_.note(type, by, payload)};
  using By = GatewayHooks::By;
  const std::lock_guard lock(mutex_);
  if (BreakerFold::hears(type)) payload["at_ms"] = std::max<std::int64_t>(0, now().count());
  Told told{hooks_.note(type, by, payload)};
  for (BreakerTrip& trip : fold_.on(type, payload)) {
    // As it is: all that it says was told before, without what is struck out.
    const std::uint64_t alert =
        hooks_.note("monitor.alert", By::kHarness, alert_json(trip, fold_.stage()));
    told.evidence =
        hooks_.note("monitor.intervention", By::kHarness, intervention_json(trip, alert));
    if (trip.action == BreakerAction::kSuspendWrites) told.suspended = trip.why;
    if (trip.action == BreakerAction::kStop) told.stop = std::move(trip);
  }
  return told;
}

std::optional<Json> SessionBreakers::look(const std::string& key) {
  if (!on_ || !hooks_.look) return std::nullopt;
  constexpr std::chrono::milliseconds kMost{2'000};
  constexpr int kShare = 20;  // of the time is spent on looking, one part
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = fold_.was_answered(key);
  }
  const std::lock_guard lock(look_mutex_);
  const auto began = SteadyClock::now();
  if (seen_ && !again && began < next_look_) return std::nullopt;
  const std::optional<WorkspaceLook> state = hooks_.look();
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - began);
  next_look_ = SteadyClock::now() + std::min(kShare * took, kMost);
  const std::string digest = state ? state->digest : std::string();
  if (seen_ == digest) return std::nullopt;
  seen_ = digest;
  JsonWriter v;
  v("digest", digest);
  v("files", state ? state->files : 0);
  v("bytes", state ? state->bytes : 0);
  return v.take();
}

std::chrono::seconds SessionBreakers::wait(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return std::chrono::seconds(fold_.wait_seconds(key));
}

namespace {
constexpr int kOk = 200, kMultiple = 300, kBad = 400, kServer = 500;
constexpr int kDenied = 401, kUnpaid = 402, kForbidden = 403, kAbsent = 404, kSlow = 408;

// Refusals of an endpoint in which a request of the agent's has no part.
bool is_the_operators(int status) {
  return status == kUnpaid || status == kAbsent || status == kSlow;
}
}  // namespace

void ModelWatch::take(const CallRecord& call, bool cut, std::uint64_t evidence) {
  if (call.begun) --streams_;
  if (call.unasked) return refused(call.why, evidence);
  const std::string status = "its provider answers " + std::to_string(call.status);
  const std::string no_key = status + ": it does not take the operator's key or account";
  // After an answer it is about what was asked: whoever chooses that would choose how his run ends.
  if (call.key_refused || (call.status == kDenied && !answered())) return refused(no_key, evidence);
  // It costs nothing and not every endpoint has it: nobody's failure.
  if (call.api == ModelApi::kCountTokens) return;
  const bool ok = kOk <= call.status && call.status < kMultiple;
  // Who has read what it said and leaves it was answered: nobody chooses by that how his run ends.
  if (ok && (call.overrun || call.why.empty() || (call.begun && cut))) {
    answered_ = true;
    tail_ = {};
    flooded_ = false;
    return;
  }
  // Likewise (lack()): a provider's moderation says it so.
  if (call.status == kForbidden) return failed(no_key, false, evidence);
  if (cut) return;
  const bool heard = call.status != 0 && !ok, busy = is_busy(call.status);
  if (kBad <= call.status && call.status < kServer && !busy && !is_the_operators(call.status))
    return;  // what was wrong with the request the agent was told
  failed(heard              ? status
         : call.why.empty() ? "its provider did not answer"
                            : call.why,
         busy, evidence);
  // Among the calls since the last answer a want of room says most.
  if (busy || (!tail_.busy && is_unanswered(call) && !call.client_gone)) {
    tail_ = failed_;
    tail_.later = !busy;
  }
}

void ModelWatch::refused(std::string why, std::uint64_t evidence) {
  if (refused_.why.empty()) refused_ = {printable(why, 500), false, evidence};
}

void ModelWatch::failed(std::string why, bool busy, std::uint64_t evidence) {
  failed_ = {printable(why, 500), busy, evidence};
}

// A run could make its provider fail, and leave the count by it: by many calls, by many at once, by
// one much larger than any that was answered (a limit of tokens a minute refuses it for ever).
void ModelWatch::weigh(const CallRecord& call, std::uint64_t under_way, Millis now) {
  constexpr std::uint64_t kAtOnce = 4, kLarge = 400'000;
  constexpr std::size_t kMany = 61;
  constexpr std::chrono::minutes kWithin{1};
  const std::uint64_t asked = call.widest_input + call.output;
  ends_.push_back(now);
  if (kMany < ends_.size()) ends_.pop_front();
  if (is_busy(call.status) || is_unanswered(call))
    flooded_ = flooded_ || kAtOnce < under_way ||
               (ends_.size() == kMany && now - ends_.front() < kWithin) ||
               std::max(kLarge, 2 * most_answered_) < asked;
  else if (call.status < kMultiple && call.why.empty())
    most_answered_ = std::max(most_answered_, asked);
}

void ModelWatch::charged(const CallRecord& call, std::uint64_t under_way, Millis now) {
  weigh(call, under_way, now);
  // A client that left before the answer does not know how the call ends: it is not counted.
  if (call.client_gone || !is_unanswered(call) || call.settled.how == Settlement::How::kReleased)
    return;
  lost_micros_ += call.charged_micros;
  const bool known = call.settled.how == Settlement::How::kPartial;
  const Amount& said = call.settled.actual;
  lost_tokens_ += known ? said.input_tokens + said.output_tokens : call.ceiling.input + call.output;
  ++lost_calls_;
}

void ModelWatch::capped(const MeterDenied& no) {
  const std::uint64_t lost = no.cap == to_string(Cap::kUsd)          ? lost_micros_
                             : no.cap == to_string(Cap::kTokens)     ? lost_tokens_
                             : no.cap == to_string(Cap::kModelCalls) ? lost_calls_
                                                                     : 0;
  // A stop that was said before is short of nothing.
  if (no.short_by == 0 || lost < no.short_by) return;
  eaten_ = {"calls that nobody answered used up its cap on " + no.cap +
                (failed_.why.empty() ? "" : "; the last: " + failed_.why),
            false, failed_.evidence, true};
}

ModelLack ModelWatch::lack() const {
  if (!refused_.why.empty()) return refused_;
  if (!eaten_.why.empty()) return eaten_;
  if (!answered()) return failed_;
  return flooded_ ? ModelLack{} : tail_;
}
}  // namespace proctor
