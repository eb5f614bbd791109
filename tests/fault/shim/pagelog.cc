// Preloaded into coordinator and worker by tests/fault/powerloss: writes down, in one order for all
// of them, what they do to files below one folder: bytes written, truncated, synced, and names
// made, moved and removed. From that the driver makes what a disk may hold after the power went.
//
//   PROCTOR_PAGELOG       the file to append to
//   PROCTOR_PAGELOG_ROOT  the folder
//
// An entry follows the call it tells of, so a sync that is not in the log may not have happened.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/fault/shim/shim.h"

namespace {

enum Kind : std::uint32_t { kWrite = 1, kTruncate, kSync, kCreate, kRename, kUnlink, kMkdir };

// As tests/fault/powerloss reads it; the paths and the bytes follow.
struct Header {
  std::uint32_t kind, path, other, pad;
  std::uint64_t bytes, offset, inode;
};

int log_fd = -1;
std::string* root = nullptr;  // never freed: calls may come after static objects are gone

__attribute__((constructor)) void begin() {
  const std::string_view log = shim::setting("PROCTOR_PAGELOG");
  if (log.empty() || !std::string_view(::program_invocation_short_name).starts_with("proctor"))
    return;
  root = new std::string(shim::setting("PROCTOR_PAGELOG_ROOT"));
  static auto* const real_open = shim::real(&::open, "open");
  const int fd = real_open(std::string(log).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  log_fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 500);  // out of the way of who counts on low numbers
  ::close(fd);
}

bool below(const std::string& path) {
  return path.size() > root->size() && path.starts_with(*root) && path[root->size()] == '/';
}

std::string path_of_fd(int fd) {
  std::array<char, PATH_MAX> path{};
  const ssize_t n =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return n <= 0 ? "" : std::string(path.data(), static_cast<std::size_t>(n));
}

std::string path_at(int dir, const char* path) {
  if (path == nullptr) return "";
  if (path[0] == '/') return path;
  std::array<char, PATH_MAX> cwd{};
  const std::string base = dir != AT_FDCWD                               ? path_of_fd(dir)
                           : ::getcwd(cwd.data(), cwd.size()) == nullptr ? ""
                                                                         : cwd.data();
  return base + "/" + path;
}

std::uint64_t inode_of(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

void put(Kind kind, const std::string& path, const std::string& other, std::uint64_t offset,
         std::uint64_t inode, const void* bytes = nullptr, std::size_t size = 0) {
  Header header{kind,
                static_cast<std::uint32_t>(path.size()),
                static_cast<std::uint32_t>(other.size()),
                0,
                size,
                offset,
                inode};
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  entry += path + other;
  if (size != 0) entry.append(static_cast<const char*>(bytes), size);
  static auto* const real_write = shim::real(&::write, "write");
  (void)!real_write(log_fd, entry.data(), entry.size());
}

// What is done to an open file.
void tell(Kind kind, int fd, std::uint64_t offset, const void* bytes = nullptr,
          std::size_t size = 0) {
  if (log_fd < 0) return;
  const int saved = errno;
  struct stat st {};
  if (::fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
    if (const std::string path = path_of_fd(fd); below(path))
      put(kind, path, "", offset, st.st_ino, bytes, size);
  errno = saved;
}

// What is done to a name.
void tell_name(Kind kind, const std::string& path, const std::string& other = "") {
  if (log_fd < 0) return;
  const int saved = errno;
  if (below(path) || (!other.empty() && below(other)))
    put(kind, path, other, 0, kind == kUnlink ? 0 : inode_of(kind == kRename ? other : path));
  errno = saved;
}

void tell_written(int fd, const void* bytes, ssize_t written) {
  if (log_fd < 0 || written <= 0) return;
  const int saved = errno;
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  errno = saved;
  if (at >= written)
    tell(kWrite, fd, static_cast<std::uint64_t>(at - written), bytes,
         static_cast<std::size_t>(written));
}

// Was there nothing of this name before an open that may create it?
bool is_new(int flags, const std::string& path) {
  if (log_fd < 0 || (flags & O_CREAT) == 0) return false;
  const int saved = errno;
  const bool missing = below(path) && inode_of(path) == 0;
  errno = saved;
  return missing;
}

template <class Open>
int opened(int flags, const std::string& path, const Open& open_it) {
  const bool made = is_new(flags, path);
  const int fd = open_it();
  if (0 <= fd && made) tell_name(kCreate, path);
  if (0 <= fd && !made && log_fd >= 0 && (flags & O_TRUNC) != 0) tell(kTruncate, fd, 0);
  return fd;
}

}  // namespace

#define SHIM_MODE(mode, flags)                  \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list more;                               \
    va_start(more, flags);                      \
    mode = va_arg(more, mode_t);                \
    va_end(more);                               \
  }

extern "C" {

int open(const char* path, int flags, ...) {
  SHIM_REAL(open);
  SHIM_MODE(mode, flags)
  return opened(flags, path_at(AT_FDCWD, path), [&] { return real_open(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  SHIM_REAL(open64);
  SHIM_MODE(mode, flags)
  return opened(flags, path_at(AT_FDCWD, path), [&] { return real_open64(path, flags, mode); });
}
int openat(int dir, const char* path, int flags, ...) {
  SHIM_REAL(openat);
  SHIM_MODE(mode, flags)
  return opened(flags, path_at(dir, path), [&] { return real_openat(dir, path, flags, mode); });
}
int openat64(int dir, const char* path, int flags, ...) {
  SHIM_REAL(openat64);
  SHIM_MODE(mode, flags)
  return opened(flags, path_at(dir, path), [&] { return real_openat64(dir, path, flags, mode); });
}
int mkostemp(char* name, int flags) {
  SHIM_REAL(mkostemp);
  const int fd = real_mkostemp(name, flags);
  if (0 <= fd) tell_name(kCreate, path_at(AT_FDCWD, name));
  return fd;
}
int mkostemp64(char* name, int flags) {
  SHIM_REAL(mkostemp64);
  const int fd = real_mkostemp64(name, flags);
  if (0 <= fd) tell_name(kCreate, path_at(AT_FDCWD, name));
  return fd;
}
char* mkdtemp(char* name) noexcept {
  SHIM_REAL(mkdtemp);
  char* made = real_mkdtemp(name);
  if (made != nullptr) tell_name(kMkdir, path_at(AT_FDCWD, made));
  return made;
}

ssize_t write(int fd, const void* bytes, size_t size) {
  SHIM_REAL(write);
  const ssize_t n = real_write(fd, bytes, size);
  tell_written(fd, bytes, n);
  return n;
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  SHIM_REAL(pwrite);
  const ssize_t n = real_pwrite(fd, bytes, size, at);
  if (0 < n) tell(kWrite, fd, static_cast<std::uint64_t>(at), bytes, static_cast<std::size_t>(n));
  return n;
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  SHIM_REAL(pwrite64);
  const ssize_t n = real_pwrite64(fd, bytes, size, at);
  if (0 < n) tell(kWrite, fd, static_cast<std::uint64_t>(at), bytes, static_cast<std::size_t>(n));
  return n;
}
ssize_t writev(int fd, const iovec* parts, int count) {
  SHIM_REAL(writev);
  const ssize_t n = real_writev(fd, parts, count);
  if (log_fd < 0 || n <= 0) return n;
  std::string all;
  for (int i = 0; i < count; ++i)
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  tell_written(fd, all.data(), n);
  return n;
}
int ftruncate(int fd, off_t size) noexcept {
  SHIM_REAL(ftruncate);
  const int result = real_ftruncate(fd, size);
  if (result == 0) tell(kTruncate, fd, static_cast<std::uint64_t>(size));
  return result;
}
int ftruncate64(int fd, off64_t size) noexcept {
  SHIM_REAL(ftruncate64);
  const int result = real_ftruncate64(fd, size);
  if (result == 0) tell(kTruncate, fd, static_cast<std::uint64_t>(size));
  return result;
}
int fsync(int fd) {
  SHIM_REAL(fsync);
  const int result = real_fsync(fd);
  if (result == 0) tell(kSync, fd, 0);
  return result;
}
int fdatasync(int fd) {
  SHIM_REAL(fdatasync);
  const int result = real_fdatasync(fd);
  if (result == 0) tell(kSync, fd, 0);
  return result;
}

int rename(const char* from, const char* to) noexcept {
  SHIM_REAL(rename);
  const int result = real_rename(from, to);
  if (result == 0) tell_name(kRename, path_at(AT_FDCWD, from), path_at(AT_FDCWD, to));
  return result;
}
int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  SHIM_REAL(renameat);
  const int result = real_renameat(from_dir, from, to_dir, to);
  if (result == 0) tell_name(kRename, path_at(from_dir, from), path_at(to_dir, to));
  return result;
}
int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) noexcept {
  SHIM_REAL(renameat2);
  const int result = real_renameat2(from_dir, from, to_dir, to, flags);
  if (result == 0) tell_name(kRename, path_at(from_dir, from), path_at(to_dir, to));
  return result;
}
int unlink(const char* path) noexcept {
  SHIM_REAL(unlink);
  const int result = real_unlink(path);
  if (result == 0) tell_name(kUnlink, path_at(AT_FDCWD, path));
  return result;
}
int unlinkat(int dir, const char* path, int flags) noexcept {
  SHIM_REAL(unlinkat);
  const std::string full = log_fd < 0 ? "" : path_at(dir, path);
  const int result = real_unlinkat(dir, path, flags);
  if (result == 0) tell_name(kUnlink, full);
  return result;
}
int rmdir(const char* path) noexcept {
  SHIM_REAL(rmdir);
  const int result = real_rmdir(path);
  if (result == 0) tell_name(kUnlink, path_at(AT_FDCWD, path));
  return result;
}
int mkdir(const char* path, mode_t mode) noexcept {
  SHIM_REAL(mkdir);
  const int result = real_mkdir(path, mode);
  if (result == 0) tell_name(kMkdir, path_at(AT_FDCWD, path));
  return result;
}
int mkdirat(int dir, const char* path, mode_t mode) noexcept {
  SHIM_REAL(mkdirat);
  const int result = real_mkdirat(dir, path, mode);
  if (result == 0) tell_name(kMkdir, path_at(dir, path));
  return result;
}

}  // extern "C"
