#include "worker/sandbox/docker_api.h"

#include <poll.h>

#include <cstdio>
#include <ctime>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
using std::chrono::milliseconds;

// An engine on a loaded host takes seconds to make and start a container.
constexpr milliseconds kSlow{60'000};
constexpr milliseconds kQuick{15'000};
constexpr std::size_t kBodyMax = std::size_t{4} << 20;
constexpr std::size_t kListMax = std::size_t{64} << 20;
constexpr std::size_t kLogChunk = std::size_t{1} << 20;
constexpr std::string_view kPrefix = "/v1.41";
// What an engine says when the runtime's own process died before the command took its place.
constexpr const char* kDiedBefore = "cannot start a stopped process";
constexpr int kStartsMost = 8;

Error refused(std::string_view what, const HttpReply& reply) {
  std::string said = reply.body;
  if (const auto json = parse_json(reply.body);
      json.ok() && member_at(*json, "message").is_string())
    said = text_at(*json, "message");
  const Errc code = reply.status == 404   ? Errc::kNotFound
                    : reply.status == 400 ? Errc::kInvalid
                                          : Errc::kUnavailable;
  return Error{code, "docker: " + std::string(what) + ": " + printable(said, 400) + " (status " +
                         std::to_string(reply.status) + ")"};
}

Result<Json> json_of(std::string_view what, const HttpReply& reply) {
  if (reply.status < 200 || 299 < reply.status) return refused(what, reply);
  auto json = parse_json(reply.body, {kListMax, 64});
  if (!json.ok()) return in_context("docker: " + std::string(what), std::move(json).error());
  return json;
}

bool flag_at(const Json& object, const char* key) {
  const Json& flag = member_at(object, key);
  return flag.is_boolean() && flag.boolean();
}
Result<int> exit_code_at(const Json& object, const char* key) {
  const Json& number = member_at(object, key);
  if (!number.is_number_integer())
    return Error{Errc::kCorrupt, std::string("docker: a reply without a number in ") + key};
  const auto code = number.get<std::int64_t>();
  if (code < 0 || 255 < code)
    return Error{Errc::kCorrupt, "docker: exit code " + std::to_string(code)};
  return static_cast<int>(code);
}

// RFC 3339 in UTC, as the engine writes it; the year 1 stands for never.
std::optional<milliseconds> instant_at(const Json& object, const char* key) {
  const std::string text = text_at(object, key);
  std::tm t{};
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
                  &t.tm_hour, &t.tm_min, &t.tm_sec, &used) != 6)
    return std::nullopt;
  constexpr int kFirstYear = 1970, kTmYear = 1900;
  if (t.tm_year < kFirstYear) return std::nullopt;
  t.tm_year -= kTmYear;
  t.tm_mon -= 1;
  int millis = 0;
  const auto rest = std::string_view(text).substr(static_cast<std::size_t>(used));
  if (rest.starts_with('.'))
    for (std::size_t i = 1, unit = 100; i < rest.size() && 0 < unit; ++i, unit /= 10) {
      if (rest[i] < '0' || '9' < rest[i]) break;
      millis += static_cast<int>(unit) * (rest[i] - '0');
    }
  return milliseconds(std::int64_t{1000} * ::timegm(&t) + millis);
}

bool is_id(std::string_view id) {
  return 12 <= id.size() && id.size() <= 64 &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_image_reference(std::string_view ref) {
  return !ref.empty() && ref.size() <= 512 && ref.find("..") == std::string_view::npos &&
         ref.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "._/:@-") == std::string_view::npos;
}
}  // namespace

const Json& member_at(const Json& object, std::string_view key) {
  static const Json kNone;
  const auto at = object.items().find(key);
  return at == object.items().end() ? kNone : at->second;
}

std::string text_at(const Json& object, std::string_view key) {
  const Json& text = member_at(object, key);
  return text.is_string() ? text.string() : "";
}

Status DockerApi::connect(Clock::time_point deadline) {
  if (connection_ && connection_->fresh()) return ok_status();
  connection_.reset();
  PROCTOR_TRY(DockerConnection fresh, DockerConnection::open(socket_, deadline));
  connection_.emplace(std::move(fresh));
  return ok_status();
}

Result<HttpReply> DockerApi::call(std::string_view method, const std::string& target,
                                  const std::string& body, milliseconds limit,
                                  std::size_t body_max) {
  const auto deadline = Clock::now() + limit;
  PROCTOR_CHECK_OK(connect(deadline));
  return connection_->call(method, std::string(kPrefix) + target, body, deadline, body_max);
}

Status DockerApi::ping(milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  PROCTOR_CHECK_OK(connect(deadline));
  PROCTOR_TRY(const HttpReply reply, connection_->call("GET", "/_ping", "", deadline, kBodyMax));
  if (reply.status != 200) return refused("ping", reply);
  const auto found = reply.headers.find("api-version");
  const std::string version = found == reply.headers.end() ? "" : found->second;
  std::string_view rest = version;
  int minor = 0;
  if (take_word(rest, "1.")) take_number(rest, minor);
  if (minor < 41 && !version.starts_with("2.")) {
    return Error{Errc::kUnavailable, "docker engine at " + socket_ + ": speaks API '" +
                                         printable(version, 20) +
                                         "', needed is 1.41 (Docker 20.10) or later"};
  }
  return ok_status();
}

