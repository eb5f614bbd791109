#include "worker/gateway/provider_exchange.h"

#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/base/words.h"
#include "common/contract/models_file.h"
#include "common/trace/model_calls.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/http_gate.h"
#include "worker/gateway/model_answer.h"
#include "worker/gateway/provider_connection.h"
#include "worker/gateway/session_shared.h"

namespace proctor {
namespace {
// The head of a request as it goes to a provider: the operator's key, and of the agent's own head
// what decides nothing.  Pure; any thread.
struct ProviderRequest {
  const ProviderPlace& place;
  const Secret& key;
  ModelAuth auth;
  ModelApi api;
  const GatewayHead& head;  // of the agent
  const std::string& user_agent;
  std::size_t bytes;  // of the body
};
constexpr auto kKeyFields =
    each_once(std::to_array<Word<ModelAuth>>({{"authorization: Bearer ", ModelAuth::kBearer},
                                              {"x-api-key: ", ModelAuth::kXApiKey},
                                              {"api-key: ", ModelAuth::kApiKey},
                                              {"", ModelAuth::kNone}}));
std::string provider_head(const ProviderRequest& r) {
  std::string_view path = path_of(r.api);  // of Anthropic's it has the version, as a URL may
  if (path.starts_with("/v1/") && r.place.path.ends_with("/v1")) path.remove_prefix(3);
  std::string out = "POST " + r.place.path + std::string(path) + " HTTP/1.1\r\nhost: ";
  out += r.place.header + "\r\n";
  if (!r.key.empty() && r.auth != ModelAuth::kNone)
    out += std::string(word_in(kKeyFields, r.auth)) + r.key.reveal() + "\r\n";
  out += "content-type: application/json\r\naccept-encoding: identity\r\ncontent-length: ";
  out += std::to_string(r.bytes) + "\r\nuser-agent: proctor/" + std::string(kVersion);
  if (!r.user_agent.empty()) out += " " + r.user_agent;
  out += "\r\n";
  for (const char* name : {"accept", "anthropic-version", "anthropic-beta", "openai-beta"})
    if (const std::string* value = find_field(r.head.fields, name))
      out += std::string(name) + ": " + *value + "\r\n";
  return out + "\r\n";
}

// Whether a provider still takes the operator's key, asked with nothing of an agent's: an empty
// object at the address of the calls.  A key that is taken hears what is missing (400) and costs
// nothing; one that is not hears so.  Blocking; any thread.
bool is_key_refusal(int status) {
  constexpr int kDenied = 401, kForbidden = 403;
  return status == kDenied || status == kForbidden;
}

// The status of the answer; 0: there was none by then, and nobody knows.
int ask_about_key(ProviderPool& pool, const ModelAccess& access, ModelApi api, int stop,
                  SteadyClock::time_point until) {
  constexpr std::string_view kNothing = "{}";
  const Result<Secret> key = model_key(access);
  const Result<ProviderPlace> place = provider_place(access.url);
  if (!key.ok() || !place.ok()) return 0;
  GatewayHead ours;  // no field of the agent's: one could be what is refused
  ours.fields = {{"anthropic-version", "2023-06-01"}};
  const std::string head =
      provider_head({*place, *key, access.auth, api, ours, std::string(), kNothing.size()});
  auto connection = pool.connect(access, stop, until);
  if (!connection.ok() || !(*connection)->write(head, stop, until) ||
      !(*connection)->write(kNothing, stop, until))
    return 0;
  ProviderAnswer answer(**connection, stop);
  return answer.read_head(until) ? answer.head().status : 0;
}

constexpr std::size_t kKept = std::size_t{16} << 20;
constexpr std::chrono::seconds kAfterLast{5};  // for the framing behind the last event

// A provider's stream on its way to the agent: each read is written on at once, a copy is read for
// what the call has used.  Where the usage was asked for by us, the agent does not see it.
// Blocking; one thread.
class StreamRelay {
 public:
  struct Options {
    bool hides_usage = false;
    bool long_cache = false;
    bool unframed = false;  // the client takes no chunks: the connection's end is the end
    std::chrono::milliseconds silence, idle;
    SteadyClock::time_point total;
    std::uint64_t number = 0;  // of the call
  };
  using Say = std::function<void(std::string_view)>;
  StreamRelay(ModelApi api, Options options)
      : options_(options), facts_(api, options.long_cache), tools_(api) {}

  // Until the stream is over.  True: the answer is complete, by the stream's own last event or by a
  // reason to finish (providers of chat completions without "[DONE]"), and none said that it
  // failed.
  bool run(ProviderAnswer& answer, const Say& say) {
    using More = ProviderAnswer::More;
    say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
        "x-accel-buffering: no\r\n" +
        fmt::format("request-id: prq_{0}\r\nx-request-id: prq_{0}\r\n", options_.number) +
        (options_.unframed ? "connection: close\r\n\r\n" : "transfer-encoding: chunked\r\n\r\n"));
    auto last = SteadyClock::now();
    for (;;) {
      auto until =
          std::min({options_.total, last + options_.idle, SteadyClock::now() + options_.silence});
      if (facts_.ended()) until = std::min(until, last + kAfterLast);
      std::string bytes;
      const More more = answer.read_body(bytes, until);
      if (more == More::kBytes) {
        last = SteadyClock::now();
        if (!take(bytes, say)) return false;
        continue;
      }
      ended_well_ = more == More::kWhole || facts_.ended();
      if (ended_well_ || more == More::kBroken) break;
      const auto now = SteadyClock::now();
      if (options_.total <= now || last + options_.idle <= now) return false;
      if (scan_.between()) pass(": wait\n\n", say);
    }
    return (facts_.ended() || (ended_well_ && !facts_.facts().finish.empty())) && !facts_.failed();
  }

