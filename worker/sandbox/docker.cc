#include "worker/sandbox/docker.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "common/base/log.h"
#include "common/base/owed.h"
#include "common/base/text.h"
#include "common/images/image_list.h"
#include "worker/sandbox/bounded_file.h"
#include "worker/sandbox/container_use.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/exit_status.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/oci_init.h"
#include "worker/sandbox/runtime_files.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;
using Clock = DockerConnection::Clock;

// After a kill the engine has this long to say that the container has ended.
constexpr milliseconds kKillGrace{30'000};
// The engine learns of an out-of-memory kill beside the exit, sometimes after it.
constexpr milliseconds kOomNews{500};
constexpr std::size_t kBurst = std::size_t{1} << 20;
constexpr int kNotRunnable = 126, kNotThere = 127;
constexpr const char* kFolderPrefix = "proctor-docker-";

// Removes a container whatever happens; one that an absent engine keeps is owed.
class ContainerGuard {
 public:
  ContainerGuard(DockerApi& api, Owed& owed, std::string id)
      : api_(api), owed_(owed), id_(std::move(id)) {}
  ContainerGuard(const ContainerGuard&) = delete;
  ContainerGuard& operator=(const ContainerGuard&) = delete;
  ~ContainerGuard() {
    if (id_.empty()) return;
    if (auto s = api_.remove(id_); !s.ok()) {
      log::warn("a container stays until the engine is back: " + id_ + ": " + s.error().detail);
      owed_.add(id_);
    }
  }
  Status remove() {
    const std::string id = std::exchange(id_, {});
    return api_.remove(id);
  }

 private:
  DockerApi& api_;
  Owed& owed_;
  std::string id_;
};

// Watches one started container: its output, its end, the clock and the cancellation.
class Watch {
 public:
  Watch(std::string socket, DockerApi& api, std::string id, DockerConnection stream,
        std::shared_ptr<const Hold> hold, LimitWatch* limits)
      : killer_(std::move(socket)),
        api_(api),
        id_(std::move(id)),
        stream_(std::move(stream)),
        hold_(std::move(hold)),
        limits_(limits) {}

  // Until output and container have both ended; the container's exit code.
  // `wakes`: the first says that it is cancelled, the second that the hold has changed.
  Result<int> until_end(const ExecSpec& exec, std::array<BoundedFile*, 2> files,
                        std::array<int, 2> wakes) {
    begun_ = own_now();
    until_ = begun_ + exec.timeout;
    PROCTOR_CHECK_OK(api_.begin_wait(id_));
    while (!code_ || !stream_ended_) {
      std::array<pollfd, 4> fds = {
          pollfd{code_ ? -1 : api_.connection().fd(), POLLIN, 0},
          pollfd{stream_ended_ ? -1 : stream_.fd(), POLLIN, 0},
          pollfd{killed_ ? -1 : wakes[0], POLLIN, 0},
          pollfd{wakes[1], POLLIN, 0},
      };
      const auto left = std::chrono::ceil<milliseconds>(until_ - now());
      const int ms = paused_ ? kLongest
                             : static_cast<int>(std::clamp<std::int64_t>(
                                   left.count(), 0, limits_ != nullptr ? kSample : kLongest));
      if (!raw_pending_ && ::poll(fds.data(), fds.size(), ms) < 0 && errno != EINTR) {
        return errno_error("poll", errno);
      }
      if (fds[0].revents != 0) PROCTOR_CHECK_OK(read_end());
      if (raw_pending_ || fds[1].revents != 0) PROCTOR_CHECK_OK(read_output(files));
      if (fds[3].revents != 0) forget_wakes(wakes[1]);
      PROCTOR_CHECK_OK(judge(fds[2].revents != 0));
      follow_hold();
    }
    if (!frames_.at_boundary() && !cause_) {
      return Error{Errc::kUnavailable, "docker engine: the output broke off in a frame"};
    }
    return *code_;
  }

  std::optional<ExecOutcome::End> cause() const { return cause_; }
  milliseconds wall() const { return std::chrono::duration_cast<milliseconds>(ended_ - begun_); }

 private:
  static constexpr int kLongest = 60'000, kSample = 100;

  // The command's own time: it stands still while that is paused.
  Clock::time_point own_now() const { return hold_ ? hold_->now() : Clock::now(); }
  // Of `until_`: after its end, or a kill, the engine has no excuse.
  Clock::time_point now() const { return killed_ || code_ ? Clock::now() : own_now(); }

  static void forget_wakes(int fd) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(fd, &count, sizeof count);
  }

  // An engine that cannot pause: the command goes on, and its clock does not.
  void follow_hold() {
    const bool want = hold_ && hold_->on() && !killed_ && !code_;
    if (want == paused_) return;
    paused_ = want;
    if (code_) return;
    const Status done = want ? killer_.pause(id_) : killer_.unpause(id_);
    if (!done.ok()) log::warn(done.error().detail);
  }

  Status read_end() {
    PROCTOR_TRY(const bool done, api_.connection().progress());
    if (!done) return ok_status();
    PROCTOR_TRY(const int code, api_.wait_result(api_.connection().finish()));
    ended_ = own_now();
    code_ = code;
    // The rest of the output is on its way; an engine that never ends it is hung.
    if (!killed_) until_ = Clock::now() + kKillGrace;
    return ok_status();
  }

  Status read_output(std::array<BoundedFile*, 2> files) {
    const auto sink = [&](DockerFrames::Stream stream, std::string_view bytes) {
      files[stream == DockerFrames::Stream::kStdout ? 0 : 1]->append(bytes);
    };
    raw_pending_ = false;
    for (std::size_t done = 0; done < kBurst;) {
      std::string bytes;
      PROCTOR_TRY(const bool open, stream_.read_raw(bytes, kBurst));
      stream_ended_ = !open;
      if (bytes.empty()) return ok_status();
      done += bytes.size();
      PROCTOR_CHECK_OK(frames_.feed(bytes, sink));
    }
    return ok_status();
  }

  Status judge(bool cancelled) {
    if (killed_ || code_) {
      if (until_ <= now() && (!code_ || !stream_ended_)) {
        return Error{Errc::kUnavailable, "docker engine: it does not say that a container ended"};
      }
      return ok_status();
    }
    if (!cancelled && now() < until_) {
      if (limits_ != nullptr && !paused_) passed_ = limits_->look(Clock::now());
      if (!passed_) return ok_status();
    }
    cause_ = cancelled                              ? ExecOutcome::End::kCancelled
             : !passed_                             ? ExecOutcome::End::kTimedOut
             : *passed_ == LimitWatch::Passed::kCpu ? ExecOutcome::End::kSignalled
                                                    : ExecOutcome::End::kDisk;
    if (paused_) PROCTOR_CHECK_OK(killer_.unpause(id_));  // who stands still does not die
    paused_ = false;
    killed_ = true;
    until_ = Clock::now() + kKillGrace;
    // Our first connection is busy with the wait.
    return killer_.begin_kill(id_);
  }

  DockerApi killer_;
  DockerApi& api_;
  std::string id_;
  DockerConnection stream_;
  std::shared_ptr<const Hold> hold_;
  LimitWatch* limits_;  // null: none is ours to watch
  std::optional<LimitWatch::Passed> passed_;
  DockerFrames frames_;
  Clock::time_point begun_, until_, ended_;
  std::optional<int> code_;
  std::optional<ExecOutcome::End> cause_;
  bool raw_pending_ = true;  // bytes may have come with the head of the attach
  bool stream_ended_ = false, killed_ = false, paused_ = false;
};

