#pragma once
// Coordinator: the loop around one campaign's scheduler.  One thread owns the core and the ROUTER
// sockets; the journal, Redis and archives have their own threads and post back.  It decides
// nothing: decode, feed the core, perform each command.
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/plan.h"
#include "common/wire/zmq_port.h"
#include "coordinator/core/scheduler.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/owner_lock.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/control_server.h"
#include "coordinator/shell/ledger_thread.h"
#include "coordinator/shell/loop_guards.h"
#include "coordinator/shell/status.h"
#include "coordinator/shell/worker_files.h"

namespace proctor {
struct CoordinatorOptions {
  StateFolder folder;
  std::string campaign;                  // its id
  const Campaign* definition = nullptr;  // both outlive the coordinator
  const Plan* plan = nullptr;
  std::vector<RunId> removed;  // tasks taken out after the freeze (R173)
  // Its workers know the rules of a verdict, and write them into each manifest; false: registered
  // by a version without such rules, and workers as old are served.
  bool judged = true;
  struct Listen {
    std::string endpoint;
    enum class Security { kFilePermissions, kCurve, kInsecureLoopback } security;
  };
  std::vector<Listen> listen;
  std::optional<wire::KeyPair> keys;    // kCurve: ours; whom we let in stands in `folder`
  std::shared_ptr<LedgerStore> ledger;  // nobody else's
  // Makes `ledger` once the journal is ours: whoever loses that race starts no Redis.  Empty: it is
  // there.
  std::function<Result<std::shared_ptr<LedgerStore>>()> open_ledger{};
  SchedulerSettings scheduler;
  std::function<void(const StatusSnapshot&)> on_status;  // once a second, on the loop
  // Whether a worker of an earlier life may still come: a campaign that is complete waits a moment
  // for what it holds to be acknowledged.
  std::function<bool()> awaited{};
  // Some worker is no longer connected: whoever started it may look after it now.  On the loop.
  std::function<void()> on_worker_gone{};
};

class Coordinator {
 public:
  // Opens the journal (kConflict: the campaign runs already), begins an epoch, takes the ledger,
  // binds the sockets.  kUnavailable: Redis is not there.
  static Result<std::unique_ptr<Coordinator>> open(CoordinatorOptions options);
  ~Coordinator();

  enum class End { kComplete, kStopped, kAtGate, kFailed };  // kAtGate: a person opens a stage
  struct Outcome {
    End end = End::kStopped;
    std::string why;  // kFailed
  };
  // Until the campaign has ended or was stopped.
  Outcome run();

  // From any thread or signal-safe context of Asio: first call drains, second cancels.
  void ask_to_stop();
  std::vector<std::string> endpoints() const;
  Epoch epoch() const { return epoch_; }
  JournalStats journal_stats() const { return journal_->stats(); }

 private:
  using Port = wire::ZmqPort;
  struct Peer {
    std::size_t port = 0;
    std::string routing_id;
    std::uint32_t version = wire::kVersion;  // of the protocol
    BootId boot;
    Instant last;
    std::map<Digest, Instant> bundles{};  // on their way to it since then
    std::map<BootId, Instant> rivals{};   // other lives that want its name, since when
  };

  static constexpr std::uint32_t kSpokenPerSecond = 20;

  explicit Coordinator(CoordinatorOptions options);
  Status begin();
  Status mark_living();
  Result<RestoredState> load_journal();
  Status restore(const RestoredState& state, LedgerStart& ledger);
  Status start_ledger(LedgerStart start);
  Status bind_ports();
  Result<Port::Options> port_options(const CoordinatorOptions::Listen& listen);

  void receive(std::size_t port, wire::PeerMessage message);
  // Complains, unless coordinator_messages.cc says what to do with this kind.
  template <class M>
  void on_message(std::size_t port, const wire::PeerMessage& from, M m);
  const WorkerId* worker_of(std::size_t port, const std::string& routing_id) const;
  // Says so to a peer whose version is not served; one that has no version is none.
  bool refuse_version(std::size_t port, const wire::PeerMessage& from);
  void refuse_epoch(std::size_t port, const wire::PeerMessage& from, const wire::Sync& m);
  bool may_use_name(std::size_t port, const wire::PeerMessage& from, const wire::Sync& m);
  enum class Seat { kFree, kTaken, kUnknown };
  Seat seat_of(Peer& peer, const wire::Sync& rival);
  bool arrives(std::size_t port, const wire::PeerMessage& from, const wire::Sync& m) const;
  void heard_from(std::size_t port, const wire::PeerMessage& from, const wire::Sync& m);
  void forget_silent_peers();
  void look_who_is_gone();
  void look_who_may_join();
  void may_join(AllowFiles::Change change);
  void key_is_gone(std::size_t port, const std::string& routing_id);
  bool send_bundle(const Peer& to, const Digest& digest, const std::string& bytes);
  void finish_archive(const WorkerId& worker, wire::ResultMessage m);
  void archive_finished(const WorkerId& worker, wire::ResultMessage m,
                        const ArchiveStore::Kept& kept, std::uint64_t have);

