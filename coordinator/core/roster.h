#pragma once
// Roster: the workers a campaign has, their free slots and when each was last heard of.  Pure.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace proctor {

// What a worker can run, as a bit set; a task needs some of them.
namespace capability {
inline constexpr std::uint32_t kBubblewrap = 1;
inline constexpr std::uint32_t kDocker = 2;
inline constexpr std::uint32_t kNull = 4;
std::uint32_t from_features(const std::vector<std::string>& features);
std::string describe(std::uint32_t needs);
}  // namespace capability

// A worker's place in the roster.  Stable for the campaign: names are never forgotten.
using WorkerIndex = std::uint32_t;

struct WorkerState {
  WorkerId id;
  BootId boot;
  std::uint32_t slots = 0;
  std::uint32_t held = 0;  // attempts that occupy a slot, from the ask until the result
  std::uint32_t has = 0;
  Instant last_sync;
  bool present = false;
  bool suspect = false;
  std::uint32_t free() const { return present && !suspect && held < slots ? slots - held : 0; }
};

class Roster {
 public:
  WorkerIndex index_of(const WorkerId& id);  // adds an absent worker
  const WorkerState& at(WorkerIndex i) const { return workers_[i]; }
  std::size_t size() const { return workers_.size(); }

  void update(WorkerIndex i, BootId boot, std::uint32_t slots, std::uint32_t has, Instant now);
  void set_suspect(WorkerIndex i, bool suspect);
  void leave(WorkerIndex i);
  void hold(WorkerIndex i);
  void release(WorkerIndex i);

  // The worker with most free slots among those that have all of `needs`; ties by name order of
  // arrival.
  std::optional<WorkerIndex> pick(std::uint32_t needs) const;
  std::uint64_t free_slots() const { return free_total_; }
  std::uint64_t slots() const;
  // Does anybody who is here have all of `needs`, free or not?
  bool anyone_has(std::uint32_t needs) const;

 private:
  template <class Change>
  void change(WorkerIndex i, const Change& apply);

  std::vector<WorkerState> workers_;
  std::map<WorkerId, WorkerIndex> by_name_;
  // (most free first, index): the second key makes ties deterministic.
  std::set<std::pair<std::int64_t, WorkerIndex>> by_free_;
  std::uint64_t free_total_ = 0;
};

}  // namespace proctor
