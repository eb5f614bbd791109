#include "worker/workspace/copy_tree.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "common/base/text.h"

namespace proctor {
namespace {
Status copy_bytes(int in, int out, off_t size, const std::string& path) {
  if (size == 0 || ::ioctl(out, FICLONE, in) == 0) return ok_status();
  std::string buffer;
  bool in_kernel = true;
  while (true) {
    ssize_t n = -1;
    if (in_kernel) {
      n = ::copy_file_range(in, nullptr, out, nullptr, static_cast<std::size_t>(size), 0);
      if (n < 0 && errno != EINTR) {
        in_kernel = false;
        buffer.resize(std::size_t{1} << 20);
      }
    } else {
      n = ::read(in, buffer.data(), buffer.size());
      for (ssize_t done = 0; done < n;) {
        const ssize_t w = ::write(out, buffer.data() + done, static_cast<std::size_t>(n - done));
        if (w < 0 && errno != EINTR) return errno_error("copy " + printable(path), errno);
        if (0 < w) done += w;
      }
      if (n < 0 && errno != EINTR) return errno_error("copy " + printable(path), errno);
    }
    if (n == 0) return ok_status();
  }
}

struct Copier {
  CopiedFiles& copied;
  int root;                                                 // of the copy
  std::map<std::pair<dev_t, ino_t>, std::string> linked{};  // files of several names: the first

  // A further name of what was copied before?
  Result<bool> further_name(int to, const std::string& name, const std::string& path,
                            const struct stat& st) {
    if (st.st_nlink < 2) return false;
    const auto [first, is_new] = linked.emplace(std::pair(st.st_dev, st.st_ino), path);
    if (is_new) return false;
    PROCTOR_TRY(const auto parent,
                beneath::open_parent(root, first->second, beneath::Missing::kFail));
    struct stat now {};
    if (::linkat(parent.dir.get(), parent.name.c_str(), to, name.c_str(), 0) != 0 ||
        ::fstatat(to, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("link " + printable(path), errno);
    copied[path] = copied[first->second] = {now.st_ino, now.st_size, now.st_ctim};
    return true;
  }

  Status file(int from, int to, const std::string& name, const std::string& path,
              const struct stat& st) {
    PROCTOR_TRY(const bool done, further_name(to, name, path, st));
    return done ? ok_status() : bytes(from, to, name, name, path, st);
  }

  Status bytes(int from, int to, const std::string& name, const std::string& as,
               const std::string& path, const struct stat& st) {
    const UniqueFd in(::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const UniqueFd out(
        ::openat(to, as.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!in.valid() || !out.valid()) return errno_error("copy " + printable(path), errno);
    PROCTOR_CHECK_OK(copy_bytes(in.get(), out.get(), st.st_size, path));
    const timespec times[2] = {st.st_atim, st.st_mtim};
    struct stat now {};
    if (::fchmod(out.get(), st.st_mode & 07777U) != 0 || ::futimens(out.get(), times) != 0 ||
        ::fstat(out.get(), &now) != 0) {
      return errno_error("copy " + printable(path), errno);
    }
    copied[path] = {now.st_ino, now.st_size, now.st_ctim};
    return ok_status();
  }

  static Status link(int from, int to, const std::string& name, const std::string& as,
                     const struct stat& st) {
    PROCTOR_TRY(const std::string target, beneath::read_link(from, name));
    const timespec times[2] = {st.st_atim, st.st_mtim};
    if (::symlinkat(target.c_str(), to, as.c_str()) != 0 ||
        ::utimensat(to, as.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno_error("copy " + printable(name), errno);
    }
    return ok_status();
  }

  // Last of all of a folder: what is put into it moves its times.
  static Status like(int folder, const struct stat& st, const std::string& path) {
    const timespec times[2] = {st.st_atim, st.st_mtim};
    if (::fchmod(folder, st.st_mode & 07777U) == 0 && ::futimens(folder, times) == 0)
      return ok_status();
    return errno_error("copy " + printable(path), errno);
  }

  Status folder(int from, int to, const std::string& prefix) {
    PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(from));
    for (const std::string& name : inside) {
      const std::string path = prefix + name;
      struct stat st {};
      if (::fstatat(from, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno_error("copy " + printable(path), errno);
      }
      if (S_ISDIR(st.st_mode)) {
        if (::mkdirat(to, name.c_str(), 0755) != 0 && errno != EEXIST) {
          return errno_error("copy " + printable(path), errno);
        }
        PROCTOR_TRY(const UniqueFd below, beneath::open_dir(from, name));
        PROCTOR_TRY(const UniqueFd target, beneath::open_dir(to, name));
        PROCTOR_CHECK_OK(folder(below.get(), target.get(), path + '/'));
        PROCTOR_CHECK_OK(like(target.get(), st, path));
      } else if (S_ISLNK(st.st_mode)) {
        PROCTOR_CHECK_OK(link(from, to, name, name, st));
      } else if (S_ISREG(st.st_mode)) {
        PROCTOR_CHECK_OK(file(from, to, name, path, st));
      }
    }
    return ok_status();
  }
};

// File times come from a clock that moves a few milliseconds at a time.
Status wait_for_next_tick(int dir) {
  constexpr const char* kProbe = ".proctor-tick~";
  timespec first{};
  for (int i = 0; i < 1000; ++i) {
    const UniqueFd fd(::openat(dir, kProbe, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    struct stat st {};
    if (!fd.valid() || ::futimens(fd.get(), nullptr) != 0 || ::fstat(fd.get(), &st) != 0) {
      return errno_error("clock of the file system", errno);
    }
    if (i == 0) first = st.st_ctim;
    ::unlinkat(dir, kProbe, 0);
    if (!same_time(st.st_ctim, first)) return ok_status();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Error{Errc::kUnavailable, "clock of the file system stands still"};
}
}  // namespace

bool looks_like(const CopiedFiles& known, const std::string& path, const struct stat& st) {
  const auto it = known.find(path);
  return it != known.end() && it->second.inode == st.st_ino && it->second.size == st.st_size &&
         same_time(it->second.changed, st.st_ctim);
}

Status copy_over(const Seen& from, int root, const std::string& path) {
  PROCTOR_TRY(const beneath::Parent to,
              beneath::open_parent(root, path, beneath::Missing::kMakeAndReplace));
  PROCTOR_CHECK_OK(beneath::remove(to.dir.get(), to.name));
  const auto& [dir, name] = *from.parent;
  CopiedFiles unused;
  Copier copier{unused, root};
  return from.is_link() ? Copier::link(dir.get(), to.dir.get(), name, to.name, *from.st)
                        : copier.bytes(dir.get(), to.dir.get(), name, to.name, path, *from.st);
}

Status copy_tree(const fs::path& from, const fs::path& to, CopiedFiles& copied) {
  PROCTOR_TRY(const UniqueFd in, beneath::open_root(from.string()));
  PROCTOR_TRY(const UniqueFd out, beneath::open_root(to.string()));
  Copier copier{copied, out.get()};
  PROCTOR_CHECK_OK(copier.folder(in.get(), out.get(), ""));
  return wait_for_next_tick(out.get());
}
}  // namespace proctor