  // The end of the framing, as the provider's; false: the connection's end is it.
  bool end(const Say& say) const {
    if (options_.unframed || !ended_well_) return false;
    say("0\r\n\r\n");
    return true;
  }

  const StreamFacts& facts() const { return facts_; }
  // Has its agent an event of it that is no failure?
  bool says_something() const { return said_ && !facts_.failed(); }
  const StreamToolCalls& tools() const { return tools_; }
  const std::string& bytes() const { return bytes_; }  // as they came, to 16 MiB

 private:
  bool take(std::string_view bytes, const Say& say) {
    if (bytes_.size() < kKept) bytes_ += bytes.substr(0, kKept - bytes_.size());
    const auto events = scan_.feed(bytes);
    if (!events.ok()) return false;
    said_ = said_ || !events->empty();
    std::string on;
    for (const SseEvent& e : *events) {
      if (options_.hides_usage && !StreamFacts::is_bare_usage(e)) on += e.bytes;
      facts_.on(e);
      tools_.on(e);
    }
    pass(options_.hides_usage ? std::string_view(on) : bytes, say);
    return true;
  }

  void pass(std::string_view bytes, const Say& say) const {
    if (bytes.empty()) return;
    if (options_.unframed) return say(bytes);
    say(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
  }

  Options options_;
  SseScan scan_;
  StreamFacts facts_;
  StreamToolCalls tools_;
  std::string bytes_;
  bool said_ = false, ended_well_ = false;
};

// The digest under which it lies; `ok` false: there was no room.
std::string keep(GatewaySession::Shared& shared, std::string_view text, std::string& whole,
                 bool& ok) {
  const std::string stored = shared.redacted(text);
  const std::string digest = sha256(stored).hex();
  ok = shared.hooks.keep(digest, stored) && ok;
  whole += stored;
  return digest;
}

// The parts of a call's texts that are kept: pieces of its request, its answer, and which tools
// were asked for and came back.  Thread-safe as the session is.
void keep_request(GatewaySession::Shared& shared, const std::string& body, const BodyPeek& peek,
                  CallRecord& r) {
  r.digest = sha256(body).hex();
  bool ok = true;
  std::string whole;
  for (const JsonSpan& piece : pieces_of(body.size(), peek.cuts))
    r.pieces.push_back(
        keep(shared, std::string_view(body).substr(piece.at, piece.size), whole, ok));
  if (whole != body) r.stored_digest = sha256(whole).hex();
  if (kPiecesListed < r.pieces.size()) {
    std::string list, ignored;
    for (const std::string& digest : r.pieces) list += digest + "\n";
    r.pieces_list = keep(shared, list, ignored, ok);
  }
  r.kept = ok;
  for (const PeekedResult& result : peek.results) {
    if (kToolCallsMax <= r.results.size()) break;
    if (!shared.is_first_result(result.id)) continue;
    const auto said = std::string_view(body).substr(result.content.at, result.content.size);
    r.results.push_back({result.id, "", sha256(said).hex(), said.size()});
  }
}

// The answer as it may be kept.
std::string keep_answer(GatewaySession::Shared& shared, const std::string& body, CallRecord& r) {
  r.answer_bytes = body.size();
  bool ok = true;
  std::string whole;
  r.answer_digest = keep(shared, body, whole, ok);
  r.answer_kept = ok;
  if (whole != body) r.answer_stored_digest = std::exchange(r.answer_digest, sha256(body).hex());
  return whole;
}

// A provider's words about the operator's own key are nobody's to read.
void strike_out(std::string& text, const std::string& secret) {
  if (secret.empty()) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
}

std::vector<ToolTold> told_of(const std::vector<ToolCall>& calls) {
  std::vector<ToolTold> out;
  for (const ToolCall& c : calls)
    out.push_back({c.id, c.name, sha256(c.arguments).hex(), c.arguments.size()});
  return out;
}

// A recorded answer as if a provider sent it, so that everything behind is what a provider's goes
// through.  One thread.
class ReplayConnection final : public ProviderConnection {
 public:
  explicit ReplayConnection(const CassetteCall& call) {
    bytes_ = "HTTP/1.1 " + std::to_string(call.status) + " Recorded\r\ncontent-type: ";
    bytes_ += call.streamed ? "text/event-stream" : "application/json";
    bytes_ += "\r\ncontent-length: " + std::to_string(call.answer.size()) + "\r\n\r\n";
    bytes_ += call.answer;
  }

  bool write(std::string_view, int, SteadyClock::time_point) override { return true; }

  ProviderConnection::Read read(std::string& out, int, SteadyClock::time_point) override {
    constexpr std::size_t kPiece = std::size_t{16} << 10;
    if (bytes_.size() <= at_) return Read::kEnd;
    out += bytes_.substr(at_, kPiece);
    at_ += kPiece;
    return Read::kBytes;
  }

  bool is_quiet() const override { return true; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

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
    if (shared_.hooks.answered && !kept_.empty()) shared_.hooks.answered(r_.number, kept_);
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
      JsonWriter v;
      v("call", r_.number);
      v("expected", miss->expected);
      v("pointer", printable(miss->pointer, 500));
      v("ours", miss->ours);
      v("theirs", miss->theirs);
      shared_.note("cassette.divergence", By::kHarness, v.take());
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
      kept_ = keep_answer(shared_, body, r_);
      return fail(answer.why());
    }
    if (large) body.resize(kAnswerBytes);
    strike_out(body, key);
    kept_ = keep_answer(shared_, body, r_);
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
      reply_.say(bytes);  // what comes counts though its client is gone
    });
    kept_ = keep_answer(shared_, stream.bytes(), r_);
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
  std::string kept_;  // its answer
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
