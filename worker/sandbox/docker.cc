#include "worker/sandbox/docker.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "worker/sandbox/cgroup_files.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/init/lacks.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/process_tree.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
// The bytes of the static program that keeps a shared network under Docker (holder/main.cc).
std::string_view holder_program();

namespace {
constexpr int kStartMs = 60'000, kAnswerMs = 10'000;

Status readable(int fd, int within_ms, const char* what) {
  pollfd ready{fd, POLLIN, 0};
  int n = 0;
  do n = ::poll(&ready, 1, within_ms);
  while (n < 0 && errno == EINTR);
  if (n == 1) return ok_status();
  return Error{Errc::kUnavailable, std::string("shared network: its holder ") + what};
}

// DockerNetwork: the shared network of containers: that of one which does nothing else than to keep
// it (holder/main.cc) and to look for open ports when it is asked.  It is labelled as sandboxes
// are, and removed at the end; one that an absent engine keeps is owed.
// Fails with kUnavailable (the engine), kInvalid (no such image), kNotFound.
class DockerNetwork final : public SharedNetwork {
 public:
  struct Plan {
    std::string socket, owner, label, image;
    fs::path dir;  // not there yet; removed at the end
  };
  // `owed` outlives it.
  static Result<std::shared_ptr<DockerNetwork>> make(const Plan& plan, Owed& owed) {
    // Its destructor undoes whatever of it has been made.
    std::shared_ptr<DockerNetwork> out(new DockerNetwork(DockerApi(plan.socket), owed, plan.dir));
    PROCTOR_CHECK_OK(out->start(plan));
    return out;
  }

  ~DockerNetwork() override {
    line_.reset();
    if (!id_.empty()) {
      if (const Status s = api_.remove(id_); !s.ok()) {
        log::warn("a network's container stays until the engine is back: " + id_ + ": " +
                  s.error().detail);
        owed_.add(id_);
      }
    }
    (void)remove_tree(dir_).ok();
  }

  DockerNetwork(const DockerNetwork&) = delete;
  DockerNetwork& operator=(const DockerNetwork&) = delete;

  Result<bool> accepts(std::uint16_t port) override {
    const std::array<unsigned char, 2> question = {static_cast<unsigned char>(port & 0xFF),
                                                   static_cast<unsigned char>(port >> 8)};
    if (::send(line_.get(), question.data(), question.size(), MSG_NOSIGNAL) != 2)
      return Error{Errc::kUnavailable, "shared network: its holder is gone"};
    PROCTOR_CHECK_OK(readable(line_.get(), kAnswerMs, "does not answer"));
    char answer = 0;
    if (::recv(line_.get(), &answer, 1, 0) != 1)
      return Error{Errc::kUnavailable, "shared network: its holder is gone"};
    return answer == '1';
  }

  std::string holder() const override { return id_; }

 private:
  DockerNetwork(DockerApi api, Owed& owed, fs::path dir)
      : api_(std::move(api)), owed_(owed), dir_(std::move(dir)) {}
  Status start(const Plan& plan) {
    PROCTOR_CHECK_OK(make_dirs(dir_));
    PROCTOR_CHECK_OK(
        write_file(dir_ / "holder", holder_program(), Durability::kLazy, /*mode=*/0755));
    PROCTOR_TRY(const UniqueFd listener, listen_in(dir_, 1, "shared network"));
    PROCTOR_TRY(const DockerImage image, api_.image(plan.image));
    PROCTOR_TRY(id_, api_.create(holder_config(image, dir_, plan.owner, plan.label)));
    PROCTOR_CHECK_OK(api_.start(id_));
    PROCTOR_CHECK_OK(readable(listener.get(), kStartMs, "does not come"));
    line_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!line_.valid()) return errno_error("shared network: accept", errno);
    return ok_status();
  }

  DockerApi api_;
  Owed& owed_;
  fs::path dir_;
  std::string id_;
  UniqueFd line_;  // to the holder
};

constexpr std::size_t kProcFileMax = std::size_t{1} << 20;

std::optional<std::uint64_t> number_in(const fs::path& file, std::string_view key) {
  const auto text = read_file(file, kProcFileMax);
  if (!text.ok()) return std::nullopt;
  const std::size_t at = text->find(key);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(at + key.size());
  std::uint64_t value = 0;
  return take_number(rest, value) ? std::optional(value) : std::nullopt;
}

