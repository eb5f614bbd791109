#include "coordinator/shell/archive_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/unique_fd.h"
#include "common/trace/archive.h"

namespace proctor {
namespace {

Result<Digest> digest_of_file(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(path.string(), errno);
  Sha256 hash;
  std::string buffer(std::size_t{64} << 10, '\0');
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0) return errno_error(path.string(), errno);
    if (n == 0) return hash.finish();
    hash.update(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
  }
}

}  // namespace

fs::path ArchiveStore::part(const AttemptId& attempt) const {
  return folder_.incoming() / (to_string(attempt) + ".part");
}

std::uint64_t ArchiveStore::have(const AttemptId& attempt) const {
  std::error_code ec;
  const auto size = fs::file_size(part(attempt), ec);
  return ec ? 0 : size;
}

Result<std::uint64_t> ArchiveStore::put(const wire::ArchiveChunk& chunk) {
  if (limits::kArchiveBytes < chunk.total || chunk.total < chunk.bytes.size())
    return Error{Errc::kInvalid, "an archive of " + std::to_string(chunk.total) + " bytes"};
  std::error_code ec;
  if (!fs::exists(folder_.incoming(), ec)) {
    PROCTOR_CHECK_OK(make_dirs(folder_.incoming()));
    spread_subfolders(folder_.incoming());
  }
  const fs::path path = part(chunk.attempt);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_error(path.string(), errno);
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  if (end < 0) return errno_error(path.string(), errno);
  // A first piece begins again: an older, other archive of this attempt may lie there.
  if (chunk.offset == 0 && 0 < end && ::ftruncate(fd.get(), 0) != 0)
    return errno_error(path.string(), errno);
  const std::uint64_t have = chunk.offset == 0 ? 0 : static_cast<std::uint64_t>(end);
  if (chunk.offset != have) return have;
  std::string_view rest = chunk.bytes;
  std::uint64_t at = have;
  while (!rest.empty()) {
    const ssize_t n = ::pwrite(fd.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(path.string(), errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return at;
}

Status ArchiveStore::finish(const wire::ResultMessage& result, const std::string& run_name) {
  const fs::path target = folder_.attempt(run_name, result.attempt.no);
  const fs::path archive = target.string() + ".tar.zst";
  std::error_code ec;
  if (fs::exists(archive, ec) && fs::exists(target, ec)) {
    PROCTOR_TRY(const Digest stored, digest_of_file(archive));
    if (stored == result.archive) {  // sent again: it is here
      fs::remove(part(result.attempt), ec);
      return ok_status();
    }
  }
  const fs::path path = part(result.attempt);
  const auto size = fs::file_size(path, ec);
  if (ec || size < result.archive_bytes)
    return Error{Errc::kNotFound,
                 "the archive of attempt " + to_string(result.attempt) + " is not here yet"};
  PROCTOR_TRY(const Digest found, digest_of_file(path));
  if (size != result.archive_bytes || found != result.archive) {
    fs::remove(path, ec);
    return Error{Errc::kCorrupt, "the archive of attempt " + to_string(result.attempt) +
                                     " does not have the promised digest"};
  }
  PROCTOR_CHECK_OK(make_dirs(target.parent_path()));
  const fs::path unpacked = folder_.incoming() / to_string(result.attempt);
  PROCTOR_CHECK_OK(remove_tree(unpacked));  // of an interrupted earlier try
  PROCTOR_CHECK_OK(remove_tree(target));
  PROCTOR_CHECK_OK(unpack_archive(path, unpacked));
  PROCTOR_CHECK_OK(sync_path(path));
  fs::rename(unpacked, target, ec);
  if (!ec) fs::rename(path, archive, ec);
  if (ec) return errno_error("rename to " + target.string(), ec.value());
  return sync_path(target.parent_path());
}

Status ArchiveStore::clear() {
  return remove_tree(folder_.incoming());
}

}  // namespace proctor
