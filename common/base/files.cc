#include "common/base/files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "common/base/owned.h"
#include "common/base/parse.h"

namespace proctor {
namespace {
Errc errc_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Errc::kNotFound;
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return Errc::kExhausted;
    case EACCES:
    case EPERM:
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ELOOP:
      return Errc::kInvalid;
    case EEXIST:
      return Errc::kConflict;
    default:
      return Errc::kUnavailable;
  }
}

Status write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_error("write " + path.string(), errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

constexpr std::string_view kTempBegin = ".proctor-", kTempEnd = ".new";

std::string temporary_name(unsigned nth) {
  return std::string(kTempBegin).append(std::to_string(nth)).append(kTempEnd);
}

// Whose files are that this thread makes (namespaces.h): a number that nobody has changes nothing.
uid_t maker_of_files() {
  return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
}

struct TempFile {
  UniqueFd fd;
  std::string path;
};

// An empty file that is ours alone until it is closed.  Its name says nothing of what is written,
// which may be as long as names get, and is the first that nobody has: so what a killed writer left
// is taken by the next one, two writers do not wait for each other, and a folder, a link or a
// stranger's file of such a name is stepped over.
Result<TempFile> locked_new_file(const fs::path& dir) {
  constexpr unsigned kTriesMax = 1U << 20;
  unsigned nth = 0;
  for (unsigned tries = 0; tries < kTriesMax; ++tries) {
    std::string temp = (dir / temporary_name(nth)).string();
    UniqueFd fd(
        ::open(temp.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd.valid()) {
      const int e = errno;
      struct stat taken {};
      // Of a name that is there: a folder, a link, a pipe that nobody reads, a file of another's.
      const bool there = ::lstat(temp.c_str(), &taken) == 0;
      if (there && (e == EISDIR || e == ELOOP || e == ENXIO || e == EACCES)) {
        ++nth;
        continue;
      }
      return errno_error("create a file in " + dir.string(), e);
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return errno_error("lock " + temp, errno);
      ++nth;
      continue;
    }
    struct stat own {};
    struct stat named {};
    if (::fstat(fd.get(), &own) != 0) return errno_error("stat " + temp, errno);
    // The writer that had it renamed or removed it meanwhile.
    if (::lstat(temp.c_str(), &named) != 0 || own.st_ino != named.st_ino ||
        own.st_dev != named.st_dev)
      continue;
    if (!S_ISREG(own.st_mode) || own.st_nlink != 1 ||
        (own.st_uid != ::geteuid() && own.st_uid != maker_of_files())) {
      ++nth;
      continue;
    }
    if (own.st_size != 0 && ::ftruncate(fd.get(), 0) != 0)
      return errno_error("truncate " + temp, errno);
    return TempFile{std::move(fd), std::move(temp)};
  }
  return Error{Errc::kUnavailable, dir.string() + ": no name is free for a temporary file"};
}
}  // namespace

Error errno_error(std::string_view what, int error_number) {
  return Error{errc_of(error_number),
               std::string(what) + ": " + std::generic_category().message(error_number)};
}

Result<std::string> read_file(const fs::path& path, std::size_t bytes_max) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return errno_error(path.string(), errno);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error(path.string(), errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, path.string() + ": not a regular file"};
  const auto too_large = [&] {
    return Error{Errc::kExhausted,
                 path.string() + ": larger than " + std::to_string(bytes_max) + " bytes"};
  };
  if (bytes_max < static_cast<std::size_t>(st.st_size)) return too_large();
  std::string out(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t have = 0;
  for (;;) {
    if (have == out.size()) out.resize(out.size() + 4096);  // it may have grown: read to the end
    const ssize_t n = ::read(fd.get(), out.data() + have, out.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_error(path.string(), errno);
    }
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
    if (bytes_max < have) return too_large();
  }
  out.resize(have);
  return out;
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTempBegin) && name.ends_with(kTempEnd);
}

Status write_file(const fs::path& path, std::string_view bytes, Durability durability,
                  unsigned mode) {
  const fs::path dir = path.has_parent_path() ? path.parent_path() : fs::path(".");
  PROCTOR_TRY(const TempFile made, locked_new_file(dir));
  const auto& [fd, temp] = made;
  const auto abandon = [&made](Error e) {
    ::unlink(made.path.c_str());
    return e;
  };
  if (::fchmod(fd.get(), mode) != 0) return abandon(errno_error("chmod " + temp, errno));
  if (Status s = write_all(fd.get(), bytes, path); !s.ok()) return abandon(std::move(s).error());
  if (durability == Durability::kSync && ::fsync(fd.get()) != 0)
    return abandon(errno_error("fsync " + path.string(), errno));
  if (::rename(temp.c_str(), path.c_str()) != 0)
    return abandon(errno_error("rename to " + path.string(), errno));
  return durability == Durability::kSync ? sync_path(dir) : ok_status();
}

Status sync_path(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  if (::fsync(fd.get()) != 0) return errno_error("fsync " + path.string(), errno);
  return ok_status();
}

Status rename_path(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  fs::rename(from, to, ec);
  if (ec) return errno_error("rename " + from.string() + " to " + to.string(), ec.value());
  return ok_status();
}

Status make_dirs(const fs::path& dir) {
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (ec) return errno_error("make folder " + dir.string(), ec.value());
  return ok_status();
}

// The folder itself first, for nearly always its parent is there: a walk from the root takes the
// lock of each folder on the way, for which a worker's slots then wait for one another.
static Status make_private_folder(const fs::path& dir) {
  constexpr mode_t kOwnerOnly = 0700;
  if (::mkdir(dir.c_str(), kOwnerOnly) == 0) return ok_status();
  int e = errno;
  if (e == ENOENT && dir.has_relative_path()) {
    PROCTOR_CHECK_OK(make_private_folder(dir.parent_path()));
    if (::mkdir(dir.c_str(), kOwnerOnly) == 0) return ok_status();
    e = errno;
  }
  // A folder that is there is as its maker left it; a read-only or foreign one on the way, too.
  std::error_code ec;
  if (fs::is_directory(dir, ec)) return ok_status();
  return errno_error("make folder " + dir.string(), e == EEXIST ? ENOTDIR : e);
}

Status make_private_dirs(const fs::path& dir) {
  std::error_code ec;
  fs::path absolute = fs::absolute(dir, ec).lexically_normal();
  if (ec) return errno_error("make folder " + dir.string(), ec.value());
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // it ended with a slash
  return make_private_folder(absolute);
}

void spread_subfolders(const fs::path& dir) {
  const UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!fd.valid() || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags);
}

bool is_safe_relative(std::string_view relative) {
  if (relative.empty() || relative.front() == '/') return false;
  if (relative.find('\0') != std::string_view::npos) return false;
  return std::ranges::none_of(split(relative, '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

Result<TempDir> TempDir::create(std::string_view prefix, const fs::path& parent) {
  std::error_code ec;
  const fs::path base = parent.empty() ? fs::temp_directory_path(ec) : parent;
  if (ec) return errno_error("temporary folder", ec.value());
  std::string name = (base / (std::string(prefix) + ".XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error("make temporary folder " + name, errno);
  return TempDir(fs::path(name));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}
TempDir::~TempDir() {
  if (!path_.empty()) (void)remove_tree(path_);
}
fs::path TempDir::release() {
  return std::exchange(path_, {});
}
}  // namespace proctor
