#include "worker/sandbox/boxed_sandbox.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/sandbox/init/attempts.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/process_tree.h"
#include "worker/sandbox/raw_calls.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

#if defined(__SANITIZE_THREAD__)
// The same, of which ThreadSanitizer does not believe that the child has memory of its own.
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);  // NOLINT: glibc's name
#endif

namespace proctor {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSample{100};
constexpr milliseconds kKillGrace{5'000};
constexpr std::size_t kStatusMax = 4096;
constexpr std::size_t kReadChunk = std::size_t{64} << 10;

#if defined(__SANITIZE_THREAD__)
constexpr auto clone_child = &::__clone;
#else
constexpr auto clone_child = &::clone;
#endif

// <sys/pidfd.h> of glibc 2.36 lacks extern "C".
int open_pidfd(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  Pipe p{UniqueFd(fds[0]), UniqueFd(fds[1])};
  // Only our end: the command must see an ordinary pipe.
  ::fcntl(p.read.get(), F_SETFL, O_NONBLOCK);
  return p;
}

// Of two ways, for what is read and written at the same end.
Result<Pipe> make_socket() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    return errno_error("socketpair", errno);
  Pipe p{UniqueFd(fds[0]), UniqueFd(fds[1])};
  ::fcntl(p.read.get(), F_SETFL, O_NONBLOCK);
  return p;
}

Result<UniqueFd> make_memfd(std::string_view bytes) {
  UniqueFd fd(::memfd_create("proctor-box", MFD_CLOEXEC));
  if (!fd.valid()) return errno_error("memfd_create", errno);
  if (::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_error("write a memfd", errno);
  }
  return fd;
}

struct ChildFds {
  int in, out, err, status, environment, seccomp;
};

struct ChildPlan {
  const BoxLaunch* launch;
  const char* program;
  char* const* argv;
  char* const* env;
  ChildFds fds;
  pid_t parent;
  // Written by the child, where it does not become the runtime.
  const char* failed = nullptr;
  int error = 0;
};

// By the system call alone: a sanitizer's _exit would end its accounts in our memory.
__attribute__((no_sanitize("address", "thread"))) [[noreturn]] void give_up(ChildPlan& plan,
                                                                            const char* what) {
  plan.error = errno;
  plan.failed = what;
  for (;;) ::syscall(SYS_exit_group, 125);
}

// Until exec it lives in our memory, as after vfork: a copy of a large worker's page tables costs
// more than all else it does.  Async-signal-safe calls only, and nothing of ours is changed.
__attribute__((no_sanitize("address", "thread"))) int become_runtime(void* given) {
  ChildPlan& plan = *static_cast<ChildPlan*>(given);
  const BoxLaunch& launch = *plan.launch;
  ::setpgid(0, 0);  // a terminal's ^C is the worker's to handle
  // bwrap asks for this itself, but only when it has set all up, and runc never.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) give_up(plan, "find its parent");
  for (int s = 1; s < SIGRTMIN; ++s) raw::forget_handler(s);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.doors != nullptr) {
    for (const UniqueFd& door : *launch.doors) {
      if (!raw::write(door.get(), "0", 1)) give_up(plan, "enter its control groups");
    }
  }
  raw::leave_keyring();
  if (launch.network && !launch.network->enter()) give_up(plan, "enter its network");
  if (launch.enter && !launch.enter()) give_up(plan, "mount what it starts in");
  if (launch.counts) {
    const bool counted =
        launch.network ? launch.network->enter_counts(*launch.counts) : launch.counts->enter();
    if (!counted) give_up(plan, "enter a user namespace of its own");
  }
  if (launch.user && !raw::become_user(*launch.user)) give_up(plan, "become a user of its own");
  if (launch.counts || launch.user) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // forgotten by whoever gets other rights
    if (::getppid() != plan.parent) give_up(plan, "find its parent");
  }
  const int null = launch.own_null ? raw::open_to_read("/dev/null") : plan.fds.in;
  if (null < 0) give_up(plan, "open its /dev/null");
  // Out of the way of 0..5 first, so that no dup2 overwrites a source.
  std::array<int, 6> from = {
      null, plan.fds.out, plan.fds.err, plan.fds.status, plan.fds.environment, plan.fds.seccomp};
  for (int& fd : from) fd = ::fcntl(fd, F_DUPFD, 16);
  static_assert(kBoxStatusFd == 3 && kBoxEnvironmentFd == 4 && kBoxSeccompFd == 5);
  for (int i = 0; i < 6; ++i) {
    if (!raw::dup_to(from[static_cast<std::size_t>(i)], i)) give_up(plan, "take its descriptors");
  }
  if (launch.init_status && !raw::dup_to(from[kBoxStatusFd], kBoxInitStatusFd))
    give_up(plan, "take its descriptors");
  ::close_range(launch.init_status ? 7 : 6, ~0U, 0);
  for (const auto& [resource, value] : launch.rlimits) {
    const rlimit limit{value, value};
    if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0)
      give_up(plan, "set its limits");
  }
  if (::chdir("/") == 0) ::execve(plan.program, plan.argv, plan.env);
  give_up(plan, "run it");
}

