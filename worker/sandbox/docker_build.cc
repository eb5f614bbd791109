#include "worker/sandbox/docker_build.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/sandbox/docker_api.h"
#include "worker/sandbox/docker_http.h"

namespace proctor {
namespace {
using Clock = DockerConnection::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kAnswer{30'000}, kRemoval{120'000}, kPoll{100};
// The engine reads the whole context before it answers.
constexpr milliseconds kContext{300'000};
// What a build says, as JSON.  One that says more is stopped.
constexpr std::size_t kSaidMax = std::size_t{64} << 20;
constexpr std::size_t kListMax = std::size_t{64} << 20;
constexpr std::size_t kLogKept = std::size_t{1} << 20;
constexpr std::size_t kWords = 600;
constexpr std::string_view kVersion = "/v1.41";

std::string encoded(const Json& json) {
  return url_encode(json.dump(-1, Json::Utf8::kReplace, true));
}

// Conditions of the host, which no Dockerfile is to blame for.
bool is_of_host(const std::string& error) {
  for (const char* word : {"no space left on device", "cannot allocate memory",
                           "too many open files", "disk quota exceeded", "input/output error"})
    if (error.find(word) != std::string::npos) return true;
  return false;
}

struct Said {
  std::string log, error;
};

// The engine says of its own objects what nobody asks for, and paints what comes from stderr.
std::string as_log(std::string_view text) {
  constexpr std::string_view kPaint = "\x1b[";
  if (text.starts_with("Removing intermediate container ") || text.starts_with(" ---> ")) return {};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t paint = std::min(text.find(kPaint, at), text.size());
    out += text.substr(at, paint - at);
    at = std::min(text.find('m', paint), text.size() - 1) + 1;
    if (paint == text.size()) break;
  }
  return out;
}

// One JSON object a line; of what is no such line nothing is made.
Said what_it_said(std::string_view body) {
  Said out;
  while (!body.empty()) {
    const auto line = parse_json(take_until(body, '\n'), {kSaidMax, 16});
    if (!line.ok() || !line->is_object()) continue;
    out.log += as_log(text_at(*line, "stream"));
    if (std::string error = text_at(*line, "error"); !error.empty()) out.error = std::move(error);
  }
  if (kLogKept < out.log.size()) out.log.erase(0, out.log.size() - kLogKept);
  return out;
}

std::string target_of(const DockerBuild& build) {
  std::string out =
      std::string(kVersion) + "/build?rm=1&forcerm=1&dockerfile=" + url_encode(build.dockerfile) +
      "&t=" + url_encode(build.name) + "&labels=" + encoded({{kBuildLabel, build.label}}) +
      "&networkmode=" + (build.network ? "default" : "none");
  if (!build.arguments.empty()) out += "&buildargs=" + encoded(Json(build.arguments));
  if (0 < build.memory_bytes) {
    const std::string bytes = std::to_string(build.memory_bytes);
    out += "&memory=" + bytes + "&memswap=" + bytes;
  }
  return out;
}

Error refused_by_engine(const std::string& what, const HttpReply& reply) {
  std::string said = reply.body;
  if (const auto json = parse_json(reply.body); json.ok() && !text_at(*json, "message").empty())
    said = text_at(*json, "message");
  return Error{Errc::kUnavailable, "docker: " + what + ": " + printable(said, kWords) +
                                       " (status " + std::to_string(reply.status) + ")"};
}

// {image, label} of all that have the label, layers without a name among them.
Result<std::vector<std::pair<std::string, std::string>>> labelled_images(
    const std::string& socket) {
  PROCTOR_TRY(
      const HttpReply reply,
      DockerApi(socket).call("GET",
                             "/images/json?all=1&filters=" +
                                 encoded({{"label", Json::array({std::string(kBuildLabel)})}}),
                             "", kAnswer, kListMax));
  if (reply.status != 200) return refused_by_engine("list images", reply);
  PROCTOR_TRY(const Json list, parse_json(reply.body, {kListMax, 64}));
  std::vector<std::pair<std::string, std::string>> out;
  for (const Json& image : list) {
    const std::string id = text_at(image, "Id");
    const std::string label = text_at(member_at(image, "Labels"), kBuildLabel);
    if (id.starts_with("sha256:") && !label.empty()) out.emplace_back(id, label);
  }
  return out;
}
}  // namespace

Result<DockerBuilt> build_docker_image(const std::string& socket, const DockerBuild& build,
                                       milliseconds limit, std::stop_token cancel) {
  const auto until = Clock::now() + limit;
  PROCTOR_TRY(DockerConnection c, DockerConnection::open(socket, Clock::now() + kAnswer));
  PROCTOR_CHECK_OK(c.begin("POST", target_of(build), build.context, Clock::now() + kContext,
                           kSaidMax, "application/x-tar"));
  DockerBuilt out;
  for (bool done = false; !done;) {
    if (cancel.stop_requested())
      return Error{Errc::kUnavailable, "docker: the build of an image was cancelled"};
    if (until <= Clock::now()) {
      out.failure = "stopped at its time limit of " + std::to_string(limit.count()) + " ms";
      out.log = what_it_said(c.so_far().body).log;
      return out;
    }
    pollfd waiting{c.fd(), POLLIN, 0};
    (void)::poll(&waiting, 1, static_cast<int>(kPoll.count()));
    Result<bool> progress = c.progress();
    if (!progress.ok() && progress.error().code == Errc::kExhausted) {
      out.failure = "it said more than " + std::to_string(kSaidMax >> 20) + " MiB";
      return out;
    }
    if (!progress.ok()) return std::move(progress).error();
    done = *progress;
  }
  const HttpReply reply = c.finish();
  // What the engine does not take of the Dockerfile it refuses before it begins.
  if (reply.status == 400) {
    out.failure = refused_by_engine("build", reply).detail;
    return out;
  }
  if (reply.status != 200) return refused_by_engine("build an image", reply);
  Said said = what_it_said(reply.body);
  out.log = std::move(said.log);
  if (is_of_host(said.error))
    return Error{Errc::kUnavailable, "docker: build an image: " + printable(said.error, kWords)};
  out.failure = printable(said.error, kWords);
  if (!out.failure.empty()) return out;
  PROCTOR_TRY(const DockerImage image, DockerApi(socket).image(build.name));
  out.id = image.id;
  return out;
}

Result<std::string> image_in_engine(const std::string& socket, const std::string& reference) {
  DockerApi api(socket);
  Result<DockerImage> image = api.image(reference);
  const std::size_t at = reference.find('@');
  if (!image.ok() && image.error().code == Errc::kNotFound && at != std::string::npos)
    image = api.image(reference.substr(at + 1));
  if (!image.ok()) return std::move(image).error();
  return image->id;
}

Result<std::vector<std::string>> labelled_builds(const std::string& socket,
                                                 const std::string& ending) {
  PROCTOR_TRY(const auto images, labelled_images(socket));
  std::set<std::string> labels;
  for (const auto& [id, label] : images)
    if (label.ends_with(ending)) labels.insert(label);
  return std::vector<std::string>(labels.begin(), labels.end());
}

// The engine itself would take nameless bases along (noprune), and refuses what others stand on:
// round after round the uppermost go.
Status remove_build(const std::string& socket, const std::string& label) {
  PROCTOR_TRY(const auto images, labelled_images(socket));
  std::vector<std::string> left;
  for (const auto& [id, own] : images)
    if (own == label) left.push_back(id);
  std::optional<Error> why;
  for (bool any = true; any && !left.empty();) {
    any = false;
    for (auto it = left.begin(); it != left.end();) {
      PROCTOR_TRY(const HttpReply reply,
                  DockerApi(socket).call("DELETE", "/images/" + *it + "?noprune=1", "", kRemoval,
                                         kListMax));
      if (reply.status != 200 && reply.status != 404) {
        why = refused_by_engine("remove an image", reply);
        if (reply.status == 409) why->code = Errc::kConflict;
        ++it;
        continue;
      }
      any = true;
      it = left.erase(it);
    }
  }
  if (!left.empty()) return *std::move(why);
  return ok_status();
}
}  // namespace proctor
