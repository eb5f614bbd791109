#pragma once
// Threads beside the coordinator's loop: for blocking work, and for the campaign's money.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/ledger/ledger_store.h"

namespace proctor {
// TaskThread: one named thread for blocking work, first in first out.  The loop gives it closures;
// what they find out they post back to the loop themselves.
class TaskThread {
 public:
  explicit TaskThread(std::string name);
  ~TaskThread();  // finishes what was given, then joins
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  // Any thread.  Tasks must not throw.
  void post(std::function<void()> task);
  std::size_t waiting() const;

 private:
  void run();
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// Several such threads, for work that mostly waits for a disk.  Tasks of one key run in their
// order, one after the other; between keys there is no order.
class TaskLanes {
 public:
  TaskLanes(const std::string& name, std::size_t lanes);
  void post(std::uint64_t key, std::function<void()> task);
  std::size_t waiting() const;

 private:
  std::vector<std::unique_ptr<TaskThread>> lanes_;
};

// The ledger as a life of the coordinator begins with it.
struct LedgerStart {
  Epoch epoch;
  std::vector<ScopeSpec> scopes;
  std::vector<ReserveOp> pending;  // of the journal
  std::vector<MicroUsd> spent;     // by scope
  struct Shared {
    ScopeId scope;
    SharedBook book;
    // An operator has raised its cap in this journal: the others may not know that yet.
    bool raised = false;
  };
  std::optional<Shared> shared{};
};

// LedgerThread: the campaign's money in Redis or in memory (ledger_store.h), asked off the loop.
// Owns the store and a thread.  Operations are applied in the order given; what waits goes out as
// one call.  While Redis is away the batch is kept and repeated (every operation is idempotent by
// its id); a Redis that came back empty is rebuilt from what it had answered before.
// Meanwhile it admits nothing new, because the scheduler waits for answers.
//
// It keeps the rules themselves (ledger.h) beside the store: what a rebuild restores is theirs, and
// each answer of the store is held against theirs.  One that differs is told (`differs`), and what
// starts nothing counts.
//
// For a campaign that shares an envelope it also tells the others that it is here, several times a
// second, and sees to it that this journal knows them (ledger.h).
class LedgerThread {
 public:
  struct Answered {
    LedgerOp op;
    LedgerAnswer answer;
  };
  struct Callbacks {  // all run on the ledger's thread
    std::function<void(std::vector<Answered>)> answered;
    std::function<void(const std::string& why)> away;  // told once per absence
    std::function<void()> back;
    std::function<void(Error)> failed;  // for good: fenced by a newer coordinator, wrong settings
    std::function<void(const std::string& what)> differs;  // the store's answer and the rules'
    std::function<void(Elsewhere)> elsewhere;              // what others hold has changed
    // To be written to the journal, and then handed to noted().
    std::function<void(std::vector<SharedFact>)> note;
  };

  // Takes the campaign under its epoch before it returns; where Redis answers and takes no writes
  // just now (full, read-only), its thread goes on trying, as after any other absence.
  static Result<std::unique_ptr<LedgerThread>> start(std::shared_ptr<LedgerStore> store,
                                                     LedgerStart start, Callbacks callbacks);
  ~LedgerThread();  // drops what was not sent: the journal knows it
  void submit(std::vector<LedgerOp> ops);
  // What holds for everything submitted after this, in the journal already: caps, none lower
  // (empty: as they are), and what reviews took of each envelope (empty: nothing).
  void raise(std::vector<ScopeSpec> scopes, std::vector<MicroUsd> reviewed);
  // It is durable.
  void noted(std::vector<SharedFact> what);
  // The journal says already that this campaign has left the envelope it shared.  Waits until Redis
  // and the journals of all other members who are here know it, or some seconds.
  void leave();

 private:
  LedgerThread(std::shared_ptr<LedgerStore> store, Epoch epoch, Ledger rules,
               std::optional<LedgerStart::Shared> shared, Callbacks callbacks);
  struct Change {
    std::vector<ScopeSpec> scopes;
    std::vector<MicroUsd> reviewed;
  };
  struct Leave {
    std::shared_ptr<std::promise<void>> done;
  };
  using Noted = std::vector<SharedFact>;
  using Order = std::variant<Change, Noted, Leave>;
  struct Work {  // operations, or an order, or neither: it is time to tend
    std::vector<LedgerOp> ops;
    std::optional<Order> order;
    bool stop = false;
  };
  void run();
  Work take();
  bool obey(Order order);
  // Until it is answered, or false when stopping or failed for good.
  bool apply(const std::vector<LedgerOp>& batch);
  bool take_over(const Change& change);
  bool tend();
  void say_farewell();
  // Told and waited for; false: it failed for good, or this is stopping.
  bool wait_out(Error error, std::chrono::milliseconds& backoff);
  // The store's answer, once the rules have said the same; theirs, or a denial, if they did not.
  LedgerAnswer judged(const LedgerOp& op, const LedgerAnswer& told);
  void tell_elsewhere(const SharedView& view);
  // `own`: what differs is our own change.
  void give(Order order);
  Status take_campaign();
  Status rebuild(bool own, SharedCap cap = SharedCap::kAny);
  bool pause(std::chrono::milliseconds how_long);

  const std::shared_ptr<LedgerStore> store_;
  const Epoch epoch_;
  Ledger rules_;
  Callbacks callbacks_;
  bool away_ = false;
  bool taken_ = false;    // the campaign, under this epoch
  bool differs_ = false;  // in the batch at hand

  std::optional<LedgerStart::Shared> shared_;
  std::uint64_t known_up_to_ = 0;  // the change of the members that the journal knows
  bool noting_ = false;            // what it should know is on its way there
  std::optional<Elsewhere> told_;  // none: whatever it is now, it is told
  bool left_ = false;
  std::chrono::steady_clock::time_point tend_at_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::variant<LedgerOp, Order>> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last
};
}  // namespace proctor
