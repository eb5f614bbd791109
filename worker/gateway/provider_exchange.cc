#include "worker/gateway/provider_exchange.h"

#include <algorithm>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "common/contract/models_file.h"
#include "worker/gateway/call_evidence.h"
#include "worker/gateway/cassette_player.h"
#include "worker/gateway/key_question.h"
#include "worker/gateway/provider_answer.h"
#include "worker/gateway/provider_request.h"
#include "worker/gateway/replay_connection.h"
#include "worker/gateway/stream_relay.h"
#include "worker/gateway/wire_io.h"

namespace proctor {
namespace {

using Cause = Refusal::Cause;
using By = GatewayHooks::By;

class Exchange {
 public:
  explicit Exchange(const ExchangeInput& input)
      : in_(input.in),
        shared_(in_.shared),
        access_(input.access),
        player_(input.player),
        bounds_(shared_.options.bounds),
        peek_(input.peek),
        usage_asked_(input.usage_asked),
        reply_(input.reply),
        r_(input.record),
        settle_(input.settle),
        machine_(in_.api, access_.errors_are_free, r_.limit) {}

  void make() {
    std::string sent = spliced(in_.body, r_.edits);
    keep_request(shared_, in_.body, peek_, r_);
    r_.sent_digest = r_.edits.empty() ? r_.digest : sha256(sent).hex();
    const bool listed = in_.number <= kWatchedCalls;
    if (listed) shared_.note("model.request", By::kAgent, request_json(r_));
    began_ = SteadyClock::now();
    ask(std::move(sent));
    r_.wall_us = micros_since(began_);
    if (r_.client_gone) shared_.count([](GatewaySums& s) { ++s.clients_gone; });
    const std::uint64_t seq =
        listed ? shared_.note("model.response", By::kHarness, response_json(r_)) : 0;
    // A call that a recording lacks says nothing of a provider.
    if (player_ == nullptr || 0 < r_.replayed) shared_.watch(r_, seq);
  }

 private:
  // A recording answers, and everything behind is as if a provider had.
  void replay() {
    auto found = player_->take(in_.api, in_.body,
                               [this](std::string_view text) { return shared_.redacted(text); });
    if (const auto* miss = std::get_if<CassettePlayer::Miss>(&found)) {
      r_.why = miss->text;
      settle_(machine_.failed());
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
      return reply_.refuse(no);
    }
    const auto& hit = std::get<CassettePlayer::Hit>(found);
    r_.replayed = hit.number;
    r_.tries = 1;
    machine_.sending();
    machine_.sent();
    play(*hit.call);
  }
  void play(const CassetteCall& call) {
    ReplayConnection connection(call);
    ProviderAnswer answer(connection, shared_.cut.get());
    const auto total = began_ + access_.total;
    if (!answer.read_head(total)) return fail(answer.why());
    r_.status = answer.head().status;
    machine_.answered(r_.status);
    relay(answer, "", total);
  }

  void ask_program(const std::string& sent) {
    const Result<CassetteCall> said = shared_.options.program(access_, sent, [this] {
      return wait_for_fd(-1, 0, shared_.cut.get(), SteadyClock::now()) == Waited::kStopped;
    });
    if (!said.ok()) return fail(said.error().detail);
    r_.tries = 1;
    machine_.sending();
    machine_.sent();
    if (said->status == 0) return fail(said->answer);
    play(*said);
  }

  void ask(std::string sent) {
    if (player_ != nullptr) return replay();
    if (!access_.program.empty()) return ask_program(sent);
    const Result<Secret> key = model_key(access_);
    const Result<ProviderPlace> place = provider_place(access_.url);
    if (!key.ok() || !place.ok()) {
      r_.why = key.ok() ? place.error().detail : key.error().detail;
      r_.unasked = true;
      settle_(machine_.failed());
      refuse_provider("the operator's key of this model cannot be had");
      return;
    }
    // In one piece: a provider is not woken twice.
    sent.insert(0, provider_head({*place, *key, access_.auth, in_.api, in_.head, r_.user_agent,
                                  sent.size()}));
    const auto total = began_ + access_.total;
    bool fresh = false;
    for (;;) {
      ++r_.tries;
      auto connection = fresh ? shared_.pool.connect(access_, shared_.cut.get(), connect_until())
                              : shared_.pool.take(access_, shared_.cut.get(), connect_until());
      if (!connection.ok()) return fail(connection.error().detail);
      machine_.sending();
      const auto send_until = std::min(total, SteadyClock::now() + access_.first_byte);
      if (!(*connection)->write(sent, shared_.cut.get(), send_until)) {
        if (fresh) return fail("the connection to the provider broke");
        fresh = true;  // one that was kept may have been half dead
        machine_.again();
        continue;
      }
      machine_.sent();
      ProviderAnswer answer(**connection, shared_.cut.get());
      if (!answer.read_head(std::min(total, SteadyClock::now() + access_.first_byte)))
        return fail(answer.why());
      r_.first_byte_us = micros_since(began_);
      r_.status = answer.head().status;
      machine_.answered(r_.status);
      relay(answer, key->reveal(), total);
      if (answer.is_reusable()) shared_.pool.give_back(access_, std::move(connection).value());
      return;
    }
  }

  SteadyClock::time_point connect_until() const { return SteadyClock::now() + bounds_.connect; }