  void on_control(const std::string& line, ControlServer::Reply reply);
  ControlAnswer explained(const ControlRequest& request) const;

  void feed(const Event& e);
  void perform(const Persist& c);
  void perform(const Reserve& c);
  void perform(const Settle& c);
  void perform(const VoidReservations& c);
  void perform(const Forget& c);
  void perform(const AssignRuns& c);
  void perform(const AckResults& c);
  void perform(const CancelAttempts& c);
  void perform(const ReplySync& c);
  void perform(const ArmTimer& c);
  void perform(const Alert& c);
  void perform(const Answer& c);
  void perform(const RaiseCaps& c);
  void perform(const CampaignEnded& c);

  void on_durable();
  void post_durable();
  void on_ledger(std::vector<LedgerThread::Answered> answers);
  void on_elsewhere(Elsewhere held);
  void hear_ledger();
  void on_ledger_differs(const std::string& what);
  void note_shared(std::vector<SharedFact> what);
  void leave_shared();
  void fail(const std::string& why);
  void say_goodbye();
  wire::SyncReply greeting() const;  // who we are, and nothing else
  void send(const WorkerId& worker, const wire::Message& message);
  void warn(const std::string& text);
  void tick();
  void write_status(StatusSnapshot status);
  void list_workers(StatusSnapshot& status) const;
  std::string wound_down() const;
  StatusSnapshot snapshot() const;
  std::string run_name(RunId run) const { return options_.plan->run_name(run); }

  CoordinatorOptions options_;
  struct Loop;                        // coordinator_loop.h
  const std::unique_ptr<Loop> loop_;  // outlives all that follows
  boost::asio::io_context& io_;
  Epoch epoch_;
  Bundles bundles_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<LivingMark> living_;
  std::unique_ptr<Scheduler> core_;
  std::unique_ptr<LedgerThread> ledger_;
  bool shares_ = false;  // an envelope, with other campaigns
  ArchiveStore archives_;
  std::vector<std::pair<WorkerId, AttemptId>> heard_before_;
  std::unique_ptr<TaskLanes> files_;  // by run, but for what has none
  std::unique_ptr<ControlServer> control_;
  std::map<std::uint64_t, ControlServer::Reply> asked_;  // by ticket
  std::uint64_t last_ticket_ = 0;
  std::shared_ptr<wire::ZapHandler> zap_;
  AllowFiles allow_files_;  // once the loop runs: the thread's
  std::unique_ptr<TaskThread> allow_thread_;
  bool looking_who_may_join_ = false;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<WorkerId, Peer> peers_;
  std::size_t connections_max_ = 0;  // a file each
  std::map<std::pair<std::size_t, std::string>, WorkerId> by_routing_id_;
  std::set<WorkerId> epoch_refused_;  // at most kRosterMax
  std::set<AttemptId> unpacking_;     // a repeated result waits for the first
  bool looking_who_is_gone_ = false;
  LoopLag lag_{io_};
  FloodGuard floods_;
  Throttle spoken_{kSpokenPerSecond};  // what strangers can make us say
  std::shared_ptr<std::atomic<bool>> writing_status_ = std::make_shared<std::atomic<bool>>(false);
  std::atomic<std::uint64_t> durable_{0};
  std::atomic<bool> durable_posted_{false};
  DurableSteps steps_;
  // In the ledger's order: what others hold was so after the answers before it, and not earlier.
  std::deque<std::variant<LedgerThread::Answered, Elsewhere>> ledger_said_;
  std::uint64_t written_ = 0;  // the last that was given to the journal
  // Of a campaign that shares an envelope: voids, until what they follow is durable.
  std::deque<std::pair<std::uint64_t, std::vector<LedgerOp>>> held_voids_;
  unsigned stops_ = 0;
  std::uint64_t ticks_ = 0;
  std::optional<Outcome> outcome_;
  std::string ledger_away_;  // why, while Redis is away
  WallTime ledger_away_since_;
  WallTime begun_;
  std::uint64_t ended_before_ = 0;  // by earlier lives: the rate is of this one
};
}  // namespace proctor
