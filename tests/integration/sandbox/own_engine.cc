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
  spec.argv = {"dockerd",          "--data-root",  root + "/data",
               "--exec-root",      root + "/exec", "--pidfile",
               root + "/pid",      "-H",           "unix://" + root + "/sock",
               "--iptables=false", "--bridge=none"};
  child_.emplace(must(Child::start(spec, dir_.path() / "log", Child::Lifetime::kDiesWithParent)));
  REQUIRE(eventually([&] { return answers(); }));
}

void OwnEngine::kill() {
  child_->signal(SIGKILL);
  REQUIRE(child_->wait(10s).has_value());
}

}  // namespace proctor::testing
