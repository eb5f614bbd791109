// What only the Docker engine can get wrong: images, volumes, labels, and engines that misbehave.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <thread>
#include <vector>

#include "common/base/json.h"
#include "common/base/owned.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/docker.h"
#include "worker/sandbox/docker_api.h"

using namespace proctor;
using namespace proctor::testing;
using std::chrono::milliseconds;

namespace {

// A listening socket at which somebody else than Docker, or nobody, answers.
UniqueFd listen_at(const fs::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const auto* where = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  REQUIRE(::bind(fd.get(), where, sizeof address) == 0);
  REQUIRE(::listen(fd.get(), 4) == 0);
  return fd;
}

}  // namespace

TEST_SUITE("sandbox docker") {
  TEST_CASE("an engine that is not there is unavailable at once") {
    CHECK_FALSE(docker_answers("/nonexistent/docker.sock"));
    const auto engine =
        open_sandbox_engine(SandboxKind::kDocker, {"test", "/nonexistent/docker.sock"});
    REQUIRE_FALSE(engine.ok());
    CHECK(engine.error().detail.find("/nonexistent/docker.sock") != std::string::npos);
  }

  TEST_CASE("an engine that accepts and says nothing is given up within a second or two") {
    const TempDir dir = TempDir::create().value();
    const UniqueFd listener = listen_at(dir.path() / "s");
    const auto begun = std::chrono::steady_clock::now();
    CHECK_FALSE(docker_answers((dir.path() / "s").string()));
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(60));
  }

  TEST_CASE("something else than an engine at the socket is told as such") {
    const TempDir dir = TempDir::create().value();
    for (const char* answer :
         {"220 smtp ready\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK",
          "HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 0\r\n\r\n", ""}) {
      CAPTURE(answer);
      const fs::path at = dir.path() / "s";
      fs::remove(at);
      const UniqueFd listener = listen_at(at);
      std::jthread server([&] {
        const UniqueFd peer(::accept(listener.get(), nullptr, nullptr));
        char request[512];
        (void)!::read(peer.get(), request, sizeof request);
        (void)!::write(peer.get(), answer, std::strlen(answer));
      });
      const auto engine = open_sandbox_engine(SandboxKind::kDocker, {"test", at.string()});
      REQUIRE_FALSE(engine.ok());
      CHECK_FALSE(engine.error().detail.empty());
    }
  }

  TEST_CASE("a container whose first process died before its command is started again") {
    const TempDir dir = TempDir::create().value();
    const std::string died = R"({"message":"cannot start a stopped process: unknown"})";
    const std::string full = R"({"message":"no space left on device"})";
    struct Row {
      const char* what;
      std::vector<std::string> refusals;  // then the container starts
      std::size_t tries;
      bool started;
    };
    const Row rows[] = {{"at once", {}, 1, true},
                        {"after two deaths", {died, died}, 3, true},
                        {"never", std::vector<std::string>(20, died), 8, false},
                        {"for another reason", {full}, 1, false}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const fs::path at = dir.path() / "s";
      fs::remove(at);
      UniqueFd listener = listen_at(at);
      std::jthread server([&] {
        const UniqueFd peer(::accept(listener.get(), nullptr, nullptr));
        char request[512];
        for (std::size_t i = 0; 0 < ::read(peer.get(), request, sizeof request); ++i) {
          const std::string answer =
              row.refusals.size() <= i
                  ? "HTTP/1.1 204 No Content\r\n\r\n"
                  : "HTTP/1.1 500 X\r\nContent-Length: " + std::to_string(row.refusals[i].size()) +
                        "\r\n\r\n" + row.refusals[i];
          (void)!::write(peer.get(), answer.data(), answer.size());
        }
      });
      std::size_t tries = 0;
      Status started = ok_status();
      {
        DockerApi api(at.string());
        started = api.start(std::string(12, 'a'), [&] {
          ++tries;
          return ok_status();
        });
      }
      CHECK(started.ok() == row.started);
      CHECK(tries == row.tries);
    }
  }

  TEST_CASE("an image is resolved to its id") {
    const auto bench = make_bench();
    if (!bench) return;
    DockerApi api(docker_socket());
    CHECK(api.image(bench->spec().image).value().id == bench->spec().image);
    const auto absent = api.image("proctor-no-such-image:1");
    REQUIRE_FALSE(absent.ok());
    CHECK(absent.error().code == Errc::kNotFound);
  }

  TEST_CASE("a workspace volume that is not there is refused and not made") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.workspace_volume = "proctor-test-no-such-volume";
    const auto sandbox = bench->engine().open(spec);
    REQUIRE_FALSE(sandbox.ok());
    CHECK(sandbox.error().code == Errc::kNotFound);
    CHECK_FALSE(docker_call("GET", "/volumes/proctor-test-no-such-volume").ok());
  }

  TEST_CASE("clean up removes this owner's containers and nobody else's") {
    const auto bench = make_bench();
    if (!bench) return;
    const auto make = [&](const Json& labels) {
      const Json body = {{"Image", bench->spec().image},
                         {"Cmd", {"/bin/sh", "-c", "sleep 600"}},
                         {"Labels", labels}};
      const auto reply = docker_call("POST", "/containers/create", body.dump());
      REQUIRE(reply.ok());
      return parse_json(*reply).value()["Id"].get<std::string>();
    };
    SandboxOptions options{"proctor-test-victim-" + std::to_string(::getpid()), docker_socket()};
    const std::string ours = make({{"proctor.owner", options.owner}});
    const std::string others = make({{"proctor.owner", options.owner + "-not"}});
    const std::string unlabelled = make(Json::object());
    REQUIRE(docker_call("POST", "/containers/" + ours + "/start").ok());
    auto engine = open_sandbox_engine(SandboxKind::kDocker, options);
    REQUIRE(engine.ok());
    CHECK((*engine)->clean_up().ok());
    CHECK_FALSE(docker_call("GET", "/containers/" + ours + "/json").ok());
    CHECK(docker_call("GET", "/containers/" + others + "/json").ok());
    CHECK(docker_call("GET", "/containers/" + unlabelled + "/json").ok());
    CHECK(docker_call("DELETE", "/containers/" + others + "?force=1").ok());
    CHECK(docker_call("DELETE", "/containers/" + unlabelled + "?force=1").ok());
  }

  TEST_CASE("an image without a shell is the image's fault and no verdict") {
    const auto bench = make_bench();
    if (!bench) return;
    const TempDir dir = TempDir::create().value();
    const std::string name = "proctor-no-shell-" + std::to_string(::getpid()) + ":1";
    const auto image = write_image_without_shell(dir.path(), name);
    REQUIRE(image.ok());
    const std::string bytes = read_file(image->archive, std::size_t{1} << 20).value();
    REQUIRE(docker_call("POST", "/images/load?quiet=1", bytes).ok());
    SandboxSpec spec = bench->spec();
    spec.image = image->id;
    auto sandbox = bench->engine().open(spec);
    REQUIRE(sandbox.ok());
    const auto outcome = (*sandbox)->run(exec_of(*bench, "true"), {});
    CHECK(docker_call("DELETE", "/images/" + image->id + "?force=1").ok());
    REQUIRE_FALSE(outcome.ok());
    CHECK(outcome.error().code == Errc::kInvalid);
    CHECK(outcome.error().detail.find("/bin/sh") != std::string::npos);
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("a variable of the image is not seen unless the spec names it") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.env = {{"ONLY", "this"}};
    auto sandbox = bench->engine().open(spec);
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = "/usr/bin/env -u PWD -u OLDPWD -u _ -u SHLVL";
    exec.stdout_file = bench->scratch() / "out";
    REQUIRE((*sandbox)->run(exec, {}).value().exit_code == 0);
    CHECK(read_file(exec.stdout_file, 1000).value() == "ONLY=this\n");
  }
}