class DockerSandbox final : public Sandbox {
 public:
  DockerSandbox(const SandboxOptions& options, Owed& owed, SandboxSpec spec, DockerApi api,
                DockerImage image, fs::path init)
      : options_(options),
        owed_(owed),
        spec_(std::move(spec)),
        api_(std::move(api)),
        image_(std::move(image)),
        init_(std::move(init)) {}

  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) override {
    if (exec.command.find('\0') != std::string::npos) {
      return Error{Errc::kInvalid, "command: a NUL byte"};
    }
    PROCTOR_TRY(BoundedFile out, BoundedFile::create(exec.stdout_file, exec.output_max));
    PROCTOR_TRY(BoundedFile err, BoundedFile::create(exec.stderr_file, exec.output_max));
    ExecOutcome outcome;
    outcome.end = ExecOutcome::End::kCancelled;
    if (spec_.hold) spec_.hold->wait_until_off(cancel);
    if (cancel.stop_requested()) return outcome;
    const UniqueFd cancel_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const UniqueFd hold_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!cancel_fd.valid() || !hold_fd.valid()) return errno_error("eventfd", errno);
    const auto wake = [](int fd) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
    };
    const std::stop_callback on_cancel(cancel, [&, fd = cancel_fd.get()] { wake(fd); });
    std::optional<Hold::Watch> on_hold;
    if (spec_.hold) on_hold.emplace(*spec_.hold, [&, fd = hold_fd.get()] { wake(fd); });

    PROCTOR_TRY(const std::string id,
                api_.create(container_config(spec_, image_, init_, options_.owner, exec.command)));
    ContainerGuard guard(api_, owed_, id);
    if (cancel.stop_requested()) return outcome;
    PROCTOR_TRY(DockerConnection stream, api_.attach(id));
    PROCTOR_CHECK_OK(api_.start(id));
    LimitWatch limits(spec_, {});
    const bool watched = LimitWatch::needed(spec_);
    if (watched) {
      PROCTOR_TRY(const ContainerState state, api_.inspect(id));
      limits = LimitWatch(spec_, {[pid = state.pid] { return container_cpu_time(pid); },
                                  [pid = state.pid] { return container_processes(pid); }});
    }
    Watch watch(options_.docker_socket, api_, id, std::move(stream), spec_.hold,
                watched ? &limits : nullptr);
    PROCTOR_TRY(const int code,
                watch.until_end(exec, {&out, &err}, {cancel_fd.get(), hold_fd.get()}));
    if (watch.cause()) {
      outcome.end = *watch.cause();  // the code is that of our kill
      if (outcome.end == ExecOutcome::End::kSignalled) {
        outcome.signal = SIGXCPU;
        outcome.exit_code = 128 + SIGXCPU;
      }
    } else {
      if (code == kNotThere || code == kNotRunnable)
        PROCTOR_CHECK_OK(check_shell(id));  // ours to know whether anything could have run
      set_exit(outcome, code);
      PROCTOR_TRY(const bool oom, was_oom_killed(id, code));
      if (oom) outcome.end = ExecOutcome::End::kMemory;
    }
    outcome.wall = watch.wall();
    outcome.stdout_bytes = out.total();
    outcome.stderr_bytes = err.total();
    PROCTOR_CHECK_OK(out.status());
    PROCTOR_CHECK_OK(err.status());
    PROCTOR_CHECK_OK(guard.remove());
    return outcome;
  }

 private:
  Status check_shell(const std::string& id) {
    PROCTOR_TRY(const bool there, api_.has_file(id, "/bin/sh"));
    if (there) return ok_status();
    return Error{Errc::kInvalid,
                 "image " + printable(spec_.image) + ": /bin/sh does not run: not there"};
  }

  Result<bool> was_oom_killed(const std::string& id, int code) {
    if (code == 0) return false;
    const auto until = Clock::now() + kOomNews;
    for (;;) {
      PROCTOR_TRY(const ContainerState state, api_.inspect(id));
      if (state.oom_killed) return true;
      if (spec_.memory_bytes == 0 || code != 137 || until <= Clock::now()) return false;
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  SandboxOptions options_;
  Owed& owed_;
  SandboxSpec spec_;
  DockerApi api_;
  DockerImage image_;
  fs::path init_;
};

class DockerEngine final : public SandboxEngine {
 public:
  DockerEngine(SandboxOptions options, std::map<std::string, std::string> limits, TempDir files)
      : options_(std::move(options)), limits_(std::move(limits)), files_(std::move(files)) {}

  SandboxKind kind() const override { return SandboxKind::kDocker; }

  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    PROCTOR_CHECK_OK(check_docker_spec(spec));
    DockerApi api(options_.docker_socket);
    owed_.pay([&](const std::string& id) { return api.remove(id).ok(); });
    auto image = api.image(spec.image);
    if (!image.ok()) {
      Error e = std::move(image).error();
      if (e.code == Errc::kNotFound) e.code = Errc::kInvalid;  // the spec's fault, here
      return e;
    }
    if (!image->architecture.empty() && image->architecture != host_architecture()) {
      return Error{Errc::kInvalid, "image " + printable(spec.image) + " is for " +
                                       printable(image->architecture) + ", this host is " +
                                       host_architecture()};
    }
    // The engine would make a missing one, empty and without our labels.
    if (!spec.workspace_volume.empty()) {
      PROCTOR_CHECK_OK(api.volume_exists(spec.workspace_volume));
    }
    return std::unique_ptr<Sandbox>(std::make_unique<DockerSandbox>(
        options_, owed_, spec, std::move(api), std::move(*image), files_.path() / "init"));
  }

  std::map<std::string, std::string> enforcement() const override { return limits_; }

  Status clean_up() override {
    DockerApi api(options_.docker_socket);
    PROCTOR_TRY(const std::vector<std::string> ids, api.containers_of(options_.owner));
    for (const std::string& id : ids) PROCTOR_CHECK_OK(api.remove(id));
    remove_stale_runtime_folders(kFolderPrefix);
    return ok_status();
  }

 private:
  SandboxOptions options_;
  std::map<std::string, std::string> limits_;
  TempDir files_;  // holds init
  Owed owed_;
};

}  // namespace

Result<std::unique_ptr<SandboxEngine>> open_docker_engine(const SandboxOptions& options) {
  if (options.owner.empty()) return Error{Errc::kInvalid, "docker sandbox: an owner without name"};
  DockerApi api(options.docker_socket);
  PROCTOR_CHECK_OK(api.ping(milliseconds(5'000)));
  PROCTOR_TRY(auto limits, api.limits_offered());
  PROCTOR_TRY(TempDir files, make_runtime_folder(kFolderPrefix));
  PROCTOR_CHECK_OK(write_file(files.path() / "init", oci_init_program(), Durability::kLazy,
                              /*mode=*/0755));
  return std::unique_ptr<SandboxEngine>(
      std::make_unique<DockerEngine>(options, std::move(limits), std::move(files)));
}

Result<std::string> resolve_image(const std::string& socket, const std::string& reference) {
  DockerApi api(socket);
  PROCTOR_TRY(const DockerImage image, api.image(reference));
  return image.id;
}

bool docker_answers(const std::string& socket) {
  return DockerApi(socket).ping(milliseconds(1'000)).ok();
}

}  // namespace proctor
