#pragma once
// The state that the connections of one session share, its circuit breakers and its watch over the
// model among it.  Internal to this room.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/owned.h"
#include "common/score/outcome.h"
#include "common/trace/breakers.h"
#include "worker/gateway/call_record.h"
#include "worker/gateway/ceiling.h"
#include "worker/gateway/gateway_session.h"
#include "worker/gateway/refusal.h"

namespace proctor {
// The circuit breakers of a session: hears every event that is told of it, in the order of the
// trace, tells what trips, and knows how long an answer waits.  Thread-safe.
class SessionBreakers {
 public:
  // `hooks` outlive this.
  SessionBreakers(const Breakers& breakers, const GatewayHooks& hooks)
      : hooks_(hooks), on_(breakers.any()), fold_(breakers) {}

  bool any() const { return on_; }
  // Notes an event, and what trips by it.  `stop`: what has ended the run, and the event that says
  // so.  `suspended`: why nothing is to be written for now; empty: it may.
  struct Told {
    std::uint64_t seq = 0;
    std::optional<BreakerTrip> stop{};
    std::uint64_t evidence = 0;
    std::string suspended{};
  };
  Told tell(std::string_view type, GatewayHooks::By by, Json payload);

  // The workspace as it looks now, if it is time to look or a request of this key was answered
  // before: nothing where it looks as before.
  std::optional<Json> look(const std::string& key);
  std::chrono::seconds wait(const std::string& key) const;

 private:
  std::chrono::milliseconds now() const;
  const GatewayHooks& hooks_;
  const bool on_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  mutable std::mutex mutex_;  // the order of the trace is that of the fold
  BreakerFold fold_;
  std::mutex look_mutex_;
  std::optional<std::string> seen_;  // the workspace's digest; empty: it could not be looked at
  SteadyClock::time_point next_look_{};
};

// Whether the model of a run could be had at all, by how its calls ended: what the operator or a
// provider did wrong is never the agent's failure (docs/gateway.md, "When a model cannot be had").
// Pure; one thread.
class ModelWatch {
 public:
  using Millis = std::chrono::milliseconds;
  // `earlier`: an earlier life of this worker served the run, and nobody knows what was answered.
  explicit ModelWatch(bool earlier) : answered_(earlier) {}

  // A stream has begun to say something, and its agent reads it: `take` says how it ends.
  void begun() { ++streams_; }
  // A call has ended.  `cut`: by us, for its agent had ended.  `evidence`: its event, 0: none.
  void take(const CallRecord& call, bool cut, std::uint64_t evidence);
  // A call that was not cut has been settled, by a clock of the worker; `under_way` calls of the
  // run were, it among them.
  void charged(const CallRecord& call, std::uint64_t under_way = 1, Millis now = Millis(0));
  // The run may make no further call, by this cap.
  void capped(const MeterDenied& no);
  // No call can be made any more, whatever the agent does: a key, a book.
  void refused(std::string why, std::uint64_t evidence);

  // The gateway refused the run's first request, so what the agent does by itself never began.
  void barred(const std::string& why) {
    failed("its gateway does not pass its first request: " + why, false, 0);
  }

  // Since the last answer the run asked for so much that its provider's failure may be its doing.
  bool floods() const { return flooded_; }
  // Was a call answered, as far as anybody knows?
  bool answered() const { return answered_ || 0 < streams_; }
  // Empty `why`: it was had, or nobody asked for it.  Where calls were answered, and since the last
  // of them its provider failed or had no room (busy): so, unless the run may be the cause.
  ModelLack lack() const;

 private:
  void weigh(const CallRecord& call, std::uint64_t under_way, Millis now);
  void failed(std::string why, bool busy, std::uint64_t evidence);
  bool answered_;
  std::uint64_t streams_ = 0;  // under way, and begun
  ModelLack refused_, failed_, eaten_;
  ModelLack tail_;  // its provider's failure since the last answer; a want of room before others
  bool flooded_ = false;
  std::deque<Millis> ends_;          // the latest calls, as many as matter
  std::uint64_t most_answered_ = 0;  // bytes and tokens of output that an answered call asked for
  // The sums of calls that were not answered.
  std::uint64_t lost_micros_ = 0, lost_tokens_ = 0, lost_calls_ = 0;
};

// Sums over all calls, for the trace.
struct GatewaySums {
  std::uint64_t calls = 0, refused = 0, released = 0, by_usage = 0, at_ceiling = 0, partial = 0;
  std::uint64_t overruns = 0;                            // billed above what was reserved
  std::uint64_t charged_micros = 0, ceiling_micros = 0;  // the second: of those at their ceiling
  std::uint64_t input = 0, output = 0, cache_read = 0, cache_written = 0, reasoning = 0;
  std::uint64_t waited_ms = 0, clamped = 0, clients_gone = 0, wrong_tokens = 0, unknown_routes = 0;
  void settled(const Settlement& s, std::uint64_t charged, bool overrun);  // one call
};
void fields(auto& v, Is<GatewaySums> auto& s) {
  v("calls", s.calls);
  v("refused", s.refused);
  v("released", s.released);
  v("by_usage", s.by_usage);
  v("at_ceiling", s.at_ceiling);
  v("partial", s.partial);
  v("overruns", s.overruns);
  v("charged_micros", s.charged_micros);
  v("ceiling_micros", s.ceiling_micros);
  v("input_tokens", s.input);
  v("cache_read_tokens", s.cache_read);
  v("cache_written_tokens", s.cache_written);
  v("output_tokens", s.output);
  v("reasoning_tokens", s.reasoning);
  v("waited_ms", s.waited_ms);
  v("clamped", s.clamped);
  v("clients_gone", s.clients_gone);
  v("wrong_tokens", s.wrong_tokens);
  v("unknown_routes", s.unknown_routes);
}

// One for all connections of a session.  Thread-safe.
struct GatewaySession::Shared {
  Shared(GatewayOptions o, GatewayHooks h, ProviderPool& p)
      : options(std::move(o)),
        hooks(std::move(h)),
        pool(p),
        own_token({{"token", options.token.reveal()}}),
        breakers(options.method.breakers, hooks),
        watch_(options.earlier_calls) {}

