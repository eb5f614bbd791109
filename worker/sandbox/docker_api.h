#pragma once
// The calls of the Engine API that sandboxes make, with their JSON and their error replies turned
// into Errors: 400 and 404 kInvalid/kNotFound, everything else kUnavailable.
// One DockerApi is one kept connection (reopened when the engine closed it) of one thread.
// Source: Docker Engine API v1.41.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "worker/sandbox/docker_http.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
struct DockerImage {
  std::string id;
  std::vector<std::string> env;  // names of the variables it sets
  std::string architecture{};    // "amd64"; empty: the engine does not say
};

struct ContainerState {
  bool begun = false;  // ever
  bool running = false;
  bool oom_killed = false;
  int exit_code = 0;
  int pid = 0;  // of its first process, by the engine's numbers; 0: none
  // From its start to its end by the engine's clock; of one that has ended.
  std::optional<std::chrono::milliseconds> ran;
};

// A member of a reply, never trusted to be there or of the right type: null; empty.
const Json& member_at(const Json& object, std::string_view key);
std::string text_at(const Json& object, std::string_view key);

class DockerApi {
 public:
  using Clock = DockerConnection::Clock;
  explicit DockerApi(std::string socket) : socket_(std::move(socket)) {}

  // Answers, and speaks v1.41?  Within `limit`.
  Status ping(std::chrono::milliseconds limit);
  // A request by its path below the version.
  Result<HttpReply> call(std::string_view method, const std::string& target,
                         const std::string& body, std::chrono::milliseconds limit,
                         std::size_t body_max);
  Result<std::map<std::string, std::string>> limits_offered();
  Result<DockerImage> image(const std::string& reference);
  Status volume_exists(const std::string& name);
  // `config` is the JSON of POST /containers/create; the new container's id.
  Result<std::string> create(const std::string& config);
  // A second connection with the container's stdout and stderr on it.
  Result<DockerConnection> attach(const std::string& id);
  // Reads what an ended container's log holds.
  Status read_log(const std::string& id, const DockerFrames::Sink& sink);
  // The engine's runtime puts a process of its own into a container first, under the container's
  // limits; on a loaded host that one can die of them (its threads count as processes).  Nothing of
  // the command has run then, so the container is started again.  `before_each` is done ahead of
  // each try: one that fails ends what is attached.
  Status start(const std::string& id, const std::function<Status()>& before_each = ok_status);
  // Asks for a SIGKILL.  The engine answers only when the container has ended, which may need its
  // output to be read: the answer is not waited for, the container's end is.
  Status begin_kill(const std::string& id);
  // Everything in it stands still ("pause"), or goes on ("unpause").  One that is so already, or
  // has ended, is fine.
  Status set_paused(const std::string& id, const char* word);
  Result<ContainerState> inspect(const std::string& id);
  // Does the container, running or not, have this path?  (A link counts by itself.)
  Result<bool> has_file(const std::string& id, const std::string& path);
  // One that is not there any more is fine.
  Status remove(const std::string& id);
  Result<std::vector<std::string>> containers_of(const std::string& owner);
  // Waits for a container that is sure to end; its exit code.
  Result<int> wait(const std::string& id);
  // Asks to be told of the container's end: begin, poll the connection, then ask wait_result().
  Status begin_wait(const std::string& id);
  DockerConnection& connection() { return *connection_; }
  Result<int> wait_result(const HttpReply& reply);

 private:
  Status connect(Clock::time_point deadline);

  std::string socket_;
  std::optional<DockerConnection> connection_;
};
}  // namespace proctor
