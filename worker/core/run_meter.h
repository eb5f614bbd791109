#pragma once
// RunMeter: the money and the caps of one attempt (MONEY 1-7; R109, R114-R117, R159).
// A pure state machine: no clock, no I/O, no threads.  The shell owns one per attempt, behind a
// lock, and feeds it what the worker measures itself (sandbox time, bytes) and what agents ask for
// (reserve, then charge or release).
//
// At every instant, whatever a client does:
//   spent + held + headroom <= limit = the smaller of the ask and the cap on usd;
//   used + held <= cap, for every other cap;
//   every operation has one effect, by its id: the same id with the same contents gets the stored
//   answer, with other contents an error; what is denied stays denied under that id.
// `headroom` is the worst case of what follows the agent (fresh setup, checks, storage): no agent
// can spend it.  A charge above what is left is cut to it and counted as an overrun; the quantities
// stay true.
//
// A cap is reached when a call does not fit beside what is spent, held money aside: whatever comes
// back, it would not fit.  From then on nothing is granted, and stop() says why the agent must go.
// A call that could fit once held money comes back is denied without that; so is one larger than
// the whole cap, which is a mistake of its sender, and one beyond the rate.
// Errors: kInvalid, kConflict, kNotFound; nothing has changed then.  Not thread-safe.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/caps.h"
#include "common/contract/cost_model.h"
#include "worker/core/rate_share.h"

namespace proctor {
struct MeterPlan {
  Caps caps;  // effective ones
  CostModel prices;
  MicroUsd ask;    // reserved for the attempt by the coordinator
  Usage headroom;  // acceptance_worst_case()
  // Takes one call of what the whole campaign may make in a minute, or says how long to wait; asked
  // last, when nothing else is against the call.  Empty: there is no such rate.
  std::function<std::optional<CallWait>(const ActionName&, Instant)> gate{};
};

// Actions that an agent may do at a price.  The known types have a cap of their own; any other is a
// row of the price table and needs a unit.
inline constexpr std::string_view kLlmRequest = "llm_request";
inline constexpr std::string_view kToolCall = "tool_call";
inline constexpr std::string_view kDependencyInstall = "dependency_install";
inline constexpr std::string_view kAcceptanceCycle = "acceptance_cycle";

// The worst case of one action when it is reserved, what it came to when it is charged.
struct Amount {
  std::uint64_t input_tokens = 0, output_tokens = 0;  // kLlmRequest
  std::uint64_t units = 0;                            // of ActionName::unit
  std::uint64_t ms = 0;                               // inside the tool
  bool failed = false;                                // kAcceptanceCycle
  // Parts of the tokens that have prices of their own.
  std::uint64_t cache_read = 0, cache_write = 0, cache_write_long = 0, reasoning = 0;
  friend bool operator==(const Amount&, const Amount&) = default;
};
// Whose word it is: a gateway measures, an agent reports.
enum class Witness { kMeasured, kSelfReported };

struct MeterReserve {
  std::string id;
  ActionName action;
  Amount most;
  Witness witness = Witness::kSelfReported;
  CacheUse cache = CacheUse::kNone;  // what the call may write into
  friend bool operator==(const MeterReserve&, const MeterReserve&) = default;
};
// A call of a gateway, whose output can be asked for in steps of `samples` tokens: as many as there
// is room for, from `least` of each sample to most.output_tokens / samples.
struct MeterFit {
  MeterReserve request;
  std::uint64_t least = 1;
  std::uint64_t samples = 1;
  std::uint64_t beside = 0;  // output tokens that are billed whatever is asked for
};
struct MeterCharge {
  std::string id;
  Amount actual;
  bool unknown = false;   // what it came to: all that was reserved; `actual` says nothing
  bool replayed = false;  // a recording answered it: it counts, and costs nothing
  bool priced = false;    // ... but what its provider would have been paid
  // A gateway may reserve less input than its call can come to, which is this.  The part above the
  // reservation is paid from what is free; 0: nothing is.
  std::uint64_t widest_input = 0;
};
// Calls as a gateway saw them, beside money.
struct CallCounts {
  std::uint64_t refused = 0, waited_ms = 0, clamped = 0, failed = 0, busy = 0;
};
struct MeterRelease {
  std::string id;
};

struct MeterGranted {
  MicroUsd held;
  bool defaulted = false;           // priced by a default row
  std::uint64_t output_tokens = 0;  // of the request, as much as was granted
};
struct MeterDenied {
  std::string cap;  // to_string(Cap)
  // Micro-dollars, milliseconds or counts; 0 for the rate.  Held amounts count unless it is final.
  std::uint64_t short_by = 0;
  std::uint64_t retry_after_ms = 0;  // calls_per_minute only
  bool final = false;                // the cap is reached: nothing will be granted any more
  std::string reason;
};
struct MeterCharged {
  MicroUsd charged;
  bool overrun = false;  // more than there is for it: cut to that
};
struct MeterReleased {};
using MeterAnswer = std::variant<MeterGranted, MeterDenied, MeterCharged, MeterReleased>;

// The caps of stops that are none: a circuit breaker's (docs/breakers.md),
inline constexpr std::string_view kBreakerCap = "breaker";
// ... a gateway's, whose provider billed a call above its worst case,
inline constexpr std::string_view kOverrunCap = "overrun";
// ... a safety monitor's,
inline constexpr std::string_view kPolicyCap = "policy";
// ... and of an agent whose calls would fill its run's event log.
inline constexpr std::string_view kTraceCap = "trace";

struct MeterStop {
  std::string cap;
  std::string reason;  // "budget_exceeded: tokens: 1000 of 1000 used, the next call needs 20"
};

struct Execution {
  Millis wall{0}, cpu{0};
  std::uint64_t memory_peak = 0;
};
enum class MeterPhase { kSetup, kAgent, kAcceptance };

class RunMeter {
 public:
  static constexpr std::size_t kIdsMax = 20'000;

