// Workers of this machine that cannot work.
#include "coordinator/shell/local_workers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

using namespace proctor;
using namespace std::chrono_literals;

namespace {

// PATH begins with a folder for as long as it lives.
class OnPath {
 public:
  explicit OnPath(const fs::path& folder) : before_(std::getenv("PATH")) {
    ::setenv("PATH", (folder.string() + ":" + before_).c_str(), 1);
  }
  OnPath(const OnPath&) = delete;
  OnPath& operator=(const OnPath&) = delete;
  ~OnPath() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

}  // namespace

TEST_SUITE("shell") {
  TEST_CASE("a local worker that ends whenever it is started is given up") {
    const auto dir = TempDir::create("given-up");
    REQUIRE(dir.ok());
    const fs::path program = dir->path() / "proctor-worker";
    REQUIRE(write_file(program, "#!/bin/sh\nexit 2\n").ok());
    REQUIRE(::chmod(program.c_str(), 0700) == 0);
    const OnPath path(dir->path());
    LocalWorkersSpec spec;
    spec.folder = StateFolder{dir->path()};
    spec.endpoint = "ipc://" + (dir->path() / "none").string();
    spec.workers = 1;
    spec.extra = {"--no-such-option"};  // where the real one lies beside this program
    spec.backoff = 1ms;
    auto workers = LocalWorkers::start(spec);
    REQUIRE(workers.ok());
    CHECK_FALSE(workers->all_given_up());
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!workers->all_given_up() && std::chrono::steady_clock::now() < until) {
      workers->tend();
      std::this_thread::yield();
    }
    CHECK(workers->all_given_up());
    workers->stop();
  }

  TEST_CASE("a pipe in the place of a local worker's log is refused, and nobody waits for it") {
    const auto dir = TempDir::create("log-pipe");
    REQUIRE(dir.ok());
    LocalWorkersSpec spec;
    spec.folder = StateFolder{dir->path()};
    spec.endpoint = "ipc://" + (dir->path() / "none").string();
    spec.workers = 1;
    REQUIRE(make_dirs(spec.folder.logs()).ok());
    REQUIRE(::mkfifo(spec.folder.worker_log("local-1").c_str(), 0600) == 0);
    const auto workers = LocalWorkers::start(spec);
    REQUIRE_FALSE(workers.ok());
    CHECK(workers.error().detail.find("a named pipe") != std::string::npos);
  }
}
