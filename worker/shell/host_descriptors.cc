#include "worker/shell/host_descriptors.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <limits>

namespace proctor {
namespace {

// Seen at work: some forty of its own, and nineteen of each slot whose agent has no network.
constexpr std::uint64_t kOwn = 64, kOfSlot = 32;

// The soft limit becomes the hard one, which is returned: shells often leave it at 1,024, or below.
std::uint64_t raise_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<std::uint64_t>::max();
  const rlimit most{files.rlim_max, files.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &most) == 0 ? most.rlim_cur : files.rlim_cur;
}

}  // namespace

Status enough_descriptors(std::uint32_t slots) {
  const std::uint64_t most = raise_descriptors();
  if (kOwn + kOfSlot * slots <= most) return ok_status();
  const std::uint64_t fit = most < kOwn + kOfSlot ? 0 : (most - kOwn) / kOfSlot;
  return Error{Errc::kInvalid,
               fmt::format("--slots {}: they need {} open files, and this process may have {}: "
                           "ulimit -n {} first{}",
                           slots, kOwn + kOfSlot * slots, most, kOwn + kOfSlot * slots,
                           fit == 0 ? std::string() : fmt::format(", or --slots {}", fit))};
}

}  // namespace proctor
