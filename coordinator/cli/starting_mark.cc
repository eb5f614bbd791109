#include "coordinator/cli/starting_mark.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "common/base/file_lock.h"

namespace proctor::cli {
namespace {

// The file is the campaign's, and is neither made nor changed for a mark.
UniqueFd registration_of(const StateFolder& folder) {
  Result<UniqueFd> fd = open_own_file(folder.registration(), O_RDONLY);
  return fd.ok() ? std::move(fd).value() : UniqueFd();
}

int lock(int fd, int operation) {
  int result = 0;
  do result = ::flock(fd, operation);
  while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

std::optional<UniqueFd> mark_start(const StateFolder& folder) {
  UniqueFd fd = registration_of(folder);
  // Who looks has it for himself for an instant.
  if (!fd.valid() || lock(fd.get(), LOCK_SH) != 0) return std::nullopt;
  return fd;
}

bool is_starting(const StateFolder& folder) {
  const UniqueFd fd = registration_of(folder);
  return fd.valid() && lock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace proctor::cli