// The use of somebody else's container, read on this host by the number of its first process: for
// limits that the engine does not keep.  Where that process is not to be seen (an engine on another
// machine, or one that lives in a pid namespace of its own), it is not known.
std::optional<std::chrono::milliseconds> container_cpu_time(pid_t init) {
  const auto mounts = read_file("/proc/self/mountinfo", kProcFileMax);
  const auto groups = read_file("/proc/" + std::to_string(init) + "/cgroup", kProcFileMax);
  if (!mounts.ok() || !groups.ok()) return std::nullopt;
  const CgroupLayout layout = parse_cgroup_layout(*mounts, *groups);
  // A dead process is shown in the root's group, which is everybody's.
  if (const auto a = layout.v1.find("cpuacct"); a != layout.v1.end()) {
    if (a->second.own.empty()) return std::nullopt;
    if (const auto ns = number_in(a->second.mount + a->second.own + "/cpuacct.usage", ""))
      return std::chrono::milliseconds(*ns / 1'000'000);
  } else if (!layout.v2.mount.empty()) {
    if (layout.v2.own.empty()) return std::nullopt;
    if (const auto us = number_in(layout.v2.mount + layout.v2.own + "/cpu.stat", "usage_usec "))
      return std::chrono::milliseconds(*us / 1'000);
  }
  return cpu_time_of_tree(init);
}

// The first process and all below it.
std::vector<pid_t> container_processes(pid_t init) {
  std::vector<pid_t> out{init};
  for (const TreeMember& member : tree_below(init)) out.push_back(member.pid);
  return out;
}

using std::chrono::milliseconds;

// After a kill the engine has this long to say that the container has ended.
constexpr milliseconds kKillGrace{30'000};
constexpr std::size_t kBurst = std::size_t{1} << 20;
constexpr int kLongest = 60'000, kSample = 100;

// DockerWatch: one started container until it has ended: its output, its end, the clock, the hold
// and the cancellation.  One thread; pause() of a hold may come from any.
// Fails with kUnavailable: the engine is gone, hung, or does not say how the container ended.
// Source: Docker Engine API v1.41.
class DockerWatch {
 public:
  using Clock = DockerConnection::Clock;

  // Without a stream only the end is waited for: the container's log has the output.
  DockerWatch(std::string socket, DockerApi& api, std::string id,
              std::optional<DockerConnection> stream, std::shared_ptr<const Hold> hold)
      : killer_(std::move(socket)),
        api_(api),
        id_(std::move(id)),
        stream_(std::move(stream)),
        hold_(std::move(hold)),
        raw_pending_(stream_.has_value()),
        stream_ended_(!stream_),
        paused_(!stream_) {}

  // What it must end the command for beside its time.  Before until_end().
  void keep(const SandboxSpec& spec, pid_t first_process, SocketUse::Counts sockets) {
    if (!LimitWatch::needed(spec) || first_process <= 0) return;
    limits_.emplace(spec,
                    LimitWatch::Host{[first_process] { return container_cpu_time(first_process); },
                                     [first_process] { return container_processes(first_process); },
                                     {},
                                     sockets});
  }

  // Until output and container have both ended; the container's exit code.
  // `begun`: when its time began, by the hold's clock; now, where absent.
  Result<int> until_end(const ExecSpec& exec, std::array<BoundedFile*, 2> files, const Wakes& wakes,
                        std::optional<Clock::time_point> begun = {}) {
    begun_ = begun.value_or(own_now());
    until_ = begun_ + exec.timeout;
    PROCTOR_CHECK_OK(api_.begin_wait(id_));
    follow_hold();
    while (!code_ || !stream_ended_) {
      std::array<pollfd, 5> fds = {
          pollfd{code_ ? -1 : api_.connection().fd(), POLLIN, 0},
          pollfd{stream_ended_ ? -1 : stream_->fd(), POLLIN, 0},
          pollfd{killed_ ? -1 : wakes.cancelled(), POLLIN, 0},
          pollfd{wakes.held(), POLLIN, 0},
          pollfd{limits_ && !killed_ && !paused_ ? limits_->wakes() : -1, POLLIN, 0},
      };
      const auto left = std::chrono::ceil<milliseconds>(until_ - now());
      const bool asked = limits_ && !killed_ && !paused_ && limits_->wakes() < 0;
      const int longest = asked ? kSample : kLongest;
      const int ms =
          paused_ ? kLongest : static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, longest));
      if (!raw_pending_ && ::poll(fds.data(), fds.size(), ms) < 0 && errno != EINTR) {
        return errno_error("poll", errno);
      }
      if (fds[0].revents != 0) PROCTOR_CHECK_OK(read_end());
      if (raw_pending_ || fds[1].revents != 0) PROCTOR_CHECK_OK(read_output(files));
      if (fds[3].revents != 0) wakes.forget_held();
      PROCTOR_CHECK_OK(judge(fds[2].revents != 0));
      follow_hold();
    }
    if (!frames_.at_boundary() && !cause_) {
      return Error{Errc::kUnavailable, "docker engine: the output broke off in a frame"};
    }
    return *code_;
  }

  // Why we ended it, if we did.
  std::optional<ExecOutcome::End> cause() const { return cause_; }
  std::chrono::milliseconds wall() const {
    return std::chrono::duration_cast<milliseconds>(ended_ - begun_);
  }

 private:
  // The command's own time: it stands still while that is paused.
  Clock::time_point own_now() const { return hold_ ? hold_->now() : Clock::now(); }

  // Of `until_`: after its end, or a kill, the engine has no excuse.
  Clock::time_point now() const { return killed_ || code_ ? Clock::now() : own_now(); }

  // An engine that cannot pause: the command goes on, and its clock does not.
  void follow_hold() {
    const bool want = hold_ && hold_->on() && !killed_ && !code_;
    if (want == paused_) return;
    paused_ = want;
    if (limits_) limits_->pause(want);
    if (code_) return;
    const Status done = killer_.set_paused(id_, want ? "pause" : "unpause");
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
      PROCTOR_TRY(const bool open, stream_->read_raw(bytes, kBurst));
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
      if (limits_ && !paused_) passed_ = limits_->look(Clock::now());
      if (!passed_) return ok_status();
    }
    cause_ =
        cancelled ? ExecOutcome::End::kCancelled : passed_.value_or(ExecOutcome::End::kTimedOut);
    if (paused_)
      PROCTOR_CHECK_OK(killer_.set_paused(id_, "unpause"));  // who stands still does not die
    paused_ = false;
    killed_ = true;
    until_ = Clock::now() + kKillGrace;
    // Our first connection is busy with the wait.
    return killer_.begin_kill(id_);
  }

  DockerApi killer_;
  DockerApi& api_;
  std::string id_;
  std::optional<DockerConnection> stream_;
  std::shared_ptr<const Hold> hold_;
  std::optional<LimitWatch> limits_;
  std::optional<LimitWatch::Passed> passed_;
  DockerFrames frames_;
  Clock::time_point begun_, until_, ended_;
  std::optional<int> code_;
  std::optional<ExecOutcome::End> cause_;
  bool raw_pending_;  // bytes may have come with the head of the attach
  bool stream_ended_, killed_ = false;
  bool paused_;  // one that we find may stand still since an earlier life of ours
};

