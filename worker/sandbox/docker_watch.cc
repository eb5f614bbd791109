#include "worker/sandbox/docker_watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/log.h"
#include "worker/sandbox/container_use.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;

// After a kill the engine has this long to say that the container has ended.
constexpr milliseconds kKillGrace{30'000};
constexpr std::size_t kBurst = std::size_t{1} << 20;
constexpr int kLongest = 60'000, kSample = 100;

void forget_wakes(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(fd, &count, sizeof count);
}

}  // namespace

DockerWatch::DockerWatch(std::string socket, DockerApi& api, std::string id,
                         std::optional<DockerConnection> stream, std::shared_ptr<const Hold> hold)
    : killer_(std::move(socket)),
      api_(api),
      id_(std::move(id)),
      stream_(std::move(stream)),
      hold_(std::move(hold)),
      raw_pending_(stream_.has_value()),
      stream_ended_(!stream_),
      paused_(!stream_) {}

void DockerWatch::keep(const SandboxSpec& spec, pid_t first_process, SocketUse::Counts sockets) {
  if (!LimitWatch::needed(spec) || first_process <= 0) return;
  limits_.emplace(spec,
                  LimitWatch::Host{[first_process] { return container_cpu_time(first_process); },
                                   [first_process] { return container_processes(first_process); },
                                   {},
                                   sockets});
}

Result<int> DockerWatch::until_end(const ExecSpec& exec, std::array<BoundedFile*, 2> files,
                                   std::array<int, 2> wakes,
                                   std::optional<Clock::time_point> begun) {
  begun_ = begun.value_or(own_now());
  until_ = begun_ + exec.timeout;
  PROCTOR_CHECK_OK(api_.begin_wait(id_));
  follow_hold();
  while (!code_ || !stream_ended_) {
    std::array<pollfd, 5> fds = {
        pollfd{code_ ? -1 : api_.connection().fd(), POLLIN, 0},
        pollfd{stream_ended_ ? -1 : stream_->fd(), POLLIN, 0},
        pollfd{killed_ ? -1 : wakes[0], POLLIN, 0},
        pollfd{wakes[1], POLLIN, 0},
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
    if (fds[3].revents != 0) forget_wakes(wakes[1]);
    PROCTOR_CHECK_OK(judge(fds[2].revents != 0));
    follow_hold();
  }
  if (!frames_.at_boundary() && !cause_) {
    return Error{Errc::kUnavailable, "docker engine: the output broke off in a frame"};
  }
  return *code_;
}

milliseconds DockerWatch::wall() const {
  return std::chrono::duration_cast<milliseconds>(ended_ - begun_);
}

// The command's own time: it stands still while that is paused.
DockerWatch::Clock::time_point DockerWatch::own_now() const {
  return hold_ ? hold_->now() : Clock::now();
}
// Of `until_`: after its end, or a kill, the engine has no excuse.
DockerWatch::Clock::time_point DockerWatch::now() const {
  return killed_ || code_ ? Clock::now() : own_now();
}

// An engine that cannot pause: the command goes on, and its clock does not.
void DockerWatch::follow_hold() {
  const bool want = hold_ && hold_->on() && !killed_ && !code_;
  if (want == paused_) return;
  paused_ = want;
  if (limits_) limits_->pause(want);
  if (code_) return;
  const Status done = want ? killer_.pause(id_) : killer_.unpause(id_);
  if (!done.ok()) log::warn(done.error().detail);
}

Status DockerWatch::read_end() {
  PROCTOR_TRY(const bool done, api_.connection().progress());
  if (!done) return ok_status();
  PROCTOR_TRY(const int code, api_.wait_result(api_.connection().finish()));
  ended_ = own_now();
  code_ = code;
  // The rest of the output is on its way; an engine that never ends it is hung.
  if (!killed_) until_ = Clock::now() + kKillGrace;
  return ok_status();
}

Status DockerWatch::read_output(std::array<BoundedFile*, 2> files) {
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

Status DockerWatch::judge(bool cancelled) {
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
  cause_ = cancelled                                 ? ExecOutcome::End::kCancelled
           : !passed_                                ? ExecOutcome::End::kTimedOut
           : *passed_ == LimitWatch::Passed::kCpu    ? ExecOutcome::End::kCpu
           : *passed_ == LimitWatch::Passed::kMemory ? ExecOutcome::End::kMemory
                                                     : ExecOutcome::End::kDisk;
  if (paused_) PROCTOR_CHECK_OK(killer_.unpause(id_));  // who stands still does not die
  paused_ = false;
  killed_ = true;
  until_ = Clock::now() + kKillGrace;
  // Our first connection is busy with the wait.
  return killer_.begin_kill(id_);
}

}  // namespace proctor
