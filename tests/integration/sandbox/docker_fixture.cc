#include "tests/integration/sandbox/docker_fixture.h"

#include <unistd.h>

#include <cstdlib>

#include "common/base/files.h"
#include "common/base/json.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/docker_http.h"

namespace proctor::testing {

// Every process its own: it is removed at the end, whoever uses another.
std::string test_image_name() {
  return "proctor-test-" + std::to_string(::getpid()) + ":latest";
}

namespace {

using WriteImage = Result<TestImage> (*)(const fs::path& dir, const std::string& name);

Result<std::string> load_image(WriteImage write, const std::string& name) {
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-test-image"));
  PROCTOR_TRY(const TestImage image, write(dir.path(), name));
  PROCTOR_TRY(const std::string bytes, read_file(image.archive, std::size_t{256} << 20));
  PROCTOR_TRY(const std::string reply, docker_call("POST", "/images/load?quiet=1", bytes));
  return image.id;
}

}  // namespace

Result<std::string> make_test_image() {
  return load_image(write_test_image, test_image_name());
}

namespace {

struct ImageOwner {
  Result<std::string> id;
  ~ImageOwner() {
    if (id.ok()) (void)docker_call("DELETE", "/images/" + *id + "?force=1").ok();
  }
};

}  // namespace

std::string docker_socket() {
  const char* given = ::getenv("PROCTOR_DOCKER_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr && *given != '\0' ? given : "/var/run/docker.sock";
}

Result<std::string> docker_call(const std::string& method, const std::string& target,
                                const std::string& body) {
  // An image of some size is loaded on a machine that does much else.
  const auto deadline = DockerConnection::Clock::now() + std::chrono::seconds(300);
  PROCTOR_TRY(DockerConnection c, DockerConnection::open(docker_socket(), deadline));
  PROCTOR_TRY(HttpReply reply, c.call(method, "/v1.41" + target, body, deadline));
  if (299 < reply.status) {
    return Error{Errc::kUnavailable, std::to_string(reply.status) + ": " + reply.body};
  }
  return std::move(reply.body);
}

std::string left_in_engine(const std::string& mark) {
  const auto left_of = [&](const char* what, const Json& objects) {
    std::string out;
    for (const Json& object : objects) {
      if (!object.contains("Labels") || !object["Labels"].is_object()) continue;
      if (object["Labels"].value("proctor.owner", "").ends_with(mark))
        out += what + object.dump() + "\n";
    }
    return out;
  };
  const auto ask = [](const char* target) -> Result<Json> {
    PROCTOR_TRY(const std::string body, docker_call("GET", target));
    return parse_json(body, {std::size_t{16} << 20, 64});
  };
  const Result<Json> containers = ask("/containers/json?all=1"), volumes = ask("/volumes");
  if (!containers.ok()) return "engine: " + containers.error().detail + "\n";
  if (!volumes.ok()) return "engine: " + volumes.error().detail + "\n";
  return left_of("container ", *containers) + left_of("volume ", volumes->at("Volumes"));
}

Result<std::string> test_image() {
  static const ImageOwner owner{make_test_image()};
  return owner.id;
}

Result<std::string> python_test_image() {
  static const ImageOwner owner{
      load_image(write_python_image, "proctor-python-" + std::to_string(::getpid()) + ":latest")};
  return owner.id;
}

}  // namespace proctor::testing