using Clock = DockerConnection::Clock;

// The engine learns of an out-of-memory kill beside the exit, sometimes after it.
constexpr milliseconds kOomNews{500};
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
  Status remove() { return api_.remove(release()); }
  std::string release() { return std::exchange(id_, {}); }

 private:
  DockerApi& api_;
  Owed& owed_;
  std::string id_;
};

// A file of output that an earlier life of ours began, and the container's log of the same: what
// the log has lost of its beginning the file still has, so the longer one stays.
class AdoptedOutput {
 public:
  static Result<AdoptedOutput> begin(const fs::path& file, std::size_t bytes_max) {
    AdoptedOutput out;
    out.file_ = file;
    out.again_ = file.string() + ".again";
    PROCTOR_TRY(out.log_, BoundedFile::create(out.again_, bytes_max));
    return out;
  }
  BoundedFile& log() { return *log_; }
  // How much was written, as far as anybody knows.
  Result<std::uint64_t> finish() {
    PROCTOR_CHECK_OK(log_->status());
    std::error_code ec;
    const std::uint64_t before = fs::file_size(file_, ec);
    const std::uint64_t kept_before = ec ? 0 : before;
    const std::uint64_t total = log_->total();
    if (kept_before <= total) {
      fs::rename(again_, file_, ec);
    } else {
      fs::remove(again_, ec);
    }
    if (ec) return errno_error("keep " + file_.string(), ec.value());
    return std::max(total, kept_before);
  }

