#include "worker/sandbox/cgroup_pool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "worker/sandbox/cgroup_files.h"

namespace proctor {
namespace {

// More than all slots of a usual worker; a host whose tasks all have limits of their own keeps no
// more than these.
constexpr std::size_t kIdleMax = 64;
constexpr std::size_t kFullMax = 64;
// The kernel's own stock of each processor is some hundred KiB.
constexpr std::uint64_t kHeldMax = std::uint64_t{4} << 20;
// Of pages of sockets, which are counted apart (version 1): they go with their network, a moment
// after its last process.
constexpr std::uint64_t kSocketsHeldMax = std::uint64_t{256} << 10;

std::string read_from_start(int fd) {
  char buffer[64];
  const ssize_t n = ::pread(fd, buffer, sizeof buffer, 0);
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

// Of a group with processes it would take what they work with: only for empty ones.
void give_back_memory(const CgroupSet& set) {
  if (const auto m = set.dirs.find("memory"); m != set.dirs.end())
    write_control(m->second / "memory.force_empty", "0");
  if (const auto u = set.dirs.find("unified"); u != set.dirs.end())
    write_control(u->second / "memory.reclaim", std::to_string(set.memory_held()));
}

}  // namespace

std::uint64_t CgroupSet::memory_held() const {
  if (const auto m = dirs.find("memory"); m != dirs.end())
    return control_number(read_control(m->second / "memory.usage_in_bytes"));
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return control_number(read_control(u->second / "memory.current"));
  return 0;
}

bool CgroupSet::holds_much() const {
  if (kHeldMax < memory_held()) return true;
  const auto m = dirs.find("memory");
  return m != dirs.end() &&
         kSocketsHeldMax <
             control_number(read_control(m->second / "memory.kmem.tcp.usage_in_bytes"));
}

std::uint64_t CgroupSet::memory_peak() const {
  if (peak.valid()) return control_number(read_from_start(peak.get()));
  if (const auto m = dirs.find("memory"); m != dirs.end())
    return control_number(read_control(m->second / "memory.max_usage_in_bytes"));
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return control_number(read_control(u->second / "memory.peak"));  // since Linux 5.19
  return 0;
}

std::uint64_t CgroupSet::oom_kills() const {
  if (const auto m = dirs.find("memory"); m != dirs.end())
    return keyed_control_number(read_control(m->second / "memory.oom_control"), "oom_kill");
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return keyed_control_number(read_control(u->second / "memory.events"), "oom_kill");
  return 0;
}

std::optional<std::chrono::microseconds> CgroupSet::cpu_total() const {
  if (const auto a = dirs.find("cpuacct"); a != dirs.end())
    return std::chrono::microseconds(control_number(read_control(a->second / "cpuacct.usage")) /
                                     1'000);
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return std::chrono::microseconds(
        keyed_control_number(read_control(u->second / "cpu.stat"), "usage_usec"));
  return std::nullopt;
}

bool CgroupSet::begin_anew() {
  for (const auto& [controller, dir] : dirs)
    if (::access(dir.c_str(), F_OK) != 0) return false;  // cleaned up by another engine
  if (const auto m = dirs.find("memory");
      m != dirs.end() && !write_control(m->second / "memory.max_usage_in_bytes", "0"))
    return false;
  // Every text resets it; before Linux 6.12 none does.
  if (peak.valid() && ::write(peak.get(), "0", 1) != 1) return false;
  memory_before = memory_held();
  cpu_before = cpu_total().value_or(std::chrono::microseconds(0));
  return true;
}

void CgroupSet::remove() {
  doors.clear();
  peak.reset();
  for (const auto& [controller, dir] : dirs) remove_group(dir);
  dirs.clear();
}

CgroupPool::~CgroupPool() {
  clear();  // the thread has no more than one of them to end with
  if (thread_.joinable()) thread_.join();
  clear();
}

std::optional<CgroupSet> CgroupPool::take(const std::string& limits) {
  for (;;) {
    CgroupSet set;
    {
      const std::lock_guard lock(mutex_);
      const auto it = std::ranges::find(idle_, limits, &CgroupSet::limits);
      if (it == idle_.end()) return std::nullopt;
      set = std::move(*it);
      idle_.erase(it);
    }
    if (!set.begin_anew()) {
      set.remove();
    } else if (!set.holds_much()) {
      return set;
    } else {
      empty_later(std::move(set));
    }
  }
}

void CgroupPool::put(CgroupSet set) {
  set.again = set.again && set.oom_kills() == 0;  // a count that never goes back
  if (!set.again) return 0 < set.memory_held() ? empty_later(std::move(set)) : set.remove();
  CgroupSet oldest;
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(set));
    if (kIdleMax < idle_.size()) {
      oldest = std::move(idle_.front());
      idle_.pop_front();
    }
  }
  oldest.remove();
}

void CgroupPool::empty_later(CgroupSet set) {
  std::unique_lock lock(mutex_);
  if (kFullMax <= full_.size()) {
    lock.unlock();
    return set.remove();
  }
  full_.push_back(std::move(set));
  if (working_) return;
  working_ = true;
  thread_ = std::jthread([this] { give_back(); });  // the one before needs the lock no more
}

void CgroupPool::clear() {
  std::deque<CgroupSet> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(idle_);
    for (CgroupSet& set : full_) all.push_back(std::move(set));
    full_.clear();
  }
  for (CgroupSet& set : all) set.remove();
}

void CgroupPool::give_back() {
  for (;;) {
    CgroupSet set;
    {
      const std::lock_guard lock(mutex_);
      working_ = !full_.empty();
      if (!working_) return;
      set = std::move(full_.front());
      full_.pop_front();
    }
    give_back_memory(set);
    if (set.again && !set.holds_much()) {
      put(std::move(set));
    } else {
      set.remove();
    }
  }
}

}  // namespace proctor