  explicit RunMeter(MeterPlan plan);

  // Before anything else: what an earlier life of the worker counted, with everything it had
  // granted at its worst case.  Amounts open then are charged by that: an id of that life that is
  // charged or released now costs nothing more.  `program`: the agent's runs, and may take that
  // long.
  void go_on(const Usage& so_far, std::optional<Millis> program);

  // The worker's own measurements.

  // Sandbox time of one command and what else it used.  For the agent's program: program_ended().
  void executed(MeterPhase phase, const Execution& e);
  // Before the agent's program starts: its tool call, and its time as a hold.  The time it may
  // take: the cap on wall, and no more than the money allows.  nullopt: not even a start, see
  // stop().  Requires: none is running.
  std::optional<Millis> start_program();
  void program_ended(const Execution& e);
  // No agent any more: every open reservation is charged at its ceiling (unknown cost is never
  // zero), everything later is refused, and the headroom becomes spendable.
  void agent_gone();
  void stored(std::uint64_t bytes);

  // Requests of agents and gateways.

  Result<MeterAnswer> reserve(const MeterReserve& request, Instant now);
  // Once for each id, and so are its charge or release, after which the id is forgotten and does
  // not count among kIdsMax.  A call that does not fit at its least beside what is spent is a cap
  // that is reached, also one larger than the whole cap: its sender cannot make it smaller.
  Result<MeterAnswer> fit(const MeterFit& call, Instant now);
  Result<MeterAnswer> charge(const MeterCharge& request);
  Result<MeterAnswer> release(const MeterRelease& request);
  void count_calls(const CallCounts& seen);

  // The program was stopped at its time: was that a cap of the run's (wall, usd)?
  std::optional<MeterStop> time_is_up(bool wall_is_policy);
  const std::optional<MeterStop>& stop() const { return stop_; }
  // The stop order alone, for a cap that somebody else watches.  The first one holds.
  void order_stop(std::string cap, std::string reason);

