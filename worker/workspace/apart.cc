#include "worker/workspace/apart.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "common/base/files.h"

namespace proctor::apart {
namespace {

constexpr std::uint64_t kMoreSeconds = 5;

// The first of the two says why the process ends; the second is for what does not listen.
Status limit(int what, std::uint64_t most, std::uint64_t more) {
  const rlimit both{most, most + more};
  if (::setrlimit(static_cast<__rlimit_resource_t>(what), &both) == 0) return ok_status();
  return errno_error("limit of a process of its own", errno);
}

}  // namespace

std::string begin(std::size_t bytes_max) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string asked;
  std::string piece(std::size_t{1} << 16, '\0');
  while (asked.size() < bytes_max) {
    const ssize_t n = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    asked.append(piece, 0, static_cast<std::size_t>(n));
  }
  return asked;
}

Status limit_self(std::chrono::seconds cpu, std::uint64_t memory) {
  PROCTOR_CHECK_OK(limit(RLIMIT_CPU, static_cast<std::uint64_t>(cpu.count()), kMoreSeconds));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  PROCTOR_CHECK_OK(limit(RLIMIT_AS, memory, 0));
#else
  static_cast<void>(memory);
#endif
  return ok_status();
}

Use so_far() {
  struct rusage use {};
  ::getrusage(RUSAGE_SELF, &use);
  const auto ms = [](const timeval& t) {
    return std::chrono::milliseconds(t.tv_sec * 1000 + t.tv_usec / 1000);
  };
  return {ms(use.ru_utime) + ms(use.ru_stime), static_cast<std::uint64_t>(use.ru_maxrss) * 1024};
}

}  // namespace proctor::apart