  const GatewayOptions options;
  const GatewayHooks hooks;
  ProviderPool& pool;
  const Redactor own_token;
  SessionBreakers breakers;
  UniqueFd closing;  // readable when no further request is taken
  UniqueFd cut;      // ... when everything ends now
  std::atomic<std::uint64_t> requests = 0, bytes = 0;

  // The refusal after which nothing is granted any more.
  std::optional<Refusal> final_word() const;
  void say_final(const Refusal& refusal);
  // How long an answer to one more refused call waits: nobody is helped by asking a thousand times.
  std::chrono::milliseconds refused_again();

  // A text as it may be kept or told: without the run's token, and what the campaign's rules strike
  // out.
  std::string redacted(std::string_view text) const;
  // Also ends the run where a breaker says so by it.
  SessionBreakers::Told tell(std::string_view type, GatewayHooks::By by, const Json& payload);
  std::uint64_t note(std::string_view type, GatewayHooks::By by, const Json& payload) {
    return tell(type, by, payload).seq;
  }
  // A conversation comes back with every call: is this tool's result new?
  bool is_first_result(const std::string& id);

  // How a call ended, and that none can be made any more: whether the model could be had.
  void watch(const CallRecord& call, std::uint64_t evidence);
  void cannot_ask(const std::string& why);
  // True once, for the session's first call.
  bool is_first_call() { return !called_.exchange(true); }
  // Its charge, before its client knows.
  void watch_charge(const CallRecord& call);
  // Was a call of this run?  Then 401 and 403 are of one request, unless the key is refused to us,
  // too: its agent may ask for something else.
  bool answered() const;
  void begun(CallRecord& stream);
  // As often as it may be asked for one run.
  bool may_ask_about_key() { return key_questions_.fetch_add(1) < kKeyQuestions; }

  // Takes bytes of the session's memory, if it has as many.
  bool take_bytes(std::uint64_t n);
  void give_bytes(std::uint64_t n) { bytes.fetch_sub(n); }

  // Changes the sums; asks or tells the watch and the rule of deltas.  Under the lock of all: they
  // must not call back into Shared.
  template <class F>
  void count(F&& change) {
    const std::lock_guard lock(mutex_);
    change(sums_);
  }
  template <class F>
  auto watched(F&& ask) {
    const std::lock_guard lock(mutex_);
    return ask(watch_);
  }
  template <class F>
  auto deltas(F&& ask) {
    const std::lock_guard lock(mutex_);
    return ask(delta_);
  }

  // A place among the calls under way.  Those that wait are served in the order in which they came.
  class Turn {
   public:
    explicit Turn(Shared& shared);  // `in_line()` false: too many wait already
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();
    bool in_line() const { return in_line_; }
    bool is_next();  // none is before this one, and there is room for it
    void begin();    // leaves the line for the calls under way
    // Until it is next and something has changed since is_next(), at most so long.
    void wait(std::chrono::milliseconds most);

   private:
    friend Shared;
    Shared& shared_;
    std::condition_variable changed_;  // each has its own: the others are not woken for nothing
    std::uint64_t seen_ = 0;           // changes_ at is_next()
    bool in_line_ = false, begun_ = false;
  };
  void wait_for_calls(std::chrono::milliseconds most);

 private:
  static constexpr std::uint32_t kKeyQuestions = 20;
  std::atomic<std::uint32_t> key_questions_ = 0;
  std::atomic<bool> called_ = false;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  GatewaySums sums_;
  ModelWatch watch_;
  DeltaRule delta_;
  std::optional<Refusal> final_;
  std::uint64_t refused_after_ = 0;
  std::set<std::string> results_;  // of tools, by the ids of their calls
  bool may_begin(const Turn* turn) const;
  void change();
  std::deque<Turn*> line_;
  std::uint64_t changes_ = 0, under_way_ = 0;  // changes: what a call in line waits for
};

// One call of a model: judged, reserved, forwarded, relayed, charged.  Does what the pure parts
// decide.  Blocking; on its connection's thread.
struct GatewayCallInput {
  GatewaySession::Shared& shared;
  int client;
  const GatewayHead& head;
  ModelApi api;
  std::string& body;
  bool litellm;  // its program says that it is
  std::uint64_t number;
};

// False: the connection ends with it.
bool make_gateway_call(const GatewayCallInput& input);

// Serves one connection until it ends.  On a thread of its own.
void serve_gateway_client(GatewaySession::Shared& shared, UniqueFd client);
}  // namespace proctor
