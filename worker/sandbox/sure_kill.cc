#include "worker/sandbox/sure_kill.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/owned.h"

namespace proctor {
namespace {

// Descriptors are the worker's, for all of its runs.
constexpr std::size_t kHeldAtOnce = 64;

}  // namespace

void kill_listed(const std::function<std::vector<pid_t>()>& listed) {
  const std::vector<pid_t> all = listed();
  for (std::size_t at = 0; at < all.size();) {
    std::vector<std::pair<pid_t, UniqueFd>> held;
    for (; at < all.size() && held.size() < kHeldAtOnce; ++at) {
      UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, all[at], 0)));
      if (fd.valid()) held.emplace_back(all[at], std::move(fd));
    }
    if (held.empty()) continue;
    const std::vector<pid_t> again = listed();
    for (const auto& [pid, fd] : held)
      if (std::find(again.begin(), again.end(), pid) != again.end())
        ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
  }
}

}  // namespace proctor