  const Usage& usage() const { return usage_; }  // cumulative, never goes backwards
  // usage() with everything charged that is granted: what it comes to if nobody says anything any
  // more.  Without the time of a program that runs.
  Usage ceiling() const;
  // Acceptance cycles of the agent's own that passed (R190).
  std::uint64_t milestones() const { return milestones_; }
  MicroUsd limit() const { return limit_; }
  MicroUsd spent() const;
  MicroUsd held() const { return held_ + program_hold_; }
  MicroUsd headroom() const;
  MicroUsd free() const;
  MicroUsd overrun() const;  // beyond the limit, charged to nobody
  // Used and held of a cap that counts; usd is above, the rate has none.
  std::uint64_t used(Cap cap) const;
  std::uint64_t held(Cap cap) const;
  const Caps& caps() const { return plan_.caps; }
  std::size_t open_reservations() const { return open_; }
  void check() const;  // the invariants

 private:
  enum class State { kDenied, kHeld, kCharged, kReleased };
  using Counts = std::array<std::uint64_t, kCaps.size()>;
  struct Entry {
    MeterReserve request;
    State state = State::kDenied;
    Tariff tariff;
    MicroUsd held;
    Counts counts{};
    MeterAnswer answer;                // to reserve
    std::optional<Amount> actual;      // kCharged
    std::optional<MeterCharged> paid;  // kCharged
    bool of_gateway = false;           // forgotten when it is settled
  };

  Status validate(const MeterReserve& request) const;
  Result<Tariff> tariff_of(const ActionName& action) const;
  static Counts counts_of(const ActionName& action, const Amount& amount);
  MicroUsd price_of(const MeterReserve& request, const Tariff& tariff, const Amount& amount) const;
  MicroUsd worst_of(const MeterReserve& request, const Tariff& tariff) const;
  std::uint64_t room_for_output(const MeterFit& call, const Tariff& tariff) const;
  MeterAnswer enter(const MeterReserve& request, const Tariff& tariff, bool of_gateway,
                    Instant now);
  struct Room {  // of one cap
    Cap cap;
    std::uint64_t limit, used, held, wanted;
  };
  Room room_of(Cap cap, std::uint64_t wanted) const;
  Room money_room(MicroUsd wanted) const;
  std::optional<MeterDenied> denial(const Entry& entry, Instant now);
  std::optional<MeterDenied> beyond_rate(const ActionName& action, Instant now);
  void reach(const Room& room);
  enum class Basis { kUsage, kCeiling, kReplay };  // of what is charged
  MeterCharged settle(Entry& entry, const MeterCharge& charge);
  MeterCharged settle_at_ceiling(Entry& entry);
  MeterCharged settled(Entry& entry, const Amount& cut, const Amount& actual, MeterCharged charged,
                       Basis basis);
  void hold(const Entry& entry, bool held);
  static Usage use_of(const Entry& entry, const Amount& actual, MicroUsd micros, Basis basis);
  MicroUsd cost() const;

  std::uint64_t milestones_ = 0;
  MeterPlan plan_;
  MicroUsd limit_;
  MicroUsd headroom_;           // its worst case
  MicroUsd before_acceptance_;  // what had been spent when the agent was gone
  bool goes_on_ = false;        // of an earlier life's
  bool program_runs_ = false;
  bool agent_gone_ = false;
  bool money_bounds_time_ = false;
  Usage usage_;
  Usage holding_use_;      // of the entries that are held, each at its worst case
  MicroUsd held_;          // by the entries
  MicroUsd program_hold_;  // by the time of the program
  Counts used_{}, holding_{};
  std::map<std::string, Entry> entries_;
  std::size_t open_ = 0;
  std::size_t of_gateway_ = 0;      // of entries_
  std::deque<Instant> granted_at_;  // of the last minute, at most calls_per_minute of them
  std::optional<MeterStop> stop_;
};
}  // namespace proctor
