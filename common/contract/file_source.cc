#include "common/contract/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/files.h"
#include "common/base/limits.h"

namespace proctor {
namespace {

Result<UniqueFd> open_below(int folder, const std::string& name, int flags,
                            const std::string& path) {
  UniqueFd fd(
      ::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.valid()) return fd;
  const int why = errno;
  struct stat st {};
  if (::fstatat(folder, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
    return Error{Errc::kInvalid, path + ": a symbolic link"};
  return errno_error(path, why);
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string out;
  std::string chunk(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path, errno);
    if (n == 0) return out;
    out.append(chunk, 0, static_cast<std::size_t>(n));
    if (limits::kReferencedFileBytes < out.size())
      return Error{Errc::kExhausted, path + ": larger than " +
                                         std::to_string(limits::kReferencedFileBytes) + " bytes"};
  }
}

}  // namespace

Result<std::unique_ptr<FolderFiles>> FolderFiles::open(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(folder.string(), errno);
  return std::unique_ptr<FolderFiles>(new FolderFiles(std::move(fd)));
}

Result<ReferencedFile> FolderFiles::read(const std::string& path) const {
  if (!is_safe_relative(path))
    return Error{Errc::kInvalid, path + ": not a path below the contract's folder"};
  UniqueFd held;
  int folder = folder_.get();
  std::size_t begin = 0;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       begin = slash + 1, slash = path.find('/', begin)) {
    PROCTOR_TRY(
        held, open_below(folder, path.substr(begin, slash - begin), O_RDONLY | O_DIRECTORY, path));
    folder = held.get();
  }
  PROCTOR_TRY(const UniqueFd fd, open_below(folder, path.substr(begin), O_RDONLY, path));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_error(path, errno);
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, path + ": not a regular file"};
  PROCTOR_TRY(std::string bytes, read_all(fd.get(), path));
  return ReferencedFile{path, (st.st_mode & S_IXUSR) != 0 ? 0755U : 0644U, std::move(bytes)};
}

void GivenFiles::add(ReferencedFile file) {
  std::string path = file.path;
  files_.insert_or_assign(std::move(path), std::move(file));
}

Result<ReferencedFile> GivenFiles::read(const std::string& path) const {
  const auto it = files_.find(path);
  if (it == files_.end()) return Error{Errc::kNotFound, path + ": not in the bundle"};
  return it->second;
}

}  // namespace proctor
