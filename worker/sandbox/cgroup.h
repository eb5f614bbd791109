#pragma once
// Control groups of our sandboxes: limits on memory, processes and CPU, and what was used.  Groups
// are `proctor/<owner>/<name>`, below the group this process is in when that one is limited (what
// limits us limits them too), else below the root.  Version 1 (also hybrid) and version 2.  Owned
// by the engines whose runtime is a process of ours.  CgroupHost is thread-safe after detect(); a
// Cgroup belongs to one thread.  Fails with kUnavailable (a group cannot be made).
// Source: Documentation/admin-guide/cgroup-v1/{memory,pids}.rst, cgroup-v2.rst.
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "worker/sandbox/cgroup_files.h"

namespace proctor {
// The folders of one group, one for each hierarchy, and what its counters said when it began.
struct CgroupSet {
  std::map<std::string, fs::path> dirs;  // by controller; version 2: one, under "unified"
  std::vector<UniqueFd> doors;
  std::string limits;              // in words: equal words, equal limits
  bool again = false;              // its counters can begin anew
  std::uint64_t memory_limit = 0;  // 0: none
  std::uint64_t memory_before = 0;
  UniqueFd peak;  // version 2: a reset of memory.peak is seen by the descriptor that wrote it
  std::chrono::microseconds cpu_before{0};

  // A file of its group for this controller, by its name in version 1 and in version 2 (null: there
  // is none); empty: it has no such group.  An empty path reads as 0, and nothing is written to it.
  fs::path file(const char* controller, const char* v1, const char* v2) const;
  // The same of what version 2 alone has.
  fs::path unified(const char* v2) const { return file("", nullptr, v2); }
  // The memory that it holds now, in bytes.
  Result<std::uint64_t> memory_held() const;
  // More than whoever comes next should begin with.
  bool holds_much() const;
  // The most that it held since its counters began; 0: not known.
  Result<std::uint64_t> memory_peak() const;
  Result<std::uint64_t> oom_kills() const;
  // CPU time since the group was made; none: nobody counts it here.
  Result<std::optional<std::chrono::microseconds>> cpu_total() const;
  // All counters begin anew.  False: they cannot, or the group is gone, or cannot be read.
  bool begin_anew();
  // With whoever is in it.
  void remove();
};

// CgroupPool: empty control groups that wait for their next command.  A memory group that is
// removed lives on in the kernel as long as page cache of it does, seen by nobody and paid for by
// all who walk over the groups of the host; so groups are used again, and what one holds beyond a
// little is given back by a thread of the pool's, for that takes longer than many a command.  Owned
// by CgroupHost; thread-safe.  Never fails: a group that cannot be used again (its counters do not
// begin anew, or a runtime made it) is emptied by that thread and removed.
// Source: cgroup-v1/memory.rst (force_empty), cgroup-v2.rst (memory.reclaim, memory.peak).
class CgroupPool {
 public:
  CgroupPool() = default;
  CgroupPool(const CgroupPool&) = delete;
  CgroupPool& operator=(const CgroupPool&) = delete;
  ~CgroupPool();
  // One with exactly these limits whose counters begin anew; none: the caller makes one.
  std::optional<CgroupSet> take(const std::string& limits);
  // Nobody is in it.  One that is not used again is removed when it holds no memory any more.
  void put(CgroupSet set);
  // Removes all that wait.
  void clear();

 private:
  void give_back();
  void empty_later(CgroupSet set);
  std::mutex mutex_;
  std::deque<CgroupSet> idle_;  // the oldest first
  std::deque<CgroupSet> full_;  // memory to be given back
  bool working_ = false;
  std::jthread thread_;  // while there are some of these; last: it uses the others
};

// Control groups as /proc shows them to this process.
CgroupLayout cgroups_here();

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // 0: none
  std::uint64_t processes = 0;
  double cpus = 0;
  bool cpu_usage = false;  // cpu_time() will be asked for while it runs
};