 private:
  fs::path file_, again_;
  std::optional<BoundedFile> log_;
};

class DockerSandbox final : public Sandbox {
 public:
  DockerSandbox(const SandboxOptions& options, Owed& owed, SandboxSpec spec, DockerApi api,
                SocketUse::Counts sockets, DockerImage image, fs::path init)
      : options_(options),
        owed_(owed),
        spec_(std::move(spec)),
        api_(std::move(api)),
        sockets_(sockets),
        image_(std::move(image)),
        init_(std::move(init)) {}
  DockerSandbox(const SandboxOptions& options, Owed& owed, SandboxSpec spec, DockerApi api,
                SocketUse::Counts sockets, LeftCommand left)
      : options_(options),
        owed_(owed),
        spec_(std::move(spec)),
        api_(std::move(api)),
        sockets_(sockets),
        left_(std::move(left)) {}
  DockerSandbox(const DockerSandbox&) = delete;
  DockerSandbox& operator=(const DockerSandbox&) = delete;
  ~DockerSandbox() override {
    if (left_) const ContainerGuard guard(api_, owed_, left_->name);
    if (!ended_.empty()) const ContainerGuard guard(api_, owed_, ended_);
  }

  Result<ExecOutcome> run(const ExecSpec& exec, std::stop_token cancel) override {
    if (left_) return go_on(exec, cancel, *std::exchange(left_, std::nullopt));
    if (exec.command.find('\0') != std::string::npos) {
      return Error{Errc::kInvalid, "command: a NUL byte"};
    }
    PROCTOR_TRY(BoundedFile out, BoundedFile::create(exec.stdout_file, exec.output_max));
    PROCTOR_TRY(BoundedFile err, BoundedFile::create(exec.stderr_file, exec.output_max));
    ExecOutcome outcome;
    outcome.end = ExecOutcome::End::kCancelled;
    if (spec_.hold) spec_.hold->wait_until_off(cancel);
    if (cancel.stop_requested()) return outcome;
    const Wakes wakes(cancel, spec_.hold.get());
    if (!wakes.valid()) return errno_error("eventfd", errno);

    PROCTOR_CHECK_OK(open_writable_places(spec_));
    const std::size_t log_bytes = exec.outlives ? 2 * exec.output_max : 0;
    PROCTOR_TRY(const std::string id,
                api_.create(container_config(spec_, image_, init_, options_.owner, exec.command,
                                             log_bytes)));
    ContainerGuard guard(api_, owed_, id);
    if (cancel.stop_requested()) return outcome;
    if (exec.outlives) exec.outlives(id);
    std::optional<DockerConnection> stream;
    const auto attach = [&]() -> Status {
      PROCTOR_TRY(stream, api_.attach(id));
      return ok_status();
    };
    if (const Status started = api_.start(id, attach); !started.ok()) {
      PROCTOR_TRY(const int code, code_of_unstarted(id, started.error()));
      set_exit(outcome, code);
      PROCTOR_CHECK_OK(guard.remove());
      return outcome;
    }
    if (exec.begun) exec.begun();
    DockerWatch watch(options_.docker_socket, api_, id, std::move(stream), spec_.hold);
    if (LimitWatch::needed(spec_)) {
      PROCTOR_TRY(const ContainerState state, api_.inspect(id));
      watch.keep(spec_, state.pid, sockets_);
    }
    PROCTOR_TRY(const int code, watch.until_end(exec, {&out, &err}, wakes));
    PROCTOR_CHECK_OK(tell_end(outcome, watch, id, code));
    outcome.stdout_bytes = out.total();
    outcome.stderr_bytes = err.total();
    PROCTOR_CHECK_OK(out.status());
    PROCTOR_CHECK_OK(err.status());
    PROCTOR_CHECK_OK(let_go(guard, exec));
    return outcome;
  }

