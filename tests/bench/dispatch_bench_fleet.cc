// The process that simulated workers live in.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>
#include <utility>

#include "tests/bench/dispatch_bench_workers.h"

namespace proctor::bench {

std::optional<Fleet> Fleet::start(const FleetOptions& options) {
  std::array<int, 2> down{};
  // Close-on-exec: a redis-server started later must not hold an end of ours.
  if (::pipe2(down.data(), O_CLOEXEC) != 0) return std::nullopt;
  void* shared = ::mmap(nullptr, sizeof(FleetReport), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::nullopt;
  auto* report = new (shared) FleetReport;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child != 0) {
    ::close(down[0]);
    return Fleet(child, down[1], report);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(down[1]);
  std::string endpoint;  // a line: a fleet forked later holds the other end of the pipe too
  for (char c = 0; ::read(down[0], &c, 1) == 1 && c != '\n';) endpoint += c;
  ::_exit(endpoint.empty() ? 1 : run_fleet(options, endpoint, *report));
}

Fleet::Fleet(Fleet&& other) noexcept
    : child_(std::exchange(other.child_, -1)),
      to_child_(std::exchange(other.to_child_, -1)),
      report_(std::exchange(other.report_, nullptr)) {}

Fleet::~Fleet() {
  kill();
  if (0 <= to_child_) ::close(to_child_);
  if (report_ != nullptr) ::munmap(report_, sizeof *report_);
}

void Fleet::kill() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(std::exchange(child_, -1), nullptr, 0);
}

FleetReport Fleet::so_far() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return *report_;
}

void Fleet::connect(const std::string& endpoint) {
  const std::string line = endpoint + "\n";
  (void)!::write(to_child_, line.data(), line.size());
  ::close(std::exchange(to_child_, -1));
}

std::optional<std::string> Fleet::died() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0 || (info.si_code == CLD_EXITED && info.si_status == 0))
    return std::nullopt;
  return std::string("the workers' process ended: ") +
         (info.si_code == CLD_EXITED ? "exit code " : "signal ") + std::to_string(info.si_status);
}

std::optional<FleetReport> Fleet::wait() {
  int status = 0;
  const pid_t ended = ::waitpid(std::exchange(child_, -1), &status, 0);
  if (ended < 0 || status != 0) return std::nullopt;
  return *report_;
}

}  // namespace proctor::bench
