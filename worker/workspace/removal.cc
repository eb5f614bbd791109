#include "worker/workspace/removal.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

#include "common/base/folder_tree.h"
#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"

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

namespace proctor {
namespace {
constexpr std::size_t kAskedBytes = std::size_t{64} << 10;
constexpr int kNiceness = 10;  // whoever still works comes first
// Ours to wait for a disk that is busy; what the tree takes is counted in CPU time.
constexpr std::chrono::hours kPatience{2};

Status answer_question(const std::string& asked) {
  PROCTOR_TRY(const Json head, parse_json(asked, {kAskedBytes, 4}));
  const fs::path dir = head.at("dir").get<std::string>();
  const std::chrono::seconds cpu(head.at("cpu_s").get<std::uint64_t>());
  static_cast<void>(::nice(kNiceness));
  PROCTOR_CHECK_OK(apart::limit_self(cpu, head.at("memory").get<std::uint64_t>()));
  const Status removed = remove_tree(dir);
  const apart::Use use = apart::so_far();
  const std::string told =
      Json{{"cpu_ms", use.cpu.count()}, {"memory_peak", use.memory_peak}}.dump();
  if (::write(STDOUT_FILENO, told.data(), told.size()) < 0)  // then it is counted by the clock
    std::fprintf(stderr, "nobody reads what this took\n");
  return removed;
}

Status remove_apart(const fs::path& dir, const Remover& remover, RemovalCost& cost) {
  CommandSpec spec;
  spec.argv = {remover.path.string(), "remove"};
  spec.stdin_bytes = Json{
      {"dir", fs::absolute(dir).string()},
      {"cpu_s", remover.cpu.count()},
      {"memory",
       remover.memory}}.dump();
  spec.timeout = kPatience;
  PROCTOR_TRY(const CommandOutcome outcome, run_command(spec));
  cost.apart = true;
  const auto beyond = [&](const std::string& what) {
    return Error{Errc::kExhausted, "remove " + dir.string() + ": it takes more than " + what +
                                       "; the rest stays until this worker's next start"};
  };
  if (outcome.signal == SIGXCPU || outcome.signal == SIGKILL) {
    cost.cpu += remover.cpu;  // nobody has told
    return beyond(std::to_string(remover.cpu.count()) + " s of CPU time");
  }
  if (outcome.exit_code == apart::kNoMemory) {
    cost.cpu += outcome.wall;
    cost.memory_peak = std::max(cost.memory_peak, remover.memory);
    return beyond(std::to_string(remover.memory >> 20) + " MiB of memory");
  }
  const auto told = parse_json(outcome.out, {kAskedBytes, 2});
  if (told.ok() && told->is_object()) {
    cost.cpu += std::chrono::milliseconds(told->value("cpu_ms", std::uint64_t{0}));
    cost.memory_peak = std::max(cost.memory_peak, told->value("memory_peak", std::uint64_t{0}));
  } else {
    cost.cpu += outcome.wall;
  }
  if (outcome.success()) return ok_status();
  return Error{Errc::kUnavailable, "remove " + dir.string() + ": " + outcome.describe()};
}
}  // namespace

void RemovalCost::add(const RemovalCost& other) {
  wall += other.wall;
  cpu += other.cpu;
  memory_peak = std::max(memory_peak, other.memory_peak);
  apart = apart || other.apart;
}

RemovalCost cost_of(const std::function<void(RemovalCost&)>& work) {
  RemovalCost cost;
  const Instant began = mono_now();
  const std::chrono::nanoseconds before = thread_cpu_time();
  work(cost);
  cost.wall = mono_now() - began;
  cost.cpu += std::chrono::duration_cast<std::chrono::milliseconds>(thread_cpu_time() - before);
  return cost;
}

Status remove_left(const fs::path& dir, const Remover& remover, RemovalCost& cost) {
  if (remover.path.empty()) return remove_tree(dir);
  PROCTOR_TRY(const bool all, remove_tree_within(dir, {kRemovedHereFiles, kRemovedHereBytes}));
  return all ? ok_status() : remove_apart(dir, remover, cost);
}

int remove_as_asked() {
  try {
    const Status done = answer_question(apart::begin(kAskedBytes));
    if (done.ok()) return apart::kDone;
    std::fprintf(stderr, "%s\n", printable(done.error().detail).c_str());
    return apart::kNoUse;
  } catch (const std::bad_alloc&) {
    return apart::kNoMemory;
  }
}
}  // namespace proctor
