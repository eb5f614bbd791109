#include "worker/sandbox/cgroup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>
#include <utility>

#include "worker/sandbox/limit_watch.h"

namespace proctor {
namespace {
constexpr const char* kUnified = "unified";  // the hierarchy of version 2
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
  // Version 1 takes any text for all of it.
  if (const auto held = set.memory_held(); held.ok())
    write_control(set.file("memory", "memory.force_empty", "memory.reclaim"),
                  std::to_string(*held));
}
}  // namespace

fs::path CgroupSet::file(const char* controller, const char* v1, const char* v2) const {
  const auto in = [this](const char* key, const char* name) {
    const auto at = dirs.find(key);
    return at == dirs.end() || name == nullptr ? fs::path() : at->second / name;
  };
  fs::path out = in(controller, v1);
  return out.empty() ? in(kUnified, v2) : out;
}

Result<std::uint64_t> CgroupSet::memory_held() const {
  return read_control_number(file("memory", "memory.usage_in_bytes", "memory.current"));
}

bool CgroupSet::holds_much() const {
  const auto held = memory_held();
  if (!held.ok() || kHeldMax < *held) return true;
  const auto sockets =
      read_control_number(file("memory", "memory.kmem.tcp.usage_in_bytes", nullptr));
  return !sockets.ok() || kSocketsHeldMax < *sockets;
}

Result<std::uint64_t> CgroupSet::memory_peak() const {
  if (peak.valid()) return control_number(read_from_start(peak.get()));
  // That of version 2 is there since Linux 5.19.
  return read_control_number(file("memory", "memory.max_usage_in_bytes", "memory.peak"));
}

Result<std::uint64_t> CgroupSet::oom_kills() const {
  PROCTOR_TRY(const std::string text,
              read_control(file("memory", "memory.oom_control", "memory.events")));
  return keyed_control_number(text, "oom_kill");
}

