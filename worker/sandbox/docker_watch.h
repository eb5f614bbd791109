#pragma once
// DockerWatch: one started container until it has ended: its output, its end, the clock, the hold
// and the cancellation.  One thread; pause() of a hold may come from any.
// Fails with kUnavailable: the engine is gone, hung, or does not say how the container ended.
// Source: Docker Engine API v1.41.
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "worker/sandbox/bounded_file.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/limit_watch.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {

class DockerWatch {
 public:
  using Clock = DockerConnection::Clock;

  // Without a stream only the end is waited for: the container's log has the output.
  DockerWatch(std::string socket, DockerApi& api, std::string id,
              std::optional<DockerConnection> stream, std::shared_ptr<const Hold> hold);

  // What it must end the command for beside its time.  Before until_end().
  void keep(const SandboxSpec& spec, pid_t first_process, SocketUse::Counts sockets);

  // Until output and container have both ended; the container's exit code.
  // `begun`: when its time began, by the hold's clock; now, where absent.
  // `wakes`: the first says that it is cancelled, the second that the hold has changed.
  Result<int> until_end(const ExecSpec& exec, std::array<BoundedFile*, 2> files,
                        std::array<int, 2> wakes, std::optional<Clock::time_point> begun = {});

  // Why we ended it, if we did.
  std::optional<ExecOutcome::End> cause() const { return cause_; }
  std::chrono::milliseconds wall() const;

 private:
  Clock::time_point own_now() const;
  Clock::time_point now() const;
  void follow_hold();
  Status read_end();
  Status read_output(std::array<BoundedFile*, 2> files);
  Status judge(bool cancelled);

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

}  // namespace proctor
