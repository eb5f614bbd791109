#include "worker/shell/host_descriptors.h"

#include <fmt/format.h>

#include "common/base/descriptors.h"

namespace proctor {
namespace {

// Seen at work: some forty of its own, and nineteen of each slot whose agent has no network.
constexpr std::uint64_t kOwn = 64, kOfSlot = 32;

}  // namespace

Status enough_descriptors(std::uint32_t slots) {
  raise_descriptors();
  const std::uint64_t most = descriptors_most();
  if (kOwn + kOfSlot * slots <= most) return ok_status();
  const std::uint64_t fit = most < kOwn + kOfSlot ? 0 : (most - kOwn) / kOfSlot;
  return Error{Errc::kInvalid,
               fmt::format("--slots {}: they need {} open files, and this process may have {}: "
                           "ulimit -n {} first{}",
                           slots, kOwn + kOfSlot * slots, most, kOwn + kOfSlot * slots,
                           fit == 0 ? std::string() : fmt::format(", or --slots {}", fit))};
}

}  // namespace proctor
