#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/digest.h"
#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/contract/host_things.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/policy.h"
#include "worker/gateway/provider_connection.h"
#include "worker/gateway/provider_exchange.h"
#include "worker/gateway/session_shared.h"

namespace proctor {
namespace {
using End = ProviderStreak::End;

// A provider that has no room for us (429) or refuses us is there.
End end_of(const CallRecord& call, bool cut) {
  if (call.unasked || cut) return End::kUnknown;
  // Not every endpoint can count, and one that cannot is none the worse for it.
  if (call.api == ModelApi::kCountTokens) return End::kUnknown;
  return is_unanswered(call) ? End::kFailed : End::kAnswered;
}

// A call's word with the worker's other calls of the same provider (provider_connection.h).
// Whatever becomes of the call, it is said how it ended.  One thread.
class ProviderPass {
 public:
  // All outlive it; `run` is only told from others.
  ProviderPass(ProviderPool& pool, const ModelAccess& access, ProviderStreak::Run run)
      : pool_(pool), access_(access), run_(run) {}
  ProviderPass(const ProviderPass&) = delete;
  ProviderPass& operator=(const ProviderPass&) = delete;
  ~ProviderPass() {
    if (begun_) pool_.call_ended(access_, run_, End::kUnknown, probe_);
  }

  // Zero: the call may be made.  Its provider had no room (why() says it), or fails.
  std::chrono::milliseconds wait() {
    if (const auto held = pool_.held(access_, place_); 0 < held.count()) return held;
    const ProviderStreak::May may = pool_.may_call(access_, run_);
    begun_ = may.wait.count() == 0;
    probe_ = may.probe;
    return may.wait;
  }

  std::string why() const {
    return place_ == 0 ? "a provider that failed" : "a provider without room";
  }
  // It is made although it should wait.
  void go() { begun_ = true; }
  // `cut`: by us, for its agent had ended.  `floods`: the run asks for so much that a want of room
  // says nothing to others.
  void end(const CallRecord& call, bool cut, bool floods) {
    if (!std::exchange(begun_, false)) return;
    pool_.call_ended(access_, run_, end_of(call, cut), probe_);
    if (!is_busy(call.status)) {
      if (!call.unasked && !is_unanswered(call)) pool_.had_room(access_);
    } else if (!floods) {
      pool_.no_room(access_, call.asked_wait);
    }
  }

 private:
  ProviderPool& pool_;
  const ModelAccess& access_;
  const ProviderStreak::Run run_;
  bool begun_ = false, probe_ = false;
  std::uint32_t place_ = 0;  // in the order of those that a hold kept; 0: none did
};

using Cause = Refusal::Cause;
using By = GatewayHooks::By;
using std::chrono::milliseconds;

constexpr std::uint64_t kMoment = 100;  // ms that are no waiting

class Call {
 public:
  explicit Call(const GatewayCallInput& input)
      : in_(input),
        shared_(input.shared),
        method_(shared_.options.method),
        bounds_(shared_.options.bounds) {
    r_.number = in_.number;
    r_.api = in_.api;
    r_.model = method_.model().name;
    r_.bytes = in_.body.size();
    if (const auto* agent = find_field(in_.head.fields, "user-agent")) r_.user_agent = *agent;
    if (const auto* count = find_field(in_.head.fields, "x-stainless-retry-count"))
      r_.retry_count = *count;
  }

  bool make() {
    if (!judge()) return reply_.keeps();
    if (shared_.breakers.any() && !slow_down()) return reply_.keeps();
    if (player_ == nullptr && access_->program.empty() && !wait_for_provider())
      return reply_.keeps();
    if (!reserve()) return reply_.keeps();
    exchange_with_provider({in_, *access_, player_, peek_, usage_asked_, reply_, r_,
                            [this](const Settlement& s) { settle(s); }});
    return reply_.keeps();
  }

 private:
  bool refuse(const Refusal& refusal, bool listed = true) {
    reply_.refuse(refusal, listed);
    return false;
  }

  // The judgement of the request.