 private:
  // What outlived us once may have to again, until whoever wants its work has it.
  Status let_go(ContainerGuard& guard, const ExecSpec& exec) {
    if (!exec.outlives) return guard.remove();
    ended_ = guard.release();
    return ok_status();
  }

  // A command that an earlier life of ours began.  Its output is in the container's log.
  Result<ExecOutcome> go_on(const ExecSpec& exec, const std::stop_token& cancel,
                            const LeftCommand& left) {
    ContainerGuard guard(api_, owed_, left.name);
    const Wakes wakes(cancel, spec_.hold.get());
    if (!wakes.valid()) return errno_error("eventfd", errno);
    PROCTOR_TRY(AdoptedOutput out, AdoptedOutput::begin(exec.stdout_file, exec.output_max));
    PROCTOR_TRY(AdoptedOutput err, AdoptedOutput::begin(exec.stderr_file, exec.output_max));
    PROCTOR_TRY(const ContainerState found, api_.inspect(left.name));
    DockerWatch watch(options_.docker_socket, api_, left.name, std::nullopt, spec_.hold);
    if (found.running) watch.keep(spec_, found.pid, sockets_);
    PROCTOR_TRY(const int code, watch.until_end(exec, {nullptr, nullptr}, wakes, left.since));
    ExecOutcome outcome;
    PROCTOR_CHECK_OK(tell_end(outcome, watch, left.name, code));
    if (!found.running) {
      // It ended while nobody looked: its time is the engine's word, its limit is ours.
      outcome.wall = std::min(outcome.wall, found.ran.value_or(outcome.wall));
      const bool too_long = exec.timeout < outcome.wall;
      if (too_long) outcome.end = ExecOutcome::End::kTimedOut;
      if (!too_long && watch.cause()) {
        set_exit(outcome, code);
        if (found.oom_killed) outcome.end = ExecOutcome::End::kMemory;
      }
    }
    PROCTOR_CHECK_OK(
        api_.read_log(left.name, [&](DockerFrames::Stream stream, std::string_view bytes) {
          (stream == DockerFrames::Stream::kStdout ? out : err).log().append(bytes);
        }));
    PROCTOR_TRY(outcome.stdout_bytes, out.finish());
    PROCTOR_TRY(outcome.stderr_bytes, err.finish());
    PROCTOR_CHECK_OK(let_go(guard, exec));
    return outcome;
  }

  // A program of the image that is not there, or no program, fails the start; the engine says which
  // by the code that it gives the container.
  Result<int> code_of_unstarted(const std::string& id, const Error& why) {
    if (!spec_.program) return why;
    PROCTOR_TRY(const ContainerState state, api_.inspect(id));
    if (state.exit_code != kNotThere && state.exit_code != kNotRunnable) return why;
    return state.exit_code;
  }

  Status tell_end(ExecOutcome& outcome, const DockerWatch& watch, const std::string& id, int code) {
    outcome.wall = watch.wall();
    if (watch.cause()) {
      set_ended(outcome, *watch.cause());  // the code is that of our kill
      return ok_status();
    }
    if (!spec_.program && (code == kNotThere || code == kNotRunnable))
      PROCTOR_CHECK_OK(check_shell(id));  // ours to know whether anything could have run
    set_exit(outcome, code);
    outcome.host_disk_full = !spec_.program && code == kInitSawFullDisk;
    PROCTOR_TRY(const bool oom, was_oom_killed(id, code));
    if (oom) outcome.end = ExecOutcome::End::kMemory;
    return ok_status();
  }

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
  const SocketUse::Counts sockets_;
  DockerImage image_;
  fs::path init_;
  std::optional<LeftCommand> left_;
  std::string ended_;  // a container that nobody needs when we go
};

class DockerEngine final : public SandboxEngine {
 public:
  DockerEngine(SandboxOptions options, std::map<std::string, std::string> limits, HeldFolder files)
      : options_(std::move(options)), limits_(std::move(limits)), files_(std::move(files)) {}

  SandboxKind kind() const override { return SandboxKind::kDocker; }

