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
#include "common/base/json_fields.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"

namespace proctor::apart {
namespace {
constexpr std::uint64_t kMoreSeconds = 5;
constexpr std::size_t kSaidMost = 2000;

// The first of the two says why the process ends; the second is for what does not listen.
Status limit(int what, std::uint64_t most, std::uint64_t more) {
  const rlimit both{most, most + more};
  if (::setrlimit(static_cast<__rlimit_resource_t>(what), &both) == 0) return ok_status();
  return errno_error("limit of a process of its own", errno);
}
}  // namespace

int serve(std::size_t bytes_max, Status (*answer)(std::string_view asked)) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    std::string asked;
    std::string piece(std::size_t{1} << 16, '\0');
    while (asked.size() < bytes_max) {
      const ssize_t n = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      asked.append(piece, 0, static_cast<std::size_t>(n));
    }
    const Status done = answer(asked);
    if (done.ok()) return kDone;
    std::fprintf(stderr, "%s\n", printable(done.error().detail, kSaidMost).c_str());
    return kNoUse;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
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

struct Removal {
  fs::path dir;
  Remover limits;
};
void fields(auto& v, Is<Removal> auto& r) {
  v("dir", r.dir);
  v("cpu_s", r.limits.cpu);
  v("memory", r.limits.memory);
}

Status answer_question(std::string_view asked) {
  PROCTOR_TRY(const Json json, parse_json(asked, {kAskedBytes, 4}));
  PROCTOR_TRY(const Removal what, from_json<Removal>(json));
  static_cast<void>(::nice(kNiceness));
  PROCTOR_CHECK_OK(apart::limit_self(what.limits.cpu, what.limits.memory));
  const Status removed = remove_tree(what.dir);
  const std::string told = to_json(apart::so_far()).dump();
  if (::write(STDOUT_FILENO, told.data(), told.size()) < 0)  // then it is counted by the clock
    std::fprintf(stderr, "nobody reads what this took\n");
  return removed;
}

Status remove_apart(const fs::path& dir, const Remover& remover, RemovalCost& cost) {
  CommandSpec spec;
  spec.argv = {remover.path.string(), "remove"};
  spec.stdin_bytes = to_json(Removal{fs::absolute(dir), remover}).dump();
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
  apart::Use use;
  const auto told = parse_json(outcome.out, {kAskedBytes, 2});
  if (told.ok() && read_json(use, *told).ok()) {
    cost.cpu += use.cpu;
    cost.memory_peak = std::max(cost.memory_peak, use.memory_peak);
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
  return apart::serve(kAskedBytes, answer_question);
}
}  // namespace proctor