Result<std::map<std::string, std::string>> DockerApi::limits_offered() {
  PROCTOR_TRY(const HttpReply reply, call("GET", "/info", "", kQuick, kBodyMax));
  PROCTOR_TRY(const Json info, json_of("info", reply));
  const std::string version = text_at(info, "CgroupVersion");
  const auto offered = [&](const char* key) {
    return flag_at(info, key)
               ? "cgroup" + (version.empty() ? std::string("1") : printable(version, 8))
               : std::string("none");
  };
  // Version 2 counts pages of sockets with all others; no engine's runtime sets version 1's limit.
  const std::string sockets = version == "2" ? offered("MemoryLimit") : "monitor";
  std::map<std::string, std::string> out = {{"processes", offered("PidsLimit")},
                                            {"cpus", offered("CpuCfsQuota")},
                                            {"memory_sockets", sockets},
                                            {"open_files", "engine"},
                                            {"file", "rlimit"},
                                            {"network", "namespace"},
                                            {"inodes", "shared"},
                                            {"attempts", "none"},
                                            {"seccomp", "filter"}};
  for (const char* limit : {"cpu", "disk"}) out[limit] = "monitor";
  for (const char* limit : {"memory", "memory_sum", "memory_files"})
    out[limit] = offered("MemoryLimit");
  return out;
}

Result<DockerImage> DockerApi::image(const std::string& reference) {
  if (!is_image_reference(reference)) {
    return Error{Errc::kInvalid, "docker: image '" + printable(reference) + "' is not a reference"};
  }
  // Slashes are part of the path here, as the engine's router wants them.
  PROCTOR_TRY(const HttpReply reply,
              call("GET", "/images/" + reference + "/json", "", kQuick, kBodyMax));
  if (reply.status == 404) {
    return Error{Errc::kNotFound,
                 "docker: this engine has no image '" + reference + "' (pull or build it first)"};
  }
  PROCTOR_TRY(const Json json, json_of("image " + reference, reply));
  DockerImage image;
  image.id = text_at(json, "Id");
  if (!image.id.starts_with("sha256:")) {
    return Error{Errc::kCorrupt, "docker: image " + reference + " without an id"};
  }
  image.architecture = text_at(json, "Architecture");
  if (const Json& env = member_at(member_at(json, "Config"), "Env"); env.is_array())
    for (const Json& entry : env)
      if (entry.is_string())
        image.env.push_back(entry.string().substr(0, entry.string().find('=')));
  return image;
}

Status DockerApi::volume_exists(const std::string& name) {
  PROCTOR_TRY(const HttpReply reply,
              call("GET", "/volumes/" + url_encode(name), "", kQuick, kBodyMax));
  if (reply.status == 404) {
    return Error{Errc::kNotFound, "docker: no volume '" + printable(name) + "' for the workspace"};
  }
  if (reply.status != 200) return refused("volume " + name, reply);
  return ok_status();
}

Result<std::string> DockerApi::create(const std::string& config) {
  PROCTOR_TRY(const HttpReply reply, call("POST", "/containers/create", config, kSlow, kBodyMax));
  PROCTOR_TRY(const Json json, json_of("create a container", reply));
  std::string id = text_at(json, "Id");
  if (!is_id(id)) return Error{Errc::kCorrupt, "docker: a container without an id"};
  return id;
}

Result<DockerConnection> DockerApi::attach(const std::string& id) {
  const auto deadline = Clock::now() + kQuick;
  PROCTOR_TRY(DockerConnection stream, DockerConnection::open(socket_, deadline));
  PROCTOR_TRY(const HttpReply reply, stream.upgrade(std::string(kPrefix) + "/containers/" + id +
                                                        "/attach?stream=1&stdout=1&stderr=1",
                                                    deadline));
  if (reply.status != 101 && reply.status != 200) return refused("attach", reply);
  return stream;
}