// Like vfork, on a stack of its own; this thread stands still until the child runs its program.
// No signal may run a handler of ours in the child: all are blocked until it has none.
pid_t start_runtime(ChildPlan& plan) {
  constexpr std::size_t kStack = std::size_t{64} << 10;
  const std::unique_ptr<char[]> stack(new char[kStack]);  // NOLINT: not to be cleared
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      clone_child(become_runtime, stack.get() + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

// The number after `"key": ` in the status lines.
std::optional<int> status_number(std::string_view status, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\": ";
  const std::size_t at = status.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = status.substr(at + quoted.size());
  int value = 0;
  // Without something behind it the number may not have arrived whole.
  if (!take_number(rest, value) || rest.empty()) return std::nullopt;
  return value;
}

// Is `pid` a child of ours' (a pid may have been given to somebody else meanwhile)?
bool is_child_of(pid_t pid, pid_t parent) {
  const std::optional<TreeMember> now = tree_member(pid);
  return now && now->parent == parent;
}

class Running {
 public:
  Running(const BoxLaunch& launch, BoundedFile& out, BoundedFile& err,
          const std::stop_token& cancel)
      : launch_(launch), files_{&out, &err}, wakes_(cancel, launch.hold.get()) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (0 < pid_) {  // only after an error between start and reap
      ::kill(pid_, SIGKILL);
      if (suspended_) launch_.suspend(pid_, false);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  Status start() {
    if (!wakes_.valid()) return errno_error("eventfd", errno);
    PROCTOR_TRY(Pipe out, make_pipe());
    PROCTOR_TRY(Pipe err, make_pipe());
    PROCTOR_TRY(Pipe status, launch_.status_as_input ? make_socket() : make_pipe());
    if (launch_.speaker) {
      // Whoever opens /dev/stdout anew has to own what is behind it.
      for (const Pipe* pipe : {&out, &err})
        if (::fchown(pipe->write.get(), *launch_.speaker, *launch_.speaker) != 0)
          return errno_error("give a pipe away", errno);
    }
    PROCTOR_TRY(const UniqueFd environment,
                make_memfd(launch_.status_as_input ? "" : launch_.environment));
    PROCTOR_TRY(const UniqueFd seccomp, make_memfd(launch_.seccomp));
    PROCTOR_TRY(const UniqueFd nothing, nothing_to_read());
    std::vector<std::string> words = launch_.argv, variables = launch_.env;
    if (!launch_.label.empty()) words[0] = launch_.label;
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> all;
      for (std::string& text : texts) all.push_back(text.data());
      all.push_back(nullptr);
      return all;
    };
    const std::vector<char*> argv = pointers(words), env = pointers(variables);
    ChildPlan plan{&launch_,
                   launch_.argv[0].c_str(),
                   argv.data(),
                   env.data(),
                   {launch_.status_as_input ? status.write.get() : nothing.get(), out.write.get(),
                    err.write.get(), status.write.get(), environment.get(), seccomp.get()},
                   ::getpid()};
    begun_ = now();
    pid_ = start_runtime(plan);
    if (pid_ < 0) return errno_error("clone", errno);
    if (plan.failed != nullptr) {
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
      return Error{Errc::kUnavailable,
                   errno_error(launch_.argv[0] + ": " + plan.failed, plan.error).detail};
    }
    pidfd_.reset(open_pidfd(pid_));
    if (!pidfd_.valid()) return errno_error("pidfd_open", errno);
    streams_[0] = std::move(out.read);
    streams_[1] = std::move(err.read);
    status_ = std::move(status.read);
    if (launch_.status_as_input) untold_ = launch_.environment;
    tell_environment();
    return ok_status();
  }

  // Until the runtime has ended, by itself or by us.
  Status pump() {
    while (!dead_) {
      std::array<pollfd, 7> fds = {pollfd{pidfd_.get(), POLLIN, 0},
                                   pollfd{status_.get(), status_events(), 0},
                                   pollfd{streams_[0].get(), POLLIN, 0},
                                   pollfd{streams_[1].get(), POLLIN, 0},
                                   pollfd{cancelled_ ? -1 : wakes_.cancelled(), POLLIN, 0},
                                   pollfd{wakes_.held(), POLLIN, 0},
                                   pollfd{limit_wakes(), POLLIN, 0}};
      if (::poll(fds.data(), fds.size(), wait_for()) < 0 && errno != EINTR) {
        return errno_error("poll", errno);
      }
      if (fds[1].revents != 0) {
        tell_environment();
        read_status(kBurst);
        tell_begun();
      }
      if (fds[2].revents != 0) read_stream(0, kBurst);
      if (fds[3].revents != 0) read_stream(1, kBurst);
      if (fds[4].revents != 0) cancelled_ = true;
      if (fds[5].revents != 0) wakes_.forget_held();
      if (fds[0].revents != 0) dead_ = true;
      if (!dead_) judge();
      if (!dead_) follow_hold();
    }
    return ok_status();
  }

  Result<BoxEnd> finish() {
    rusage usage{};
    pid_t got = -1;
    do {
      got = ::wait4(pid_, &wait_status_, 0, &usage);
    } while (got < 0 && errno == EINTR);
    if (got != pid_) return errno_error("wait4", errno);
    pid_ = -1;
    BoxEnd end;
    end.wall = std::chrono::duration_cast<milliseconds>(now() - begun_);
    const auto ms = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
    end.cpu = std::max(cpu_before_, milliseconds(ms(usage.ru_utime) + ms(usage.ru_stime)));
    read_status(~std::size_t{0});
    // What was written before the end is still in the pipes; nobody writes any more.
    for (std::size_t i : {0U, 1U}) read_stream(i, ~std::size_t{0});
    end.started = status_number(status_text_, "child-pid").has_value();
    if (!launch_.status_as_input) end.exit_code = status_number(status_text_, "exit-code");
    end.exec_error = status_number(status_text_, "exec-error");
    end.watch_error = status_number(status_text_, "watch-error");
    end.attempts_untold = untold_attempts_;
    end.cause = cause_;
    end.runtime_exit =
        WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
    if (launch_.status_as_input && end.started) end.exit_code = end.runtime_exit;
    return end;
  }

 private:
  static constexpr std::size_t kBurst = std::size_t{1} << 20;

  // Its own time: stands still while it is suspended.
  Clock::time_point now() const { return launch_.hold ? launch_.hold->now() : Clock::now(); }

  int wait_for() const {
    constexpr milliseconds kLongest{60'000};
    auto left =
        killed_at_ ? *killed_at_ + kKillGrace - Clock::now() : begun_ + launch_.timeout - now();
    // A change wakes us; so does the end of what we have killed, however long its disk hangs.
    if (suspended_ || runtime_killed_) left = kLongest;
    if (launch_.over_limit && !killed_at_ && !suspended_ && limit_wakes() < 0)
      left = std::min<Clock::duration>(left, kSample);
    return static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<milliseconds>(left).count(),
                                                     0, kLongest.count()));
  }

  // Who makes the box is the runtime and takes nothing; a runtime that has the status as its input
  // says nothing of its own.
  bool inside_begun() const {
    return launch_.status_as_input || status_number(status_text_, "child-pid").has_value();
  }

  // Nobody asks while it stands still, or when it was killed.
  int limit_wakes() const {
    return launch_.over_limit && !cause_ && !suspended_ ? launch_.over_limit_wakes() : -1;
  }

  short status_events() const {
    return static_cast<short>(untold_.empty() ? POLLIN : POLLIN | POLLOUT);
  }

  // What a socket does not take at once it takes when it was read from.
  void tell_environment() {
    while (!untold_.empty() && status_.valid()) {
      const ssize_t n = ::send(status_.get(), untold_.data(), untold_.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) untold_ = {};  // nobody reads it any more
      if (0 < n) untold_.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // Before the status says that somebody is inside there is nobody to stop; its word wakes us.
  void follow_hold() {
    const bool want = launch_.hold && launch_.hold->on() && !cause_ &&
                      status_number(status_text_, "child-pid").has_value();
    if (want == suspended_) return;
    suspended_ = want;
    launch_.suspend(pid_, want);
  }

  void tell_begun() {
    if (told_begun_ || !launch_.begun || !status_number(status_text_, "child-pid")) return;
    told_begun_ = true;
    launch_.begun();
  }

  void judge() {
    if (!cause_) {
      if (cancelled_) {
        cause_ = ExecOutcome::End::kCancelled;
      } else if (begun_ + launch_.timeout <= now()) {
        cause_ = ExecOutcome::End::kTimedOut;
      } else if (launch_.over_limit && !suspended_ && inside_begun()) {
        cause_ = launch_.over_limit(pid_);
      }
      if (cause_) killed_at_ = Clock::now();
      // Who dies with init is waited for by nobody, and its time is then in no count.
      if (cause_) cpu_before_ = cpu_time_of_tree(pid_);
    }
    if (!cause_ || runtime_killed_) return;
    // Killing init ends everything inside, and the runtime then reaps it.  Before the status says
    // who init is, there is nothing but the runtime itself, whose death init follows
    // (--die-with-parent) or which has all it made in a control group.
    if (!inside_killed_) inside_killed_ = kill_inside();
    if (*killed_at_ + kKillGrace <= Clock::now()) {
      ::kill(pid_, SIGKILL);
      runtime_killed_ = true;
    }
  }

  bool kill_inside() {
    const auto init = status_number(status_text_, "child-pid");
    if (!init) return false;  // asked again when its status line arrives
    if (launch_.kill_inside) {
      launch_.kill_inside();
      return true;
    }
    const UniqueFd fd(open_pidfd(*init));
    if (!fd.valid() || !is_child_of(*init, pid_)) return true;  // gone already
    return ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) == 0;
  }

  // At most `burst` bytes, for each program that runs is a line.
  void read_status(std::size_t burst) {
    for (std::size_t done = 0; status_.valid() && done < burst;) {
      const ssize_t n = ::read(status_.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      if (n == 0) return status_.reset();
      done += static_cast<std::size_t>(n);
      status_line_.append(buffer_.data(), static_cast<std::size_t>(n));
      std::string_view rest = status_line_;
      while (rest.find('\n') != rest.npos) take_status_line(take_until(rest, '\n'));
      status_line_.erase(0, status_line_.size() - rest.size());
      if (kStatusLineMost < status_line_.size()) status_line_.clear();  // init writes no such line
    }
  }

  void take_status_line(std::string_view line) {
    if (auto attempt = parse_attempt(line)) {
      // A name that is looked for in each folder of a PATH is one program.
      const bool again = attempt->call == "execve" && attempt->pid == last_program_.pid &&
                         attempt->target == last_program_.target;
      if (!again && launch_.attempted) launch_.attempted(*attempt);
      if (attempt->call == "execve") last_program_ = *std::move(attempt);
    } else if (take_word(line, "untold ")) {
      take_number(line, untold_attempts_);
    } else if (status_text_.size() + line.size() < kStatusMax) {
      status_text_.append(line).push_back('\n');
    }
  }

  // At most `burst` bytes a turn: a flood on one stream must not keep us from the clock.
  void read_stream(std::size_t i, std::size_t burst) {
    UniqueFd& fd = streams_[i];
    for (std::size_t done = 0; fd.valid() && done < burst;) {
      const ssize_t n = ::read(fd.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      if (n == 0) return fd.reset();
      done += static_cast<std::size_t>(n);
      files_[i]->append({buffer_.data(), static_cast<std::size_t>(n)});
    }
  }

  const BoxLaunch& launch_;
  std::array<BoundedFile*, 2> files_;
  std::vector<char> buffer_ = std::vector<char>(kReadChunk);
  pid_t pid_ = -1;
  const Wakes wakes_;
  UniqueFd pidfd_, status_;
  std::array<UniqueFd, 2> streams_;
  std::string status_text_, status_line_;  // whole lines, and what has arrived of the next one
  CallAttempt last_program_;
  std::uint64_t untold_attempts_ = 0;
  std::string_view untold_;  // of launch_.environment, by the socket of the status
  int wait_status_ = 0;
  Clock::time_point begun_;
  std::optional<Clock::time_point> killed_at_;
  milliseconds cpu_before_{0};  // of all inside, when they were killed
  std::optional<ExecOutcome::End> cause_;
  bool told_begun_ = false, suspended_ = false, cancelled_ = false, dead_ = false,
       inside_killed_ = false, runtime_killed_ = false;
};
}  // namespace

Result<BoxEnd> run_box(const BoxLaunch& launch, BoundedFile& out, BoundedFile& err,
                       std::stop_token cancel) {
  Running running(launch, out, err, cancel);
  PROCTOR_CHECK_OK(running.start());
  PROCTOR_CHECK_OK(running.pump());
  return running.finish();
}

namespace {
// By the group too: looking through all of /proc for them costs more than many a command.
std::vector<pid_t> pids_inside(const Cgroup& group, pid_t root) {
  if (auto counted = group.processes(); !counted.ok() || *counted)
    return counted.ok() ? **std::move(counted) : std::vector<pid_t>();  // asked again soon
  std::vector<pid_t> out;
  for (const TreeMember& member : tree_below(root)) out.push_back(member.pid);
  return out;
}

// By the group's count; without one the living processes and those they have buried.
std::optional<milliseconds> cpu_time_inside(const Cgroup& group, pid_t root) {
  const auto counted = group.cpu_time();
  if (!counted.ok() || *counted) return counted.ok() ? *counted : std::nullopt;
  return cpu_time_of_tree(root);
}
}  // namespace

Result<ExecOutcome> BoxedSandbox::run(const ExecSpec& exec, std::stop_token cancel) {
  if (exec.command.find('\0') != std::string::npos) {
    return Error{Errc::kInvalid, "command: a NUL byte"};
  }
  PROCTOR_TRY(BoundedFile out, BoundedFile::create(exec.stdout_file, exec.output_max));
  PROCTOR_TRY(BoundedFile err, BoundedFile::create(exec.stderr_file, exec.output_max));
  ExecOutcome outcome;
  if (spec_.hold) spec_.hold->wait_until_off(cancel);
  if (cancel.stop_requested()) {
    outcome.end = ExecOutcome::End::kCancelled;
    return outcome;
  }
  PROCTOR_CHECK_OK(open_writable_places(spec_));
  PROCTOR_TRY(const std::unique_ptr<Box> box, make_box(exec));
  Cgroup& group = box->group;
  Suspension suspension(group);
  box->launch.timeout = exec.timeout;
  box->launch.begun = exec.begun;
  box->launch.attempted = exec.attempted;
  if (spec_.shared) {
    box->launch.network = std::dynamic_pointer_cast<const BoxNetwork>(spec_.shared);
    if (!box->launch.network || spec_.network)
      return Error{Errc::kInvalid, "sandbox: a shared network of another engine, or two networks"};
  }
  box->launch.hold = spec_.hold;
  // A process's own limit on CPU time is set by the runtime; the sum is watched, by threads.
  std::atomic<pid_t> root{0};
  LimitWatch::Host host{[&] { return cpu_time_inside(group, root); },
                        [&] { return pids_inside(group, root); }};
  if (box->watch_memory) host.memory = [&] { return memory_of(pids_inside(group, root)); };
  if (box->watch_sockets) host.sockets = SocketUse::Counts::kAll;
  LimitWatch watch(spec_, std::move(host));
  box->launch.suspend = [&](pid_t runtime, bool stand_still) {
    stand_still ? suspension.suspend(runtime) : suspension.resume(runtime);
    watch.pause(stand_still);
  };
  if (LimitWatch::needed(
          spec_, box->watch_memory ? LimitWatch::Memory::kWatched : LimitWatch::Memory::kKernel)) {
    box->launch.over_limit = [&watch, &root](pid_t runtime) {
      root = runtime;
      return watch.look(std::chrono::steady_clock::now());
    };
    box->launch.over_limit_wakes = [&watch] { return watch.wakes(); };
  }
  auto end = run_box(box->launch, out, err, cancel);
  group.empty();
  if (!end.ok()) return std::move(end).error();
  PROCTOR_CHECK_OK(out.status());
  PROCTOR_CHECK_OK(err.status());
  outcome.wall = end->wall;
  // By the group also what nobody inside has waited for.
  PROCTOR_TRY(const std::optional<milliseconds> counted, group.cpu_time());
  outcome.cpu = box->cpu_by_group ? counted.value_or(end->cpu)
                                  : std::max(end->cpu, counted.value_or(milliseconds(0)));
  PROCTOR_TRY(outcome.memory_peak, group.memory_peak());
  outcome.memory_peak -= std::min(outcome.memory_peak, box->runtime_memory);
  outcome.stdout_bytes = out.total();
  outcome.stderr_bytes = err.total();
  outcome.attempts_untold = end->attempts_untold;
  PROCTOR_CHECK_OK(conclude(*box, *end, err.head(), outcome));
  return outcome;
}

Status BoxedSandbox::conclude(const Box& box, const BoxEnd& end, const std::string& said,
                              ExecOutcome& out) const {
  using End = ExecOutcome::End;
  if (end.cause) {
    set_ended(out, *end.cause);
    return ok_status();
  }
  if (end.watch_error)
    return Error{Errc::kUnavailable, "sandbox: the calls of its command cannot be watched: " +
                                         std::string(std::strerror(*end.watch_error))};
  if (end.exec_error && spec_.program) {  // as a shell and the Docker Engine's init say it
    set_exit(out, *end.exec_error == ENOENT ? 127 : 126);
    return ok_status();
  }
  if (end.exec_error) {
    return Error{Errc::kInvalid, "image " + printable(spec_.image) +
                                     ": /bin/sh does not run: " + std::strerror(*end.exec_error)};
  }
  set_exit(out, end.exit_code.value_or(128 + SIGKILL));
  // A command that lives with the loss of a child has not failed for memory.
  if (out.exit_code != 0) {
    PROCTOR_TRY(const std::uint64_t kills, box.group.oom_kills());
    if (0 < kills) {
      out.end = End::kMemory;
      return ok_status();
    }
  }
  // By the kernel's own count of one process, before anybody looked.
  if (out.end == End::kSignalled && (out.signal == SIGXCPU || out.signal == SIGKILL) &&
      0 < spec_.cpu.count() && spec_.cpu <= out.cpu) {
    out.end = End::kCpu;
    return ok_status();
  }
  if (!end.exit_code)
    return Error{Errc::kUnavailable,
                 box.complaint(said) + " (exit code " + std::to_string(end.runtime_exit) + ")"};
  return ok_status();
}
}  // namespace proctor
