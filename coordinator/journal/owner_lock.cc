#include "coordinator/journal/owner_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <thread>

#include "common/base/file_lock.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kOwnerBytes = 800;

// What the one that took the lock wrote into it.
std::string owner_in(int fd) {
  std::array<char, kOwnerBytes> owner{};
  const ssize_t n = ::pread(fd, owner.data(), owner.size(), 0);
  std::string_view text(owner.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  text = text.substr(0, text.find('\n'));
  return text.empty() ? "another coordinator" : printable(text, kOwnerBytes);
}

// Like flock(2) with LOCK_NB, but patient with one who is about to let go.
bool lock_within(int fd, int operation, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (::flock(fd, operation | LOCK_NB) == 0) return true;
    if (errno != EINTR && errno != EWOULDBLOCK) return false;
    if (errno == EWOULDBLOCK && until <= std::chrono::steady_clock::now()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

std::string own_name() {
  return "process " + std::to_string(::getpid()) + " on " + host_name() + " since " +
         to_rfc3339(wall_now());
}

Result<UniqueFd> take_owner_lock(const fs::path& file, const std::string& owner,
                                 std::chrono::milliseconds patience) {
  PROCTOR_TRY(UniqueFd fd, open_own_file(file, O_RDWR | O_CREAT));
  if (!lock_within(fd.get(), LOCK_EX, patience)) {
    if (errno != EWOULDBLOCK) return errno_error("lock " + file.string(), errno);
    return Error{Errc::kConflict, owner_in(fd.get())};
  }
  const std::string line = owner.substr(0, kOwnerBytes - 1) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return errno_error("write " + file.string(), errno);
  }
  return fd;
}

std::optional<std::string> lock_owner(const fs::path& file, std::chrono::milliseconds patience) {
  const Result<UniqueFd> fd = open_own_file(file, O_RDONLY);
  if (!fd.ok() || lock_within(fd->get(), LOCK_SH, patience) || errno != EWOULDBLOCK)
    return std::nullopt;
  return owner_in(fd->get());
}

}  // namespace proctor