Status DockerApi::read_log(const std::string& id, const DockerFrames::Sink& sink) {
  const auto deadline = Clock::now() + kSlow;
  PROCTOR_TRY(DockerConnection stream, DockerConnection::open(socket_, deadline));
  PROCTOR_TRY(const HttpReply reply, stream.upgrade(std::string(kPrefix) + "/containers/" + id +
                                                        "/attach?logs=1&stdout=1&stderr=1",
                                                    deadline));
  if (reply.status != 101 && reply.status != 200) return refused("read a log", reply);
  DockerFrames frames;
  for (;;) {
    std::string bytes;
    PROCTOR_TRY(const bool open, stream.read_raw(bytes, kLogChunk));
    PROCTOR_CHECK_OK(frames.feed(bytes, sink));
    if (!open) break;
    if (!bytes.empty()) continue;
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd waiting{stream.fd(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0)
      return Error{Errc::kUnavailable, "docker engine: a log that does not end"};
  }
  if (!frames.at_boundary())
    return Error{Errc::kUnavailable, "docker engine: a log broke off in a frame"};
  return ok_status();
}

Status DockerApi::start(const std::string& id, const std::function<Status()>& before_each) {
  for (int tries = 1;; ++tries) {
    PROCTOR_CHECK_OK(before_each());
    PROCTOR_TRY(const HttpReply reply,
                call("POST", "/containers/" + id + "/start", "", kSlow, kBodyMax));
    if (reply.status == 204 || reply.status == 304) return ok_status();
    if (tries == kStartsMost || reply.body.find(kDiedBefore) == std::string::npos)
      return refused("start a container", reply);
  }
}

Status DockerApi::begin_kill(const std::string& id) {
  const auto deadline = Clock::now() + kQuick;
  PROCTOR_CHECK_OK(connect(deadline));
  return connection_->begin("POST",
                            std::string(kPrefix) + "/containers/" + id + "/kill?signal=KILL", "",
                            deadline, kBodyMax);
}

Status DockerApi::set_paused(const std::string& id, const char* word) {
  PROCTOR_TRY(const HttpReply reply,
              call("POST", "/containers/" + id + "/" + word, "", kQuick, kBodyMax));
  // 404 and 409: gone, not running, or so already (some engines say 500 to the last).
  if (reply.status == 204 || reply.status == 404 || reply.status == 409) return ok_status();
  for (const char* already : {"is not paused", "is already paused"})
    if (reply.status == 500 && reply.body.find(already) != std::string::npos) return ok_status();
  return refused(std::string(word) + " a container", reply);
}

Result<ContainerState> DockerApi::inspect(const std::string& id) {
  PROCTOR_TRY(const HttpReply reply,
              call("GET", "/containers/" + id + "/json", "", kQuick, kBodyMax));
  PROCTOR_TRY(const Json json, json_of("inspect a container", reply));
  const Json& state = member_at(json, "State");
  if (state.is_null()) return Error{Errc::kCorrupt, "docker: a container without a state"};
  ContainerState out;
  out.running = flag_at(state, "Running");
  const auto begun = instant_at(state, "StartedAt"), ended = instant_at(state, "FinishedAt");
  out.begun = begun.has_value();
  if (begun && ended && !out.running)
    out.ran = std::max(milliseconds(0), *ended - *begun);  // clocks may jump
  out.oom_killed = flag_at(state, "OOMKilled");
  PROCTOR_TRY(out.exit_code, exit_code_at(state, "ExitCode"));
  if (const Json& pid = member_at(state, "Pid"); pid.is_number_integer()) out.pid = pid.get<int>();
  return out;
}

Result<bool> DockerApi::has_file(const std::string& id, const std::string& path) {
  constexpr std::size_t kProgramMax = std::size_t{64} << 20;
  PROCTOR_TRY(const HttpReply reply,
              call("GET", "/containers/" + id + "/archive?path=" + url_encode(path), "", kSlow,
                   kProgramMax));
  if (reply.status == 200) return true;
  if (reply.status == 404) return false;
  return refused("look into a container", reply);
}

Status DockerApi::remove(const std::string& id) {
  PROCTOR_TRY(const HttpReply reply,
              call("DELETE", "/containers/" + id + "?force=1&v=1", "", kSlow, kBodyMax));
  // 409: a removal is under way already.
  if (reply.status != 204 && reply.status != 404 && reply.status != 409) {
    return refused("remove a container", reply);
  }
  return ok_status();
}

Result<std::vector<std::string>> DockerApi::containers_of(const std::string& owner) {
  const Json filters = {{"label", Json::array({"proctor.owner=" + owner})}};
  const std::string text = filters.dump(-1, Json::Utf8::kReplace, true);
  PROCTOR_TRY(
      const HttpReply reply,
      call("GET", "/containers/json?all=1&filters=" + url_encode(text), "", kQuick, kListMax));
  PROCTOR_TRY(const Json json, json_of("list containers", reply));
  std::vector<std::string> out;
  for (const Json& entry : json) {
    std::string id = text_at(entry, "Id");
    // Its own word against ours: nothing without our label is ever touched.
    if (is_id(id) && text_at(member_at(entry, "Labels"), "proctor.owner") == owner)
      out.push_back(std::move(id));
  }
  return out;
}

Result<int> DockerApi::wait(const std::string& id) {
  PROCTOR_TRY(const HttpReply reply,
              call("POST", "/containers/" + id + "/wait", "", kSlow, kBodyMax));
  return wait_result(reply);
}

Status DockerApi::begin_wait(const std::string& id) {
  const auto deadline = Clock::now() + kQuick;
  PROCTOR_CHECK_OK(connect(deadline));
  return connection_->begin("POST", std::string(kPrefix) + "/containers/" + id + "/wait", "",
                            deadline, kBodyMax);
}

Result<int> DockerApi::wait_result(const HttpReply& reply) {
  PROCTOR_TRY(const Json json, json_of("wait for a container", reply));
  return exit_code_at(json, "StatusCode");
}
}  // namespace proctor
