#include "worker/sandbox/limit_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

#include "common/base/folder_tree.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"

namespace proctor {
Result<BoundedFile> BoundedFile::create(const fs::path& path, std::size_t bytes_max) {
  BoundedFile f;
  if (path.empty()) return f;
  f.fd_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (!f.fd_.valid()) return errno_error("create " + path.string(), errno);
  f.left_ = bytes_max;
  return f;
}

void BoundedFile::append(std::string_view bytes) {
  total_ += bytes.size();
  if (head_.size() < kHead) head_.append(bytes.substr(0, kHead - head_.size()));
  std::string_view keep = bytes.substr(0, std::min(bytes.size(), left_));
  left_ -= keep.size();
  while (!keep.empty() && error_ == 0) {
    const ssize_t n = ::write(fd_.get(), keep.data(), keep.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error_ = errno;
      left_ = 0;
      return;
    }
    keep.remove_prefix(static_cast<std::size_t>(n));
  }
}

Status BoundedFile::status() const {
  if (error_ != 0) return errno_error("write a command's output", error_);
  return ok_status();
}

Wakes::Wakes(const std::stop_token& cancel, const Hold* hold)
    : cancelled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      held_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!valid()) return;
  on_cancel_.emplace(cancel, Wake{cancelled_.get()});
  if (hold != nullptr) on_hold_.emplace(*hold, Wake{held_.get()});
}

void Wakes::Wake::operator()() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
}

void Wakes::forget_held() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(held_.get(), &count, sizeof count);
}

namespace {
// A datagram is never longer; its pages may be twice that.
constexpr std::uint64_t kDatagramMost = std::uint64_t{128} << 10;
// The most that the kernel lets a socket have, as most hosts are set.
constexpr std::uint64_t kQueuesMost = std::uint64_t{8} << 20;

// The word number `at` of a line; empty: there are fewer.
std::string_view word(std::string_view line, std::size_t at) {
  for (;; --at) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view first = line.substr(0, line.find(' '));
    if (at == 0 || first.empty()) return first;
    line.remove_prefix(first.size());
  }
}

std::uint64_t number(std::string_view text, int base) {
  std::uint64_t value = 0;
  take_number(text, value, base);
  return value;
}

struct Sum {
  std::uint64_t bytes = 0;
  std::size_t sockets = 0;
  bool all = true;
};

// Of the lines below the first, of kSocketsMost sockets: the kernel goes through all that it showed
// before, each time that somebody reads on.
Sum sum_of(int fd, std::uint64_t (*bytes_of)(std::string_view)) {
  Sum out;
  std::array<char, 8192> buffer{};
  std::size_t have = 0;
  bool heading = true;
  if (::lseek(fd, 0, SEEK_SET) != 0) return out;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data() + have, buffer.size() - have);
    if (n <= 0) return out;
    have += static_cast<std::size_t>(n);
    std::string_view text(buffer.data(), have);
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
      if (!heading) {
        out.bytes += bytes_of(text.substr(0, end));
        ++out.sockets;
      }
      heading = false;
      text.remove_prefix(end + 1);
    }
    have = text.size() < buffer.size() ? text.size() : 0;  // no line is as long as that
    std::memmove(buffer.data(), text.data(), have);
    if (kSocketsMost <= out.sockets) {
      out.all = false;
      return out;
    }
  }
}

std::string text_of(int fd) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

std::uint64_t both_line_bytes(std::string_view line) {
  return sent_line_bytes(line) + received_line_bytes(line);
}

std::optional<ino_t> network_of(const std::string& process) {
  struct stat st {};
  if (::stat(("/proc/" + process + "/ns/net").c_str(), &st) != 0) return std::nullopt;
  return st.st_ino;
}
}  // namespace

std::uint64_t netlink_line_bytes(std::string_view line) {
  return number(word(line, 4), 10) + number(word(line, 5), 10);
}

std::uint64_t sent_line_bytes(std::string_view line) {
  const std::string_view queues = word(line, 4);
  return number(queues.substr(0, queues.find(':')), 16);
}

std::uint64_t received_line_bytes(std::string_view line) {
  const std::string_view queues = word(line, 4);
  return number(queues.substr(std::min(queues.find(':'), queues.size() - 1) + 1), 16);
}

std::uint64_t sockets_of(std::string_view protocol, std::string_view sockstat) {
  std::uint64_t count = 0;
  while (!sockstat.empty()) {
    const std::string_view line = take_until(sockstat, '\n');
    if (line.starts_with(protocol) && word(line, 1) == "inuse") count += number(word(line, 2), 10);
  }
  return count;
}

