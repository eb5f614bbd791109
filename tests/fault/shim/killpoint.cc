// Preloaded into coordinator or worker by tests/fault/killpoints: counts the calls that leave the
// process, by kind, and at the chosen one kills the process: before the call, after it, or (for
// bytes) when half of them are out.
//
//   PROCTOR_KILLPOINT_PROGRAM  proctor or proctor-worker: any other process is left alone
//   PROCTOR_KILLPOINT_FILE     shared memory, zeros at first: `counts` of all its lives, and
//   `fired` PROCTOR_KILLPOINT_AT       KIND:K:WHEN (WHEN: before, after, half); nothing: only
//   counts PROCTOR_KILLPOINT_REDIS    port of a Redis over TCP; a unix socket is told by its name
//
// Children between fork and exec count for nothing: they are not the process that is killed.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/fault/shim/shim.h"

namespace {

enum Kind {
  kWrite,
  kFsync,
  kRename,
  kUnlink,
  kMake,
  kRedis,
  kDocker,
  kZmq,
  kSocket,
  kMount,
  kFork,
  kKinds
};
constexpr std::array<std::string_view, kKinds> kNames{"write",  "fsync", "rename", "unlink",
                                                      "make",   "redis", "docker", "zmq",
                                                      "socket", "mount", "fork"};
enum class When { kBefore, kAfter, kHalf };

// As tests/fault/killpoints reads it: little-endian words of 64 bits.
struct Shared {
  std::array<std::atomic<std::uint64_t>, kKinds> counts;
  std::atomic<std::uint64_t> fired;
  std::array<char, 128> bytes;  // the first of those that the killed call was to send; zeros behind
};

Shared* shared = nullptr;
pid_t main_process = 0;
Kind kind_chosen = kKinds;
std::uint64_t call_chosen = 0;
When when_chosen = When::kBefore;
std::uint16_t redis_port = 0;

[[noreturn]] void die() {
  for (;;) {
    ::kill(main_process, SIGKILL);
    ::pause();
  }
}

void choose(std::string_view at) {
  const std::size_t first = at.find(':'), second = at.find(':', first + 1);
  if (first == at.npos || second == at.npos) return;
  for (int k = 0; k < kKinds; ++k)
    if (at.substr(0, first) == kNames[static_cast<std::size_t>(k)])
      kind_chosen = static_cast<Kind>(k);
  const std::string_view number = at.substr(first + 1, second - first - 1);
  std::from_chars(number.data(), number.data() + number.size(), call_chosen);
  const std::string_view when = at.substr(second + 1);
  when_chosen = when == "after" ? When::kAfter : when == "half" ? When::kHalf : When::kBefore;
}

// `proctor-worker --clean-up` is what removes what the killed one left; nobody cleans up after it.
bool cleans_up() {
  std::FILE* line = std::fopen("/proc/self/cmdline", "rb");
  if (line == nullptr) return false;
  std::array<char, 4096> bytes{};
  const std::size_t n = std::fread(bytes.data(), 1, bytes.size(), line);
  std::fclose(line);
  return std::string_view(bytes.data(), n).find(std::string_view("\0--clean-up\0", 12)) !=
         std::string_view::npos;
}

__attribute__((constructor)) void begin() {
  const std::string_view program = shim::setting("PROCTOR_KILLPOINT_PROGRAM");
  if (program.empty() || program != ::program_invocation_short_name) return;
  ::unsetenv("LD_PRELOAD");  // not for its children
  if (cleans_up()) return;
  const int fd = ::open(std::getenv("PROCTOR_KILLPOINT_FILE"), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) return;
  main_process = ::getpid();
  choose(shim::setting("PROCTOR_KILLPOINT_AT"));
  const std::string_view port = shim::setting("PROCTOR_KILLPOINT_REDIS");
  std::from_chars(port.data(), port.data() + port.size(), redis_port);
  shared = static_cast<Shared*>(at);
}

// Counts a call.  What is to happen to it: nothing, or death when the caller comes to that.
class Point {
 public:
  // What is sent, where it tells one call of a kind from another.
  explicit Point(Kind kind, const void* bytes = nullptr, std::size_t size = 0) {
    if (shared == nullptr || kind == kKinds || ::getpid() != main_process) return;
    const std::uint64_t n = shared->counts[kind].fetch_add(1) + 1;
    chosen_ = kind == kind_chosen && n == call_chosen && shared->fired.exchange(1) == 0;
    if (chosen_ && bytes != nullptr)
      std::memcpy(shared->bytes.data(), bytes, std::min(size, shared->bytes.size() - 1));
    if (chosen_ && when_chosen == When::kBefore) die();
  }
  bool half() const { return chosen_ && when_chosen == When::kHalf; }
  template <class T>
  T done(T result) const {
    if (chosen_) die();
    return result;
  }