  // A run that is refused at its first request has not had its model, whatever it does then.
  bool bar(const Refusal& no, bool first) {
    if (first)
      shared_.watched([told = shared_.redacted(no.text)](ModelWatch& w) { w.barred(told); });
    return refuse(no);
  }
  Refusal unspoken(const std::string& models) const {
    return {Cause::kUnknownModel, "the model \"" + models + "\" does not speak " +
                                      std::string(word_of(in_.api)) + " in this run"};
  }
  bool judge() {
    const bool first = shared_.is_first_call();
    if (!speaks(method_.as, in_.api) || std::ranges::none_of(method_.models, [&](const auto& m) {
          return shared_.options.models.at(m.name).api.contains(in_.api);
        }))
      return bar(unspoken(method_.names("\", \"")), first);
    Result<BodyPeek> peek = peek_body(in_.api, in_.body);
    if (!peek.ok()) {
      Refusal no{Cause::kPolicy, peek.error().detail};
      no.param = no.text.substr(0, std::min(no.text.find(':'), std::size_t{60}));
      return bar(no, first);
    }
    peek_ = std::move(peek).value();
    model_ = method_.find(peek_.model);
    if (model_ == nullptr) {
      Refusal no{Cause::kUnknownModel, "the model \"" + printable(peek_.model, 100) +
                                           "\" is not this run's: ask for \"" +
                                           method_.names("\", \"") + "\""};
      no.param = "model";
      return bar(no, first);
    }
    r_.model = model_->name;
    access_ = &shared_.options.models.at(model_->name);
    if (!access_->api.contains(in_.api)) return bar(unspoken(model_->name), first);
    if (const auto it = shared_.options.players.find(access_->cassette);
        it != shared_.options.players.end())
      player_ = it->second.get();
    pass_.emplace(shared_.pool, *access_, &shared_);
    PolicyVerdict verdict = judge_request(in_.api, in_.body, peek_, *model_, *access_);
    if (verdict.refusal) {
      Refusal no{Cause::kPolicy, verdict.refusal->text};
      no.param = verdict.refusal->member;
      return bar(no, first);
    }
    r_.edits = std::move(verdict.edits);
    usage_asked_ = verdict.usage_asked;
    r_.stream = peek_.stream;
    r_.ceiling = ceiling_of(in_.api, peek_, in_.body.size(), *model_, *access_);
    r_.widest_input = r_.ceiling.input;
    if (access_->delta && 0 < r_.ceiling.asked) bound_by_earlier();
    return true;
  }
  // Earlier calls of the run may bound its input closer than its bytes do.
  void bound_by_earlier() {
    shape_ = shape_of(in_.api, in_.body, peek_, *access_);
    if (shape_)
      r_.delta = shared_.deltas([&](const DeltaRule& rule) { return rule.bound(*shape_); });
    if (r_.delta && shared_.pool.delta_holds(*access_))
      r_.ceiling.input = std::min(r_.ceiling.input, *r_.delta);
  }

  // The money for the call.

  MeterFit wish(std::uint32_t tries) const {
    return fit_of(shared_.options.ids + std::to_string(in_.number) + "." + std::to_string(tries),
                  *model_, peek_, r_.ceiling);
  }

  // A run that repeats itself is answered later and later.
  bool slow_down() {
    if (in_.api != ModelApi::kCountTokens)  // which asks a model for nothing
      r_.key = sha256(std::string(word_of(in_.api)) + "\n" + canonical_request(in_.body)).hex();
    if (const auto state = shared_.breakers.look(r_.key))
      shared_.note("workspace.state", By::kHarness, *state);
    const auto since = SteadyClock::now(), until = since + shared_.breakers.wait(r_.key);
    while (SteadyClock::now() < until && !shared_.final_word())
      if (!pause_until(until)) return false;
    throttled_ms_ = micros_since(since) / 1'000;
    return true;
  }
  // Or a moment before.  False: nobody waits for the call any more.
  bool pause_until(SteadyClock::time_point until) {
    if (has_left(in_.client) || is_closing()) {
      reply_.end();
      return false;
    }
    wait_for_fd(-1, 0, shared_.closing.get(),
                std::min(until, SteadyClock::now() + milliseconds(250)));
    return true;
  }

