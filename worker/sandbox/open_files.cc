#include "worker/sandbox/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace proctor {
namespace {

constexpr std::uint64_t kShare = 16;

// Where it cannot be read nobody has made it small.
std::uint64_t files_of_machine() {
  std::uint64_t most = 0;
  std::ifstream in("/proc/sys/fs/file-max");
  return in >> most ? most : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::uint64_t open_files_limit(std::uint64_t of_worker, std::uint64_t of_machine,
                               std::uint32_t processes) {
  const std::uint64_t each = of_machine / kShare / std::max<std::uint32_t>(processes, 1);
  return std::min(of_worker, std::clamp(each, kLeastOpenFiles, kMostOpenFiles));
}

std::uint64_t open_files_here(std::uint32_t processes) {
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  return open_files_limit(own.rlim_max, files_of_machine(), processes);
}

}  // namespace proctor
