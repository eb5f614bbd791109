#include "worker/gateway/gateway_call.h"

#include <algorithm>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "common/contract/model_key.h"
#include "common/contract/model_speech.h"
#include "worker/gateway/call_evidence.h"
#include "worker/gateway/cassette_match.h"
#include "worker/gateway/cassette_player.h"
#include "worker/gateway/key_question.h"
#include "worker/gateway/policy.h"
#include "worker/gateway/provider_answer.h"
#include "worker/gateway/provider_pass.h"
#include "worker/gateway/provider_request.h"
#include "worker/gateway/replay_upstream.h"
#include "worker/gateway/stream_relay.h"
#include "worker/gateway/wire_io.h"

namespace proctor {
namespace {

using Cause = Refusal::Cause;
using By = GatewayHooks::By;
using std::chrono::milliseconds;

constexpr std::size_t kAnswerBytes = std::size_t{64} << 20;
constexpr std::uint64_t kEventsOfCalls = kWatchedCalls;
constexpr std::uint64_t kMoment = 100;  // ms that are no waiting
std::uint64_t micros_since(SteadyClock::time_point since) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - since).count());
}

class Call {
 public:
  explicit Call(const GatewayCallInput& input)
      : in_(input),
        shared_(input.shared),
        method_(shared_.options.method),
        access_(shared_.options.access),
        bounds_(shared_.options.bounds),
        pass_(shared_.pool, access_, &shared_) {
    r_.number = in_.number;
    r_.api = in_.api;
    r_.model = method_.model;
    r_.bytes = in_.body.size();
    if (const auto* agent = find_field(in_.head.fields, "user-agent")) r_.user_agent = *agent;
    if (const auto* count = find_field(in_.head.fields, "x-stainless-retry-count"))
      r_.retry_count = *count;
  }

  bool make() {
    if (!judge()) return keep_;
    if (shared_.breakers.any() && !slow_down()) return keep_;
    if (!shared_.options.player && !wait_for_provider()) return keep_;
    if (!reserve()) return keep_;
    forward();
    return keep_;
  }

 private:
  // ---- what goes back
  bool say(std::string_view bytes) {
    if (r_.client_gone) return false;
    if (write_all(in_.client, bytes, shared_.cut.get(), bounds_.client_idle) == Wrote::kAll)
      return true;
    r_.client_gone = true;
    keep_ = false;
    return false;
  }
  bool refuse(const Refusal& refusal, bool listed = true) {
    const OwnAnswer answer = make_refusal(in_.api, refusal, in_.litellm, in_.number);
    shared_.count([](GatewaySums& s) { ++s.refused; });
    if (refusal.cause != Cause::kUpstreamFailed) shared_.hooks.count({.refused = 1});
    if (listed && in_.number <= kEventsOfCalls) {
      const std::uint64_t seq =
          shared_.note("model.refused", By::kHarness, refused_json(r_, answer.status, refusal));
      if (refusal.cause == Cause::kFinal) shared_.hooks.cap_reached(seq);
    }
    if (answer.last) keep_ = false;
    say(to_bytes(answer));
    return false;
  }

  // ---- judging
  // A run that is refused at its first request has not had its model, whatever it does then.
  bool bar(const Refusal& no, bool first) {
    if (first) shared_.barred(no.text);
    return refuse(no);
  }
  bool judge() {
    const bool first = shared_.is_first_call();
    if (!speaks(method_.as, in_.api) || !access_.api.contains(in_.api))
      return bar({Cause::kUnknownModel, "the model \"" + method_.model + "\" does not speak " +
                                            std::string(to_string(in_.api)) + " in this run"},
                 first);
    Result<BodyPeek> peek = peek_body(in_.api, in_.body);
    if (!peek.ok()) {
      Refusal no{Cause::kPolicy, peek.error().detail};
      no.param = no.text.substr(0, std::min(no.text.find(':'), std::size_t{60}));
      return bar(no, first);
    }
    peek_ = std::move(peek).value();
    PolicyVerdict verdict = judge_request(in_.api, in_.body, peek_, method_, access_);
    if (verdict.refusal) {
      const bool unknown = verdict.refusal->why == PolicyRefusal::Why::kUnknownModel;
      Refusal no{unknown ? Cause::kUnknownModel : Cause::kPolicy, verdict.refusal->text};
      no.param = verdict.refusal->member;
      return bar(no, first);
    }
    r_.edits = std::move(verdict.edits);
    usage_asked_ = verdict.usage_asked;
    r_.stream = peek_.stream;
    r_.ceiling = ceiling_of(in_.api, peek_, in_.body.size(), method_, access_);
    r_.widest_input = r_.ceiling.input;
    if (access_.delta && 0 < r_.ceiling.asked) bound_by_earlier();
    return true;
  }
  // Earlier calls of the run may bound its input closer than its bytes do.
  void bound_by_earlier() {
    shape_ = shape_of(in_.api, in_.body, peek_, access_);
    if (shape_) r_.delta = shared_.delta_bound(*shape_);
    if (r_.delta && shared_.pool.delta_holds(access_))
      r_.ceiling.input = std::min(r_.ceiling.input, *r_.delta);
  }

