#pragma once
// CoordinatorLink: a worker's word with one coordinator.  Level-triggered: every Sync states the
// whole truth (what runs of its campaign, what is not acknowledged), and every reply is obeyed
// whatever came before it; losing, repeating or reordering any message is healed by the next Sync.
// The coordinator may be away for as long as it likes: what runs goes on, results wait on disk.
// The number of slots that it hears is the worker's to say (SlotShare), for others may have the
// rest.  One link never reaches into another: campaign, epoch, outbox, bundles and drain are each
// its own.
// Thread: the loop's.  Lives as long as the loop, because work that is under way comes back to it.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/wire/messages.h"
#include "worker/shell/spool.h"
#include "worker/shell/worker_parts.h"

namespace proctor {
class CoordinatorLink {
 public:
  // The requests that it makes of the worker that it is a part of.
  struct Worker {
    std::function<void()> changed;  // slots are to be given out anew, and perhaps all is done
    std::function<void(const AttemptKey&)> start;
    std::function<void(const AttemptKey&, Result<Spool::Entry>)> ended;
    // Does another link serve this campaign?
    std::function<bool(const std::string& campaign)> taken;
    // The name under which a campaign is kept (coordinators.h), by the id that its coordinator
    // says.  Nothing: there is none.
    std::function<std::optional<std::string>(const Stop&, const std::string& id)> name;
    std::function<void(const std::string& campaign, const std::string& address, const Stop&)>
        remember;
    bool grows = false;  // there may be other campaigns later: who was sent away comes back
    bool alone = false;  // there never is another link
  };
  CoordinatorLink(WorkerParts& parts, Stop stop, SlotShare::Index place, Worker worker);

  // An earlier life served this campaign there: what there is of it is in the first Sync already,
  // so that nobody takes it for lost.
  void remembers(const std::string& campaign, const std::string& address);
  // kInvalid, kUnavailable: the port could not be opened.
  Status connect();
  void close();  // flushes what was queued, a Leave above all

  void tick(Instant now);
  void sync();
  void deliver();
  // An attempt of its campaign has its result.
  void take(AttemptId attempt, Spool::Entry entry);
  // One of its campaign: never started here, and never will be; the next Sync says so, and it costs
  // nothing.
  void give_back(AttemptId attempt);
  void drain();
  void leave_if_done();
  void leave_now();  // results stay in the spool
  // Nobody may ever come: what stands still and is paid for is finished.
  void go_on_if_forgotten();
  // Its line says this now.
  void rename(const Stop& stop);
  void not_named_any_more();

  const Stop& stop() const { return stop_; }
  SlotShare::Index place() const { return place_; }
  const std::string& campaign() const { return campaign_; }
  const std::string& where() const { return addresses_.at(); }
  bool is_alone() const { return worker_.alone; }
  bool is_here() const { return port_ != nullptr; }
  bool is_over() const { return !port_ && (addresses_.is_over() || forgotten_); }
  bool was_refused() const { return refused_; }
  bool is_idle() const { return outbox_.empty(); }
  bool has_declined() const { return !declined_.empty(); }
  Instant last_word() const { return last_word_; }
  // May be told of slots.
  bool is_open() const {
    return linked_ && !draining_ && !moving_ && (worker_.alone || !campaign_.empty());
  }
  std::uint32_t held() const;
  void start_ready();

 private:
  void on_bytes(const std::string& bytes);
  void on_link(wire::ZmqPort::Link link, const std::string& detail);
  template <class M>
  void handle(const M& m);  // drops it, unless the .cc says what to do with this kind

  void obey(const wire::SyncReply& m);
  void hop();
  void begin_anew();
  void go_away();
  void look_around(Instant now);
  void enter_campaign(const std::string& campaign);
  void spool_loaded(const std::string& campaign, Result<std::vector<Spool::Entry>> entries);
  void cancel(AttemptId attempt, const std::string& reason);
  void suspend(bool suspended);
  void want_missing();
  void bundle_complete(const Digest& digest, std::string bytes);
  void decline(const Digest& digest, const std::string& detail);
  void set_aside(const Spool::Entry& damaged, const std::string& why);
  void forget(AttemptId attempt);
  void say_what_waits();
  void say_drain();
  void tell_silence(Instant now);
  void heard(std::uint64_t ticket);
  void give_back_waiting();
  std::vector<wire::RunningAttempt> running() const;
  bool send(const wire::Message& m);

  WorkerParts& parts_;
  Worker worker_;
  Stop stop_;
  Addresses addresses_;
  const SlotShare::Index place_;
  std::unique_ptr<wire::ZmqPort> port_;

  std::string campaign_;             // as it is kept here; empty: none yet
  bool spool_ready_ = true;          // false while a campaign's spool is being read
  bool books_told_ = false;          // all that earlier lives began of it is in our Syncs
  std::vector<wire::Assign> early_;  // came while the spool was being read
  Epoch epoch_;
  Millis sync_interval_ = limits::kSyncInterval;
  Instant last_word_{};  // from the coordinator
  static constexpr Millis kFirstSilence{3'000};
  Instant next_silence_{};  // when it is told next that nobody answers
  Millis silence_pause_{kFirstSilence};
  Instant next_sync_{};
  Instant last_said_{};       // what runs here, in a Sync or Progress
  std::set<AttemptId> done_;  // of this campaign and life: a late Assign must not run them again
  Outbox outbox_;
  struct Wanted {
    BundleCache::Kind kind = BundleCache::Kind::kContract;
    std::string parts;
    bool storing = false;
  };
  std::map<Digest, Wanted> wanted_;
  // Attempts of this campaign: given back, with the ticket of the first Sync that said so; 0: not
  // said yet.
  std::map<AttemptId, std::uint64_t> declined_;
  bool draining_ = false;         // nothing new is begun for it
  std::uint64_t drain_said_ = 0;  // the ticket of the first Sync without slots; 0: not said yet
  bool drain_heard_ = false;      // and the coordinator has answered it
  bool said_what_waits_ = false;
  bool suspended_ = false;  // the campaign's sandboxes stand still, by its coordinator's last word
  bool linked_ = false, introduced_ = false;  // introduced: by a Sync, on this link
  bool moving_ = false;                       // to another address, in a moment
  bool refused_ = false;
  bool forgotten_ = false;  // not named any more: it goes when all is delivered
  Instant arrived_{};       // at this address, or when it was last tried in vain
  std::optional<Instant> leave_by_;
};
}  // namespace proctor
