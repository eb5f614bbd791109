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
    if (const auto held = set.memory_held(); held.ok())
      write_control(u->second / "memory.reclaim", std::to_string(*held));
}

}  // namespace

Result<std::uint64_t> CgroupSet::memory_held() const {
  if (const auto m = dirs.find("memory"); m != dirs.end())
    return read_control_number(m->second / "memory.usage_in_bytes");
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return read_control_number(u->second / "memory.current");
  return std::uint64_t{0};
}

bool CgroupSet::holds_much() const {
  const auto held = memory_held();
  if (!held.ok() || kHeldMax < *held) return true;
  const auto m = dirs.find("memory");
  if (m == dirs.end()) return false;
  const auto sockets = read_control_number(m->second / "memory.kmem.tcp.usage_in_bytes");
  return !sockets.ok() || kSocketsHeldMax < *sockets;
}

Result<std::uint64_t> CgroupSet::memory_peak() const {
  if (peak.valid()) return control_number(read_from_start(peak.get()));
  if (const auto m = dirs.find("memory"); m != dirs.end())
    return read_control_number(m->second / "memory.max_usage_in_bytes");
  if (const auto u = dirs.find("unified"); u != dirs.end())
    return read_control_number(u->second / "memory.peak");  // since Linux 5.19
  return std::uint64_t{0};
}

Result<std::uint64_t> CgroupSet::oom_kills() const {
  fs::path file;
  if (const auto m = dirs.find("memory"); m != dirs.end())
    file = m->second / "memory.oom_control";
  else if (const auto u = dirs.find("unified"); u != dirs.end())
    file = u->second / "memory.events";
  else
    return std::uint64_t{0};
  PROCTOR_TRY(const std::string text, read_control(file));
  return keyed_control_number(text, "oom_kill");
}

Result<std::optional<std::chrono::microseconds>> CgroupSet::cpu_total() const {
  using std::chrono::microseconds;
  std::optional<microseconds> out;
  if (const auto a = dirs.find("cpuacct"); a != dirs.end()) {
    PROCTOR_TRY(const std::uint64_t ns, read_control_number(a->second / "cpuacct.usage"));
    out = microseconds(ns / 1'000);
  } else if (const auto u = dirs.find("unified"); u != dirs.end()) {
    PROCTOR_TRY(const std::string text, read_control(u->second / "cpu.stat"));
    out = microseconds(keyed_control_number(text, "usage_usec"));
  }
  return out;
}

bool CgroupSet::begin_anew() {
  for (const auto& [controller, dir] : dirs)
    if (::access(dir.c_str(), F_OK) != 0) return false;  // cleaned up by another engine
  if (const auto m = dirs.find("memory");
      m != dirs.end() && !write_control(m->second / "memory.max_usage_in_bytes", "0"))
    return false;
  // Every text resets it; before Linux 6.12 none does.
  if (peak.valid() && ::write(peak.get(), "0", 1) != 1) return false;
  const auto held = memory_held();
  const auto cpu = cpu_total();
  if (!held.ok() || !cpu.ok()) return false;
  memory_before = *held;
  cpu_before = cpu->value_or(std::chrono::microseconds(0));
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
  const auto kills = set.oom_kills();
  set.again = set.again && kills.ok() && *kills == 0;  // a count that never goes back
  if (!set.again) {
    const auto held = set.memory_held();
    return held.ok() && *held == 0 ? set.remove() : empty_later(std::move(set));
  }
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
