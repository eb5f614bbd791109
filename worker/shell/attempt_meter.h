#pragma once
// One attempt as the threads of a worker share it: its watch, its meter, and the rates of its
// campaign.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/json.h"
#include "common/contract/cost_model.h"
#include "common/wire/messages.h"
#include "worker/core/rate_share.h"
#include "worker/core/run_meter.h"
#include "worker/meter/meter_server.h"
#include "worker/sandbox/sandbox.h"
#include "worker/shell/meter_book.h"

namespace proctor {
// AttemptWatch: what the loop thread and a slot thread share about one attempt.  The slot thread
// writes where it is; the loop reads that for Sync and Progress and asks for a stop.  Thread-safe.
class AttemptWatch {
 public:
  struct View {
    wire::Stage stage = wire::Stage::kAssigned;
    bool sandbox_started = false;
    Usage usage;
    std::uint64_t milestones = 0;
  };

  void enter(wire::Stage stage) {
    const std::lock_guard lock(mutex_);
    view_.stage = stage;
  }
  void sandbox_started() {
    const std::lock_guard lock(mutex_);
    view_.sandbox_started = true;
  }
  void meter(const Usage& usage, std::uint64_t milestones) {
    const std::lock_guard lock(mutex_);
    view_.usage = usage;
    view_.milestones = milestones;
  }
  View view() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  // The first reason holds.
  void cancel(const std::string& reason) { stop(reason.empty() ? "cancelled" : reason, false); }
  // The agent alone must go, and what it left is judged.  The first reason holds.
  void stop_agent(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (agent_order_.empty()) agent_order_ = reason;
  }
  std::string agent_order() const {
    const std::lock_guard lock(mutex_);
    return agent_order_;
  }
  // This worker goes away: another may try again.
  void shut_down() { stop("the worker was stopped", true); }
  bool worker_leaves() const {
    const std::lock_guard lock(mutex_);
    return worker_leaves_;
  }
  // While it is on, the attempt's sandboxes stand still.
  const std::shared_ptr<Hold>& hold() const { return hold_; }
  std::string cancel_reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void stop(const std::string& reason, bool worker_leaves) {
    {
      const std::lock_guard lock(mutex_);
      if (reason_.empty()) {
        reason_ = reason;
        worker_leaves_ = worker_leaves;
      }
    }
    stop_.request_stop();
  }

  mutable std::mutex mutex_;
  View view_;
  std::string reason_, agent_order_;
  bool worker_leaves_ = false;
  std::stop_source stop_;
  std::shared_ptr<Hold> hold_ = std::make_shared<Hold>();
};

// RateGate: the RateShare of one campaign behind a lock: the loop asks and obeys, the attempts'
// meters take.  Thread-safe.
class RateGate {
 public:
  explicit RateGate(std::uint64_t first) : share_(first) {}