  // ---- money
  MeterFit wish(std::uint32_t tries) const {
    return fit_of(shared_.options.ids + std::to_string(in_.number) + "." + std::to_string(tries),
                  method_, peek_, r_.ceiling);
  }

  // A run that repeats itself is answered later and later.
  bool slow_down() {
    if (in_.api != ModelApi::kCountTokens)  // which asks a model for nothing
      r_.key = sha256(std::string(to_string(in_.api)) + "\n" + canonical_request(in_.body)).hex();
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
      keep_ = false;
      return false;
    }
    wait_for_fd(-1, 0, shared_.closing.get(),
                std::min(until, SteadyClock::now() + milliseconds(250)));
    return true;
  }

  // One that has failed whoever asked it is left alone for a while (docs/breakers.md).
  bool wait_for_provider() {
    const auto since = SteadyClock::now(), until = since + bounds_.wait;
    for (milliseconds wait = pass_.wait(); 0 < wait.count(); wait = pass_.wait()) {
      if (const auto final = shared_.final_word()) return refuse(*final, false);
      if (until <= SteadyClock::now()) {
        shared_.provider_away(pass_.why());
        Refusal no{Cause::kNotNow,
                   "the provider fails call after call, the last time: " + pass_.why()};
        no.wait_ms = static_cast<std::uint64_t>(wait.count());
        return refuse(no);
      }
      if (!pause_until(std::min(until, SteadyClock::now() + wait))) return false;
      away_ = true;
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
        keep_ = false;
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
          note_grant(fit, *granted, since, why, tries);
          return true;
        }
        const MeterDenied& no = std::get<MeterDenied>(*answer);
        if (no.final) {
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
      r_.waited_for = away_ ? "a provider that failed" : "a breaker";
    if (0 < r_.ceiling.asked)
      if (auto edit = limit_edit(in_.api, peek_, access_, r_.limit)) r_.edits.push_back(*edit);
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
            : shared_.hooks.meter(charge_of(r_, id_, s, access_.cassette_charges));
    if (answer.ok())
      if (const auto* charged = std::get_if<MeterCharged>(&*answer)) {
        r_.charged_micros = static_cast<std::uint64_t>(charged->charged.micros());
        r_.overrun = charged->overrun;
      }
    if (r_.overrun) stop_overrun(s.actual);
    if (s.how == How::kUsage && r_.delta)
      shared_.pool.delta_seen(access_, *r_.delta, s.actual.input_tokens);
    if (s.how == How::kUsage && shape_) shared_.delta_settled(*std::move(shape_), s.actual);
    shared_.count([&](GatewaySums& sums) { sums.settled(s, r_.charged_micros, r_.overrun); });
    // A client that has its answer may ask at once, and what became of the call is known by then.
    pass_.end(r_, wait_for_fd(-1, 0, shared_.cut.get(), SteadyClock::now()) == Waited::kStopped);
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
    const std::uint64_t seq = shared_.note(
        "gateway.stopped", By::kHarness,
        Json{{"call", r_.number}, {"code", no.code}, {"why", printable(no.text, 500)}});
    if (shared_.hooks.stop) shared_.hooks.stop(kOverrunCap, "overrun: " + r_.why, seq);
  }

  // ---- to the provider and back
  void forward() {
    const std::string sent = spliced(in_.body, r_.edits);
    keep_request(shared_, in_.body, peek_, r_);
    r_.sent_digest = sha256(sent).hex();
    const bool listed = in_.number <= kEventsOfCalls;
    if (listed) shared_.note("model.request", By::kAgent, request_json(r_));
    began_ = SteadyClock::now();
    machine_.emplace(in_.api, access_.errors_are_free, r_.limit);
    exchange(sent);
    r_.wall_us = micros_since(began_);
    if (r_.client_gone) shared_.count([](GatewaySums& s) { ++s.clients_gone; });
    const std::uint64_t seq =
        listed ? shared_.note("model.response", By::kHarness, response_json(r_)) : 0;
    // What a recording does not have says nothing of a provider.
    if (!shared_.options.player || 0 < r_.replayed) shared_.watch(r_, seq);
  }

  // A recording answers, and everything behind is as if a provider had.
  void replay() {
    auto found = shared_.options.player->take(in_.api, in_.body);
    if (const auto* miss = std::get_if<CassettePlayer::Miss>(&found)) {
      r_.why = miss->text;
      settle(machine_->failed());
      shared_.note("cassette.divergence", By::kHarness,
                   Json{{"call", r_.number},
                        {"expected", miss->expected},
                        {"pointer", printable(miss->pointer, 500)},
                        {"ours", miss->ours},
                        {"theirs", miss->theirs}});
      Refusal no{Cause::kFinal, "cassette: call " + std::to_string(r_.number) + ": " + miss->text};
      no.code = "cassette_end";
      shared_.say_final(no);
      shared_.cannot_ask("it is a recording that has no such call: " + no.text);  // no agent's
      return void(refuse(no));
    }
    const auto& hit = std::get<CassettePlayer::Hit>(found);
    r_.replayed = hit.number;
    r_.tries = 1;
    machine_->sending();
    machine_->sent();
    ReplayUpstream upstream(*hit.call);
    ProviderAnswer answer(upstream, shared_.cut.get());
    const auto total = began_ + access_.total;
    if (!answer.read_head(total)) return fail(answer.why());
    r_.status = answer.head().status;
    machine_->answered(r_.status);
    relay(answer, "", total);
  }

  void exchange(const std::string& sent) {
    if (shared_.options.player) return replay();
    const Result<Secret> key = model_key(access_);
    const Result<UpstreamPlace> place = upstream_place(access_.url);
    if (!key.ok() || !place.ok()) {
      r_.why = key.ok() ? place.error().detail : key.error().detail;
      r_.unasked = true;
      settle(machine_->failed());
      refuse_upstream("the operator's key of this model cannot be had");
      return;
    }
    const std::string head =
        provider_head({*place, *key, access_.auth, in_.api, in_.head, r_.user_agent, sent.size()});
    const auto total = began_ + access_.total;
    bool fresh = false;
    for (;;) {
      ++r_.tries;
      auto upstream = fresh ? shared_.pool.connect(access_, shared_.cut.get(), connect_until())
                            : shared_.pool.take(access_, shared_.cut.get(), connect_until());
      if (!upstream.ok()) return fail(upstream.error().detail);
      machine_->sending();
      const auto send_until = std::min(total, SteadyClock::now() + access_.first_byte);
      if (!(*upstream)->write(head, shared_.cut.get(), send_until) ||
          !(*upstream)->write(sent, shared_.cut.get(), send_until)) {
        if (fresh) return fail("the connection to the provider broke");
        fresh = true;  // one that was kept may have been half dead
        machine_->again();
        continue;
      }
      machine_->sent();
      ProviderAnswer answer(**upstream, shared_.cut.get());
      if (!answer.read_head(std::min(total, SteadyClock::now() + access_.first_byte)))
        return fail(answer.why());
      r_.first_byte_us = micros_since(began_);
      r_.status = answer.head().status;
      machine_->answered(r_.status);
      if (!wait_and_again(answer)) {
        relay(answer, key->reveal(), total);
        if (answer.is_reusable()) shared_.pool.give_back(access_, std::move(upstream).value());
        return;
      }
    }
  }

  SteadyClock::time_point connect_until() const { return SteadyClock::now() + bounds_.connect; }

  // A provider without room is asked again for the client, within what it would wait for anything.
  bool wait_and_again(const ProviderAnswer& answer) {
    if (!machine_->may_try_again() || bounds_.upstream_tries <= r_.tries) return false;
    const milliseconds wait = retry_after(answer.head().fields, r_.tries - 1);
    if (began_ + bounds_.wait < SteadyClock::now() + wait) return false;
    wait_for_fd(-1, 0, shared_.closing.get(), SteadyClock::now() + wait);
    if (has_left(in_.client) || is_closing()) return false;
    machine_->again();
    return true;
  }
  void fail(const std::string& why) {
    r_.why = why;
    settle(machine_->failed());
    refuse_failed();
  }
  void refuse_failed() {
    Refusal no{Cause::kUpstreamFailed, "the provider did not answer as it should: " + r_.why};
    no.again = r_.settled.how == Settlement::How::kReleased;
    refuse(no, false);
  }
  void refuse_upstream(const char* why) {
    Refusal no{Cause::kFinal, why};
    no.code = "upstream_refused";
    shared_.say_final(no);
    refuse(no);
  }

  void relay(ProviderAnswer& answer, const std::string& key, SteadyClock::time_point total) {
    constexpr int kOk = 200, kMultiple = 300;
    const AnswerHead& head = answer.head();
    const bool ok = kOk <= head.status && head.status < kMultiple;
    const auto* encoding = find_field(head.fields, "content-encoding");
    if (encoding != nullptr && *encoding != "identity") return fail("an answer that is encoded");
    const std::string* type = find_field(head.fields, "content-type");
    const bool streams = type != nullptr && type->starts_with("text/event-stream");
    if (ok && streams && peek_.stream) return relay_events(answer, total);
    std::string body;
    const auto until = std::min(total, SteadyClock::now() + access_.idle);
    if (!answer.read_all(body, kAnswerBytes, until)) {
      keep_answer(shared_, body, r_);
      return fail(answer.why());
    }
    strike_out(body, key);
    keep_answer(shared_, body, r_);
    if (ok) {
      r_.facts = read_answer(in_.api, body, peek_.caches_for_hours);
      r_.tool_calls = told_of(tool_calls_in(in_.api, body));
      if (!r_.facts.fault.empty())
        r_.why = "its provider answers " + std::to_string(head.status) + ", and " + r_.facts.fault;
    }
    settle(machine_->whole(r_.facts.usage));
    answer_client(head, body, ok);
  }

  // Before any answer it is; after one it is the call that is refused, unless we are, too.
  bool is_key_refused() {
    if (shared_.answered() && !shared_.options.player && shared_.may_ask_about_key())
      r_.key_status = ask_about_key(shared_.pool, access_, in_.api, shared_.cut.get(),
                                    SteadyClock::now() + bounds_.connect);
    return r_.key_refused = !shared_.answered() || is_key_refusal(r_.key_status);
  }

  void answer_client(const AnswerHead& head, const std::string& body, bool ok) {
    constexpr int kBad = 400, kServer = 500;
    if (is_key_refusal(head.status) && is_key_refused())
      return refuse_upstream("the provider does not take the operator's key or account");
    const bool passed =
        ok || (kBad <= head.status && head.status < kServer) || is_busy(head.status);
    if (!passed) {
      r_.why = "status " + std::to_string(head.status);
      return refuse_failed();
    }
    OwnAnswer out{head.status, {}, body, false};
    const std::string id = "prq_" + std::to_string(in_.number);
    out.headers = "request-id: " + id + "\r\nx-request-id: " + id + "\r\n";
    if (is_busy(head.status))
      out.headers +=
          "retry-after: " +
          std::to_string(
              std::chrono::ceil<std::chrono::seconds>(retry_after(head.fields, r_.tries)).count()) +
          "\r\n";
    say(to_bytes(out));
  }

  void relay_events(ProviderAnswer& answer, SteadyClock::time_point total) {
    StreamRelay stream(in_.api, {usage_asked_, peek_.caches_for_hours, in_.head.last,
                                 bounds_.silence, access_.idle, total, in_.number});
    const bool whole = stream.run(answer, [this, &stream](std::string_view bytes) {
      if (!r_.begun && stream.says_something()) shared_.begun(r_);
      if (r_.client_gone) return;
      if (!say(bytes)) machine_->client_gone();  // what comes still counts
    });
    keep_answer(shared_, stream.bytes(), r_);
    r_.streamed = true;
    r_.tool_calls = told_of(stream.tools().calls());
    r_.facts = stream.facts().facts();
    if (whole) {
      if (stream.facts().failed()) r_.why = "its provider ended the stream with an error";
      settle(machine_->whole(r_.facts.usage));
    } else {
      r_.why = answer.why().empty() ? "the stream ended before its last event" : answer.why();
      settle(machine_->cut(stream.facts().begun(), r_.facts.usage));
    }
    // A stream that broke off must not look whole.
    if (!whole || !stream.end([this](std::string_view bytes) { say(bytes); })) keep_ = false;
  }

  const GatewayCallInput& in_;
  GatewaySession::Shared& shared_;
  const MethodGateway& method_;
  const ModelAccess& access_;
  const GatewayBounds& bounds_;
  CallRecord r_;
  BodyPeek peek_;
  std::optional<CallShape> shape_;  // where the delta rule may hold
  bool usage_asked_ = false, keep_ = true;
  std::optional<GatewaySession::Shared::Turn> turn_;
  ProviderPass pass_;
  bool away_ = false;  // its provider, when it was asked for
  std::uint64_t throttled_ms_ = 0;
  std::string id_;  // at the meter; empty: nothing is reserved
  SteadyClock::time_point began_{};
  std::optional<CallMachine> machine_;
};

}  // namespace

bool make_gateway_call(const GatewayCallInput& input) {
  return Call(input).make();
}

}  // namespace proctor
