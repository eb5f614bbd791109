#pragma once
// WorkerLoop: the worker's process between its socket, its slots and its spool.
// Level-triggered: every Sync states the whole truth (what runs, what is not
// acknowledged), and every reply is obeyed whatever came before it; losing, repeating or reordering
// any message is healed by the next Sync.  The coordinator may be away for as long as it likes:
// what runs goes on, results wait on disk.
// Threads: run() on one thread, which owns the port and all state; attempts on slot threads; disk
// work on one more, looking at the host on another.  What they find out is posted back to the loop.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/wire/asio.h"
#include "common/wire/messages.h"
#include "common/wire/zmq_port.h"
#include "worker/shell/bundle_cache.h"
#include "worker/shell/itinerary.h"
#include "worker/shell/outbox.h"
#include "worker/shell/run_executor.h"

namespace proctor {

struct WorkerLoopOptions {
  WorkerId worker;
  std::uint32_t slots = 1;
  // What this host offers now ("sandbox:docker", ...); asked every few seconds, beside the loop.
  std::function<std::vector<std::string>()> features;
  std::vector<Stop> stops;  // coordinators
  // Asked like `features`; none: the stops are those for good.
  std::function<Result<std::vector<Stop>>()> look_for_stops{};
  std::function<Result<wire::ZmqPort::Options>(const Stop&, const std::string& address)> port;
  fs::path home;      // of this worker: spool/, bundles/, runs/
  fs::path meters;    // books of attempts
  bool once = false;  // leave as soon as something was done and nothing is left to do
  std::optional<std::chrono::seconds> give_up_after;  // without a word from the coordinator
  // How long one that is leaving waits for the coordinator to take its results; nothing: until it
  // has them.
  std::optional<std::chrono::seconds> leave_grace;
  // Of the last campaign: what an earlier life left and this one goes on with.
  std::vector<LeftAttempt> left{};
};

// The one that a worker of this home served last; empty: none that is known.
std::string last_campaign(const fs::path& home);
std::string last_address(const fs::path& home);  // where that was
void remember_campaign(const fs::path& home, const std::string& campaign,
                       const std::string& address);

class WorkerLoop {
 public:
  // How it ended; the process's exit code (coordinator/cli/command.h).
  enum class End { kLeft = 0, kRefused = 2, kGaveUp = 4 };

  WorkerLoop(WorkerLoopOptions options, RunExecutor& executor, BundleCache& bundles, Spool& spool);
  ~WorkerLoop();
  // kInvalid, kUnavailable: the port could not be opened.
  Result<End> run();

 private:
  struct Local {  // an attempt between Assign and its spooled result
    wire::Assignment assignment;
    Digest settings;
    Epoch epoch;
    std::shared_ptr<AttemptWatch> watch = std::make_shared<AttemptWatch>();
    bool waiting = true;  // for bundles
    std::shared_ptr<const LeftAttempt> left{};
  };
  using Key = std::pair<std::string, AttemptId>;  // campaign first: ids repeat between campaigns

  void on_bytes(const std::string& bytes);
  void on_link(wire::ZmqPort::Link link, const std::string& detail);
  void handle(const wire::SyncReply& m);
  void handle(const wire::Assign& m);
  void handle(const wire::Bundle& m);
  void handle(const wire::Ack& m);
  void handle(const wire::ChunkAck& m);
  void handle(const wire::Cancel& m);
  void handle(const wire::Refuse& m);
  template <class Other>
  void handle(const Other&);  // a worker's own messages: nothing a coordinator says

