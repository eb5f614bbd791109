#pragma once
// What the connections of one session share.  Thread-safe.  Internal to this room.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include "common/base/owned.h"
#include "worker/gateway/call_machine.h"
#include "worker/gateway/delta_rule.h"
#include "worker/gateway/gateway_session.h"
#include "worker/gateway/model_watch.h"
#include "worker/gateway/refusal.h"
#include "worker/gateway/session_breakers.h"

namespace proctor {

// Sums over all calls, for the trace.
struct GatewaySums {
  std::uint64_t calls = 0, refused = 0, released = 0, by_usage = 0, at_ceiling = 0, partial = 0;
  std::uint64_t overruns = 0;                            // billed above what was reserved
  std::uint64_t charged_micros = 0, ceiling_micros = 0;  // the second: of those at their ceiling
  std::uint64_t input = 0, output = 0, cache_read = 0, cache_written = 0, reasoning = 0;
  std::uint64_t waited_ms = 0, clamped = 0, clients_gone = 0, wrong_tokens = 0, unknown_routes = 0;
  void settled(const Settlement& s, std::uint64_t charged, bool overrun);  // one call
};

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
  const LiteralRedactor own_token;
  SessionBreakers breakers;
  UniqueFd closing;  // readable when no further request is taken
  UniqueFd cut;      // ... when everything ends now
  std::atomic<std::uint64_t> requests = 0, bytes = 0;

  // The refusal after which nothing is granted any more.
  std::optional<Refusal> final_word() const;
  void say_final(const Refusal& refusal);
  // How long an answer to one more refused call waits: nobody is helped by asking a thousand times.
  std::chrono::milliseconds refused_again();

  // What may be kept or told of a text: without the run's token, and what the campaign's rules
  // strike out.
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
  // True once, for the session's first call.  barred(): the gateway refused it.
  bool is_first_call() { return !called_.exchange(true); }
  void barred(const std::string& why);
  // Its charge, before its client knows; and the cap that holds no further call.
  void watch_charge(const CallRecord& call);
  void watch_cap(const MeterDenied& no);
  bool floods() const {
    const std::lock_guard lock(mutex_);
    return watch_.floods();
  }
  // Was a call of this run?  Then 401 and 403 are of one request, unless the key is refused to us,
  // too: its agent may ask for something else.
  bool answered() const;
  void begun(CallRecord& stream);
  // As often as it may be asked for one run.
  bool may_ask_about_key() { return key_questions_.fetch_add(1) < kKeyQuestions; }
  ModelLack lack() const;

  std::optional<std::uint64_t> delta_bound(const CallShape& shape) const {
    const std::lock_guard lock(mutex_);
    return delta_.bound(shape);
  }
  void delta_settled(CallShape shape, const Amount& actual) {
    const std::lock_guard lock(mutex_);
    delta_.settled(std::move(shape), actual);
  }

  // Takes bytes of the session's memory, if it has as many.
  bool take_bytes(std::uint64_t n);
  void give_bytes(std::uint64_t n) { bytes.fetch_sub(n); }

  template <class F>
  void count(F&& change) {
    const std::lock_guard lock(mutex_);
    change(sums_);
  }
  GatewaySums sums() const {
    const std::lock_guard lock(mutex_);
    return sums_;
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

// Serves one connection until it ends.  On a thread of its own.
void serve_gateway_client(GatewaySession::Shared& shared, UniqueFd client);

}  // namespace proctor