// bwrap itself, which is in the sandbox's groups too, has our network.
bool SocketUse::find_network(const std::function<std::vector<pid_t>()>& inside) {
  const auto ours = network_of("self");
  for (const pid_t pid : inside()) {
    const std::string process = std::to_string(pid);
    const auto its = network_of(process);
    if (!ours || !its || *its == *ours) continue;
    const auto open = [&](const char* name) {
      return UniqueFd(::open(("/proc/" + process + "/net/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    };
    UniqueFd netlink = open("netlink");
    std::vector<UniqueFd> counts, queues;
    for (const char* name : {"sockstat", "sockstat6"}) counts.push_back(open(name));
    for (const char* name : {"udp", "udp6", "udplite", "udplite6"}) queues.push_back(open(name));
    if (counts_all_)
      for (const char* name : {"tcp", "tcp6"}) queues.push_back(open(name));
    // Whoever had that number until now may be somebody else since.
    const std::vector<pid_t> again = inside();
    if (std::find(again.begin(), again.end(), pid) == again.end() || network_of(process) != its)
      continue;
    netlink_ = std::move(netlink);
    counts_ = std::move(counts);
    queues_ = std::move(queues);
    return true;
  }
  return false;
}

// Those that no look reaches hold as much as a datagram can.
std::uint64_t SocketUse::queued() const {
  std::uint64_t sockets = 0, bytes = 0;
  for (const UniqueFd& fd : counts_) {
    if (!fd.valid()) continue;
    const std::string text = text_of(fd.get());
    sockets += sockets_of("UDP", text) + (counts_all_ ? sockets_of("TCP", text) : 0);
  }
  // Most hold nothing, and who has few of them cannot have too much.
  if (sockets * (counts_all_ ? kQueuesMost : kDatagramMost) <= most_) return 0;
  for (const UniqueFd& fd : queues_) {
    if (!fd.valid()) continue;
    const Sum some = sum_of(fd.get(), counts_all_ ? &both_line_bytes : &sent_line_bytes);
    bytes += some.bytes;
    if (!some.all && some.sockets < sockets)
      return bytes + (sockets - some.sockets) * kDatagramMost;
    sockets -= std::min<std::uint64_t>(sockets, some.sockets);
  }
  return bytes;
}

bool SocketUse::passed(const std::function<std::vector<pid_t>()>& inside) {
  if (!netlink_.valid() && !find_network(inside)) return false;
  const Sum netlink = sum_of(netlink_.get(), &netlink_line_bytes);
  return !netlink.all || most_ < netlink.bytes || most_ < netlink.bytes + queued();
}

namespace {
constexpr std::size_t kProcFile = 8192;
constexpr std::uint64_t kKiB = 1024;

std::uint64_t next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  take_number(text, value);
  return value;
}

// statm: pages in all, resident, of these shared with a file or with others.
std::uint64_t own_bytes(std::string_view statm) {
  (void)next_number(statm);
  const std::uint64_t resident = next_number(statm), shared = next_number(statm);
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (resident - std::min(resident, shared)) * page;
}
}  // namespace

std::uint64_t proportional_bytes(std::string_view smaps_rollup) {
  std::uint64_t out = 0;
  for (const std::string_view key : {"\nPss:", "\nSwapPss:"}) {
    const std::size_t at = smaps_rollup.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = smaps_rollup.substr(at + key.size());
    out += next_number(rest) * kKiB;
  }
  return out;
}

std::optional<std::uint64_t> memory_of(const std::vector<pid_t>& processes) {
  std::uint64_t out = 0;
  for (const pid_t pid : processes) {
    const fs::path dir = "/proc/" + std::to_string(pid);
    const auto rollup = read_file(dir / "smaps_rollup", kProcFile);
    if (rollup.ok()) {
      out += proportional_bytes(*rollup);
      continue;
    }
    const auto statm = read_file(dir / "statm", kProcFile);
    if (statm.ok()) out += own_bytes(*statm);
    if (!statm.ok() && statm.error().code == Errc::kExhausted) return std::nullopt;
  }
  return out;
}

namespace {
using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

void add_nameless(FolderCount& count, pid_t pid, const std::stop_token& stop) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const Folder fds(::opendir(folder.c_str()), &::closedir);
  if (!fds) return;
  while (const dirent* entry = ::readdir(fds.get())) {
    if (stop.stop_requested()) return;
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const std::string path = folder + "/" + static_cast<const char*>(entry->d_name);
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || 0 < st.st_nlink) continue;
    struct statfs system {};
    // What lives in memory counts as memory.
    if (::statfs(path.c_str(), &system) != 0 || system.f_type == TMPFS_MAGIC) continue;
    count.add_nameless(st);
  }
}

// What may be there in the end, with what was there before.
FolderUse most_of(const DiskLimit& limit) {
  FolderUse out{limit.bytes, limit.files};
  for (const DiskLimit::Place& place : limit.places) {
    if (0 < limit.bytes) out.bytes += place.bytes_before;
    if (0 < limit.files) out.files += place.files_before;
  }
  return out;
}

// Stopped: what it had found by then.
FolderCount count_of(const DiskLimit& limit, const std::vector<pid_t>& inside,
                     const std::stop_token& stop) {
  FolderCount count(most_of(limit), limit.measure, stop);
  for (const DiskLimit::Place& place : limit.places)
    count.add_over(place.dir, place.below, {place.bytes_below, place.files_below});
  for (const pid_t pid : inside) {
    if (count.passed() || stop.stop_requested()) break;
    add_nameless(count, pid, stop);
  }
  return count;
}
}  // namespace

bool DiskLook::passed(const std::function<std::vector<pid_t>()>& inside,
                      const std::stop_token& stop) {
  used_ = used_of_systems();
  const auto look_at = where_ == Where::kNamed ? std::vector<pid_t>{} : inside();
  const FolderCount count = count_of(*limit_, look_at, stop);
  const FolderUse most = most_of(*limit_), have = count.so_far();
  left_ = {most.bytes - std::min(most.bytes, have.bytes),
           most.files - std::min(most.files, have.files)};
  return count.passed();
}

bool DiskLook::may_have_passed() const {
  const std::vector<FolderUse> now = used_of_systems();
  for (std::size_t i = 0; i < now.size() && i < used_.size(); ++i)
    if ((0 < limit_->bytes && used_[i].bytes + left_.bytes < now[i].bytes) ||
        (0 < limit_->files && used_[i].files + left_.files < now[i].files))
      return true;
  return false;
}

std::vector<FolderUse> DiskLook::used_of_systems() const {
  std::vector<FolderUse> out;
  for (const DiskLimit::Place& place : limit_->places) {
    struct statvfs s {};
    FolderUse& use = out.emplace_back();
    if (::statvfs(place.dir.c_str(), &s) == 0)
      use = {(s.f_blocks - s.f_bfree) * s.f_frsize, s.f_files - s.f_ffree};
  }
  return out;
}

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kPeriod{90};

LimitWatch::LimitWatch(const SandboxSpec& spec, Host host)
    : spec_(&spec),
      host_(std::move(host)),
      sockets_(socket_share(spec.memory_bytes), host_.sockets) {}

LimitWatch::~LimitWatch() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

std::vector<LimitWatch::Kind> LimitWatch::kinds() {
  using Stop = const std::stop_token&;
  std::vector<Kind> out;
  if (0 < spec_->cpu.count())
    out.push_back({Passed::kCpu, [this](Stop) {
                     const auto used = host_.cpu_time();
                     return used && spec_->cpu < *used;
                   }});
  if (host_.memory && 0 < spec_->memory_bytes)
    out.push_back({Passed::kMemory, [this](Stop) {
                     const auto held = host_.memory();
                     return held && spec_->memory_bytes < *held;
                   }});
  if (sockets_watched(*spec_))
    out.push_back({Passed::kMemory, [this](Stop) { return sockets_.passed(host_.inside); }});
  if (disk_watched(*spec_)) {
    // What has names is found without the many descriptors that something else may have open.
    for (const DiskLook::Where where : {DiskLook::Where::kNamed, DiskLook::Where::kEverywhere}) {
      const auto look = std::make_shared<DiskLook>(spec_->disk, where);
      out.push_back({Passed::kDisk,
                     [this, look](Stop stop) { return look->passed(host_.inside, stop); },
                     [look] { return look->may_have_passed(); }});
    }
  }
  return out;
}

void LimitWatch::begin() {
  found_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (Kind& kind : kinds())
    threads_.emplace_back(
        [this, kind = std::move(kind)](const std::stop_token& stop) { keep_looking(kind, stop); });
}

std::optional<LimitWatch::Passed> LimitWatch::look(std::chrono::steady_clock::time_point now) {
  if (!first_) first_ = now + kPeriod;
  if (threads_.empty() && *first_ <= now) begin();
  const int found = found_;
  if (found == kNothing) return std::nullopt;
  return static_cast<Passed>(found);
}

void LimitWatch::pause(bool on) {
  const std::lock_guard lock(mutex_);
  paused_ = on;
  changed_.notify_all();
}

void LimitWatch::keep_looking(const Kind& kind, const std::stop_token& stop) {
  for (;;) {
    const nanoseconds before = thread_cpu_time();
    if (kind.passed(stop) && !stop.stop_requested()) {
      int nothing = kNothing;
      found_.compare_exchange_strong(nothing, static_cast<int>(kind.what));
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(found_fd_.get(), &one, sizeof one);
      return;
    }
    if (!rest(stop, thread_cpu_time() - before, kind)) return;
  }
}

bool LimitWatch::rest(const std::stop_token& stop, nanoseconds cost, const Kind& kind) {
  constexpr int kRestFactor = 10;
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const nanoseconds least = std::max<nanoseconds>(kPeriod, cost),
                    most = std::max<nanoseconds>(kPeriod, kRestFactor * cost);
  for (nanoseconds until = kind.hurry ? least : most;; until = std::min(most, until + kPeriod)) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, stop, begun + until, [] { return false; });
      changed_.wait(lock, stop, [this] { return !paused_; });
    }
    if (stop.stop_requested()) return false;
    if (most <= Clock::now() - begun || (kind.hurry && kind.hurry())) return true;
  }
}
}  // namespace proctor