  Status connect();
  void hop();
  void move_on();
  void begin_anew();
  void look_around(Instant now);
  void look_for_stops();
  void stops_seen(Result<std::vector<Stop>> stops);
  std::string where() const;  // the address
  std::uint32_t free_of_others() const;
  void enter_campaign(const std::string& campaign);
  void spool_loaded(const std::string& campaign, Result<std::vector<Spool::Entry>> entries);
  void sync();
  std::shared_ptr<RateGate> gate_of(const std::string& campaign);
  void tick();
  void look_at_host(Instant now);
  void sync_books(Instant now);
  void host_seen(std::vector<std::string> features);
  void tell_change(const std::vector<std::string>& now) const;
  void cancel(AttemptId attempt, const std::string& reason);
  void suspend(bool suspended);
  void start_ready();
  void want_missing();
  void start(const Key& key);
  void go_on(LeftAttempt left);
  void attempt_ended(const Key& key, Result<Spool::Entry> entry);
  void bundle_complete(const Digest& digest, std::string bytes);
  void decline(const Digest& digest, const std::string& detail);
  AttemptInput input_of(const Key& key, const Local& local);
  void set_aside(const Spool::Entry& damaged, const std::string& why);
  void forget(AttemptId attempt);
  void on_signal();
  void deliver();
  void leave_if_done();
  void say_what_waits();
  void tell_silence(Instant now);
  void heard(std::uint64_t ticket);
  void give_back(AttemptId attempt);
  void give_back_waiting();
  void drain();
  void cannot_begin(const Key& key, const std::string& why);
  void finish(End end);
  std::vector<wire::RunningAttempt> running() const;
  void on_disk(std::function<void()> work);
  bool send(const wire::Message& m);

  WorkerLoopOptions options_;
  Itinerary itinerary_;
  RunExecutor& executor_;
  BundleCache& bundles_;
  Spool& spool_;
  const BootId boot_;

  boost::asio::io_context io_;
  zmq::context_t zmq_{1};
  std::unique_ptr<wire::ZmqPort> port_;
  boost::asio::steady_timer timer_;
  boost::asio::signal_set signals_;
  boost::asio::thread_pool slots_;
  boost::asio::thread_pool disk_{1};
  boost::asio::thread_pool look_{1};  // an engine that hangs must not hold up the disk

  std::vector<std::string> features_;  // as last seen
  std::vector<BootId> earlier_;        // lives whose books are whole
  bool syncing_books_ = false;
  Instant next_books_{};
  bool books_told_ = false;  // of campaign_: all that they began is in our Syncs
  bool looking_ = false;
  Instant next_look_{};
  std::string campaign_;             // empty: none yet
  bool spool_ready_ = true;          // false while a campaign's spool is being read
  std::vector<wire::Assign> early_;  // came while the spool was being read
  Epoch epoch_;
  Millis sync_interval_ = limits::kSyncInterval;
  Instant last_word_{};  // from the coordinator
  static constexpr Millis kFirstSilence{3'000};
  Instant next_silence_{};  // when it is told next that nobody answers
  Millis silence_pause_{kFirstSilence};
  Instant next_sync_{};
  Instant last_said_{};  // what runs here, in a Sync or Progress
  std::map<Key, Local> attempts_;
  std::set<AttemptId> done_;  // of this campaign and life: a late Assign must not run them again
  Outbox outbox_;
  // By campaign: attempts of one that was left still count in its own.
  std::map<std::string, std::shared_ptr<RateGate>> gates_;
  struct Wanted {
    BundleCache::Kind kind = BundleCache::Kind::kContract;
    std::string parts;
    bool storing = false;
  };
  std::map<Digest, Wanted> wanted_;
  // Of this campaign: given back, with the ticket of the first Sync that said so; 0: not said yet.
  std::map<AttemptId, std::uint64_t> declined_;
  bool leaving_ = false;          // for good: whatever other coordinators there are
  bool draining_ = false;         // nothing new is begun at this one
  std::uint64_t drain_said_ = 0;  // the ticket of the first Sync without slots; 0: not said yet
  bool drain_heard_ = false;      // and the coordinator has answered it
  bool said_what_waits_ = false;
  bool suspended_ = false;  // the campaign's sandboxes stand still, by its coordinator's last word
  bool linked_ = false, introduced_ = false;  // introduced: by a Sync, on this link
  bool moving_ = false;                       // to another address, in a moment
  bool refused_ = false;
  Instant arrived_{};        // at this address, or when it was last tried in vain
  std::string wrong_stops_;  // what is wrong with the file of coordinators
  std::uint64_t ended_ = 0;
  std::optional<Instant> leave_by_;
  std::optional<End> end_;
};

}  // namespace proctor
