#pragma once
// The workers of a campaign: what each offers, its slots and when it was last heard of, and the
// attempts that are out with them.  Pure.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/money.h"
#include "common/contract/cost_model.h"
#include "coordinator/core/failures.h"

namespace proctor::capability {
// Bits for what a worker does not offer because it saw that this kind of sandbox does not isolate
// on its host (`unfit:KIND` among its features), or because its disk is full.

// In the bits of what a worker has, where nothing needs it.
inline constexpr std::uint64_t kUnfitBubblewrap = 0x10;
inline constexpr std::uint64_t kUnfitDocker = 0x20;
inline constexpr std::uint64_t kUnfitOci = 0x40;
inline constexpr std::uint64_t kUnfitUserspace = 0x80;
inline constexpr std::uint64_t kFullDisk = 0x2000'0000;

// Of the kinds that would run what has these needs, those that are unfit: "Docker and OCI".
std::string describe_unfit(std::uint64_t needs, std::uint64_t has);
}  // namespace proctor::capability

namespace proctor {
// How often workers are asked to Sync, and how long one may be silent before it is a suspect: by
// how many there are, so that their Syncs are no more than the loop takes and none is suspected for
// keeping to its interval.

inline Millis sync_interval_of(std::size_t workers) {
  constexpr std::size_t kShare = 5, kLeast = 200, kMost = 1'000;  // Syncs in a second
  constexpr Millis kLongest{30'000};
  const std::size_t a_second = std::clamp(workers / kShare, kLeast, kMost);
  const Millis each(static_cast<Millis::rep>(workers * 1'000 / a_second));
  return std::clamp(each, limits::kSyncInterval, kLongest);
}

inline Millis suspect_after_of(std::size_t workers, Millis least) {
  return std::max(least, 3 * sync_interval_of(workers));
}

// The abilities of a worker as a bit set; a run needs some of them.
namespace capability {
inline constexpr std::uint64_t kBubblewrap = 1;
inline constexpr std::uint64_t kDocker = 2;
inline constexpr std::uint64_t kNull = 4;
inline constexpr std::uint64_t kUserspace = 8;  // images, by a kernel in user space
// One bit for each image of the campaign, in the order of PlanView::images; those beyond share the
// last.  A worker with an engine has them all, one without has those of its store.
inline constexpr std::uint64_t kImageFirst = 0x100;
inline constexpr std::uint64_t kImages = 0x07ff'ff00;
std::uint64_t image_bit(std::size_t index);
// The worker's release has methods of kind tool_loop (kHasToolLoop of contract/host_things.h).
inline constexpr std::uint64_t kToolLoop = 0x1000'0000;
inline constexpr std::uint64_t kAgentTools = 0x0800'0000;  // likewise, of a gateway's `tools`
inline constexpr std::uint64_t kOfRelease = kToolLoop | kAgentTools;
// One bit for each thing that a run needs of its worker's host (contract/host_things.h), in the
// order of PlanView::things; those beyond share the last.  A worker has what it does not say it
// lacks: it finds out when it is assigned what needs it, and gives that back.
inline constexpr std::uint64_t kThings = 0xffff'ffff'0000'0000;
std::uint64_t thing_bit(std::size_t index);
inline constexpr std::uint64_t kAll = ~std::uint64_t{0};
// A bit of no worker and no task: a suspected run needs the whole worker, and an empty one offers
// it.
inline constexpr std::uint64_t kAlone = 0x8000'0000;
// Another such: a run that failed before its agent began waits for a worker that has not failed at
// it.
inline constexpr std::uint64_t kElsewhere = 0x4000'0000;
// `images`: the campaign's, as features name them ("image:base:latest"); `things`: likewise,
// "secret:API_KEY".
std::uint64_t from_features(const std::vector<std::string>& features,
                            const std::vector<std::string>& images = {},
                            const std::vector<std::string>& things = {});
// For a run: "bubblewrap and secret API_KEY"; for a worker: "bubblewrap and stored images, but not
// secret API_KEY".
std::string describe(std::uint64_t needs, const std::vector<std::string>& things = {});
std::string describe_offer(std::uint64_t has, const std::vector<std::string>& things = {});
}  // namespace capability

// A worker's place in the roster; another worker's once this one was forgotten.
using WorkerIndex = std::uint32_t;
inline constexpr std::size_t kRosterMax = 16'384;  // names at a time

struct WorkerState {
  WorkerId id;
  BootId boot;
  std::uint32_t slots = 0;
  std::uint32_t held = 0;  // attempts that occupy a slot, from the ask until the result
  std::uint64_t has = 0;
  Instant last_sync;
  Instant left_at;  // while it is not present
  bool present = false;
  bool suspect = false;
  bool drained = false;  // by the operator
  bool kept = false;     // for one run alone: until it is empty for it, and while it has it
  enum class Quarantine : std::uint8_t { kNone, kOperator, kFailures };
  Quarantine quarantine = Quarantine::kNone;
  std::string reason;  // of the quarantine
  Instant back_at;     // kFailures: it is tried again then
  WallTime back_at_wall;
  std::uint32_t failures = 0;     // infrastructure failures in a row
  std::uint32_t quarantines = 0;  // of kFailures, in a row
  WallTime since;            // what it is now (see standing()) it has been since then; 0: unknown
  BootId kicked;             // 0: none.  That life of it is not let in again
  std::vector<BootId> past;  // lives before this one, the last few: their words come late

  bool takes_new() const {
    return present && !suspect && !drained && quarantine == Quarantine::kNone;
  }
  std::uint32_t free() const { return takes_new() && !kept && held < slots ? slots - held : 0; }
  bool is_empty() const { return takes_new() && held == 0 && 0 < slots; }
  // An operator's word: neither drained nor in quarantine, and nothing is held against it.
  void set_free() {
    quarantine = Quarantine::kNone;
    drained = false;
    reason.clear();
    failures = quarantines = 0;
  }
};
// "ready", "suspect", "gone", "drained", "quarantined: REASON", "kept for a suspected run"
std::string standing(const WorkerState& worker);

// Roster: the workers a campaign has, their free slots and when each was last heard of.
class Roster {
 public:
  // Whatever changes from here on changes then.
  void set_time(WallTime now) { now_ = now; }
  WorkerIndex index_of(const WorkerId& id);  // adds an absent worker
  const WorkerState& at(WorkerIndex i) const { return workers_[i]; }
  std::size_t size() const { return workers_.size(); }  // places; not all have a name
  bool has_place(WorkerIndex i) const { return !workers_[i].id.raw().empty(); }
  std::size_t names() const { return by_name_.size(); }

  void update(WorkerIndex i, BootId boot, std::uint32_t slots, std::uint64_t has, Instant now);
  void set_suspect(WorkerIndex i, bool suspect);
  void leave(WorkerIndex i, Instant now);
  // Its place is the next new name's.  Requires: it is not present and holds nothing.
  void forget(WorkerIndex i);
  std::optional<WorkerIndex> find(const WorkerId& id) const;
  // Changes what decides about new work; `slots`, `held` and names have their own calls.
  void edit(WorkerIndex i, const std::function<void(WorkerState&)>& apply);
  void hold(WorkerIndex i);
  void release(WorkerIndex i);

  // The worker with most free slots among those that have all of `needs`; ties by name order of
  // arrival.
  std::optional<WorkerIndex> pick(std::uint64_t needs) const;
  // Likewise, and of no worker that `not_at` says yes of.
  std::optional<WorkerIndex> pick(std::uint64_t needs,
                                  const std::function<bool(const WorkerId&)>& not_at) const;
  // An empty worker that has all of `needs`: one that is kept first.
  std::optional<WorkerIndex> pick_alone(std::uint64_t needs) const;
  // Which one to keep for a run alone: the least busy that has all of `needs`, and is not kept yet.
  std::optional<WorkerIndex> pick_to_keep(std::uint64_t needs) const;
  std::uint64_t free_slots() const { return free_total_; }
  std::uint64_t slots() const;
  // Does anybody who is here have all of `needs`, free or not?
  bool anyone_has(std::uint64_t needs) const;
  std::uint64_t present() const;  // workers that are here

 private:
  template <class Change>
  void change(WorkerIndex i, const Change& apply);

  WallTime now_;
  std::vector<WorkerState> workers_;
  std::set<WorkerIndex> unused_;  // of who was forgotten
  std::map<WorkerId, WorkerIndex> by_name_;
  // (most free first, index): the second key makes ties deterministic.
  std::set<std::pair<std::int64_t, WorkerIndex>> by_free_;
  std::uint64_t free_total_ = 0;
};

// LiveAttempt: one attempt that is out, from its intent until it is paid for, as the scheduler
// holds it.  What facts say of it and what only this life of the coordinator knows stand apart,
// because the next life has the first from the journal and finds out the second anew.
struct LiveAttempt {
  enum class State : std::uint8_t {
    kIntent,     // its intent is being made durable
    kReserving,  // the ledger has been asked
    kGranting,   // granted; the grant is being made durable
    kAssigned,   // sent; the worker has not mentioned it yet
    kRunning,    // the worker says it runs
    kFinishing,  // its result is being made durable
    kSettling,   // the ledger has been told what it cost
    kClosing,    // settled or voided; that is being made durable
  };

  // Said of it by facts: changed by scheduler_facts.cc, in every life alike.

  AttemptId id;
  MicroUsd ask;
  WallTime granted_at{0};
  Cost cost;                         // what it is charged; zero until it is over
  std::uint32_t seq = 0;             // of its ask
  std::optional<WorkerIndex> owner;  // whom the grant names: nobody else may speak of it
  bool alone = false;                // has a worker for itself

  // Known to this life besides.

  State state = State::kIntent;
  bool cancel_sent = false;
  bool doubted = false;  // its usage went backwards: told
  bool at_work = false;  // its worker spoke of its work at it, in whatever way
  RetryClass wait_of = RetryClass::kInfrastructure;
  std::uint32_t caps = 0;                 // which caps hold where it asked
  std::optional<WorkerIndex> worker;      // while it holds a slot there
  std::optional<WorkerIndex> granted_to;  // by an earlier life of ours: may have started there
  BootId granted_boot;                    // likewise: in which life of that worker
  Instant since;                          // of the state
  Usage usage{};  // as last stated, and what it comes to: never above the ask
  MicroUsd metered{};
  MicroUsd counted{};              // of it in Scheduler::metered_
  std::optional<BootId> sent_to;   // the life of its worker that got our Assign
  std::optional<BootId> begun_in;  // its sandbox had started, in that life: the worker said so
  Millis wait{0};                  // before the next attempt, once this one is closed
  std::vector<WorkerIndex> ack_to;

  // What has begun has spent, whatever its worker says of it later: it is never given back.
  bool has_begun() const { return begun_in || at_work; }
  bool is_over() const { return state == State::kFinishing || state == State::kSettling; }
  // What of its ask is used, by the last word of its worker; zero once it is spent or given back.
  MicroUsd used() const {
    if (state == State::kClosing) return {};
    return is_over() ? std::min(ask, cost.total()) : metered;
  }
};
}  // namespace proctor