  Result<std::unique_ptr<Sandbox>> open(const SandboxSpec& spec) override {
    PROCTOR_CHECK_OK(check_docker_spec(spec));
    if (spec.shared && (spec.network || spec.shared->holder().empty()))
      return Error{Errc::kInvalid, "sandbox: a shared network of another engine, or two networks"};
    DockerApi api(options_.docker_socket);
    owed_.pay([&](const std::string& id) { return api.remove(id).ok(); });
    PROCTOR_TRY(DockerImage image, api.image(spec.image));
    if (!image.architecture.empty() && image.architecture != host_architecture()) {
      return Error{Errc::kInvalid, "image " + printable(spec.image) + " is for " +
                                       printable(image.architecture) + ", this host is " +
                                       host_architecture()};
    }
    // The engine would make a missing one, empty and without our labels.
    if (!spec.workspace_volume.empty()) {
      PROCTOR_CHECK_OK(api.volume_exists(spec.workspace_volume));
    }
    return std::unique_ptr<Sandbox>(
        std::make_unique<DockerSandbox>(options_, owed_, spec, std::move(api), sockets(),
                                        std::move(image), files_.path() / "init"));
  }

  Result<std::shared_ptr<SharedNetwork>> open_network(const std::string& label,
                                                      const std::string& image) override {
    PROCTOR_TRY(auto network,
                DockerNetwork::make({options_.docker_socket, options_.owner, label, image,
                                     files_.path() / ("network-" + std::to_string(next_++))},
                                    owed_));
    return std::shared_ptr<SharedNetwork>(std::move(network));
  }

  Result<std::unique_ptr<Sandbox>> adopt(const SandboxSpec& spec,
                                         const LeftCommand& left) override {
    DockerApi api(options_.docker_socket);
    // Nothing without our label is ours, whatever a file says.
    PROCTOR_TRY(const std::vector<std::string> ours, api.containers_of(options_.owner));
    if (std::find(ours.begin(), ours.end(), left.name) == ours.end())
      return Error{Errc::kNotFound, "docker: container " + printable(left.name) + " is gone"};
    PROCTOR_TRY(const ContainerState state, api.inspect(left.name));
    if (!state.begun) {
      PROCTOR_CHECK_OK(api.remove(left.name));
      return Error{Errc::kNotFound, "docker: container " + left.name + " had not begun"};
    }
    return std::unique_ptr<Sandbox>(
        std::make_unique<DockerSandbox>(options_, owed_, spec, std::move(api), sockets(), left));
  }

  std::map<std::string, std::string> enforcement() const override { return limits_; }

  std::vector<fs::path> shared_places() const override { return {files_.path() / "init"}; }

  Status clean_up(const std::set<std::string>& keep) override {
    // What still runs has its init mounted: the folder's name is nobody's any more.
    remove_stale_docker_folders();
    DockerApi api(options_.docker_socket);
    PROCTOR_TRY(const std::vector<std::string> ids, api.containers_of(options_.owner));
    for (const std::string& id : ids)
      if (!keep.contains(id)) PROCTOR_CHECK_OK(api.remove(id));
    return ok_status();
  }

 private:
  SocketUse::Counts sockets() const {
    return limits_.at("memory_sockets") == "monitor" ? SocketUse::Counts::kAll
                                                     : SocketUse::Counts::kUncharged;
  }
  SandboxOptions options_;
  std::map<std::string, std::string> limits_;
  HeldFolder files_;  // holds init, and the folders of networks
  std::atomic<std::uint64_t> next_{1};
  Owed owed_;
};
}  // namespace

Result<std::unique_ptr<SandboxEngine>> open_docker_engine(const SandboxOptions& options) {
  if (options.owner.empty()) return Error{Errc::kInvalid, "docker sandbox: an owner without name"};
  DockerApi api(options.docker_socket);
  PROCTOR_CHECK_OK(api.ping(milliseconds(5'000)));
  PROCTOR_TRY(auto limits, api.limits_offered());
  PROCTOR_TRY(HeldFolder files, make_runtime_folder(kFolderPrefix));
  PROCTOR_CHECK_OK(write_file(files.path() / "init", oci_init_program(), Durability::kLazy,
                              /*mode=*/0755));
  return std::unique_ptr<SandboxEngine>(
      std::make_unique<DockerEngine>(options, std::move(limits), std::move(files)));
}

void remove_stale_docker_folders() {
  remove_left_folders(kFolderPrefix);
}

bool docker_answers(const std::string& socket) {
  return DockerApi(socket).ping(milliseconds(1'000)).ok();
}
}  // namespace proctor