 private:
  bool chosen_ = false;
};

// A unix socket's path, of either end.
Kind kind_of_path(const sockaddr_un& name) {
  const std::string_view path(name.sun_path, ::strnlen(name.sun_path, sizeof name.sun_path));
  if (path.empty()) return kKinds;
  if (path.find("redis") != path.npos) return kRedis;
  if (path.find("docker") != path.npos) return kDocker;
  return path.ends_with("coordinator.sock") ? kZmq : kSocket;
}

Kind kind_of_socket(int fd) {
  for (const bool peer : {true, false}) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if ((peer ? ::getpeername : ::getsockname)(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0)
      continue;
    if (name.ss_family == AF_INET)
      return peer && ntohs(reinterpret_cast<sockaddr_in*>(&name)->sin_port) == redis_port ? kRedis
                                                                                          : kZmq;
    if (name.ss_family != AF_UNIX) return kKinds;
    const Kind kind = kind_of_path(*reinterpret_cast<sockaddr_un*>(&name));
    if (kind != kKinds) return kind;
  }
  return kKinds;
}

// Pipes, eventfds and terminals are inside of the machine that dies.
Kind kind_of_fd(int fd) {
  if (shared == nullptr) return kKinds;
  const int saved = errno;
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  const Kind kind = !known                 ? kKinds
                    : S_ISREG(st.st_mode)  ? kWrite
                    : S_ISSOCK(st.st_mode) ? kind_of_socket(fd)
                                           : kKinds;
  errno = saved;
  return kind;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  SHIM_REAL(write);
  const Point point(kind_of_fd(fd), bytes, size);
  return point.done(real_write(fd, bytes, point.half() ? size / 2 : size));
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  SHIM_REAL(pwrite);
  const Point point(kind_of_fd(fd));
  return point.done(real_pwrite(fd, bytes, point.half() ? size / 2 : size, at));
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  SHIM_REAL(pwrite64);
  const Point point(kind_of_fd(fd));
  return point.done(real_pwrite64(fd, bytes, point.half() ? size / 2 : size, at));
}
ssize_t writev(int fd, const iovec* parts, int count) {
  SHIM_REAL(writev);
  const Point point(kind_of_fd(fd), count < 1 ? nullptr : parts->iov_base,
                    count < 1 ? 0 : parts->iov_len);
  return point.done(real_writev(fd, parts, point.half() ? count / 2 : count));
}
ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  SHIM_REAL(send);
  const Point point(kind_of_fd(fd), bytes, size);
  return point.done(real_send(fd, bytes, point.half() ? size / 2 : size, flags));
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  SHIM_REAL(sendmsg);
  const bool empty = message->msg_iovlen < 1;
  const Point point(kind_of_fd(fd), empty ? nullptr : message->msg_iov->iov_base,
                    empty ? 0 : message->msg_iov->iov_len);
  return point.done(real_sendmsg(fd, message, flags));
}
int ftruncate(int fd, off_t size) noexcept {
  SHIM_REAL(ftruncate);
  const Point point(kind_of_fd(fd));
  return point.done(real_ftruncate(fd, size));
}
int ftruncate64(int fd, off64_t size) noexcept {
  SHIM_REAL(ftruncate64);
  const Point point(kind_of_fd(fd));
  return point.done(real_ftruncate64(fd, size));
}

int fsync(int fd) {
  SHIM_REAL(fsync);
  const Point point(kFsync);
  return point.done(real_fsync(fd));
}
int fdatasync(int fd) {
  SHIM_REAL(fdatasync);
  const Point point(kFsync);
  return point.done(real_fdatasync(fd));
}

int rename(const char* from, const char* to) noexcept {
  SHIM_REAL(rename);
  const Point point(kRename);
  return point.done(real_rename(from, to));
}
int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  SHIM_REAL(renameat);
  const Point point(kRename);
  return point.done(real_renameat(from_dir, from, to_dir, to));
}
int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) noexcept {
  SHIM_REAL(renameat2);
  const Point point(kRename);
  return point.done(real_renameat2(from_dir, from, to_dir, to, flags));
}

int unlink(const char* path) noexcept {
  SHIM_REAL(unlink);
  const Point point(kUnlink);
  return point.done(real_unlink(path));
}
int unlinkat(int dir, const char* path, int flags) noexcept {
  SHIM_REAL(unlinkat);
  const Point point(kUnlink);
  return point.done(real_unlinkat(dir, path, flags));
}
int rmdir(const char* path) noexcept {
  SHIM_REAL(rmdir);
  const Point point(kUnlink);
  return point.done(real_rmdir(path));
}

int mkdir(const char* path, mode_t mode) noexcept {
  SHIM_REAL(mkdir);
  const Point point(kMake);
  return point.done(real_mkdir(path, mode));
}
int mkdirat(int dir, const char* path, mode_t mode) noexcept {
  SHIM_REAL(mkdirat);
  const Point point(kMake);
  return point.done(real_mkdirat(dir, path, mode));
}
int mkostemp(char* name, int flags) {
  SHIM_REAL(mkostemp);
  const Point point(kMake);
  return point.done(real_mkostemp(name, flags));
}
int mkostemp64(char* name, int flags) {
  SHIM_REAL(mkostemp64);
  const Point point(kMake);
  return point.done(real_mkostemp64(name, flags));
}
char* mkdtemp(char* name) noexcept {
  SHIM_REAL(mkdtemp);
  const Point point(kMake);
  return point.done(real_mkdtemp(name));
}

int mount(const char* source, const char* target, const char* type, unsigned long flags,
          const void* data) noexcept {
  SHIM_REAL(mount);
  const Point point(kMount);
  return point.done(real_mount(source, target, type, flags, data));
}
int umount2(const char* target, int flags) noexcept {
  SHIM_REAL(umount2);
  const Point point(kMount);
  return point.done(real_umount2(target, flags));
}

pid_t fork() noexcept {
  SHIM_REAL(fork);
  const Point point(kFork);
  const pid_t pid = real_fork();
  return pid == 0 ? pid : point.done(pid);
}
int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* argv, char* const* environment) {
  SHIM_REAL(posix_spawn);
  const Point point(kFork);
  return point.done(real_posix_spawn(pid, path, actions, attributes, argv, environment));
}

}  // extern "C"