  // One that has failed whoever asked it is left alone for a while (docs/breakers.md), no longer
  // than a call waits for anything: its client decides what to make of what the provider says then.
  bool wait_for_provider() {
    const auto since = SteadyClock::now(), until = since + bounds_.wait;
    for (milliseconds wait = pass_->wait(); 0 < wait.count(); wait = pass_->wait()) {
      if (const auto final = shared_.final_word()) return refuse(*final, false);
      if (until <= SteadyClock::now()) {
        pass_->go();
        break;
      }
      if (!pause_until(std::min(until, SteadyClock::now() + wait))) return false;
      away_ = pass_->why();
    }
    throttled_ms_ += micros_since(since) / 1'000;
    return true;
  }

  // What may heal is waited for: each refusal would come back as the client's retry.
  bool reserve() {
    const auto since = SteadyClock::now(), until = since + bounds_.wait;
    turn_.emplace(shared_);
    if (!turn_->in_line())
      return refuse({Cause::kNotNow, "too many calls of this run are waiting already"});
    std::string why = "as many calls of this run are under way as may be";
    milliseconds pause{250}, later{1'000};
    for (std::uint32_t tries = 0;;) {
      if (const auto final = shared_.final_word()) return refuse(*final, false);
      if (has_left(in_.client) || is_closing()) {
        reply_.end();
        return false;
      }
      if (turn_->is_next() && in_.api == ModelApi::kCountTokens) {  // costs nothing
        turn_->begin();
        return true;
      }
      if (turn_->is_next()) {
        const MeterFit fit = wish(tries++);
        const Result<MeterAnswer> answer = shared_.hooks.meter(fit);
        // The model's price is there if a call had it: then it is what this one asks for.
        if (!answer.ok() &&
            (shared_.answered() || !peek_.tier.empty() || answer.error().code == Errc::kExhausted))
          return refuse({Cause::kPolicy, answer.error().detail});
        if (!answer.ok()) {  // no price: not the agent's doing
          Refusal no{Cause::kFinal, answer.error().detail};
          no.code = "not_priced";
          shared_.say_final(no);
          shared_.cannot_ask(no.text);
          return refuse(no);
        }
        if (const auto* granted = std::get_if<MeterGranted>(&*answer)) {
          turn_->begin();
          if (shared_.hooks.cover) shared_.hooks.cover();  // others need not wait for it
          note_grant(fit, *granted, since, why, tries);
          return true;
        }
        const MeterDenied& no = std::get<MeterDenied>(*answer);
        if (no.final) {
          shared_.watched([&](ModelWatch& w) { w.capped(no); });
          const Refusal final{Cause::kFinal, no.reason};
          shared_.say_final(final);
          return refuse(final);
        }
        why = no.reason;
        pause = std::clamp(milliseconds(no.retry_after_ms), milliseconds(100), milliseconds(2'000));
        later = std::max(milliseconds(no.retry_after_ms), milliseconds(1'000));
      }
      if (until <= SteadyClock::now()) {
        Refusal no{Cause::kNotNow, why};
        no.wait_ms = static_cast<std::uint64_t>(later.count());
        return refuse(no);
      }
      turn_->wait(pause);
    }
  }

  bool is_closing() const {
    return wait_for_fd(-1, 0, shared_.closing.get(), SteadyClock::now()) == Waited::kStopped;
  }

  void note_grant(const MeterFit& fit, const MeterGranted& granted, SteadyClock::time_point since,
                  const std::string& why, std::uint32_t tries) {
    id_ = fit.request.id;
    r_.output = granted.output_tokens;
    r_.limit = r_.ceiling.asked == 0 ? 0 : granted.output_tokens / fit.samples - fit.beside;
    r_.ceiling_micros = static_cast<std::uint64_t>(granted.held.micros());
    r_.waited_ms = micros_since(since) / 1'000 + throttled_ms_;
    if (1 < tries) r_.waited_for = why;
    if (r_.waited_for.empty() && kMoment < throttled_ms_)
      r_.waited_for = away_.empty() ? "a breaker" : away_;
    if (0 < r_.ceiling.asked)
      if (auto edit = limit_edit(in_.api, peek_, *access_, r_.limit)) r_.edits.push_back(*edit);
    const bool clamped = peek_.limit && r_.limit < *peek_.limit;
    shared_.count([&](GatewaySums& s) {
      ++s.calls;
      s.waited_ms += r_.waited_ms;
      if (clamped) ++s.clamped;
    });
    shared_.hooks.count({.waited_ms = r_.waited_ms, .clamped = clamped ? 1U : 0U});
  }

  void settle(const Settlement& s) {
    if (id_.empty()) return;  // nothing was reserved
    r_.settled = s;
    using How = Settlement::How;
    Result<MeterAnswer> answer =
        s.how == How::kReleased
            ? shared_.hooks.meter(MeterRelease{id_})
            : shared_.hooks.meter(charge_of(r_, id_, s, access_->cassette_charges));
    if (answer.ok())
      if (const auto* charged = std::get_if<MeterCharged>(&*answer)) {
        r_.charged_micros = static_cast<std::uint64_t>(charged->charged.micros());
        r_.overrun = charged->overrun;
      }
    if (r_.overrun) stop_overrun(s.actual);
    if (s.how == How::kUsage && r_.delta)
      shared_.pool.delta_seen(*access_, *r_.delta, s.actual.input_tokens);
    if (s.how == How::kUsage && shape_)
      shared_.deltas([&](DeltaRule& rule) { rule.settled(*std::move(shape_), s.actual); });
    shared_.count([&](GatewaySums& sums) { sums.settled(s, r_.charged_micros, r_.overrun); });
    // A client that has its answer may ask at once, and what became of the call is known by then.
    const bool cut = wait_for_fd(-1, 0, shared_.cut.get(), SteadyClock::now()) == Waited::kStopped;
    if (!cut) shared_.watch_charge(r_);
    pass_->end(r_, cut, shared_.watched([](const ModelWatch& w) { return w.floods(); }));
  }

  // What a call may cost at most was wrong, so it is known of no further one: whoever found out how
  // would have the difference for nothing, call after call.
  void stop_overrun(const Amount& billed) {
    r_.why = overrun_words(r_, billed);
    Refusal no{Cause::kFinal,
               "call " + std::to_string(r_.number) +
                   " cost more than its worst case, and nothing more is granted: " + r_.why};
    no.code = "overrun";
    shared_.say_final(no);
    JsonWriter v;
    v("call", r_.number);
    v("code", no.code);
    v("why", printable(no.text, 500));
    const std::uint64_t seq = shared_.note("gateway.stopped", By::kHarness, v.take());
    if (shared_.hooks.stop) shared_.hooks.stop(kOverrunCap, "overrun: " + r_.why, seq);
  }

  const GatewayCallInput& in_;
  GatewaySession::Shared& shared_;
  const MethodGateway& method_;
  // The access of the model that is asked for; null until it is judged.
  const GatewayModel* model_ = nullptr;
  const ModelAccess* access_ = nullptr;
  CassettePlayer* player_ = nullptr;  // null: a provider is asked
  const GatewayBounds& bounds_;
  CallRecord r_;
  BodyPeek peek_;
  std::optional<CallShape> shape_;  // where the delta rule may hold
  CallReply reply_{in_, r_};
  bool usage_asked_ = false;
  std::optional<GatewaySession::Shared::Turn> turn_;
  std::optional<ProviderPass> pass_;
  std::string away_;  // why its provider was not asked at once; empty: it was
  std::uint64_t throttled_ms_ = 0;
  std::string id_;  // at the meter; empty: nothing is reserved
};
}  // namespace

bool make_gateway_call(const GatewayCallInput& input) {
  return Call(input).make();
}
}  // namespace proctor