// One group (on version 1: one per controller).  Killed empty at the end, and then kept for the
// next command with these limits, or removed.
class Cgroup {
 public:
  Cgroup() = default;
  Cgroup(Cgroup&& other) noexcept = default;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();
  // A process of one thread enters by writing "0" to each of these (a child does, between fork and
  // exec).
  const std::vector<UniqueFd>& doors() const { return set_.doors; }
  // kUnavailable: the host had no descriptor or memory to look with.
  // Without what the group held already when it was made or used again; 0: not known.
  Result<std::uint64_t> memory_peak() const;
  Result<std::uint64_t> oom_kills() const;
  Result<std::optional<std::chrono::milliseconds>> cpu_time() const;
  // The processes inside now, by the host's numbers; none: nobody counts them here.
  Result<std::optional<std::vector<pid_t>>> processes() const;
  // Stops everything inside, unseen by it.  On version 1 `inside` says who that is, and is asked
  // until nobody new turns up; whoever else has come in by a number that was theirs stands still
  // for no moment.  False: this host has no freezer for us, nothing was done.
  bool freeze(const std::function<std::vector<pid_t>()>& inside);
  void thaw();
  // Sends SIGKILL to all that is inside now, frozen or not.
  void kill();
  // Kills what is still inside, frozen or not, and waits (bounded) until nothing is: true.
  bool empty();

 private:
  friend class CgroupHost;
  void let_strangers_go(const std::function<std::vector<pid_t>()>& inside) const;
  CgroupSet set_;
  std::weak_ptr<CgroupPool> pool_;  // of the host that made it, where it can be used again
  fs::path freezer_;                // version 1: made when it is first needed
};

class CgroupHost {
 public:
  // Finds out, by making the owner's group, which controllers can be used here.
  static CgroupHost detect(std::string_view owner);
  // The same where they are mounted as `layout` says.
  static CgroupHost at(const CgroupLayout& layout, std::string_view owner);
  // A host that offers none.
  static CgroupHost none() { return CgroupHost(); }
  CgroupHost(CgroupHost&&) = default;
  CgroupHost& operator=(CgroupHost&&) = default;
  ~CgroupHost();  // removes the owner's group if it is empty and no other process is its owner
  bool has(std::string_view controller) const { return parents_.contains(controller); }
  // "cgroup1", "cgroup2" or "" for "memory", "pids", "cpu".
  std::string version(std::string_view controller) const;
  // The keeper of its limit: the version, or `otherwise`.
  std::string keeper(std::string_view controller, const char* otherwise) const {
    return has(controller) ? version(controller) : otherwise;
  }
  // The same of what the sockets of TCP and UDP hold, which version 1 limits apart; or "monitor".
  std::string socket_keeper() const;
  // The keepers of all limits, for SandboxEngine::enforcement(), by a runtime that sets rlimits,
  // makes namespaces and loads a filter.
  std::map<std::string, std::string> keepers() const;
  // One that was used before and has these limits, else a new one of that name.
  Result<Cgroup> make(std::string_view name, const CgroupLimits& limits) const;
  // The group that an OCI runtime makes for itself when it is given runtime_path(name): it enters
  // and limits it in every hierarchy; we read, freeze, empty and remove it.
  // Sockets on version 1, which only we limit (by its memory), are limited before.
  Cgroup runtime_group(std::string_view name, std::uint64_t memory_bytes) const;
  std::string runtime_path(std::string_view name) const;
  // Kills and removes every group below the owner's, those that wait to be used again too, and
  // sweeps.
  void clean_up() const;
  // Removes the groups that dead owners left, told by their lock, which the kernel drops with its
  // holder.  Kills nobody: a group with processes in it stays.  The value: how many it removed.
  std::size_t sweep() const;

 private:
  CgroupHost() = default;
  bool add(const std::string& controller, const fs::path& base, const std::string& owner);
  std::size_t sweep_owner(const std::string& owner, const std::vector<fs::path>& bases) const;
  // The owner's folder in every hierarchy, for what a runtime made.
  std::vector<fs::path> runtime_parents() const;
  std::map<std::string, fs::path, std::less<>> parents_;  // controller -> .../proctor/<owner>
  std::vector<std::string> mounts_;                       // of all hierarchies
  std::string runtime_base_;                              // "/proctor/<owner>", below each of them
  fs::path lock_dir_;  // the owner's group that is locked: the first that was made
  UniqueFd lock_;      // shared by all who are this owner
  std::shared_ptr<CgroupPool> pool_ = std::make_shared<CgroupPool>();
  bool v2_ = false;
};
}  // namespace proctor