Result<std::optional<std::chrono::microseconds>> CgroupSet::cpu_total() const {
  using std::chrono::microseconds;
  std::optional<microseconds> out;
  if (const fs::path v1 = file("cpuacct", "cpuacct.usage", nullptr); !v1.empty()) {
    PROCTOR_TRY(const std::uint64_t ns, read_control_number(v1));
    out = microseconds(ns / 1'000);
  } else if (const fs::path v2 = unified("cpu.stat"); !v2.empty()) {
    PROCTOR_TRY(const std::string text, read_control(v2));
    out = microseconds(keyed_control_number(text, "usage_usec"));
  }
  return out;
}

bool CgroupSet::begin_anew() {
  for (const auto& [controller, dir] : dirs)
    if (::access(dir.c_str(), F_OK) != 0) return false;  // cleaned up by another engine
  if (const fs::path most = file("memory", "memory.max_usage_in_bytes", nullptr);
      !most.empty() && !write_control(most, "0"))
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

namespace {
constexpr std::uint64_t kPage = 4096;
constexpr const char* kSocketLimit = "memory.kmem.tcp.limit_in_bytes";

// The group made if need be, open and locked; none: somebody else has the lock, or there is no such
// place.  Whoever removes the group has its lock alone, so one that we waited for may be gone.
UniqueFd locked_group(const fs::path& dir, int operation) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && make_group_dir(dir); ++i) {
    UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat held = {}, named = {};
    if (!fd.valid()) continue;
    if (::flock(fd.get(), operation) != 0) return {};
    if (::fstat(fd.get(), &held) == 0 && ::stat(dir.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino) {
      return fd;
    }
  }
  return {};
}

// Does anything from our group up to the root carry a limit that leaving it would escape?
bool limited(const CgroupPlace& place, std::string_view file) {
  fs::path dir = place.mount + place.own;
  const fs::path top = place.mount;
  for (; dir != top && dir.has_relative_path(); dir = dir.parent_path()) {
    const std::string text = control_text(dir / file);
    // Version 1 memory shows "none" as the largest page-aligned number.
    if (!text.empty() && !text.starts_with("max") && !text.starts_with("-1") &&
        control_number(text) < (std::uint64_t{1} << 62)) {
      return true;
    }
  }
  return false;
}

constexpr const char* kV2Controllers[] = {"memory", "pids", "cpu"};

// "cpuset cpu memory", or with a plus before each; "cpu" is not in "cpuset".
bool names_controller(std::string_view list, std::string_view controller) {
  for (std::size_t at = list.find(controller); at != std::string_view::npos;
       at = list.find(controller, at + 1)) {
    const std::size_t end = at + controller.size();
    const bool begins = at == 0 || list[at - 1] == ' ' || list[at - 1] == '+';
    if (begins && (end == list.size() || list[end] == ' ' || list[end] == '\n')) return true;
  }
  return false;
}

// To the groups below.  Only those that it has itself: asked for another one too, the kernel passes
// on none at all, and systemd delegates some of them only.
void pass_on_controllers(const fs::path& group) {
  const std::string has = control_text(group / "cgroup.controllers");
  std::string wanted;
  for (const char* c : kV2Controllers)
    if (names_controller(has, c)) wanted += (wanted.empty() ? "+" : " +") + std::string(c);
  if (!wanted.empty()) write_control(group / "cgroup.subtree_control", wanted);
}

// Version 1 counts pages of TCP's and UDP's sockets beside all others, and only for sockets that
// are made after this.  Kernels may come without it.
void limit_sockets(const fs::path& file, std::uint64_t memory_bytes) {
  write_control(file, std::to_string(socket_share(memory_bytes)));
}

// Sets limits of those controllers that the host has.
bool set_limits(const CgroupSet& set, const CgroupLimits& limits, const CgroupHost& host) {
  bool ok = true;
  const auto limit = [&](bool wanted, const char* controller, const char* v1, const char* v2,
                         const std::string& most) {
    const fs::path file = wanted && host.has(controller) ? set.file(controller, v1, v2) : "";
    ok = ok && (file.empty() || write_control(file, most));
    return !file.empty();
  };
  const std::string bytes = std::to_string(limits.memory_bytes);
  if (limit(0 < limits.memory_bytes, "memory", "memory.limit_in_bytes", "memory.max", bytes)) {
    // Only there when the kernel accounts swap.
    write_control(set.file("memory", "memory.memsw.limit_in_bytes", nullptr), bytes);
    write_control(set.unified("memory.swap.max"), "0");
    limit_sockets(set.file("memory", kSocketLimit, nullptr), limits.memory_bytes);
  }
  limit(0 < limits.processes, "pids", "pids.max", "pids.max", std::to_string(limits.processes));
  const std::string quota =
      std::to_string(std::max<long long>(1000, std::llround(limits.cpus * 100'000)));
  limit(0 < limits.cpus, "cpu", "cpu.cfs_quota_us", nullptr, quota);
  limit(0 < limits.cpus, "cpu", nullptr, "cpu.max", quota + " 100000");
  return ok;
}

std::string words_of(const CgroupLimits& l) {
  return std::to_string(l.memory_bytes) + " " + std::to_string(l.processes) + " " +
         std::to_string(l.cpus) + (l.cpu_usage ? " counted" : "");
}
}  // namespace

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  std::swap(set_, other.set_);
  pool_.swap(other.pool_);
  freezer_.swap(other.freezer_);
  return *this;
}

Cgroup::~Cgroup() {
  if (!freezer_.empty()) remove_group(freezer_);
  const std::shared_ptr<CgroupPool> pool = pool_.lock();
  if (pool && !set_.dirs.empty() && empty()) {
    pool->put(std::move(set_));
  } else {
    set_.remove();
  }
}

Result<std::uint64_t> Cgroup::memory_peak() const {
  PROCTOR_TRY(const std::uint64_t peak, set_.memory_peak());
  // What was there before is page cache of others, unless all was needed and it had to go.
  if (peak == 0 || (0 < set_.memory_limit && set_.memory_limit <= peak)) return peak;
  return std::max(peak - std::min(peak, set_.memory_before), kPage);
}

Result<std::uint64_t> Cgroup::oom_kills() const {
  return set_.oom_kills();
}

Result<std::optional<std::chrono::milliseconds>> Cgroup::cpu_time() const {
  using std::chrono::milliseconds;
  std::optional<milliseconds> out;
  PROCTOR_TRY(const auto total, set_.cpu_total());
  if (total) out = std::chrono::duration_cast<milliseconds>(*total - set_.cpu_before);
  return out;
}

Result<std::optional<std::vector<pid_t>>> Cgroup::processes() const {
  std::optional<std::vector<pid_t>> out;
  for (const char* controller : {"pids", "memory", kUnified}) {
    const auto d = set_.dirs.find(controller);
    if (d == set_.dirs.end()) continue;
    PROCTOR_TRY(out, members_of_group(d->second));
    break;
  }
  return out;
}

bool Cgroup::freeze(const std::function<std::vector<pid_t>()>& inside) {
  constexpr int kPasses = 50;  // a member's children are members: soon there is nobody new
  if (const fs::path v2 = set_.unified("cgroup.freeze"); !v2.empty()) return write_control(v2, "1");
  if (freezer_.empty() || !make_group_dir(freezer_)) return false;
  std::set<pid_t> moved;
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::size_t before = moved.size();
    for (const pid_t pid : inside())
      if (!moved.contains(pid) && write_control(freezer_ / "cgroup.procs", std::to_string(pid)))
        moved.insert(pid);
    if (moved.size() == before) break;
  }
  let_strangers_go(inside);
  return write_control(freezer_ / "freezer.state", "FROZEN");
}

// Only by its number can a process be moved, and that may have gone to somebody else since it was
// listed.  In the group nobody stands still yet: whoever is in it and not inside leaves it again.
void Cgroup::let_strangers_go(const std::function<std::vector<pid_t>()>& inside) const {
  const Result<std::vector<pid_t>> in = members_of_group(freezer_);
  if (!in.ok() || in->empty()) return;
  const std::vector<pid_t> ours = inside();
  for (const pid_t pid : *in)
    if (std::find(ours.begin(), ours.end(), pid) == ours.end())
      write_control(freezer_.parent_path() / "cgroup.procs", std::to_string(pid));
}

void Cgroup::thaw() {
  write_control(set_.unified("cgroup.freeze"), "0");
  if (!freezer_.empty()) write_control(freezer_ / "freezer.state", "THAWED");
}

void Cgroup::kill() {
  for (const auto& [controller, dir] : set_.dirs) kill_group(dir);
  thaw();
}

bool Cgroup::empty() {
  thaw();
  bool nobody = true;
  for (const auto& [controller, dir] : set_.dirs) nobody = kill_members(dir) && nobody;
  return nobody;
}

bool CgroupHost::add(const std::string& controller, const fs::path& base,
                     const std::string& owner) {
  const fs::path ours = base / "proctor";
  if (!make_group_dir(ours)) return false;
  if (v2_) pass_on_controllers(ours);
  if (lock_dir_.empty()) {
    lock_ = locked_group(ours / owner, LOCK_SH);
    if (lock_.valid()) lock_dir_ = ours / owner;
  }
  if (!make_group_dir(ours / owner)) return false;
  if (v2_) pass_on_controllers(ours / owner);
  if (::access((ours / owner / "cgroup.procs").c_str(), W_OK) != 0) return false;
  parents_[controller] = ours / owner;
  return true;
}

CgroupLayout cgroups_here() {
  return parse_cgroup_layout(control_text("/proc/self/mountinfo"),
                             control_text("/proc/self/cgroup"));
}

CgroupHost CgroupHost::detect(std::string_view owner) {
  return at(cgroups_here(), owner);
}

CgroupHost CgroupHost::at(const CgroupLayout& layout, std::string_view owner) {
  CgroupHost host;
  const std::string name = cgroup_component(owner);
  host.mounts_ = layout.mounts;
  host.runtime_base_ = "/proctor/" + name;
  for (const auto& [controller, place] : layout.v1) {
    const bool inside = (controller == "memory" && limited(place, "memory.limit_in_bytes")) ||
                        (controller == "pids" && limited(place, "pids.max")) ||
                        (controller == "cpu" && limited(place, "cpu.cfs_quota_us"));
    host.add(controller, inside ? place.mount + place.own : place.mount, name);
    if (inside) host.runtime_base_ = place.own + "/proctor/" + name;
  }
  // A freezer alone limits nothing.
  if (host.parents_.size() == 1 && host.has("freezer")) host.parents_.clear();
  if (!host.parents_.empty() || layout.v2.mount.empty()) return host;
  // Version 2: a group with processes of its own cannot give controllers to sub-groups, so unless
  // we are at the root, ours serves only when nobody is in it; else the root, if that escapes
  // nothing.
  host.v2_ = true;
  const bool inside = limited(layout.v2, "memory.max") || limited(layout.v2, "pids.max") ||
                      limited(layout.v2, "cpu.max");
  const fs::path base = inside ? layout.v2.mount + layout.v2.own : layout.v2.mount;
  if (inside) host.runtime_base_ = layout.v2.own + "/proctor/" + name;
  pass_on_controllers(base);
  if (!host.add(kUnified, base, name)) return host;
  const fs::path mine = host.parents_[kUnified];
  const std::string passed_on = control_text(mine / "cgroup.subtree_control");
  for (const char* c : kV2Controllers) {
    if (names_controller(passed_on, c)) host.parents_[c] = mine;
  }
  if (!host.has("memory") && !host.has("pids")) host.parents_.clear();
  return host;
}

CgroupHost::~CgroupHost() {
  pool_.reset();
  // Another engine of this owner holds the lock too, and needs it where it is.
  if (lock_.valid() && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<fs::path> dirs = runtime_parents();
  for (const auto& [controller, dir] : parents_) dirs.push_back(dir);
  for (const fs::path& dir : dirs) {
    if (::rmdir(dir.c_str()) == 0) ::rmdir(dir.parent_path().c_str());
  }
}

std::vector<fs::path> CgroupHost::runtime_parents() const {
  std::vector<fs::path> out;
  for (const std::string& mount : mounts_) out.emplace_back(mount + runtime_base_);
  return out;
}

std::string CgroupHost::runtime_path(std::string_view name) const {
  return runtime_base_ + "/" + cgroup_component(name);
}

Cgroup CgroupHost::runtime_group(std::string_view name, std::uint64_t memory_bytes) const {
  Cgroup group;
  const std::string path = runtime_path(name);
  // By the controllers' names where we ask them something, by their mounts where we only remove.
  std::set<std::string> known;
  for (const auto& [controller, parent] : parents_) {
    if (v2_ && controller != kUnified) continue;
    for (const std::string& mount : mounts_) {
      if (!parent.native().starts_with(mount + "/")) continue;
      known.insert(mount);
      if (controller == "freezer") {
        group.freezer_ = mount + path;
      } else {
        group.set_.dirs[controller] = mount + path;
      }
    }
  }
  for (const std::string& mount : mounts_) {
    if (!known.contains(mount)) group.set_.dirs[mount] = mount + path;
  }
  // runc sets no such limit, and afterwards is too late.
  const fs::path sockets = group.set_.file("memory", kSocketLimit, nullptr);
  if (0 < memory_bytes && !sockets.empty() && make_group_dir(sockets.parent_path()))
    limit_sockets(sockets, memory_bytes);
  group.pool_ = pool_;
  return group;
}

std::string CgroupHost::version(std::string_view controller) const {
  if (!has(controller)) return {};
  return v2_ ? "cgroup2" : "cgroup1";
}

std::map<std::string, std::string> CgroupHost::keepers() const {
  std::map<std::string, std::string> out = {
      {"memory_sockets", socket_keeper()}, {"network", "namespace"}, {"seccomp", "filter"}};
  for (const char* limit : {"cpu", "disk"}) out[limit] = "monitor";
  for (const char* limit : {"open_files", "file"}) out[limit] = "rlimit";
  for (const char* limit : {"memory", "memory_files"}) out[limit] = keeper("memory", "none");
  out["memory_sum"] = keeper("memory", "monitor");
  out["processes"] = keeper("pids", "none");
  out["cpus"] = keeper("cpu", "none");
  return out;
}

std::string CgroupHost::socket_keeper() const {
  const auto m = parents_.find("memory");
  const bool kept =
      m != parents_.end() && (v2_ || ::access((m->second / kSocketLimit).c_str(), W_OK) == 0);
  return kept ? version("memory") : "monitor";
}

Result<Cgroup> CgroupHost::make(std::string_view name, const CgroupLimits& limits) const {
  Cgroup group;
  const std::string words = words_of(limits);
  if (auto used = pool_->take(words)) {
    group.set_ = std::move(*used);
    group.pool_ = pool_;
    if (const auto freezer = parents_.find("freezer"); freezer != parents_.end())
      group.freezer_ = freezer->second / group.set_.dirs.begin()->second.filename();
    return group;
  }
  const std::string leaf = cgroup_component(name);
  for (const auto& [controller, parent] : parents_) {
    if (controller == "freezer") {
      group.freezer_ = parent / leaf;  // few runs are ever suspended
      continue;
    }
    // Entering a version 1 group costs 0.3 ms each: only those that this run needs.
    if (v2_ ? controller != kUnified
            : (controller == "pids" && limits.processes == 0) ||
                  (controller == "cpu" && !(0 < limits.cpus)) ||
                  (controller == "cpuacct" && !limits.cpu_usage)) {
      continue;
    }
    const fs::path dir = parent / leaf;
    // Another engine of this owner may just have removed the parents as empty.
    make_group_dir(parent.parent_path());
    make_group_dir(parent);
    if (!make_group_dir(dir)) return errno_error("make control group " + dir.string(), errno);
    group.set_.dirs[controller] = dir;
    // A process that moves itself there as a thread, its only one, waits for nobody; by
    // cgroup.procs the kernel first makes sure that no process forks meanwhile: 7 to 20 ms.
    const fs::path at = dir / (v2_ ? "cgroup.procs" : "tasks");
    UniqueFd door(::open(at.c_str(), O_WRONLY | O_CLOEXEC));
    if (!door.valid()) return errno_error("open " + at.string(), errno);
    group.set_.doors.push_back(std::move(door));
  }
  if (!set_limits(group.set_, limits, *this))
    return Error{Errc::kUnavailable, "set the limits of control group " + leaf};
  if (v2_ && has("memory")) {
    const fs::path peak = group.set_.unified("memory.peak");
    group.set_.peak = UniqueFd(::open(peak.c_str(), O_RDWR | O_CLOEXEC));
  }
  group.set_.limits = words;
  group.set_.memory_limit = limits.memory_bytes;
  group.set_.again = (!v2_ || !has("memory") || group.set_.peak.valid()) && group.set_.begin_anew();
  if (!group.set_.again) group.set_.peak.reset();
  group.pool_ = pool_;
  return group;
}

void CgroupHost::clean_up() const {
  pool_->clear();
  const auto clean = [](const fs::path& parent) {
    std::error_code ec;
    for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
      if (!it->is_directory(ec) || it->is_symlink(ec)) continue;
      kill_members(it->path());
      remove_group(it->path());
    }
  };
  // Who is frozen leaves no other group.
  if (const auto freezer = parents_.find("freezer"); freezer != parents_.end())
    clean(freezer->second);
  for (const auto& [controller, parent] : parents_) clean(parent);
  for (const fs::path& parent : runtime_parents()) clean(parent);
  sweep();
}

std::size_t CgroupHost::sweep() const {
  if (!lock_.valid()) return 0;  // nobody can be told dead where nobody can be locked
  std::set<fs::path> bases;
  for (const auto& [controller, parent] : parents_) bases.insert(parent.parent_path());
  for (const fs::path& parent : runtime_parents()) bases.insert(parent.parent_path());
  std::set<std::string> owners;
  for (const fs::path& base : bases) {
    std::error_code ec;
    for (fs::directory_iterator it(base, ec), end; !ec && it != end; it.increment(ec))
      if (it->is_directory(ec) && !it->is_symlink(ec))
        owners.insert(it->path().filename().string());
  }
  owners.erase(lock_dir_.filename().string());
  std::size_t removed = 0;
  for (const std::string& owner : owners)
    removed += sweep_owner(owner, {bases.begin(), bases.end()});
  return removed;
}

std::size_t CgroupHost::sweep_owner(const std::string& owner,
                                    const std::vector<fs::path>& bases) const {
  const UniqueFd alone = locked_group(lock_dir_.parent_path() / owner, LOCK_EX | LOCK_NB);
  if (!alone.valid()) return 0;
  std::size_t removed = 0;
  for (const fs::path& base : bases) {
    std::vector<fs::path> groups;
    std::error_code ec;
    for (fs::directory_iterator it(base / owner, ec), end; !ec && it != end; it.increment(ec))
      if (it->is_directory(ec) && !it->is_symlink(ec)) groups.push_back(it->path());
    for (const fs::path& group : groups) {
      if (const auto in = members_of_group(group); !in.ok() || !in->empty()) continue;
      if (::rmdir(group.c_str()) == 0) ++removed;
    }
    ::rmdir((base / owner).c_str());
  }
  return removed;
}
}  // namespace proctor
