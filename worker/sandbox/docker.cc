#include "worker/sandbox/docker.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>

#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "worker/sandbox/bounded_file.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/docker_network.h"
#include "worker/sandbox/docker_watch.h"
#include "worker/sandbox/exit_status.h"
#include "worker/sandbox/init/full_disk.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/oci_init.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/writable_places.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;
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

// Two descriptors that become readable: when it is cancelled, when the hold changes.
class Wakes {
 public:
  Wakes(const std::stop_token& cancel, const Hold* hold)
      : cancelled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        held_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!valid()) return;
    on_cancel_.emplace(cancel, Wake{cancelled_.get()});
    if (hold != nullptr) on_hold_.emplace(*hold, Wake{held_.get()});
  }
  bool valid() const { return cancelled_.valid() && held_.valid(); }
  std::array<int, 2> fds() const { return {cancelled_.get(), held_.get()}; }

 private:
  struct Wake {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
    }
  };
  UniqueFd cancelled_, held_;
  std::optional<std::stop_callback<Wake>> on_cancel_;
  std::optional<Hold::Watch> on_hold_;
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
    PROCTOR_TRY(const int code, watch.until_end(exec, {&out, &err}, wakes.fds()));
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
    PROCTOR_TRY(const int code, watch.until_end(exec, {nullptr, nullptr}, wakes.fds(), left.since));
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
      outcome.end = *watch.cause();  // the code is that of our kill
      // As other kinds tell it.
      if (outcome.end == ExecOutcome::End::kCpu) outcome.exit_code = 128 + SIGXCPU;
      if (outcome.end == ExecOutcome::End::kDisk || outcome.end == ExecOutcome::End::kMemory)
        outcome.exit_code = 128 + SIGKILL;
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