  struct Word {
    std::uint64_t ticket = 0, obeyed = 0;
    std::vector<std::uint64_t> calls;
  };
  // For a Sync that goes out now.
  Word ask(Instant now) {
    const std::lock_guard lock(mutex_);
    return {share_.ask(now), share_.obeyed(), share_.calls(now)};
  }
  void obey(std::uint64_t ticket, const std::vector<std::uint64_t>& shares) {
    const std::lock_guard lock(mutex_);
    share_.obey(ticket, shares);
  }
  std::optional<CallWait> take(const Rates& rates, const ActionName& action, std::uint64_t run,
                               Instant now) {
    if (rates.empty()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return share_.take(rates.buckets(), buckets_of(rates, action), run, now);
  }

 private:
  std::mutex mutex_;
  RateShare share_;
};

// The time that is left to an agent between the word that it must go and the kill.
inline constexpr Millis kStopGrace{5'000};
// One that broke its policy in a critical way has none.
inline Millis stop_grace(const MeterStop& stop) {
  return stop.cap == kPolicyCap ? Millis(0) : kStopGrace;
}

// AttemptMeter: one attempt's RunMeter behind a lock, with what the run must learn of it: totals
// for Progress, events for the trace, and the order to stop the agent.  Answers the metering
// socket while the agent works.
// Thread-safe; the hooks are called under no lock of its own, on the thread that caused them.
class AttemptMeter final : public MeterServer::Meter {
 public:
  // A client that talks much has only so many events for its operations; the totals count them all.
  static constexpr std::size_t kEventsMax = 2'000;

  struct Hooks {
    std::function<void(const Usage&, std::uint64_t milestones)> totals;
    std::function<std::uint64_t(const Json&)> record;  // an event "meter"; its seq
    // Once.  From then on the agent has kStopGrace.
    std::function<void(const MeterStop&, std::uint64_t evidence)> reached;
    std::function<void()> kill;  // when the grace is over
    // Why somebody else wants the agent to go, and the event that says so; empty: nobody does.
    // Asked at each tick until it is so.
    std::function<std::pair<std::string, std::uint64_t>()> ordered;
    // The agent's own clock: it stands still while the agent does.
    std::function<Instant()> now;
  };
  // `book` (may be null) is kept up to date before anything takes effect; it outlives the meter.
  AttemptMeter(MeterPlan plan, std::string run_name, Hooks hooks, MeterBook* book = nullptr);

  // Before anything else: goes on where an earlier life stopped.  `program`: the command of the
  // agent's that still runs, or did until somebody looks; none: the agent is done.
  void go_on(const Usage& so_far, const std::optional<MeterBook::Command>& program);

  // The worker's own word on a call of a model that it makes itself.  Its ids are apart from those
  // of the socket: an agent knows them, and can neither charge, give back nor take them before.
  Result<MeterAnswer> act(const std::variant<MeterReserve, MeterCharge, MeterRelease>& operation);
  // ... and on one that its gateway makes for the agent: no event beside the gateway's own.  What
  // was granted counts when cover() has returned, which waits for a disk now and then.
  Result<MeterAnswer> act_for_agent(
      const std::variant<MeterFit, MeterCharge, MeterRelease>& operation);
  void cover() {
    if (book_ != nullptr) book_->cover();
  }
  void count_calls(const CallCounts& seen);
  // The event that says so of a call which reached a cap.
  void reached_by(std::uint64_t evidence);
  // The agent must go for what is no cap of money or counts, and the event that says so.
  void order_stop(std::string_view cap, const std::string& reason, std::uint64_t evidence);
  std::string status_line() const;

  // MeterServer's thread.
  std::string answer(std::string_view line) override;
  std::string tick() override;

  // A command of the harness's own begins; executed() is its end, and command_failed() where nobody
  // knows how long it took.
  void command_begins(MeterPhase phase, Millis limit, bool docker);
  void command_failed();
  void executed(MeterPhase phase, const Execution& e);
  // The agent's program, in such a sandbox.
  std::optional<Millis> start_program(bool docker);
  void program_runs();  // its sandbox is there: its time counts from now on
  // Counted by agent_gone(); until agent_kept() the book says that it runs.
  void program_ended(const Execution& e);
  // After the socket is gone.  A program whose end nobody measured is charged until now.
  void agent_gone();
  // A later life would know how the agent ended.
  void agent_kept();
  std::optional<MeterStop> time_is_up(bool wall_is_policy);
  void stored(std::uint64_t bytes);
  Usage usage() const;
  std::optional<MeterStop> stop() const;
  Json totals_payload() const;

 private:
  struct Reply {
    std::string line;
    Json event;  // null: none
  };
  Reply reply(std::string_view line);
  // Under the lock.  The event, or null where there are too many already.
  Json applied(Json event, const MeterAnswer& answer);
  void recorded(const Json& event);
  Millis running_for() const;
  void publish();
  // Writes the book, under the lock.  `counts`: waits until that counts; else cover() does.
  void keep(bool counts = true);

  mutable std::mutex mutex_;
  RunMeter meter_;
  const std::string run_name_;
  const Hooks hooks_;
  MeterBook* const book_;
  std::optional<MeterBook::Command> command_;  // under way
  bool program_ = false;
  std::optional<Execution> program_end_;  // of it
  std::optional<Instant> program_since_;
  Millis published_{0};   // of the present program
  bool ordered_ = false;  // the tick's thread alone
  std::optional<Instant> kill_at_;
  bool killed_ = false;
  std::size_t operations_ = 0, errors_ = 0;
  std::uint64_t evidence_ = 0;  // of the denial that reached a cap
};
}  // namespace proctor
