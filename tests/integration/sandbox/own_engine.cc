#include "tests/integration/sandbox/own_engine.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/support/leftovers.h"
#include "worker/sandbox/sandbox.h"

namespace proctor::testing {

using namespace std::chrono_literals;

namespace {
constexpr const char* kVariable = "PROCTOR_DOCKER_SOCKET";

void name_engine(const std::string& socket) {
  if (socket.empty()) {
    ::unsetenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  } else {
    ::setenv(kVariable, socket.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
}
}  // namespace

bool OwnEngine::possible() {
  CommandSpec version;
  version.argv = {"dockerd", "--version"};
  const Result<CommandOutcome> ran = run_command(version);
  return ::geteuid() == 0 && ran.ok() && ran->success();
}

OwnEngine::OwnEngine() : dir_(must(TempDir::create("engine"))) {
  const char* before = ::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe)
  before_ = before != nullptr ? before : "";
  name_engine(socket().string());
  // A network that outlives each life of the engine (its shims are asked for by names in it), and
  // is not ours: an engine without a bridge removes docker0, which is somebody else's.
  CommandSpec network;
  network.argv = {"unshare", "--net", "sh", "-c", "echo made; exec sleep infinity"};
  const fs::path said = dir_.path() / "network";
  network_.emplace(must(Child::start(network, said, Child::Lifetime::kDiesWithParent)));
  REQUIRE(eventually([&] { return must(read_file(said, 64)) == "made\n"; }));
  start();
}

OwnEngine::~OwnEngine() {
  // Only a living engine ends containers that outlived a killed one.
  if (!child_->running()) start();
  child_->stop(30s);
  clear_away(dir_.path());
  name_engine(before_);
}

bool OwnEngine::answers() const {
  return docker_answers(socket().string());
}

void OwnEngine::start() {
  const std::string root = dir_.path().string();
  CommandSpec spec;
  spec.argv = {"nsenter",
               "--net=/proc/" + std::to_string(network_->pid()) + "/ns/net",
               "dockerd",
               "--data-root",
               root + "/data",
               "--exec-root",
               root + "/exec",
               "--pidfile",
               root + "/pid",
               "-H",
               "unix://" + root + "/sock",
               "--iptables=false",
               "--bridge=none"};
  child_.emplace(must(Child::start(spec, dir_.path() / "log", Child::Lifetime::kDiesWithParent)));
  REQUIRE(eventually([&] { return answers(); }));
}

void OwnEngine::kill() {
  child_->signal(SIGKILL);
  REQUIRE(child_->wait(180s).has_value());
  // Its containerd dies with it; where nobody reaps that one the next engine would wait for it.
  std::error_code ec;
  fs::remove(dir_.path() / "exec/containerd/containerd.pid", ec);
}

}  // namespace proctor::testing
