#include "worker/workspace/beneath.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "common/base/text.h"

namespace proctor::beneath {
namespace {
constexpr int kDirFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::string_view kTemporary = ".proctor-new~";

Error named(const std::string& name, int error_number) {
  if (error_number == ELOOP || error_number == ENOTDIR) {
    return Error{Errc::kInvalid, printable(name) + ": not a folder (a symlink or a file)"};
  }
  return errno_error(printable(name), error_number);
}

// rename over a folder fails; a file that must be there goes before whatever the agent left.
Status move_over(int dir, const std::string& from, const std::string& to) {
  if (::renameat(dir, from.c_str(), dir, to.c_str()) == 0) return ok_status();
  if (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST) {
    PROCTOR_CHECK_OK(remove(dir, to));
    if (::renameat(dir, from.c_str(), dir, to.c_str()) == 0) return ok_status();
  }
  const int e = errno;
  ::unlinkat(dir, from.c_str(), 0);
  return errno_error("replace " + printable(to), e);
}
}  // namespace

Status write_all(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("write " + printable(name), errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

Result<UniqueFd> open_root(const std::string& dir) {
  UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + dir, errno);
  return fd;
}

Result<UniqueFd> open_if_there(const fs::path& dir) {
  if (dir.empty()) return UniqueFd();
  auto opened = open_root(dir.string());
  if (opened.ok() || opened.error().code != Errc::kNotFound) return opened;
  return UniqueFd();
}

Result<UniqueFd> open_dir(int dir, const std::string& name) {
  UniqueFd fd(::openat(dir, name.c_str(), kDirFlags));
  if (fd.valid()) return fd;
  if (errno == EACCES) {
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        ::fchmodat(dir, name.c_str(), (st.st_mode & 07777U) | 0700U, 0) == 0) {
      fd.reset(::openat(dir, name.c_str(), kDirFlags));
      if (fd.valid()) return fd;
    }
    errno = EACCES;
  }
  return named(name, errno);
}

Result<Parent> open_parent(int root, std::string_view relative, Missing missing) {
  if (!is_safe_relative(relative)) {
    return Error{Errc::kInvalid, "unsafe path \"" + printable(relative) + "\""};
  }
  UniqueFd at(::openat(root, ".", kDirFlags));
  if (!at.valid()) return errno_error("open folder", errno);
  while (true) {
    const std::size_t slash = relative.find('/');
    const std::string name(relative.substr(0, slash));
    if (slash == std::string_view::npos) return Parent{std::move(at), name};
    relative.remove_prefix(slash + 1);
    auto next = open_dir(at.get(), name);
    if (!next.ok() && missing == Missing::kMakeAndReplace && next.error().code == Errc::kInvalid) {
      PROCTOR_CHECK_OK(remove(at.get(), name));
    }
    if (!next.ok() && missing != Missing::kFail) {
      if (::mkdirat(at.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
        return errno_error("make folder " + printable(name), errno);
      }
      next = open_dir(at.get(), name);
    }
    if (!next.ok()) return std::move(next).error();
    at = std::move(next).value();
  }
}

Result<std::vector<std::string>> names(int dir) {
  const int copy = ::openat(dir, ".", kDirFlags);
  if (copy < 0) return errno_error("list folder", errno);
  const auto close_dir = [](DIR* d) { ::closedir(d); };
  std::unique_ptr<DIR, decltype(close_dir)> stream(::fdopendir(copy), close_dir);
  if (!stream) {
    ::close(copy);
    return errno_error("list folder", errno);
  }
  std::vector<std::string> out;
  errno = 0;
  while (const dirent* e = ::readdir(stream.get())) {
    std::string name(static_cast<const char*>(e->d_name));
    if (name != "." && name != "..") out.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return errno_error("list folder", errno);
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> read_file(int dir, const std::string& name, std::uint64_t bytes_max) {
  // O_NONBLOCK: the name may have become a FIFO since it was looked at.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd fd(::openat(dir, name.c_str(), kFlags));
  struct stat closed {};
  // As its owner without root's powers: a file that was closed to all is opened to him.
  if (!fd.valid() && errno == EACCES &&
      ::fstatat(dir, name.c_str(), &closed, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(closed.st_mode) &&
      ::fchmodat(dir, name.c_str(), (closed.st_mode & 07777U) | 0400U, 0) == 0)
    fd.reset(::openat(dir, name.c_str(), kFlags));
  if (!fd.valid()) return errno_error("read " + printable(name), errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error("read " + printable(name), errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, printable(name) + ": not a file"};
  const auto size = static_cast<std::uint64_t>(st.st_size);
  if (bytes_max < size) {
    return Error{Errc::kExhausted, printable(name) + ": " + std::to_string(size) + " bytes"};
  }
  std::string out(size, '\0');
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t n = ::read(fd.get(), out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read " + printable(name), errno);
    if (n == 0) break;  // it shrank meanwhile: what there is
    at += static_cast<std::size_t>(n);
  }
  out.resize(at);
  return out;
}

Result<std::string> read_link(int dir, const std::string& name) {
  std::array<char, 4097> target{};
  const ssize_t n = ::readlinkat(dir, name.c_str(), target.data(), target.size());
  if (n < 0) return errno_error("read link " + printable(name), errno);
  return std::string(target.data(), static_cast<std::size_t>(n));
}

Status write_file(int dir, const std::string& name, std::string_view bytes, std::uint32_t mode) {
  const std::string temporary(kTemporary);
  PROCTOR_CHECK_OK(remove(dir, temporary));
  UniqueFd fd(
      ::openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error("write " + printable(name), errno);
  Status written = write_all(fd.get(), bytes, name);
  if (written.ok() && ::fchmod(fd.get(), mode & 0777U) != 0) {
    written = errno_error("chmod " + printable(name), errno);
  }
  if (!written.ok()) {
    ::unlinkat(dir, temporary.c_str(), 0);
    return written;
  }
  return move_over(dir, temporary, name);
}

Status write_link(int dir, const std::string& name, const std::string& target) {
  const std::string temporary(kTemporary);
  PROCTOR_CHECK_OK(remove(dir, temporary));
  if (::symlinkat(target.c_str(), dir, temporary.c_str()) != 0) {
    return errno_error("link " + printable(name), errno);
  }
  return move_over(dir, temporary, name);
}

namespace {
// Deeper than this nothing is removed with a folder open for each step: no snapshot goes there.
constexpr int kRemoveDepth = 128;

Status remove_at(int dir, const std::string& name, int depth) {
  if (::unlinkat(dir, name.c_str(), 0) == 0 || errno == ENOENT) return ok_status();
  if (errno != EISDIR && errno != EPERM) return errno_error("remove " + printable(name), errno);
  if (kRemoveDepth <= depth)
    return remove_tree(fs::path("/proc/self/fd") / std::to_string(dir) / name);
  PROCTOR_TRY(const UniqueFd child, open_dir(dir, name));
  PROCTOR_TRY(const std::vector<std::string> inside, names(child.get()));
  for (const std::string& n : inside) PROCTOR_CHECK_OK(remove_at(child.get(), n, depth + 1));
  if (::unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return ok_status();
  return errno_error("remove " + printable(name), errno);
}
}  // namespace

Status remove(int dir, const std::string& name) {
  return remove_at(dir, name, 0);
}
}  // namespace proctor::beneath

namespace proctor {
namespace {
using beneath::Parent;

Result<bool> same_bytes(const Parent& a, const Parent& b) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const UniqueFd one(::openat(a.dir.get(), a.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const UniqueFd two(::openat(b.dir.get(), b.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!one.valid() || !two.valid()) return errno_error("read " + printable(a.name), errno);
  std::string left(kPiece, '\0'), right(kPiece, '\0');
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(one.get(), left.data(), kPiece, at);
    const ssize_t m = ::pread(two.get(), right.data(), kPiece, at);
    if (n < 0 || m < 0) return errno_error("read " + printable(a.name), errno);
    const auto got = static_cast<std::size_t>(n);
    if (n != m || std::string_view(left).substr(0, got) != std::string_view(right).substr(0, got))
      return false;
    if (n == 0) return true;
    at += n;
  }
}
}  // namespace

Result<Seen> look(int root, const std::string& path) {
  Seen out;
  auto parent = beneath::open_parent(root, path, beneath::Missing::kFail);
  if (!parent.ok() &&
      (parent.error().code == Errc::kNotFound || parent.error().code == Errc::kInvalid))
    return out;
  PROCTOR_TRY(out.parent, std::move(parent));
  struct stat st {};
  if (::fstatat(out.parent->dir.get(), out.parent->name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    out.st = st;
  } else if (errno != ENOENT) {
    return errno_error("look at " + printable(path), errno);
  }
  return out;
}

bool is_settled(const struct stat& st) {
  constexpr std::int64_t kTickNs = 100'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return kTickNs <
         (now.tv_sec - st.st_ctim.tv_sec) * 1'000'000'000 + (now.tv_nsec - st.st_ctim.tv_nsec);
}

Result<bool> say_the_same(const Seen& a, const Seen& b) {
  if (!a.st || !b.st || (a.st->st_mode & S_IFMT) != (b.st->st_mode & S_IFMT) ||
      a.st->st_size != b.st->st_size)
    return false;
  if (a.is_file()) return same_bytes(*a.parent, *b.parent);
  PROCTOR_TRY(const std::string one, beneath::read_link(a.parent->dir.get(), a.parent->name));
  PROCTOR_TRY(const std::string two, beneath::read_link(b.parent->dir.get(), b.parent->name));
  return one == two;
}
}  // namespace proctor
