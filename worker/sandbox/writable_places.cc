#include "worker/sandbox/writable_places.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/base/owned.h"

namespace proctor {

Status open_to_owner(const fs::path& folder) {
  constexpr mode_t kAll = 07777;
  // Without a right to the folder itself: it is named, and not looked into.
  const UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && (errno == ENOTDIR || errno == ELOOP)) return ok_status();
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0)
    return errno_error("open " + folder.string(), errno);
  if ((st.st_mode & S_IRWXU) == S_IRWXU) return ok_status();
  const std::string same = "/proc/self/fd/" + std::to_string(fd.get());
  if (::chmod(same.c_str(), (st.st_mode & kAll) | S_IRWXU) != 0 && errno != EPERM)
    return errno_error("open " + folder.string() + " to its owner", errno);
  return ok_status();
}

Status open_writable_places(const SandboxSpec& spec) {
  if (!spec.workspace.empty()) PROCTOR_CHECK_OK(open_to_owner(spec.workspace));
  for (const SandboxMount& mount : spec.mounts)
    if (mount.writable) PROCTOR_CHECK_OK(open_to_owner(mount.host));
  return ok_status();
}

}  // namespace proctor
