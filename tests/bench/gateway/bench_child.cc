#include "tests/bench/gateway/bench_child.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "tests/bench/bench_support.h"

namespace proctor::bench {

void Line::say(const std::string& text) const {
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) give_up("a part has gone");
}

std::string Line::hear() const {
  std::array<char, 4096> buffer;  // NOLINT: filled by recv
  const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  return n <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(n));
}

void run_on(int core) {
  // As it was at first: a child has the one processor of its parent.
  static const cpu_set_t may = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  if (core < 0 || CPU_COUNT(&may) < 2) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &may) || seen++ != core) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

Child Child::start(int core, const std::function<void(const Line&)>& body) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    give_up("socketpair");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) {
    ours.reset();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    run_on(core);
    body(Line(std::move(theirs)));
    ::_exit(0);
  }
  return Child(pid, std::move(ours));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), line_(std::move(other.line_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Child::ask(const std::string& text) const {
  line_.say(text);
  std::string answer = line_.hear();
  if (answer.empty()) give_up("a part ended at \"" + text + "\"");
  return answer;
}

double Child::cpu_us() const {
  constexpr int kUser = 13, kSystem = 14;  // of proc(5), from 0, the name being one word
  constexpr double kSecond = 1e6;
  std::ifstream words("/proc/" + std::to_string(pid_) + "/stat");
  double ticks = 0;
  std::string word;
  for (int at = 0; at <= kSystem && words >> word; ++at)
    if (at == kUser || at == kSystem) ticks += std::stod(word);
  return ticks * kSecond / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace proctor::bench