  // A client without us would see a connection that ends, and does with ours what it does with
  // that.
  void fail(const std::string& why) {
    r_.why = why;
    settle_(machine_.failed());
    reply_.end();
  }
  void refuse_provider(const char* why) {
    Refusal no{Cause::kFinal, why};
    no.code = "upstream_refused";
    shared_.say_final(no);
    reply_.refuse(no);
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
    const bool read = answer.read_all(body, kAnswerBytes, until);
    // A model that says more than that has answered: its client reads as much as there is.
    const bool large = ok && kAnswerBytes < body.size();
    if (!read && !large) {
      keep_answer(shared_, body, r_);
      return fail(answer.why());
    }
    if (large) body.resize(kAnswerBytes);
    strike_out(body, key);
    keep_answer(shared_, body, r_);
    if (is_busy(head.status)) r_.asked_wait = retry_after(head.fields);
    if (ok && !large) {
      r_.facts = read_answer(in_.api, body, peek_.caches_for_hours);
      r_.tool_calls = told_of(tool_calls_in(in_.api, body));
      if (!r_.facts.fault.empty())
        r_.why = "its provider answers " + std::to_string(head.status) + ", and " + r_.facts.fault;
    }
    settle_(machine_.whole(r_.facts.usage));
    answer_client(head, body, ok, key);
  }

  // Before any answer it is; after one it is the call that is refused, unless we are, too.
  bool is_key_refused() {
    if (shared_.answered() && player_ == nullptr && shared_.may_ask_about_key())
      r_.key_status = ask_about_key(shared_.pool, access_, in_.api, shared_.cut.get(),
                                    SteadyClock::now() + bounds_.connect);
    return r_.key_refused = !shared_.answered() || is_key_refusal(r_.key_status);
  }

  void answer_client(const AnswerHead& head, const std::string& body, bool ok,
                     const std::string& key) {
    constexpr int kServer = 500;
    if (is_key_refusal(head.status) && is_key_refused())
      return refuse_provider("the provider does not take the operator's key or account");
    OwnAnswer out{head.status, {}, body, false};
    if (!ok) {
      if (kServer <= head.status) r_.why = "status " + std::to_string(head.status);
      out.type = passed(head, "content-type", key);
      for (const std::string_view name : {"retry-after", "retry-after-ms", "x-should-retry"})
        if (const std::string value = passed(head, name, key); !value.empty())
          out.headers += std::string(name) + ": " + value + "\r\n";
    }
    const std::string id = "prq_" + std::to_string(in_.number);
    out.headers += "request-id: " + id + "\r\nx-request-id: " + id + "\r\n";
    reply_.say(to_bytes(out));
  }

  // A provider's word on its error, as it came; empty: none, or one that is no header.
  static std::string passed(const AnswerHead& head, std::string_view name, const std::string& key) {
    constexpr std::size_t kMost = 200;
    const std::string* said = find_field(head.fields, name);
    if (said == nullptr || printable(*said, kMost) != *said) return {};
    std::string out = *said;
    strike_out(out, key);
    return out;
  }

  void relay_events(ProviderAnswer& answer, SteadyClock::time_point total) {
    StreamRelay stream(in_.api, {usage_asked_, peek_.caches_for_hours, in_.head.last,
                                 bounds_.silence, access_.idle, total, in_.number});
    const bool whole = stream.run(answer, [this, &stream](std::string_view bytes) {
      if (!r_.begun && stream.says_something()) shared_.begun(r_);
      if (r_.client_gone) return;
      reply_.say(bytes);
      if (r_.client_gone) machine_.client_gone();  // what comes still counts
    });
    keep_answer(shared_, stream.bytes(), r_);
    r_.streamed = true;
    r_.tool_calls = told_of(stream.tools().calls());
    r_.facts = stream.facts().facts();
    if (whole) {
      if (stream.facts().failed()) r_.why = "its provider ended the stream with an error";
      settle_(machine_.whole(r_.facts.usage));
    } else {
      r_.why = answer.why().empty() ? "the stream ended before its last event" : answer.why();
      settle_(machine_.cut(stream.facts().begun(), r_.facts.usage));
    }
    // A stream that broke off must not look whole, nor one broken that its provider ended.
    if (!stream.end([this](std::string_view bytes) { reply_.say(bytes); })) reply_.end();
  }

  const GatewayCallInput& in_;
  GatewaySession::Shared& shared_;
  const ModelAccess& access_;
  CassettePlayer* const player_;
  const GatewayBounds& bounds_;
  const BodyPeek& peek_;
  const bool usage_asked_;
  CallReply& reply_;
  CallRecord& r_;
  const std::function<void(const Settlement&)>& settle_;
  SteadyClock::time_point began_{};
  CallMachine machine_;
};

}  // namespace

void CallReply::say(std::string_view bytes) {
  const GatewaySession::Shared& shared = in_.shared;
  if (r_.client_gone) return;
  if (write_all(in_.client, bytes, shared.cut.get(), shared.options.bounds.client_idle) ==
      Wrote::kAll)
    return;
  r_.client_gone = true;
  end();
}

void CallReply::refuse(const Refusal& refusal, bool listed) {
  GatewaySession::Shared& shared = in_.shared;
  const OwnAnswer answer = make_refusal(in_.api, refusal, in_.litellm, in_.number);
  shared.count([](GatewaySums& s) { ++s.refused; });
  shared.hooks.count({.refused = 1});
  if (listed && in_.number <= kWatchedCalls) {
    const std::uint64_t seq = shared.note("model.refused", GatewayHooks::By::kHarness,
                                          refused_json(r_, answer.status, refusal));
    if (refusal.cause == Cause::kFinal) shared.hooks.cap_reached(seq);
  }
  if (answer.last) end();
  say(to_bytes(answer));
}

void exchange_with_provider(const ExchangeInput& input) {
  Exchange(input).make();
}

}  // namespace proctor
