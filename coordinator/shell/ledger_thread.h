#pragma once
// LedgerThread: the campaign's money in Redis or in memory (ledger_store.h), asked off the loop.
// Owns the store and a thread.  Operations are applied in the order given; what waits goes out as
// one call.  While Redis is away the batch is kept and repeated (every operation is idempotent by
// its id); a Redis that came back empty is rebuilt from what it had answered before.
// Nothing new is admitted meanwhile, because the scheduler waits for answers.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/ledger/ledger_store.h"

namespace proctor {

struct LedgerStart {
  Epoch epoch;
  std::vector<ScopeSpec> scopes;
  std::vector<ReserveOp> pending;  // of the journal
  std::vector<MicroUsd> spent;     // by scope
};

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

 private:
  LedgerThread(std::shared_ptr<LedgerStore> store, LedgerStart start, Callbacks callbacks);
  struct Change {
    std::vector<ScopeSpec> scopes;
    std::vector<MicroUsd> reviewed;
  };
  struct Work {  // operations, or a change
    std::vector<LedgerOp> ops;
    std::optional<Change> change;
  };
  void run();
  Work take();
  // Until it is answered, or false when stopping or failed for good.
  bool apply(const std::vector<LedgerOp>& batch);
  bool take_over(Change change);
  // Told and waited for; false: it failed for good, or this is stopping.
  bool wait_out(Error error, std::chrono::milliseconds& backoff);
  void remember(const LedgerOp& op, const LedgerAnswer& answer);
  // `own`: what differs is our own change.
  Status rebuild(bool own = false);
  bool pause(std::chrono::milliseconds how_long);

  const std::shared_ptr<LedgerStore> store_;
  const Epoch epoch_;
  std::vector<ScopeSpec> scopes_;
  std::map<AskId, ReserveOp> pending_;  // as it last answered: what a rebuild restores
  std::vector<MicroUsd> spent_;
  Callbacks callbacks_;
  bool away_ = false;
  bool taken_ = false;  // the campaign, under this epoch

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::variant<LedgerOp, Change>> queue_;
  bool stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace proctor
