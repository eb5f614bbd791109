#include "common/base/subprocess.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <thread>

#include "common/base/owned.h"
#include "common/base/parse.h"

extern char** environ;

namespace proctor {
fs::path find_on_path(const char* program) {
  const char* path = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  // Runtimes are in sbin, which a user's PATH may lack.
  std::string places = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  places += ":/usr/local/sbin:/usr/sbin:/sbin";
  std::string_view left = places;
  while (!left.empty()) {
    const fs::path file = fs::path(take_until(left, ':')) / program;
    if (file.is_absolute() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

bool has_locale(const std::string& name) {
  const locale_t made = ::newlocale(LC_ALL_MASK, name.c_str(), static_cast<locale_t>(nullptr));
  if (made == static_cast<locale_t>(nullptr)) return false;
  ::freelocale(made);
  return true;
}

bool knows_time_zone(const std::string& name) {
  if (name == "UTC") return true;  // also where there is no tzdata
  constexpr std::string_view kMagic = "TZif";
  std::error_code ec;
  const fs::path file = fs::path("/usr/share/zoneinfo") / name;  // an absolute name is itself
  if (fs::is_regular_file(file, ec)) {
    const Result<std::string> bytes = read_file(file, std::size_t{1} << 20);
    return bytes.ok() && bytes->starts_with(kMagic);
  }
  // A name, hours west of Greenwich, and maybe the same of summer.
  std::string_view rest = name;
  const auto eat = [&rest](std::string_view what) {
    const std::size_t n = std::min(rest.find_first_not_of(what), rest.size());
    rest.remove_prefix(n);
    return n;
  };
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kDigits = "0123456789";
  const bool named = 3 <= eat(kLetters);
  const bool signed_once = eat("+-") <= 1;
  const std::size_t hours = eat(kDigits);
  if (!named || !signed_once || hours == 0 || 2 < hours) return false;
  if (rest.empty()) return true;
  const bool summer = 3 <= eat(kLetters);
  return summer && eat("+-") <= 1 && eat(kDigits) <= 2 && rest.empty();
}

namespace {
using Clock = std::chrono::steady_clock;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return errno_error("pipe", errno);
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

struct Argv {
  explicit Argv(const std::vector<std::string>& words) : words_(words) {
    for (std::string& w : words_) pointers_.push_back(w.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_of(const CommandSpec& spec) {
  std::vector<std::string> out;
  if (!spec.env) {
    for (char** e = environ; *e != nullptr; ++e) out.emplace_back(*e);
    return out;
  }
  for (const auto& [k, v] : *spec.env) out.push_back(k + "=" + v);
  return out;
}

struct Stdio {
  int in, out, err;
};

// Between fork and exec only async-signal-safe calls; a failure travels back through `report`.
Result<pid_t> spawn(const CommandSpec& spec, const Stdio& io, bool die_with_parent) {
  PROCTOR_ASSERT(!spec.argv.empty());
  PROCTOR_TRY(Pipe report, make_pipe());
  Argv argv(spec.argv);
  Argv envp(environment_of(spec));
  const std::string cwd = spec.cwd.string();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork", errno);
  if (pid == 0) {
    const auto die = [&] {
      const int e = errno;
      (void)!::write(report.write.get(), &e, sizeof e);
      ::_exit(127);
    };
    ::setpgid(0, 0);
    if (die_with_parent) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signo : {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGHUP}) ::signal(signo, SIG_DFL);
    if (::dup2(io.in, 0) < 0 || ::dup2(io.out, 1) < 0 || ::dup2(io.err, 2) < 0) die();
    if (!cwd.empty() && ::chdir(cwd.c_str()) != 0) die();
    ::execvpe(argv.get()[0], argv.get(), envp.get());
    die();
  }
  ::setpgid(pid, pid);  // either of us may be first
  report.write.reset();
  int failure = 0;
  ssize_t n = 0;
  do n = ::read(report.read.get(), &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  if (n == sizeof failure) {
    ::waitpid(pid, nullptr, 0);
    return errno_error(spec.argv.front(), failure);
  }
  return pid;
}

int exit_code_of(int status, int* signal_out) {
  if (WIFSIGNALED(status)) {
    if (signal_out != nullptr) *signal_out = WTERMSIG(status);
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

// Without the signal that ends us where the child no longer reads: a pipe has no MSG_NOSIGNAL.
ssize_t write_quietly(int fd, std::string_view bytes) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t n = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  if (n < 0 && error == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec now{0, 0};
    (void)::sigtimedwait(&pipe, nullptr, &now);  // ours, pending for this thread
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return n;
}

// Takes what is there; false at the end of the stream.
bool drain(int fd, std::string& into, std::size_t max, bool& cut) {
  std::array<char, 65536> buffer;  // NOLINT: filled by read
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  const auto got = static_cast<std::size_t>(n);
  const std::size_t keep = std::min(got, max - std::min(max, into.size()));
  into.append(buffer.data(), keep);
  cut = cut || keep < got;
  return true;
}
}  // namespace

std::string CommandOutcome::describe() const {
  std::string out_text = timed_out     ? "timed out after " + std::to_string(wall.count()) + " ms"
                         : signal != 0 ? "killed by signal " + std::to_string(signal)
                                       : "exit " + std::to_string(exit_code);
  std::string_view text = err.empty() ? std::string_view(out) : std::string_view(err);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  constexpr std::size_t kShown = 2000;
  if (kShown < text.size()) text.remove_prefix(text.size() - kShown);
  if (!text.empty()) out_text += ": " + std::string(text);
  return out_text;
}

Result<CommandOutcome> run_command(const CommandSpec& spec) {
  PROCTOR_TRY(Pipe in, make_pipe());
  PROCTOR_TRY(Pipe out, make_pipe());
  PROCTOR_TRY(Pipe err, make_pipe());
  const auto begin = Clock::now();
  PROCTOR_TRY(const pid_t pid,
              spawn(spec, {in.read.get(), out.write.get(), err.write.get()}, true));
  in.read.reset();
  out.write.reset();
  err.write.reset();
  ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  CommandOutcome result;
  std::string_view to_write = spec.stdin_bytes;
  const auto deadline = begin + spec.timeout;
  bool exited = false;
  int status = 0;
  const UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // none before Linux 5.3
  constexpr std::chrono::milliseconds kAfterExit(200);  // a left-over child may hold the pipes
  auto until = deadline;
  while (out.read.valid() || err.read.valid() || !exited) {
    if (in.write.valid() && to_write.empty()) in.write.reset();
    std::array<pollfd, 4> fds{{{out.read.get(), POLLIN, 0},
                               {err.read.get(), POLLIN, 0},
                               {in.write.get(), POLLOUT, 0},
                               {exited ? -1 : end.get(), POLLIN, 0}}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) break;
    if (!exited && spec.cancelled && spec.cancelled()) {
      result.cancelled = true;
      break;
    }
    constexpr std::int64_t kTick = 20;  // how late we may notice what nothing tells
    const bool told = end.valid() && !spec.cancelled;
    const std::int64_t longest = told ? std::numeric_limits<int>::max() : kTick;
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::min(left, longest)));
    if (fds[0].revents != 0 &&
        !drain(out.read.get(), result.out, spec.output_max, result.output_cut))
      out.read.reset();
    if (fds[1].revents != 0 &&
        !drain(err.read.get(), result.err, spec.output_max, result.output_cut))
      err.read.reset();
    if (fds[2].revents != 0 && in.write.valid()) {
      const ssize_t n = write_quietly(in.write.get(), to_write);
      if (n < 0 && errno != EAGAIN && errno != EINTR) in.write.reset();
      if (0 < n) to_write.remove_prefix(static_cast<std::size_t>(n));
    }
    if (!exited && ::waitpid(pid, &status, WNOHANG) == pid) {
      exited = true;
      until = std::min(deadline, Clock::now() + kAfterExit);
    }
  }
  result.timed_out = !exited && !result.cancelled;
  ::kill(-pid, SIGKILL);
  if (!exited) ::waitpid(pid, &status, 0);
  result.exit_code = exit_code_of(status, &result.signal);
  result.wall = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return result;
}

Result<std::string> run_for_output(const CommandSpec& spec) {
  PROCTOR_TRY(CommandOutcome outcome, run_command(spec));
  if (!outcome.success())
    return Error{Errc::kUnavailable, spec.argv.front() + ": " + outcome.describe()};
  return std::move(outcome.out);
}

Result<Child> Child::start(const CommandSpec& spec, const fs::path& log, Lifetime lifetime) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return errno_error("/dev/null", errno);
  UniqueFd log_fd;
  if (!log.empty()) {
    log_fd.reset(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kPrivateFile));
    if (!log_fd.valid()) return errno_error(log.string(), errno);
  }
  const int out = log_fd.valid() ? log_fd.get() : 1;
  const int err = log_fd.valid() ? log_fd.get() : 2;
  PROCTOR_TRY(const pid_t pid,
              spawn(spec, {null.get(), out, err}, lifetime == Lifetime::kDiesWithParent));
  return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}
Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_, other.exit_);
  return *this;
}
Child::~Child() {
  if (0 < pid_ && !exit_) stop(std::chrono::milliseconds(0));
}

std::optional<int> Child::poll() {
  if (exit_ || pid_ <= 0) return exit_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) exit_ = exit_code_of(status, nullptr);
  return exit_;
}
bool Child::running() {
  return 0 < pid_ && !poll();
}
void Child::signal(int signo) {
  if (running()) ::kill(-pid_, signo);
}
std::optional<int> Child::wait(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!poll() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return exit_;
}
int Child::stop(std::chrono::milliseconds grace) {
  if (pid_ <= 0) return -1;
  if (0 < grace.count()) signal(SIGTERM);
  if (!wait(grace)) {
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    exit_ = exit_code_of(status, nullptr);
  }
  return *exit_;
}
pid_t Child::release() {
  return std::exchange(pid_, -1);
}
}  // namespace proctor
